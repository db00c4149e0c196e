//! Plans: what an app sells, at which prices, with which entitlements and quotas. A plan that a workspace is on keeps
//! its key and cannot be deleted.

pub mod http;
mod offers;
mod rules;
mod store;

use std::{collections::BTreeMap, fmt};

use ::store::{Tx, text_enum};
use kernel::{AppId, Code, Currency, Error, Label, Money, Page, Result, TenantId, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::Number;
use spine::emit;
use tenancy::{apps, facts::Change, locks::Lock};

use crate::{facts::PlanChanged, subscriptions};

pub use offers::{OfferedPlan, Offers};
pub(crate) use rules::EntitlementsSchema;
pub use rules::{NewPlan, NewPrice, PlanChange, chosen_price, offered_price};

id_kinds! {
    PlanId(PlanKind) = "plan";
    PriceId(PriceKind) = "price";
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub id: PlanId,
    /// Unique in the app.
    pub key: String,
    pub name: String,
    pub description: String,
    /// Whether the plan begins with a trial.
    pub trial: bool,
    pub trial_days: Option<u32>,
    pub prices: Vec<Price>,
    /// What a workspace on this plan may use.
    pub entitlements: BTreeMap<String, bool>,
    pub quotas: Vec<Quota>,
    pub created_at: Timestamp,
    /// Grows with every change, so that what was worked out from an earlier state is known to be old.
    #[serde(skip)]
    pub revision: i64,
}

impl Plan {
    /// Whether it costs nothing, at whichever price.
    pub fn is_free(&self) -> bool {
        self.prices.iter().all(|price| price.amount.minor == 0)
    }

    /// The offer, unless the plan has no prices to choose from: then it says nothing.
    pub fn choice(&self, offer: Option<PriceOffer>) -> Option<PriceOffer> {
        offer.filter(|_| !self.prices.is_empty())
    }

    /// The price in this currency and interval; there is at most one.
    pub fn price(&self, offer: PriceOffer) -> Option<&Price> {
        let PriceOffer { currency, recurrence_interval } = offer;
        self.prices.iter().find(|price| (price.amount.currency, price.interval) == (currency, recurrence_interval))
    }
}

/// A price. Its id is told only where customers choose among prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub id: PriceId,
    pub amount: Money,
    pub interval: Interval,
}

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_price(self.amount, self.interval, serializer)
    }
}

/// A price as it goes over the wire.
pub(crate) fn write_price<S: Serializer>(amount: Money, interval: Interval, serializer: S) -> Result<S::Ok, S::Error> {
    let mut price = serializer.serialize_struct("Price", 3)?;
    price.serialize_field("amount", &amount.to_major())?;
    price.serialize_field("currency", &amount.currency)?;
    price.serialize_field("recurrenceInterval", &interval)?;
    price.end()
}

impl JsonSchema for Price {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Price".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        NewPrice::json_schema(generator)
    }
}

text_enum! {
    /// How often a price is due.
    #[derive(Hash)]
    #[schemars(rename = "RecurrenceInterval")]
    wire pub enum Interval {
        Day = "day",
        Week = "week",
        Month = "month",
        Year = "year",
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which of a plan's prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriceOffer {
    pub currency: Currency,
    pub recurrence_interval: Interval,
}

/// How much of a metric the plan includes in a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    #[schemars(with = "Label")]
    pub metric: String,
    /// At most the largest whole number that every JSON reader holds exactly.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991i64))]
    pub limit: i64,
    pub policy: QuotaPolicy,
    /// The entitlement that a used-up hard quota takes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Label>")]
    pub entitlement: Option<String>,
    /// What a unit beyond a metered limit costs, in major units of the price's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub unit_amount: Option<Number>,
}

/// `hard`: the linked entitlement ends at the limit. `metered`: what goes beyond is billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuotaPolicy {
    Hard,
    Metered,
}

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Plan>> {
    store::list(tx, app, page)
}

