//! What is to be done at the provider. A row before the call, with whose name it is in; gone in the transaction that writes its
//! outcome down. The row's id makes a repetition the same call there, so that a job can finish what a crash cut off.

use std::time::Duration;

use ::store::{Tx, args};
use futures_util::future::join_all;
use kernel::{Actor, AppId, Author, Currency, Error, Money, Result, TenantId, Timestamp, id_kinds};
use serde::{Deserialize, Serialize};
use spine::{Job, Worked};

use super::{
    calls::{ApiCheckoutSession, ApiSubscription, Order, PriceChange},
    client::{Account, CallFailure},
    link::Said,
    store,
};
use crate::{
    Billing,
    catalog::{
        Interval, Plan, Price,
        plans::{Quota, QuotaPolicy},
    },
    providers::{
        checkout::{self, CheckoutSession},
        store::insert_session,
    },
    subscriptions::{BoughtPlan, BoughtPrice, Purchase, Subscription},
};

id_kinds! {
    IntentId(IntentKind) = "intent";
}

/// How long whoever began it has before a job takes over: longer than all tries of all calls.
const OWN_TIME: Duration = Duration::from_mins(3);
/// Tries of the job before an intent is given up: a few days.
const MOST_ATTEMPTS: u32 = 12;
/// Intents per run, and at once.
const BATCH: i64 = 32;
const AT_ONCE: usize = 8;
/// How long a checkout can be paid.
const OPEN_FOR: Duration = Duration::from_hours(24);

#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(super) id: IntentId,
    pub(super) app: AppId,
    pub(super) tenant: TenantId,
    pub(super) work: Work,
    pub(super) actor: Actor,
    pub(super) attempts: u32,
}

/// What was chosen, with the ids that it has here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bought {
    pub(super) plan_id: String,
    plan_key: String,
    pub(super) plan_name: String,
    pub(super) price_id: String,
    amount_minor: i64,
    currency: Currency,
    pub(super) interval: Interval,
    /// What is billed beyond the plan's limits.
    pub(super) overages: Vec<Overage>,
}

/// What units beyond a metered limit cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overage {
    pub(super) metric: String,
    pub(super) limit: i64,
    /// Of one unit, in minor units of the price's currency, perhaps with decimals.
    pub(super) unit: String,
}

impl Overage {
    fn of(quota: &Quota, currency: Currency) -> Option<Self> {
        let amount = quota.unit_amount.as_ref().filter(|_| quota.policy == QuotaPolicy::Metered)?;
        let unit = Money::unit_in_minor(amount, currency)?;
        Some(Self { metric: quota.metric.clone(), limit: quota.limit, unit })
    }
}

impl Bought {
    pub(crate) fn of(plan: &Plan, price: &Price) -> Self {
        Self {
            plan_id: plan.id.to_string(),
            plan_key: plan.key.clone(),
            plan_name: plan.name.clone(),
            price_id: price.id.to_string(),
            amount_minor: price.amount.minor,
            currency: price.amount.currency,
            interval: price.interval,
            overages: plan.quotas.iter().filter_map(|quota| Overage::of(quota, price.amount.currency)).collect(),
        }
    }

    pub(super) fn amount(&self) -> Money {
        Money::from_minor(self.amount_minor, self.currency)
    }

    fn price(&self) -> BoughtPrice {
        BoughtPrice { amount: self.amount(), interval: self.interval }
    }

    pub(super) fn purchase(&self) -> Purchase {
        let plan = BoughtPlan { key: self.plan_key.clone(), name: self.plan_name.clone(), free: false };
        Purchase { plan, price: Some(self.price()) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Work {
    Checkout {
        bought: Bought,
        /// Where the provider sends whoever has paid.
        lands_on: String,
        success_url: Option<String>,
        cancel_url: Option<String>,
    },
    Update {
        subscription: String,
        how: Update,
    },
    /// At once, whatever was paid.
    End {
        subscription: String,
    },
}

/// A change of a subscription that the provider makes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Update {
    Cancel,
    Reactivate,
    Change {
        bought: Bought,
        /// A free plan was to come after it, and is not any more.
        resume: bool,
    },
    /// To a free plan, once the period that was paid for is over.
    Schedule {
        key: String,
        name: String,
    },
}

impl Work {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Checkout { .. } => "checkout",
            Self::Update { .. } => "update",
            Self::End { .. } => "end",
        }
    }
}

