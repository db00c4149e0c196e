//! Which facts follow from a change of a subscription.

use ::store::Tx;
use kernel::{AppId, Result};
use spine::emit;

use super::{Agreement, Subscription, rules::Told, view_of};
use crate::facts::{
    PlanChangeData, PlanChangeScheduled, PriceChanged, SubscriptionCanceled, SubscriptionCreated, SubscriptionData,
    SubscriptionPastDue, SubscriptionPlanChanged, SubscriptionReactivated, SubscriptionTrialEnded,
    SubscriptionTrialStarted, SubscriptionUpdated,
};

/// Tells of a change, or of a new subscription.
pub fn tell(
    tx: &mut Tx<'_>,
    app: AppId,
    before: Option<&Agreement>,
    after: &Subscription,
    told: &[Told],
) -> Result<()> {
    told.iter().try_for_each(|told| tell_step(tx, app, after, told))?;
    let Some(before) = before else { return Ok(()) };
    tell_lesser(tx, app, before, after)?;
    if told.is_empty() && tokens_say(before) != tokens_say(&after.agreement) {
        emit(tx, (app, after.tenant), &SubscriptionUpdated(after.data()))?;
    }
    Ok(())
}

impl Subscription {
    fn data(&self) -> SubscriptionData {
        SubscriptionData {
            workspace_id: self.tenant,
            subscription_id: self.id,
            plan: self.agreement.bought.plan.key.clone(),
            status: self.agreement.status(),
            ends_at: self.agreement.ends_at(),
        }
    }
}

fn tell_step(tx: &mut Tx<'_>, app: AppId, subscription: &Subscription, told: &Told) -> Result<()> {
    let (scope, data) = ((app, subscription.tenant), subscription.data());
    match told {
        Told::Created => emit(tx, scope, &SubscriptionCreated(data)),
        Told::TrialStarted => emit(tx, scope, &SubscriptionTrialStarted(data)),
        Told::TrialEnded => emit(tx, scope, &SubscriptionTrialEnded(data)),
        Told::PastDue => emit(tx, scope, &SubscriptionPastDue(data)),
        Told::Reactivated => emit(tx, scope, &SubscriptionReactivated(data)),
        Told::Canceled => emit(tx, scope, &SubscriptionCanceled(data)),
        Told::PlanChanged { from } => {
            let SubscriptionData { workspace_id, subscription_id, plan, status, ends_at } = data;
            let (from_plan, to_plan) = (from.clone(), plan.clone());
            let data = PlanChangeData { workspace_id, subscription_id, plan, status, ends_at, from_plan, to_plan };
            emit(tx, scope, &SubscriptionPlanChanged(data))
        }
    }
}

/// What no webhook tells, but the service's own rooms may want to know.
fn tell_lesser(tx: &mut Tx<'_>, app: AppId, before: &Agreement, after: &Subscription) -> Result<()> {
    let (tenant, now) = (after.tenant, &after.agreement);
    if before.bought.plan.key == now.bought.plan.key && before.bought.price != now.bought.price {
        let plan = now.bought.plan.key.clone();
        emit(tx, (app, tenant), &PriceChanged { workspace_id: tenant, plan })?;
    }
    let scheduled = |agreement: &Agreement| agreement.scheduled.as_ref().map(|change| change.plan.key.clone());
    if scheduled(before) != scheduled(now) {
        emit(tx, (app, tenant), &PlanChangeScheduled { workspace_id: tenant, plan: scheduled(now) })?;
    }
    Ok(())
}

/// What access tokens say of a subscription: its plan, whether it is a trial, and whether payments may be missing.
fn tokens_say(agreement: &Agreement) -> (Option<String>, bool, bool) {
    let view = view_of(Some(agreement));
    (view.plan_key, view.trial_ends_at.is_some(), view.is_paid && !view.payments_enabled)
}
