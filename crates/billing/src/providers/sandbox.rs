//! The sandbox: a payment provider inside this service, with test cards, renewals and dunning by the clock. What it does it
//! does through the same commands as any provider, so that everything can be tried offline.

pub(crate) mod card;
pub mod page;
pub mod portal;

use std::time::Duration;

use ::store::{Db, Tx, args};
use kernel::{Actor, AppId, Code, Error, Money, Result, TenantId, Timestamp, id_kinds};
use spine::{Job, Worked, emit};
use tenancy::{
    App, Tenancy, apps,
    mails::{self, AppMail},
    members, workspaces,
};

use super::{
    checkout::CheckoutSession,
    money::Bill,
    store::{self, Card, Chargeable, Charges},
};
use crate::{
    catalog::plans,
    entitlements::{self, Terms},
    facts::{PaymentFailed, PaymentSucceeded},
    subscriptions::CANCEL_AFTER,
    subscriptions::{self, Agreement, Dunning, Period, State, Subscription, rules::Command},
    usage,
};
use card::AcceptedCard;

id_kinds! {
    InvoiceId(InvoiceKind) = "invoice";
}

const DAY: Duration = Duration::from_hours(24);
/// After the first failure payment is tried again on these days.
const RETRIES: [u32; 3] = [3, 5, 7];

/// Pays for a checkout: the subscription begins, and its first period with it.
pub(super) fn pay(
    tx: &mut Tx<'_>,
    app: &App,
    session: &CheckoutSession,
    typed: &AcceptedCard,
    tax_percentage: Option<f64>,
) -> Result<()> {
    let subscription = subscriptions::pay(tx, app, session.tenant, &session.bought)?;
    if !store::mark_paid(tx, session)? {
        return Err(Error::new(Code::Conflict, "This checkout has been paid already."));
    }
    let at = Some(subscription.agreement.period(tx.now()).end);
    let charges = Charges { at, owed_minor: 0, bill_minor: None };
    let card = Card { last4: typed.last4.clone(), pays: typed.pays_renewals, tax_percentage, charges };
    store::put_card(tx, app.id, session.tenant, &card)?;
    tell_paid(tx, app.id, session.tenant, Bill::new(session.price.amount, tax_percentage))
}

fn tell_paid(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, bill: Bill) -> Result<()> {
    let fact = PaymentSucceeded {
        workspace_id: tenant,
        amount: bill.total().to_major(),
        currency: bill.net.currency,
        invoice_id: tx.new_id::<InvoiceKind>().to_string(),
        tax_amount: bill.tax.map(Money::to_major),
    };
    emit(tx, (app, tenant), &fact)
}

/// When the sandbox charges next after a change of the subscription.
fn next_charge(
    before: Option<&Agreement>,
    after: &Agreement,
    known: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    if let Some(Dunning { since, attempts }) = after.dunning() {
        let retry = usize::try_from(attempts).ok().and_then(|attempts| RETRIES.get(attempts.checked_sub(1)?));
        return retry.map(|days| since.plus(DAY.saturating_mul(*days)));
    }
    match after.state {
        State::Active if after.scheduled.is_some() => None,
        // Another interval begins another period, which is paid for at once: by the change itself where a customer asks
        // for it, else by the next charge.
        State::Active if before.is_some_and(|before| before.anchor != after.anchor) => Some(now),
        State::Active => known.or(Some(after.period(now).end)),
        State::Trial { .. } | State::PastDue(_) | State::Ending(_) | State::Canceled { .. } => None,
    }
}

/// Follows a change of the subscription.
pub(crate) fn follow(tx: &mut Tx<'_>, app: AppId, before: Option<&Agreement>, after: &Subscription) -> Result<()> {
    let Some(card) = store::card(tx, app, after.tenant)? else { return Ok(()) };
    let now = tx.now();
    if !after.agreement.runs_at_provider() {
        if let Some(before) = before {
            charge_what_is_left(tx, app, after.tenant, before, &card)?;
        }
        return store::delete_card(tx, app, after.tenant);
    }
    let mut charges = Charges { at: next_charge(before, &after.agreement, card.charges.at, now), ..card.charges };
    if let Some(before) = before.filter(|before| before.anchor != after.agreement.anchor) {
        let cut_short = before.cycle().at(just_before(now));
        charges.owed_minor = charges.owed_minor.saturating_add(overage(tx, app, after.tenant, before, cut_short)?);
    }
    if charges == card.charges { Ok(()) } else { store::put_charges(tx, app, after.tenant, charges) }
}

