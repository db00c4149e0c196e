//! `/billing` and `/account/subscription` for people who are signed in, and the history for the app.

use kernel::{Authored, Result, TenantId};
use store::Tx;
use tenancy::{
    App, apps,
    callers::{KeyCaller, SignedIn, TenantRead, TenantWrite, UserCaller},
    credentials,
};
use web::{Created, CreatedEmpty, Json, Page, Params, Path, Routes, State, Valid, ValidOrNone};

use super::{
    Agreement, Status, Subscription, SubscriptionChange,
    wire::{BillingState, PlanBySlug, PlanSelection, PlanSwitch, SubscriptionStatus, SubscriptionView},
};
use crate::{Billing, catalog, payment_details::days_left};

/// The plan that a trial is of when none is named.
const TRIED_BY_DEFAULT: &str = "pro";

const PROVIDER_FAILED: &str = "The payment provider cannot be used";

pub fn routes() -> Routes<Billing> {
    Routes::new("Subscriptions")
        .get("/billing/state", state, "Get the state of the workspace's subscription")
        .answers(404, "The workspace has no subscription")
        .post("/billing/subscriptions", ensure, "Create the workspace's first subscription")
        .description(
            "A subscription that exists, canceled or not, is returned unchanged. Without `planSlug` it is to the oldest free \
             plan. A plan with a trial begins with it.",
        )
        .answers(409, "The trial of the plan has been used")
        .post("/billing/cancel", cancel, "Cancel the subscription at the end of its period")
        .description(
            "A trial ends with the trial. A change of plan that was waiting is dropped; otherwise a subscription that was \
             canceled before is returned unchanged.",
        )
        .answers(404, "The workspace has no subscription")
        .answers(502, PROVIDER_FAILED)
        .post("/billing/reactivate", reactivate, "Continue a subscription that is about to end")
        .description("Any other subscription is returned unchanged. A change of plan that was waiting is dropped.")
        .answers(404, "The workspace has no subscription")
        .answers(502, PROVIDER_FAILED)
        .post("/billing/trial/start", start_trial, "Start a trial")
        .description("Of the plan `pro` unless `planSlug` names another. A trial that is running is returned unchanged.")
        .answers(409, "The trial has been used, or a paid subscription is running")
        .get("/account/subscription/status", status, "See what the workspace has to do about plan and payments")
        .post("/account/subscription/select", select, "Select a free plan")
        .description("While a paid subscription is running at the payment provider, the plan begins when its period ends.")
        .answers(502, PROVIDER_FAILED)
        .post("/account/subscription/change", change, "Change to another plan or price")
        .description(
            "Applied through the payment provider when the subscription is running there, else directly. A free plan waits \
             for the end of a period that was paid for. Another interval begins a new period, which is paid for at once.",
        )
        .answers(409, "The new period could not be paid for")
        .answers(502, PROVIDER_FAILED)
        .get(
            "/account/tenant/{tenant_id}/subscription/history",
            history,
            "List the changes of a workspace's subscription, newest first",
        )
}

/// Does something to the caller's workspace, in their name.
async fn write<T: Send + 'static>(
    billing: &Billing,
    user: &SignedIn,
    work: impl Fn(&mut Tx<'_>, &App, TenantId) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (app, tenant) = (user.app(), user.tenant());
    let db = billing.tenancy.db.by(&user.author());
    db.write(move |tx| {
        let app = apps::get(tx, app)?;
        work(tx, &app, tenant)
    })
    .await
}

async fn state(
    UserCaller(user, _): UserCaller<TenantRead>,
    State(billing): State<Billing>,
) -> Result<Json<BillingState>> {
    let (app, tenant) = (user.app(), user.tenant());
    let found = billing.tenancy.db.read(move |tx| super::find(tx, app, tenant)).await?;
    Ok(Json((&found.ok_or_else(super::not_found)?.agreement).into()))
}