/// What came of an intent.
#[derive(Debug)]
pub(crate) enum Outcome {
    Checkout(Box<ApiCheckoutSession>),
    Changed(Option<Box<Subscription>>),
}

/// Writes down what is to be done, in the name of whoever this transaction acts for. Of several changes of a subscription the
/// last one counts.
pub(crate) fn begin(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, work: Work) -> Result<Intent> {
    if matches!(work, Work::Update { .. }) {
        store::supersede_updates(tx, app, tenant)?;
    }
    let due = tx.now().plus(OWN_TIME);
    insert(tx, app, tenant, work, due)
}

/// The same where nobody waits for it.
pub(super) fn leave_to_job(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, work: Work) -> Result<()> {
    let due = tx.now();
    insert(tx, app, tenant, work, due).map(|_| ())
}

fn insert(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, work: Work, due: Timestamp) -> Result<Intent> {
    let actor = tx.author().actor.clone();
    let intent = Intent { id: tx.new_id(), app, tenant, work, actor, attempts: 0 };
    store::insert_intent(tx, &intent, due)?;
    Ok(intent)
}

impl Billing {
    /// Does what an intent says and writes the outcome down. What the provider refused is over; what failed is left to the job.
    pub(crate) async fn carry_out(&self, intent: &Intent) -> Result<Outcome> {
        match self.attempt(intent).await {
            Ok(outcome) => Ok(outcome),
            Err(Stuck::Failed(error)) => Err(error),
            Err(Stuck::Refused(error)) => {
                let (app, id) = (intent.app, intent.id);
                self.tenancy.db.write(move |tx| store::delete_intent(tx, app, id)).await?;
                Err(error)
            }
        }
    }

    async fn attempt(&self, intent: &Intent) -> Result<Outcome, Stuck> {
        let account = self.account(intent.app).await?;
        match &intent.work {
            Work::Checkout { bought, lands_on, success_url, cancel_url } => {
                let session = self.order(&account, intent, bought, lands_on, cancel_url.as_deref()).await?;
                let urls = (success_url.clone(), cancel_url.clone());
                self.keep_session(intent, bought, urls, session.id.clone()).await?;
                Ok(Outcome::Checkout(Box::new(session)))
            }
            Work::Update { subscription, how } => self.update(&account, intent, subscription, how).await,
            Work::End { subscription } => {
                match account.end_subscription(subscription, &intent.id.to_string()).await {
                    Ok(_) | Err(CallFailure::Missing) => {}
                    Err(failure) => return Err(failure.into()),
                }
                let (app, id) = (intent.app, intent.id);
                self.tenancy.db.write(move |tx| store::delete_intent(tx, app, id)).await?;
                Ok(Outcome::Changed(None))
            }
        }
    }

    async fn order(
        &self,
        account: &Account,
        intent: &Intent,
        bought: &Bought,
        lands_on: &str,
        cancel_url: Option<&str>,
    ) -> Result<ApiCheckoutSession, Stuck> {
        let Intent { id, app, tenant, .. } = intent;
        let customer = self.customer(account, *app, *tenant).await?;
        let price = self.price(account, *app, bought).await?;
        let overages = self.overage_prices(account, *app, bought).await?;
        let tax_rates = self.tax_rates(account, *app).await?;
        let order = Order {
            tenant: *tenant,
            customer: &customer,
            price: &price,
            plan: &bought.plan_key,
            overages: &overages,
            tax_rates: &tax_rates,
            success_url: lands_on,
            cancel_url,
        };
        Ok(account.create_session(&order, &id.to_string()).await?)
    }

    /// The session becomes ours in the transaction that finishes the intent. One that nobody wants any more is closed.
    async fn keep_session(
        &self,
        intent: &Intent,
        bought: &Bought,
        (success_url, cancel_url): (Option<String>, Option<String>),
        session: String,
    ) -> Result<()> {
        let Intent { id, app, tenant, actor, .. } = intent.clone();
        let (price, bought, made) = (bought.price(), bought.purchase(), session.clone());
        let write = self.tenancy.db.by(&Author::outside_requests(actor)).write(move |tx| {
            if !store::delete_intent(tx, app, id)? {
                // Somebody else may have kept it.
                return Ok(checkout::find(tx, &session).is_ok());
            }
            let session = CheckoutSession {
                id: session.clone(),
                app,
                tenant,
                bought: bought.clone(),
                price,
                success_url: success_url.clone(),
                cancel_url: cancel_url.clone(),
                paid_at: None,
                expires_at: tx.now().plus(OPEN_FOR),
            };
            insert_session(tx, &session).map(|()| true)
        });
        if write.await? {
            return Ok(());
        }
        self.close_unwanted(app, &made).await?;
        Err(Error::not_found("workspace"))
    }