/// The last period of a subscription that was paid for ends like the others: what went beyond its limits is charged.
fn charge_what_is_left(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, before: &Agreement, card: &Card) -> Result<()> {
    let Some(price) = before.bought.price else { return Ok(()) };
    if before.dunning().is_some() || !card.pays {
        return Ok(());
    }
    let end = before.due().filter(|due| *due <= tx.now()).unwrap_or(tx.now());
    let last = before.cycle().at(just_before(end));
    let minor = overage(tx, app, tenant, before, last)?.saturating_add(card.charges.owed_minor);
    if minor == 0 {
        return Ok(());
    }
    tell_paid(tx, app, tenant, Bill::new(Money::from_minor(minor, price.amount.currency), card.tax_percentage))
}

/// The last instant of what ended then.
fn just_before(end: Timestamp) -> Timestamp {
    end.minus(Duration::from_micros(1))
}

/// What units beyond metered limits cost in a period, in minor units of the price's currency.
fn overage(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, agreement: &Agreement, period: Period) -> Result<i64> {
    let Some(price) = agreement.bought.price else { return Ok(0) };
    let plan = plans::find_by_key(tx, app, &agreement.bought.plan.key)?;
    let overrides = entitlements::overrides_of(tx, app, tenant)?;
    let quotas = Terms { agreement: None, plan, overrides }.quotas(just_before(period.end));
    let used = usage::used(tx, app, tenant, period)?;
    let beyond = |quota: &plans::Quota| quota.overage(&used, price.amount.currency).map(|cost| cost.minor);
    Ok(quotas.iter().filter_map(beyond).fold(0i64, i64::saturating_add))
}

/// Charges for the period that a customer's change has begun, with what went beyond the limits in the one it cut short. A card
/// that does not pay refuses the change, and so does an open bill: nobody uses a period that was not paid for.
pub(crate) fn pay_new_period(tx: &mut Tx<'_>, app: AppId, changed: &Subscription) -> Result<()> {
    let Some(card) = store::card(tx, app, changed.tenant)? else { return Ok(()) };
    let Some(price) = changed.agreement.bought.price else { return Ok(()) };
    if !card.pays || changed.agreement.dunning().is_some() {
        let message =
            "The payment for the new period failed, so nothing was changed. Use another card in the customer portal.";
        return Err(Error::new(Code::CheckoutUnpaid, message));
    }
    let net = price.amount.minor.saturating_add(card.charges.owed_minor);
    let at = next_charge(None, &changed.agreement, None, tx.now());
    store::put_charges(tx, app, changed.tenant, Charges { at, owed_minor: 0, bill_minor: None })?;
    tell_paid(tx, app, changed.tenant, Bill::new(Money::from_minor(net, price.amount.currency), card.tax_percentage))
}

/// Charges what is due, each in a transaction of its own.
pub struct Charging {
    pub db: Db,
    pub tenancy: Tenancy,
}

/// Charges per run.
const BATCH: i64 = 100;

impl Job for Charging {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn run(&self) -> Result<Worked> {
        let now = self.db.clock().now();
        let due = self.db.read(move |tx| tx.all::<Chargeable>(store::DUE, &args![now, BATCH])).await?;
        for Chargeable { app, tenant } in &due {
            let (app, tenant, tenancy) = (*app, *tenant, self.tenancy.clone());
            self.db.write(move |tx| charge_if_due(tx, &tenancy, app, tenant)).await?;
        }
        Ok(Worked::some_if(!due.is_empty()))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let next: Option<(Option<Timestamp>,)> = self.db.get_one(store::NEXT_DUE, &[]).await?;
        Ok(next.and_then(|(at,)| at))
    }
}