fn shown(subscription: &Subscription) -> Created<SubscriptionView> {
    Created(subscription.into())
}

async fn ensure(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(billing): State<Billing>,
    ValidOrNone(body): ValidOrNone<PlanBySlug>,
) -> Result<Created<SubscriptionView>> {
    let slug = body.unwrap_or_default().plan_slug;
    let ensured = write(&billing, &user, move |tx, app, tenant| super::ensure(tx, app, tenant, slug.as_deref()));
    Ok(shown(&ensured.await?))
}

async fn cancel(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(billing): State<Billing>,
) -> Result<Created<SubscriptionView>> {
    Ok(shown(&billing.cancel(&user, user.app(), user.tenant()).await?))
}

async fn reactivate(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(billing): State<Billing>,
) -> Result<Created<SubscriptionView>> {
    Ok(shown(&billing.reactivate(&user, user.app(), user.tenant()).await?))
}

async fn start_trial(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(billing): State<Billing>,
    ValidOrNone(body): ValidOrNone<PlanBySlug>,
) -> Result<Created<SubscriptionView>> {
    let slug = body.unwrap_or_default().plan_slug;
    let started = write(&billing, &user, move |tx, app, tenant| {
        super::start_trial(tx, app, tenant, slug.as_deref().unwrap_or(TRIED_BY_DEFAULT))
    });
    Ok(shown(&started.await?))
}

async fn select(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(billing): State<Billing>,
    Valid(choice): Valid<PlanSelection>,
) -> Result<CreatedEmpty> {
    billing.select(&user, user.app(), user.tenant(), choice.plan_key.to_string()).await?;
    Ok(CreatedEmpty)
}

async fn change(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(billing): State<Billing>,
    Valid(choice): Valid<PlanSwitch>,
) -> Result<CreatedEmpty> {
    let owner = (user.app(), user.tenant());
    billing.change(&user, owner, choice.plan_key.to_string(), choice.price_offer).await?;
    Ok(CreatedEmpty)
}

async fn status(
    UserCaller(user, _): UserCaller<TenantRead>,
    State(billing): State<Billing>,
) -> Result<Json<SubscriptionStatus>> {
    let (app, tenant) = (user.app(), user.tenant());
    let read = move |tx: &mut Tx<'_>| {
        let app = apps::get(tx, app)?;
        status_of(tx, &app, tenant)
    };
    Ok(Json(billing.tenancy.db.snapshot(read).await?))
}

fn status_of(tx: &mut Tx<'_>, app: &App, tenant: TenantId) -> Result<SubscriptionStatus> {
    let subscription = super::find(tx, app.id, tenant)?.filter(|found| !found.agreement.is_over());
    let agreement = subscription.as_ref().map(|subscription| &subscription.agreement);
    let plan = match agreement {
        Some(agreement) => catalog::find_plan_by_key(tx, app.id, &agreement.bought.plan.key)?,
        None => None,
    };
    let payments = super::view_of(agreement).payment_status(credentials::has_payprovider(tx, app.id)?);
    let trial_days_left = days_left(agreement.and_then(Agreement::trial_until), tx.now());
    Ok(SubscriptionStatus {
        payments_enabled: payments.payments_enabled,
        should_select_plan: payments.should_select_plan,
        should_setup_payments: payments.should_setup_payments,
        payment_failed: agreement.is_some_and(|agreement| agreement.status() == Status::PastDue),
        payments_auto_redirect: app.profile.payments_auto_redirect,
        trial: trial_days_left > 0,
        trial_days_left,
        plan: plan.map(Into::into),
    })
}

async fn history(
    caller: KeyCaller<TenantRead>,
    State(billing): State<Billing>,
    Path(tenant): Path<TenantId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<SubscriptionChange>>> {
    caller.in_workspace(tenant)?;
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.snapshot(move |tx| super::history(tx, app, tenant, page)).await?))
}
