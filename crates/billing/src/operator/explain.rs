//! `POST /admin/apps/{app_id}/explain`: what decides about an entitlement or a limit, in one sentence and as data, by the
//! very functions that decide.

use kernel::{AppId, Label, Problems, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Tx;
use tenancy::{callers::Operator, workspaces};
use web::{Json, Path, Routes, State, Valid, Validate};

use crate::{
    Billing,
    catalog::plans::Quota,
    entitlements::{
        self,
        rules::{DecidedBy, Overrides, Terms, Usage},
    },
    subscriptions::{self, Status},
    usage::{self, QuotaSnapshot},
};

pub(super) fn routes() -> Routes<Billing> {
    Routes::new("Billing")
        .post("/admin/apps/{app_id}/explain", explain, "Explain what decides about an entitlement or a limit")
        .answers(404, "There is no such workspace here")
}

/// The body of `POST /admin/apps/{app_id}/explain`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Question {
    workspace_id: TenantId,
    /// Either this or `metric`.
    entitlement: Option<Label>,
    metric: Option<Label>,
}

impl Validate for Question {
    fn validate(&self, problems: &mut Problems) {
        let one = self.entitlement.is_some() != self.metric.is_some();
        problems.check("entitlement", one, "or metric is required, and not both");
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// Of an entitlement.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<bool>,
    /// The limit of a metric; `null` when it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i64>")]
    value: Option<Option<i64>>,
    decided_by: DecidedBy,
    sentence: String,
    /// The plan's key.
    plan: Option<String>,
    status: Option<Status>,
    gate_engaged: bool,
    #[serde(skip_serializing_if = "Option::is_none", rename = "override")]
    overridden: Option<OverrideSeen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<Quota>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<QuotaSnapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<PeriodSeen>,
    /// When what decided came about, as far as that is known.
    since: Option<Timestamp>,
}

/// What the app grants this workspace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct OverrideSeen {
    #[serde(skip_serializing_if = "Option::is_none")]
    entitlement: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<i64>,
    until: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PeriodSeen {
    start: Timestamp,
    end: Timestamp,
}

async fn explain(
    _: Operator,
    State(billing): State<Billing>,
    Path(app): Path<AppId>,
    Valid(question): Valid<Question>,
) -> Result<Json<Answer>> {
    Ok(Json(billing.tenancy.db.snapshot(move |tx| answer(tx, app, &question)).await?))
}

fn answer(tx: &mut Tx<'_>, app: AppId, question: &Question) -> Result<Answer> {
    let tenant = question.workspace_id;
    workspaces::billing_view(tx, app, tenant)?;
    let terms = entitlements::terms(tx, app, tenant)?;
    let used = usage::used(tx, app, tenant, terms.period(tx.now()))?;
    let now = tx.now();
    let mut answer = match (&question.entitlement, &question.metric) {
        (Some(name), _) => of_entitlement(&terms, name, &used, now),
        (None, Some(metric)) => of_metric(&terms, metric, &used, now),
        (None, None) => return Err(kernel::Error::invalid("entitlement", "or metric is required")),
    };
    answer.since = since(tx, app, tenant, answer.decided_by)?;
    Ok(answer)
}

/// When the row that decided was last changed.
fn since(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, decided_by: DecidedBy) -> Result<Option<Timestamp>> {
    match decided_by {
        DecidedBy::Plan | DecidedBy::Status | DecidedBy::Gate => subscriptions::last_changed(tx, app, tenant),
        DecidedBy::Override => entitlements::overrides_changed(tx, app, tenant),
        DecidedBy::Quota => entitlements::set_changed(tx, app, tenant),
    }
}

fn base(terms: &Terms, decided_by: DecidedBy, now: Timestamp) -> Answer {
    let agreement = terms.agreement.as_ref();
    let period = terms.period(now);
    Answer {
        allowed: None,
        value: None,
        decided_by,
        sentence: String::new(),
        plan: agreement.map(|agreement| agreement.bought.plan.key.clone()),
        status: agreement.map(|agreement| agreement.status()),
        gate_engaged: agreement.is_some_and(|agreement| agreement.gate_engaged),
        overridden: None,
        quota: None,
        usage: None,
        period: Some(PeriodSeen { start: period.start, end: period.end }),
        since: None,
    }
}

fn of_entitlement(terms: &Terms, name: &str, used: &Usage, now: Timestamp) -> Answer {
    let (allowed, decided_by) = terms.decide(name, used, now);
    let quota = terms.quotas(now).into_iter().find(|quota| quota.entitlement.as_deref() == Some(name));
    let granted = terms.overrides(now).and_then(|own| Some((*own.entitlements.get(name)?, own)));
    let overridden =
        granted.map(|(granted, own)| OverrideSeen { entitlement: Some(granted), limit: None, until: own.until });
    let base = base(terms, decided_by, now);
    let verb = if allowed { "is allowed" } else { "is not allowed" };
    Answer {
        allowed: Some(allowed),
        sentence: format!("{name} {verb}: {}.", reason(terms, decided_by, allowed, quota.as_ref(), used)),
        overridden,
        usage: quota.as_ref().map(|quota| snapshot(quota, used)),
        quota,
        ..base
    }
}

fn of_metric(terms: &Terms, metric: &str, used: &Usage, now: Timestamp) -> Answer {
    let quota = terms.quota(metric, now);
    let own = terms.overrides(now).filter(|_| terms.limit_is_overridden(metric, now));
    let decided_by = if own.is_some() { DecidedBy::Override } else { DecidedBy::Plan };
    let count = used.get(metric).copied().unwrap_or(0);
    let sentence = match (&quota, own) {
        (None, _) => format!("{metric} has no limit: the plan has no quota for it; {count} used in this period."),
        (Some(quota), Some(_)) => {
            format!("{metric} is limited to {} by an override; {count} used in this period.", quota.limit)
        }
        (Some(quota), None) => {
            format!("{metric} is limited to {} by the plan; {count} used in this period.", quota.limit)
        }
    };
    let seen =
        |own: &Overrides, quota: &Quota| OverrideSeen { entitlement: None, limit: Some(quota.limit), until: own.until };
    Answer {
        value: Some(quota.as_ref().map(|quota| quota.limit)),
        sentence,
        overridden: own.zip(quota.as_ref()).map(|(own, quota)| seen(own, quota)),
        usage: quota.as_ref().map(|quota| snapshot(quota, used)),
        quota,
        ..base(terms, decided_by, now)
    }
}

fn snapshot(quota: &Quota, used: &Usage) -> QuotaSnapshot {
    QuotaSnapshot::of(quota, used.get(&quota.metric).copied().unwrap_or(0))
}

fn reason(terms: &Terms, decided_by: DecidedBy, allowed: bool, quota: Option<&Quota>, used: &Usage) -> String {
    let plan = terms.agreement.as_ref().map_or("", |agreement| agreement.bought.plan.key.as_str());
    match decided_by {
        DecidedBy::Status if terms.agreement.is_none() => "the workspace has no subscription".to_owned(),
        DecidedBy::Status => format!("the subscription to {plan} is canceled"),
        DecidedBy::Gate => "access is gated, since a payment has failed for too long".to_owned(),
        DecidedBy::Override if allowed => "an override grants it".to_owned(),
        DecidedBy::Override => "an override takes it away".to_owned(),
        DecidedBy::Quota => {
            let (metric, limit) = quota.map_or(("", 0), |quota| (quota.metric.as_str(), quota.limit));
            let count = used.get(metric).copied().unwrap_or(0);
            format!("the quota of {metric} is used up, {count} of {limit}")
        }
        DecidedBy::Plan if allowed => format!("the plan {plan} includes it"),
        DecidedBy::Plan => format!("the plan {plan} does not include it"),
    }
}