/// Charges what became due a moment ago, before somebody changes the subscription: a period that has begun is paid for.
pub(crate) fn catch_up(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, tenant: TenantId) -> Result<()> {
    let due = store::card(tx, app, tenant)?.and_then(|card| card.charges.at).filter(|at| *at <= tx.now());
    if due.is_none() {
        return Ok(());
    }
    let caller = tx.author().actor.clone();
    tx.acting_as(Actor::system());
    charge_if_due(tx, tenancy, app, tenant)?;
    tx.acting_as(caller);
    Ok(())
}

fn charge_if_due(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, tenant: TenantId) -> Result<()> {
    let found = apps::get(tx, app).and_then(|app| Ok((subscriptions::running(tx, &app, tenant)?, app)));
    match found {
        Ok((Some(subscription), app)) => {
            let due = store::card(tx, app.id, tenant)?.and_then(|card| card.charges.at).filter(|at| *at <= tx.now());
            due.map_or(Ok(()), |_| charge(tx, tenancy, &app, subscription, None).map(|_| ()))
        }
        Ok((None, app)) => store::delete_card(tx, app.id, tenant),
        // It went meanwhile, and its rows are about to.
        Err(error) if error.code() == Code::NotFound => store::delete_card(tx, app, tenant),
        Err(error) => Err(error),
    }
}

/// Charges the card for a renewal; `pays` says how that ends, else the card does.
pub(crate) fn charge(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    subscription: Subscription,
    pays: Option<bool>,
) -> Result<Subscription> {
    let tenant = subscription.tenant;
    let Some(card) = store::card(tx, app.id, tenant)? else { return Ok(subscription) };
    let Some(price) = subscription.agreement.bought.price else { return Ok(subscription) };
    let net = match card.charges.bill_minor {
        Some(open) => open,
        None => price.amount.minor.saturating_add(card.charges.owed_minor).saturating_add(renewed_overage(
            tx,
            app.id,
            &subscription,
            card.charges.at,
        )?),
    };
    let bill = Bill::new(Money::from_minor(net, price.amount.currency), card.tax_percentage);
    if pays.unwrap_or(card.pays) {
        let renewed = subscriptions::command(tx, app, subscription, &Command::Renew)?;
        // The end of the period that was paid for, whatever was due before.
        let next = next_charge(None, &renewed.agreement, None, tx.now());
        store::put_charges(tx, app.id, tenant, Charges { at: next, owed_minor: 0, bill_minor: None })?;
        tell_paid(tx, app.id, tenant, bill)?;
        return Ok(renewed);
    }
    let first = subscription.agreement.dunning().is_none();
    store::put_charges(tx, app.id, tenant, Charges { bill_minor: Some(net), ..card.charges })?;
    let failed = subscriptions::command(tx, app, subscription, &Command::FailRenewal)?;
    let attempt = failed.agreement.dunning().map_or(1, |dunning| dunning.attempts);
    let fact = PaymentFailed {
        workspace_id: tenant,
        amount: bill.total().to_major(),
        currency: bill.net.currency,
        invoice_id: tx.new_id::<InvoiceKind>().to_string(),
        attempt,
        past_due_reason: "card_declined".to_owned(),
        card_last4: Some(card.last4),
    };
    emit(tx, (app.id, tenant), &fact)?;
    if first {
        mail_owners(tx, tenancy, app, tenant)?;
    }
    Ok(failed)
}

/// What went beyond the limits in the period whose end is charged; a first period has none before it.
fn renewed_overage(tx: &mut Tx<'_>, app: AppId, subscription: &Subscription, due: Option<Timestamp>) -> Result<i64> {
    let agreement = &subscription.agreement;
    let end = due.unwrap_or(agreement.period(tx.now()).start);
    if end <= agreement.anchor {
        return Ok(0);
    }
    overage(tx, app, subscription.tenant, agreement, agreement.cycle().at(just_before(end)))
}