    async fn update(
        &self,
        account: &Account,
        intent: &Intent,
        subscription: &str,
        how: &Update,
    ) -> Result<Outcome, Stuck> {
        let key = intent.id.to_string();
        let known = self.known_at_provider(intent.app, subscription).await?;
        let there = match how {
            Update::Cancel | Update::Schedule { .. } => account.cancel_at_period_end(subscription, true, &key).await?,
            Update::Reactivate => account.cancel_at_period_end(subscription, false, &key).await?,
            Update::Change { bought, resume } => {
                self.change_there(account, intent.app, subscription, (bought, *resume), &key).await?
            }
        };
        let said = known.map(|known| Said { known, there });
        let taken = self.take_over_outcome(intent, how, said).await?;
        Ok(Outcome::Changed(taken))
    }

    async fn change_there(
        &self,
        account: &Account,
        app: AppId,
        subscription: &str,
        (bought, resume): (&Bought, bool),
        key: &str,
    ) -> Result<ApiSubscription, Stuck> {
        let price = self.price(account, app, bought).await?;
        let added = self.overage_prices(account, app, bought).await?;
        let there = account.subscription(subscription).await?;
        let item = there.plan_item().map(|item| item.id.clone());
        let item = item.ok_or_else(|| CallFailure::Refused("the subscription has no item".to_owned()))?;
        let removed = there.items.data.into_iter().map(|item| item.id).filter(|id| *id != item).collect();
        let change = PriceChange { item, price, removed, added, resume };
        Ok(account.change_price(subscription, &change, key).await?)
    }
}

/// Why something could not be done at the provider.
pub(crate) enum Stuck {
    /// The provider said no.
    Refused(Error),
    /// It may go better next time.
    Failed(Error),
}

impl From<Stuck> for Error {
    fn from(stuck: Stuck) -> Self {
        let (Stuck::Refused(error) | Stuck::Failed(error)) = stuck;
        error
    }
}

impl From<CallFailure> for Stuck {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Failed(_) | CallFailure::Late => Self::Failed(failure.into()),
            CallFailure::Refused(_) | CallFailure::Missing => Self::Refused(failure.into()),
        }
    }
}

impl From<Error> for Stuck {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Finishes what was cut off.
pub struct Finishing(pub Billing);

impl Job for Finishing {
    fn name(&self) -> &'static str {
        "provider-intents"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn run(&self) -> Result<Worked> {
        let db = &self.0.tenancy.db;
        let now = db.clock().now();
        let due = db.read(move |tx| tx.all::<Intent>(store::INTENTS_DUE, &args![now, BATCH])).await?;
        for intents in due.chunks(AT_ONCE) {
            for finished in join_all(intents.iter().map(|intent| self.finish(intent))).await {
                finished?;
            }
        }
        Ok(Worked::some_if(!due.is_empty()))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let next: Option<(Option<Timestamp>,)> = self.0.tenancy.db.get_one(store::NEXT_INTENT, &[]).await?;
        Ok(next.and_then(|(at,)| at))
    }
}

impl Finishing {
    /// What fails is tried again after a minute, then after twice as long each time; one that never succeeds is given up.
    async fn finish(&self, intent: &Intent) -> Result<()> {
        let Err(error) = self.0.carry_out(intent).await else { return Ok(()) };
        let (app, id, attempts) = (intent.app, intent.id, intent.attempts);
        let is_given_up = attempts >= MOST_ATTEMPTS;
        let kind = intent.work.kind();
        if is_given_up {
            tracing::error!(intent = %id, %app, tenant = %intent.tenant, kind, ?error, "an intent at the payment provider was given up");
        } else {
            tracing::warn!(intent = %id, %app, tenant = %intent.tenant, kind, ?error, "an intent at the payment provider was not finished");
        }
        let write = self.0.tenancy.db.write(move |tx| {
            if is_given_up {
                return store::delete_intent(tx, app, id).map(|_| ());
            }
            store::postpone_intent(tx, app, id, tx.now().plus(Duration::from_mins(1 << attempts.min(10))))
        });
        write.await
    }
}
