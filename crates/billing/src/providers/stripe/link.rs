//! What the provider says about a checkout or a subscription, taken over: read from it, then applied in one transaction. An
//! answer that is older than what was applied meanwhile is asked for again, so that no order of events can undo a newer one.

use ::store::Tx;
use kernel::{AppId, Author, Code, Error, Result};
use tenancy::{App, apps};

use super::{
    Work,
    calls::{ApiCheckoutSession, ApiSubscription, id_of},
    client::CallFailure,
    intents::{self, Intent, Stuck, Update},
    store::{self, AtProvider},
};
use crate::{
    Billing,
    providers::{checkout, store as sessions},
    subscriptions::{self, Agreement, BoughtPlan, Subscription, rules::Command},
};

/// How often an answer that is out of date is asked for again.
const MOST_READS: usize = 8;

/// What taking over came to.
enum Taken {
    Now(Option<Box<Subscription>>),
    /// Something newer was taken over meanwhile.
    TooLate,
}

/// What the provider said, and what was known when it was asked.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) known: AtProvider,
    pub(super) there: ApiSubscription,
}

impl Billing {
    /// Takes over a checkout that may have been paid; whether it was.
    pub(crate) async fn take_over_session(&self, app: AppId, id: &str) -> Result<bool> {
        let named = id.to_owned();
        let (_, known) = self.tenancy.db.read(move |tx| checkout::find(tx, &named)).await?;
        if known.app != app {
            return Err(Error::not_found("checkout session"));
        }
        let account = self.account(app).await?;
        let session = match account.session(id).await {
            Err(CallFailure::Missing) => return Err(Error::not_found("checkout session")),
            answer => answer?,
        };
        let (Some(subscription), true) = (id_of(&session.subscription), session.is_paid()) else { return Ok(false) };
        let there = account.subscription(&subscription).await?;
        let linked = match self.tenancy.db.write(move |tx| link(tx, app, &session, &there)).await {
            // The workspace was deleted meanwhile: nobody has what is paid for.
            Err(error) if error.code() == Code::NotFound => {
                tracing::warn!(%app, session = id, "a checkout of a deleted workspace was paid; its subscription is ended");
                account.end_subscription(&subscription, &format!("tenantry-end-{subscription}")).await?;
                return Ok(false);
            }
            linked => linked?,
        };
        // How it stands by now.
        self.take_over_subscription(app, &subscription).await?;
        Ok(linked)
    }

    pub(super) async fn known_at_provider(&self, app: AppId, subscription: &str) -> Result<Option<AtProvider>> {
        let named = subscription.to_owned();
        self.tenancy.db.read(move |tx| store::by_subscription(tx, app, &named)).await
    }

    /// What the provider says of a subscription of ours now; `None` when it is not ours, or not there.
    async fn ask(&self, app: AppId, id: &str) -> Result<Option<Said>> {
        let Some(known) = self.known_at_provider(app, id).await? else { return Ok(None) };
        match self.account(app).await?.subscription(id).await {
            Err(CallFailure::Missing) => Ok(None),
            there => Ok(Some(Said { known, there: there? })),
        }
    }

    /// Takes over how a subscription stands there now, unless it is not ours.
    pub(crate) async fn take_over_subscription(&self, app: AppId, id: &str) -> Result<()> {
        for _ in 0..MOST_READS {
            let Some(said) = self.ask(app, id).await? else { return Ok(()) };
            let write = self.tenancy.db.write(move |tx| take_over(tx, app, &said, None));
            if matches!(write.await?, Taken::Now(_)) {
                return Ok(());
            }
        }
        Err(too_often())
    }