/// The first failure is mailed to those who can do something about it.
fn mail_owners(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, tenant: TenantId) -> Result<()> {
    let workspace = workspaces::get(tx, app.id, tenant)?.name;
    let link = portal::open(tx, tenancy, app.id, tenant, CANCEL_AFTER)?;
    for to in members::owner_addresses(tx, app.id, tenant)? {
        mails::queue(
            tx,
            tenancy,
            app,
            &to,
            &AppMail::PaymentFailure { workspace: workspace.clone(), link: link.clone() },
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        catalog::Interval,
        subscriptions::{
            BoughtPlan, BoughtPrice, Purchase,
            rules::{Beginning, begin},
        },
    };

    fn paid(now: Timestamp) -> Agreement {
        let plan = BoughtPlan { key: "pro".into(), name: "Pro".into(), free: false };
        let amount = Money::from_minor(2_900, "EUR".parse().expect("a currency"));
        let price = Some(BoughtPrice { amount, interval: Interval::Month });
        begin(Purchase { plan, price }, Beginning::Paid, now).after
    }

    #[test]
    fn payment_is_tried_again_on_the_third_fifth_and_seventh_day() {
        let now = Timestamp::from_seconds(1_800_000_000);
        let mut agreement = paid(now);
        for days in [Some(3), Some(5), Some(7), None, None] {
            agreement = agreement.step(&Command::FailRenewal, now).after;
            assert_eq!(next_charge(None, &agreement, Some(now), now), days.map(|days| now.plus(DAY * days)));
        }
        let renewed = agreement.step(&Command::Renew, now).after;
        assert_eq!(next_charge(None, &renewed, None, now), Some(renewed.period(now).end));
    }

    #[test]
    fn what_ends_is_not_charged_and_another_interval_is_at_once() {
        let now = Timestamp::from_seconds(1_800_000_000);
        let (before, later) = (paid(now), now.plus(DAY));
        let canceled = before.step(&Command::Cancel, later).after;
        assert_eq!(next_charge(Some(&before), &canceled, Some(later), later), None);
        let back = canceled.step(&Command::Reactivate { must_pay: false }, later).after;
        assert_eq!(next_charge(Some(&canceled), &back, None, later), Some(before.period(now).end));
        let mut yearly = before.bought.clone();
        yearly.price = yearly.price.map(|price| BoughtPrice { interval: Interval::Year, ..price });
        let changed = before.step(&Command::ChangePaid(yearly), later).after;
        assert_eq!(next_charge(Some(&before), &changed, Some(before.period(now).end), later), Some(later));
    }

    proptest! {
        /// Counted out day by day: a failed payment is tried again on its days, each once, and never after the last of them.
        #[test]
        fn each_attempt_has_its_day(start in 0i64..4_000_000_000, late in prop::collection::vec(0u64..20, 4)) {
            let now = Timestamp::from_seconds(start);
            let (mut agreement, mut attempt) = (paid(now).step(&Command::FailRenewal, now).after, now);
            let mut tried = Vec::new();
            for late in late {
                let Some(next) = next_charge(None, &agreement, None, attempt) else { break };
                tried.push(next.since(now).as_secs_f64() / DAY.as_secs_f64());
                // However late an attempt is made, the next has its own day.
                attempt = next.plus(Duration::from_hours(late));
                agreement = agreement.step(&Command::FailRenewal, attempt).after;
            }
            prop_assert_eq!(tried, [3.0, 5.0, 7.0]);
        }

        /// A subscription that runs and is paid is charged at the end of its period, whatever happens to it besides.
        #[test]
        fn what_runs_is_charged_at_the_end_of_its_period(start in 0i64..4_000_000_000, hours in 0u64..24 * 400) {
            let begun = Timestamp::from_seconds(start);
            let (agreement, now) = (paid(begun), begun.plus(Duration::from_hours(hours)));
            let next = next_charge(Some(&agreement), &agreement, None, now).expect("it is renewed");
            prop_assert!(next > now && next.since(now) <= DAY * 31);
            prop_assert_eq!(next, agreement.period(now).end);
        }
    }
}