pub fn find_by_key(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<Option<Plan>> {
    store::find_by_key(tx, app, key)
}

/// The oldest plan that costs nothing.
pub fn first_free(tx: &mut Tx<'_>, app: AppId) -> Result<Option<Plan>> {
    Ok(store::list(tx, app, Page::default())?.into_iter().rev().find(Plan::is_free))
}

/// The plans with these keys, each with its app, without their prices.
pub(crate) fn of_keys(tx: &mut Tx<'_>, owners: &[(AppId, TenantId)], keys: &[String]) -> Result<Vec<(AppId, Plan)>> {
    if keys.is_empty() { Ok(Vec::new()) } else { store::of_keys(tx, owners, keys) }
}

pub fn get(tx: &mut Tx<'_>, app: AppId, id: PlanId) -> Result<Plan> {
    store::find(tx, app, id)?.ok_or_else(|| Error::not_found("plan"))
}

/// The plan for a workspace that is about to be put on it, kept from being renamed or deleted until this transaction
/// ends; `None` when there is none with this key.
pub fn assign(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<Option<Plan>> {
    let Some(plan) = find_by_key(tx, app, key)? else { return Ok(None) };
    tx.lock(&Lock::WorkspacesOnPlan(plan.id.to_string()))?;
    // Looked at again, since it may have changed while this waited for the lock.
    find_by_key(tx, app, key)
}

pub fn create(tx: &mut Tx<'_>, offers: &Offers, app: AppId, new: &NewPlan) -> Result<Plan> {
    apps::hold(tx, app)?;
    offers.will_change(tx, app);
    insert(tx, app, new)
}

fn insert(tx: &mut Tx<'_>, app: AppId, new: &NewPlan) -> Result<Plan> {
    let plan = Plan {
        id: tx.new_id(),
        key: new.key.to_string(),
        name: new.name.to_string(),
        description: new.description.clone().unwrap_or_default().into(),
        trial: new.trial.unwrap_or(false),
        trial_days: new.trial_days,
        prices: rules::priced(&[], &new.prices, || tx.new_id())?,
        entitlements: new.entitlements.clone().unwrap_or_default(),
        quotas: new.quotas.clone().unwrap_or_default(),
        created_at: tx.now(),
        revision: 1,
    };
    if !store::insert(tx, app, &plan)? {
        return Err(key_taken(&plan.key));
    }
    tell(tx, app, &plan, Change::Created)?;
    Ok(plan)
}

/// A plan before and after a change that is not made.
pub fn changed(tx: &mut Tx<'_>, app: AppId, id: PlanId, change: &PlanChange) -> Result<(Plan, Plan)> {
    let plan = get(tx, app, id)?;
    let changed = change.applied_to(plan.clone(), || tx.new_id())?;
    Ok((plan, changed))
}

pub fn update(tx: &mut Tx<'_>, offers: &Offers, app: AppId, id: PlanId, change: &PlanChange) -> Result<Plan> {
    apps::hold(tx, app)?;
    let plan = get(tx, app, id)?;
    let changed = change.applied_to(plan.clone(), || tx.new_id())?;
    let changed = Plan { revision: plan.revision + 1, ..changed };
    if changed.key != plan.key {
        if find_by_key(tx, app, &changed.key)?.is_some() {
            return Err(key_taken(&changed.key));
        }
        refuse_while_used(tx, app, &plan, "keeps its key")?;
    }
    offers.will_change(tx, app);
    store::update(tx, app, &changed)?;
    tell(tx, app, &changed, Change::Updated)?;
    Ok(changed)
}

pub fn delete(tx: &mut Tx<'_>, offers: &Offers, app: AppId, id: PlanId) -> Result<()> {
    apps::hold(tx, app)?;
    let plan = get(tx, app, id)?;
    refuse_while_used(tx, app, &plan, "cannot be deleted")?;
    offers.will_change(tx, app);
    store::delete(tx, app, id)?;
    tell(tx, app, &plan, Change::Deleted)
}

fn tell(tx: &mut Tx<'_>, app: AppId, plan: &Plan, change: Change) -> Result<()> {
    emit(tx, app, &PlanChanged { plan_id: plan.id, key: plan.key.clone(), change })
}

/// Subscriptions know their plan by its key.
fn refuse_while_used(tx: &mut Tx<'_>, app: AppId, plan: &Plan, what: &str) -> Result<()> {
    tx.lock(&Lock::WorkspacesOnPlan(plan.id.to_string()))?;
    if subscriptions::any_on_plan(tx, app, &plan.key)? {
        return Err(Error::new(Code::PlanInUse, format!("Workspaces are on this plan, so it {what}.")));
    }
    Ok(())
}

/// The plans that the app of a first run starts with: something for nothing, and something to try.
pub fn seed_first_plans(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    rules::first_plans().iter().try_for_each(|plan| insert(tx, app, plan).map(|_| ()))
}

fn key_taken(key: &str) -> Error {
    Error::new(Code::PlanKeyTaken, format!("Another plan already has the key {key}."))
}