    /// Finishes an intent with what the provider answered to it.
    pub(super) async fn take_over_outcome(
        &self,
        intent: &Intent,
        how: &Update,
        mut said: Option<Said>,
    ) -> Result<Option<Box<Subscription>>, Stuck> {
        let db = self.tenancy.db.by(&Author::outside_requests(intent.actor.clone()));
        for _ in 0..MOST_READS {
            let (finished, how, heard) = (intent.clone(), how.clone(), said.clone());
            if let Taken::Now(subscription) = db.write(move |tx| finish(tx, &finished, &how, heard.as_ref())).await? {
                return Ok(subscription);
            }
            if let Some(Said { known, .. }) = &said {
                said = self.ask(intent.app, &known.subscription).await?;
            }
        }
        Err(too_often().into())
    }
}

fn too_often() -> Error {
    Error::new(Code::ProviderFailed, "The subscription at the payment provider changes too often.")
}

/// A checkout was paid: the subscription begins, or what was tried is paid for from now on. Once, however often it is told. Of
/// several checkouts that were paid the first one counts; the others are ended there.
fn link(tx: &mut Tx<'_>, app: AppId, paid: &ApiCheckoutSession, there: &ApiSubscription) -> Result<bool> {
    let (app_found, session) = checkout::find(tx, &paid.id)?;
    let tenant = session.tenant;
    let running = subscriptions::running(tx, &app_found, tenant)?;
    // Read again under the workspace's lock.
    let (_, session) = checkout::find(tx, &paid.id)?;
    if session.paid_at.is_some() {
        return Ok(true);
    }
    if running.is_some_and(|running| running.agreement.runs_at_provider()) {
        let subscription = there.id.clone();
        intents::leave_to_job(tx, app, tenant, Work::End { subscription })?;
        return Ok(false);
    }
    let customer = id_of(&paid.customer).or_else(|| id_of(&there.customer)).unwrap_or_default();
    let subscription = there.id.clone();
    let known = AtProvider { tenant, subscription, customer, price: there.price(), revision: 0 };
    store::put_at_provider(tx, app, &known)?;
    let begun = subscriptions::pay(tx, &app_found, tenant, &session.bought)?;
    align(tx, &app_found, begun, there)?;
    sessions::mark_paid(tx, &session)
}

/// Counts from the provider's period while it is the present one.
fn align(tx: &mut Tx<'_>, app: &App, here: Subscription, there: &ApiSubscription) -> Result<Subscription> {
    let now = tx.now();
    match there.period().filter(|period| period.start <= now && now < period.end) {
        Some(period) => subscriptions::align(tx, app, here, period),
        None => Ok(here),
    }
}

/// The outcome of an intent and its end.
fn finish(tx: &mut Tx<'_>, intent: &Intent, how: &Update, said: Option<&Said>) -> Result<Taken> {
    let Some(said) = said else {
        let app = apps::get(tx, intent.app)?;
        store::delete_intent(tx, intent.app, intent.id)?;
        return Ok(Taken::Now(subscriptions::running(tx, &app, intent.tenant)?.map(Box::new)));
    };
    let taken = take_over(tx, intent.app, said, wanted(how).as_ref())?;
    if matches!(taken, Taken::Now(_)) {
        store::delete_intent(tx, intent.app, intent.id)?;
    }
    Ok(taken)
}

/// What the provider cannot tell of an intent: to it, a free plan that waits and an end that was asked for are the same.
fn wanted(how: &Update) -> Option<Command> {
    match how {
        Update::Cancel => Some(Command::Cancel),
        Update::Schedule { key, name } => {
            Some(Command::Schedule(BoughtPlan { key: key.clone(), name: name.clone(), free: true }))
        }
        Update::Reactivate | Update::Change { .. } => None,
    }
}

