//! `POST /admin/apps/{app_id}/simulate`: drives a subscription of the sandbox through what time and money do to it, for real:
//! events, mails and gates included.

use kernel::{AppId, Code, Error, Result, TenantId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::Mark;
use store::{Tx, text_enum};
use tenancy::{App, Tenancy, apps, callers::Operator};
use web::{Json, Path, Routes, State, Valid, Validate};

use crate::{
    Billing,
    facts::EVENTS,
    providers::{self, Provider, sandbox},
    subscriptions::{self, Agreement, Subscription, rules::Command, wire::SubscriptionView},
};

pub(super) fn routes() -> Routes<Billing> {
    Routes::new("Billing")
        .post("/admin/apps/{app_id}/simulate", simulate, "Let something happen to a subscription of the sandbox")
        .description(
            "`renewal_paid` and `renewal_failed` charge the card now and say how that ends; `dunning_exhausted` ends dunning; \
             `trial_ended` and `period_ended` bring that moment forward.",
        )
        .answers(404, "There is no such workspace here, or it has no subscription")
        .answers(409, "The subscription is not the sandbox's, or is in no state for this")
}

text_enum! {
    /// What happens.
    wire pub enum SimulatedEvent {
        RenewalPaid = "renewal_paid",
        RenewalFailed = "renewal_failed",
        DunningExhausted = "dunning_exhausted",
        TrialEnded = "trial_ended",
        PeriodEnded = "period_ended",
    }
}

/// The body of `POST /admin/apps/{app_id}/simulate`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Simulation {
    workspace_id: TenantId,
    event: SimulatedEvent,
}

impl Validate for Simulation {}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Simulated {
    subscription: SubscriptionView,
    /// The types of the events that it fired, in order.
    events: Vec<String>,
}

async fn simulate(
    operator: Operator,
    State(billing): State<Billing>,
    Path(app): Path<AppId>,
    Valid(Simulation { workspace_id, event }): Valid<Simulation>,
) -> Result<Json<Simulated>> {
    let tenancy = billing.tenancy.clone();
    let work = move |tx: &mut Tx<'_>| run(tx, &tenancy, app, workspace_id, event);
    Ok(Json(billing.tenancy.db.by(&operator).write(work).await?))
}

fn run(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, tenant: TenantId, event: SimulatedEvent) -> Result<Simulated> {
    let app = apps::get(tx, app)?;
    if !matches!(providers::of(tx, tenancy, &app), Ok(Provider::Sandbox)) {
        return Err(refused("This app is not paid through the sandbox."));
    }
    let before = subscriptions::running(tx, &app, tenant)?.ok_or_else(|| Error::not_found("subscription"))?;
    let mark = Mark::set(tx);
    let after = happen(tx, tenancy, &app, before, event)?;
    let mut events = mark.emitted(tx, tenant)?;
    events.retain(|kind| EVENTS.contains(&kind.as_str()));
    Ok(Simulated { subscription: (&after).into(), events })
}

fn happen(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    before: Subscription,
    event: SimulatedEvent,
) -> Result<Subscription> {
    let agreement = &before.agreement;
    match event {
        SimulatedEvent::RenewalPaid | SimulatedEvent::RenewalFailed => {
            paid_there(agreement)?;
            sandbox::charge(tx, tenancy, app, before, Some(event == SimulatedEvent::RenewalPaid))
        }
        SimulatedEvent::DunningExhausted if agreement.dunning().is_none() => {
            Err(refused("No payment of this subscription has failed."))
        }
        SimulatedEvent::DunningExhausted => subscriptions::command(tx, app, before, &Command::Exhaust),
        SimulatedEvent::TrialEnded if agreement.trial_until().is_none() => {
            Err(refused("This subscription has no trial."))
        }
        SimulatedEvent::TrialEnded => subscriptions::command(tx, app, before, &Command::EndPeriod),
        SimulatedEvent::PeriodEnded if agreement.trial_until().is_some() => {
            Err(refused("A trial is running. Simulate trial_ended instead."))
        }
        SimulatedEvent::PeriodEnded => {
            let renewed = subscriptions::command(tx, app, before, &Command::EndPeriod)?;
            let is_due = renewed.agreement.runs_at_provider() && renewed.agreement.ends_at().is_none();
            if is_due { sandbox::charge(tx, tenancy, app, renewed, None) } else { Ok(renewed) }
        }
    }
}

fn paid_there(agreement: &Agreement) -> Result<()> {
    if agreement.runs_at_provider() { Ok(()) } else { Err(refused("Nothing is being paid for this subscription.")) }
}

fn refused(message: &str) -> Error {
    Error::new(Code::NotSimulated, message.to_owned())
}