/// Moves the subscription to where the provider has it; `wanted` is done on the way while it is about to end there.
fn take_over(tx: &mut Tx<'_>, app: AppId, said: &Said, wanted: Option<&Command>) -> Result<Taken> {
    let Said { known, there } = said;
    let app = apps::get(tx, app)?;
    let Some(mut here) = subscriptions::running(tx, &app, known.tenant)? else { return Ok(Taken::Now(None)) };
    let price = there.price();
    if !store::take_over(tx, app.id, known, price.as_deref())? {
        return Ok(Taken::TooLate);
    }
    if there.has_ended() {
        // There is nothing left there to be ended.
        store::delete_at_provider(tx, app.id, known.tenant)?;
        let waits = here.agreement.scheduled.is_some();
        let command = if waits { Command::EndPeriod } else { Command::EndAtProvider };
        return subscriptions::command(tx, &app, here, &command).map(|ended| Taken::Now(Some(Box::new(ended))));
    }
    if let Some(price) = price.filter(|price| known.price.as_ref() != Some(price))
        && let Some(bought) = store::bought_at(tx, app.id, &price)?
    {
        here = subscriptions::command(tx, &app, here, &Command::ChangePaid(bought.purchase()))?;
    }
    here = align(tx, &app, here, there)?;
    if let Some(wanted) = wanted.filter(|_| there.cancel_at_period_end) {
        here = subscriptions::command(tx, &app, here, wanted)?;
    }
    for command in commands(&here.agreement, there) {
        here = subscriptions::command(tx, &app, here, &command)?;
    }
    Ok(Taken::Now(Some(Box::new(here))))
}

/// What the state of a subscription there stands for. Pure.
fn commands(here: &Agreement, there: &ApiSubscription) -> Vec<Command> {
    let mut commands = Vec::new();
    let unpaid = here.dunning().is_some();
    match there.status.as_str() {
        "active" | "trialing" if unpaid => commands.push(Command::Renew),
        "past_due" if !unpaid => commands.push(Command::FailRenewal),
        "unpaid" => {
            if !unpaid {
                commands.push(Command::FailRenewal);
            }
            commands.push(Command::Exhaust);
        }
        _ => {}
    }
    match (there.cancel_at_period_end, here.is_ending()) {
        (true, false) => commands.push(Command::Cancel),
        (false, true) => commands.push(Command::Reactivate { must_pay: false }),
        _ => {}
    }
    commands
}

#[cfg(test)]
mod tests {
    use kernel::{Money, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::{
        catalog::Interval,
        subscriptions::{
            BoughtPrice, Purchase,
            rules::{Beginning, begin},
        },
    };

    fn paid() -> Agreement {
        let plan = BoughtPlan { key: "pro".into(), name: "Pro".into(), free: false };
        let amount = Money::from_minor(2_900, "EUR".parse().expect("a currency"));
        let price = Some(BoughtPrice { amount, interval: Interval::Month });
        begin(Purchase { plan, price }, Beginning::Paid, Timestamp::from_seconds(1_800_000_000)).after
    }

    fn said(status: &str, cancel: bool) -> ApiSubscription {
        let text = serde_json::json!({ "id": "sub_1", "status": status, "cancel_at_period_end": cancel });
        serde_json::from_value(text).expect("a subscription")
    }

    fn apply(agreement: Agreement, there: &ApiSubscription) -> Agreement {
        let now = Timestamp::from_seconds(1_800_000_600);
        commands(&agreement, there).iter().fold(agreement, |agreement, command| agreement.step(command, now).after)
    }

    proptest! {
        /// The last state that was read decides, whatever was read before it, and reading it again changes nothing.
        #[test]
        fn the_newest_state_decides(seen in prop::collection::vec((0usize..4, any::<bool>()), 1..8)) {
            const STATES: [&str; 4] = ["active", "past_due", "unpaid", "incomplete"];
            let last = seen.last().map(|(state, cancel)| said(STATES[*state], *cancel)).expect("one");
            let after = seen.iter().fold(paid(), |agreement, (state, cancel)| {
                apply(agreement, &said(STATES[*state], *cancel))
            });
            prop_assert_eq!(after.ends_at().is_some(), last.cancel_at_period_end);
            match last.status.as_str() {
                "active" => prop_assert!(after.dunning().is_none() && !after.gate_engaged),
                "past_due" => prop_assert!(after.dunning().is_some()),
                "unpaid" => prop_assert!(after.dunning().is_some() && after.gate_engaged),
                _ => {}
            }
            prop_assert_eq!(apply(after.clone(), &last), after);
        }
    }
}
