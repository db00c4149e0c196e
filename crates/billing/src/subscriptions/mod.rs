//! Subscriptions: which plan a workspace is on, on which terms, and until when. The rules are pure ([`rules`]); every change
//! is made here, under the workspace's lock: row, history, the workspace's view of its billing and the facts together.

mod agreement;
pub mod http;
mod passing;
mod periods;
pub mod rules;
mod store;
mod telling;
pub mod wire;

use ::store::Tx;
use kernel::{Actor, AppId, Code, Error, Page, Result, TenantId, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::{
    App, credentials,
    workspaces::{self, BillingView},
};

pub use agreement::{
    Agreement, BoughtPlan, BoughtPrice, CANCEL_AFTER, Dunning, Ending, Purchase, ScheduledChange, State, Status,
};
pub use passing::Passing;
pub use periods::{Cycle, Period};
pub use rules::Cause;
pub use store::any_on_plan;
pub(crate) use store::on_plan;

use crate::{
    catalog::{self, Plan, Price, PriceOffer, plans},
    entitlements,
    providers::{
        sandbox,
        stripe::{self, Update, intents::Bought},
    },
};
use rules::{Beginning, Command, Step, Told};

id_kinds! {
    SubscriptionId(SubscriptionKind) = "subscription";
    SubscriptionChangeId(SubscriptionChangeKind) = "subscriptionchange";
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub id: SubscriptionId,
    pub tenant: TenantId,
    pub agreement: Agreement,
    pub created_at: Timestamp,
}

impl Subscription {
    /// As it is at this instant, whether or not somebody has written down what time did to it.
    fn at(mut self, now: Timestamp) -> Self {
        self.agreement = self.agreement.step(&Command::Pass, now).after;
        self
    }
}

/// A change, for the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SubscriptionChange {
    pub at: Timestamp,
    /// `null` for the first one.
    pub from: Option<Status>,
    pub to: Status,
    /// The plan's key.
    pub plan: String,
    pub cause: Cause,
    pub actor: Actor,
}

/// The workspace's newest subscription as it is now, canceled or not.
pub fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Subscription>> {
    let now = tx.now();
    Ok(store::newest(tx, app, tenant)?.map(|subscription| subscription.at(now)))
}

/// How the newest subscriptions of many workspaces stand now, each with its app.
pub(crate) fn agreements(tx: &mut Tx<'_>, owners: &[(AppId, TenantId)]) -> Result<Vec<(AppId, TenantId, Agreement)>> {
    let now = tx.now();
    let at = |(app, subscription): (AppId, Subscription)| {
        let subscription = subscription.at(now);
        (app, subscription.tenant, subscription.agreement)
    };
    Ok(store::newest_of(tx, owners)?.into_iter().map(at).collect())
}

/// Writes down what time has done to a workspace's subscription.
pub(crate) fn catch_up(tx: &mut Tx<'_>, app: &App, tenant: TenantId) -> Result<()> {
    locked(tx, app, tenant).map(|_| ())
}

/// Newest first.
pub fn history(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, page: Page) -> Result<Vec<SubscriptionChange>> {
    workspaces::billing_view(tx, app, tenant)?;
    store::history(tx, app, tenant, page)
}

/// When a workspace's subscription last changed.
pub(crate) fn last_changed(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Timestamp>> {
    let newest = Page { limit: Some(1), offset: None };
    Ok(store::history(tx, app, tenant, newest)?.pop().map(|change| change.at))
}

/// What the app's word would make of a subscription, or of none.
pub(crate) fn if_assigned(current: Option<&Agreement>, bought: Purchase, now: Timestamp) -> Agreement {
    match current.filter(|agreement| !agreement.is_over()) {
        Some(agreement) => agreement.step(&Command::Assign(bought), now).after,
        None => rules::begin(bought, Beginning::Assigned, now).after,
    }
}

/// Locks the workspace, lets time pass for its subscription, and gives it.
fn locked(tx: &mut Tx<'_>, app: &App, tenant: TenantId) -> Result<Option<Subscription>> {
    workspaces::lock(tx, tenant)?;
    workspaces::billing_view(tx, app.id, tenant)?;
    let Some(subscription) = store::newest(tx, app.id, tenant)? else { return Ok(None) };
    pass(tx, app, subscription).map(Some)
}

/// What time did, in nobody's name.
fn pass(tx: &mut Tx<'_>, app: &App, subscription: Subscription) -> Result<Subscription> {
    if subscription.agreement.due().is_none_or(|due| due > tx.now()) {
        return Ok(subscription);
    }
    let caller = tx.author().actor.clone();
    tx.acting_as(Actor::system());
    let passed = apply(tx, app, subscription, &Command::Pass)?;
    tx.acting_as(caller);
    Ok(passed)
}

/// The one that is there and not over, changed; or a new one.
fn apply_or_begin(
    tx: &mut Tx<'_>,
    app: &App,
    tenant: TenantId,
    current: Option<Subscription>,
    command: &Command,
    beginning: (Purchase, Beginning),
) -> Result<Subscription> {
    match current.filter(|subscription| !subscription.agreement.is_over()) {
        Some(subscription) => apply(tx, app, subscription, command),
        None => begin(tx, app, tenant, beginning.0, beginning.1),
    }
}

fn begin(tx: &mut Tx<'_>, app: &App, tenant: TenantId, bought: Purchase, how: Beginning) -> Result<Subscription> {
    let Step { after, told } = rules::begin(bought, how, tx.now());
    let subscription = Subscription { id: tx.new_id(), tenant, agreement: after, created_at: tx.now() };
    store::insert(tx, app.id, &subscription)?;
    settle(tx, app, None, &subscription, &told, how.cause())?;
    Ok(subscription)
}

fn apply(tx: &mut Tx<'_>, app: &App, mut current: Subscription, command: &Command) -> Result<Subscription> {
    let Step { after, told } = current.agreement.step(command, tx.now());
    if after == current.agreement {
        return Ok(current);
    }
    let before = std::mem::replace(&mut current.agreement, after);
    store::update(tx, app.id, &current)?;
    settle(tx, app, Some(&before), &current, &told, command.cause())?;
    Ok(current)
}

/// Whatever follows from a change, in the same transaction.
fn settle(
    tx: &mut Tx<'_>,
    app: &App,
    before: Option<&Agreement>,
    after: &Subscription,
    told: &[Told],
    cause: Cause,
) -> Result<()> {
    let change = SubscriptionChange {
        at: tx.now(),
        from: before.map(Agreement::status),
        to: after.agreement.status(),
        plan: after.agreement.bought.plan.key.clone(),
        cause,
        actor: tx.author().actor.clone(),
    };
    store::insert_change(tx, app.id, after.tenant, &change)?;
    workspaces::set_billing_view(tx, app.id, after.tenant, &view_of(Some(&after.agreement)))?;
    telling::tell(tx, app.id, before, after, told)?;
    sandbox::follow(tx, app.id, before, after)?;
    stripe::follow(tx, app.id, before, after)?;
    entitlements::refresh(tx, app.id, after.tenant).map(|_| ())
}

/// What the workspace says about its billing.
pub(crate) fn view_of(agreement: Option<&Agreement>) -> BillingView {
    let running = agreement.filter(|agreement| !agreement.is_over());
    BillingView {
        plan_key: running.map(|agreement| agreement.bought.plan.key.clone()),
        is_paid: running.is_some_and(Agreement::is_paid),
        price: running
            .and_then(|agreement| agreement.bought.price)
            .map(|price| (price.amount.currency, price.interval.to_string())),
        trial_ends_at: running.and_then(Agreement::trial_until),
        should_select_plan: running.is_none(),
        payments_enabled: running.is_some_and(Agreement::runs_at_provider),
    }
}

/// What a workspace that is about to be made begins with.
#[derive(Clone, Debug)]
pub struct FirstPlan {
    plan: Option<Plan>,
    pub view: BillingView,
}

/// The billing of a new workspace, whether it names a plan or not. An unknown key is an invalid `field`.
pub fn prepare_first(tx: &mut Tx<'_>, app: &App, field: &str, plan: Option<&str>) -> Result<FirstPlan> {
    let plan = plan.map(|key| plan_to_assign(tx, app.id, field, key)).transpose()?;
    let agreement =
        plan.as_ref().map(|plan| rules::begin(Purchase::of(plan, None), Beginning::Assigned, tx.now()).after);
    Ok(FirstPlan { view: view_of(agreement.as_ref()), plan })
}

/// The subscription of a workspace that was just made.
pub fn begin_first(tx: &mut Tx<'_>, app: &App, tenant: TenantId, first: &FirstPlan) -> Result<()> {
    let Some(plan) = &first.plan else { return Ok(()) };
    begin(tx, app, tenant, Purchase::of(plan, None), Beginning::Assigned).map(|_| ())
}

fn plan_to_assign(tx: &mut Tx<'_>, app: AppId, field: &str, key: &str) -> Result<Plan> {
    plans::assign(tx, app, key)?.ok_or_else(|| Error::invalid(field, "must be the key of a plan of this app"))
}

/// Puts a workspace on a plan by the app's word, which counts whatever the provider says.
pub(crate) fn assign_by_key(
    tx: &mut Tx<'_>,
    app: &App,
    tenant: TenantId,
    plan_key: &str,
    offer: Option<PriceOffer>,
) -> Result<Subscription> {
    let current = locked(tx, app, tenant)?;
    let plan = plan_to_assign(tx, app.id, "planKey", plan_key)?;
    let price = catalog::plans::chosen_price(&plan, offer)?;
    let bought = Purchase::of(&plan, price.as_ref());
    let is_ending = current.as_ref().is_some_and(|current| current.agreement.is_ending());
    let assigned =
        apply_or_begin(tx, app, tenant, current, &Command::Assign(bought.clone()), (bought, Beginning::Assigned))?;
    if is_ending {
        stripe::resume(tx, app.id, &assigned)?;
    }
    Ok(assigned)
}

/// `POST /account/subscription/select`: a free plan, at once or when the paid period ends.
pub(crate) fn select(tx: &mut Tx<'_>, app: &App, tenant: TenantId, plan_key: &str) -> Result<Change<()>> {
    let current = locked(tx, app, tenant)?;
    let plan = plan_to_assign(tx, app.id, "planKey", plan_key)?;
    if !plan.is_free() {
        return Err(Error::invalid("planKey", "must be the key of a free plan; use checkout for a paid one"));
    }
    take_free(tx, app, tenant, current, &plan)
}

fn take_free(
    tx: &mut Tx<'_>,
    app: &App,
    tenant: TenantId,
    current: Option<Subscription>,
    plan: &Plan,
) -> Result<Change<()>> {
    let bought = Purchase::of(plan, plan.prices.first());
    let running = current.as_ref().map(|subscription| &subscription.agreement).filter(|agreement| !agreement.is_over());
    let command = match running {
        Some(agreement) if agreement.runs_at_provider() => {
            let BoughtPlan { key, name, .. } = bought.plan.clone();
            if let Some(change) = by_provider(tx, app.id, tenant, Update::Schedule { key, name })? {
                return Ok(change);
            }
            Command::Schedule(bought.plan.clone())
        }
        Some(agreement) if agreement.bought.plan.key == plan.key && agreement.status() == Status::Active => {
            return Ok(Change::Made(()));
        }
        _ => Command::Assign(bought.clone()),
    };
    apply_or_begin(tx, app, tenant, current, &command, (bought, Beginning::Assigned)).map(|_| Change::Made(()))
}

/// A change that a customer asks for.
pub(crate) enum Change<T> {
    Made(T),
    /// The provider that renews it has to change it first.
    ByProvider {
        subscription: String,
        how: Update,
    },
}

/// What the provider outside has to do first, if the subscription runs there.
fn by_provider<T>(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, how: Update) -> Result<Option<Change<T>>> {
    let there = stripe::find(tx, app, tenant)?;
    Ok(there.map(|there| Change::ByProvider { subscription: there.subscription, how }))
}

/// `POST /account/subscription/change`.
pub(crate) fn change(
    tx: &mut Tx<'_>,
    app: &App,
    tenant: TenantId,
    plan_key: &str,
    offer: Option<PriceOffer>,
) -> Result<Change<()>> {
    let current = locked(tx, app, tenant)?;
    let plan = plan_to_assign(tx, app.id, "planKey", plan_key)?;
    let offer = plan.choice(offer);
    let running = current.as_ref().map(|subscription| &subscription.agreement).filter(|agreement| !agreement.is_over());
    let same_plan = running.is_some_and(|agreement| agreement.bought.plan.key == plan.key);
    if same_plan && offer.is_none() && running.is_some_and(|agreement| agreement.scheduled.is_none()) {
        return Ok(Change::Made(()));
    }
    let price = catalog::plans::offered_price(&plan, offer)?;
    if plan.is_free() {
        return take_free(tx, app, tenant, current, &plan);
    }
    let bought = Purchase::of(&plan, price.as_ref());
    let at_provider = running.is_some_and(Agreement::runs_at_provider);
    if running.is_some_and(|agreement| agreement.bought == bought && agreement.scheduled.is_none()) {
        return Ok(Change::Made(()));
    }
    if !at_provider && credentials::has_payprovider(tx, app.id)? {
        return Err(checkout_required());
    }
    if let Some(price) = price.as_ref().filter(|_| at_provider) {
        let resume = running.is_some_and(|agreement| agreement.scheduled.is_some());
        let how = Update::Change { bought: Bought::of(&plan, price), resume };
        if let Some(change) = by_provider(tx, app.id, tenant, how)? {
            return Ok(change);
        }
    }
    let begins_period = running.is_some_and(|agreement| agreement.bought.interval() != bought.interval());
    let command = if at_provider { Command::ChangePaid(bought.clone()) } else { Command::Assign(bought.clone()) };
    let changed = apply_or_begin(tx, app, tenant, current, &command, (bought, Beginning::Assigned))?;
    if at_provider && begins_period {
        sandbox::pay_new_period(tx, app.id, &changed)?;
    }
    Ok(Change::Made(()))
}

/// What there is to pay for a plan; `None` when there was nothing, and the plan counts already.
pub(crate) fn begin_checkout(
    tx: &mut Tx<'_>,
    app: &App,
    tenant: TenantId,
    plan_key: &str,
    offer: Option<PriceOffer>,
    must_pay: bool,
) -> Result<Option<(Plan, Price)>> {
    let current = locked(tx, app, tenant)?;
    let plan = plan_to_assign(tx, app.id, "planKey", plan_key)?;
    let price = catalog::plans::offered_price(&plan, offer)?;
    if current.as_ref().is_some_and(|subscription| subscription.agreement.runs_at_provider()) {
        return Err(paid_is_running());
    }
    if plan.is_free() {
        return take_free(tx, app, tenant, current, &plan).map(|_| None);
    }
    if must_pay {
        return Ok(price.map(|price| (plan, price)));
    }
    let bought = Purchase::of(&plan, price.as_ref());
    apply_or_begin(tx, app, tenant, current, &Command::Assign(bought.clone()), (bought, Beginning::Assigned))?;
    Ok(None)
}

/// A checkout was paid.
pub(crate) fn pay(tx: &mut Tx<'_>, app: &App, tenant: TenantId, bought: &Purchase) -> Result<Subscription> {
    let current = locked(tx, app, tenant)?;
    if current.as_ref().is_some_and(|subscription| subscription.agreement.runs_at_provider()) {
        return Err(paid_is_running());
    }
    plan_to_assign(tx, app.id, "planKey", &bought.plan.key)?;
    apply_or_begin(tx, app, tenant, current, &Command::Pay(bought.clone()), (bought.clone(), Beginning::Paid))
}

/// The workspace's subscription, locked and up to date, unless it is over.
pub(crate) fn running(tx: &mut Tx<'_>, app: &App, tenant: TenantId) -> Result<Option<Subscription>> {
    Ok(locked(tx, app, tenant)?.filter(|subscription| !subscription.agreement.is_over()))
}

/// What a provider does to a subscription that is [`running`].
pub(crate) fn command(tx: &mut Tx<'_>, app: &App, current: Subscription, command: &Command) -> Result<Subscription> {
    apply(tx, app, current, command)
}

/// Counts from the provider's present period from now on.
pub(crate) fn align(tx: &mut Tx<'_>, app: &App, mut current: Subscription, period: Period) -> Result<Subscription> {
    let aligned = current.agreement.aligned(period);
    if aligned == current.agreement {
        return Ok(current);
    }
    current.agreement = aligned;
    store::update(tx, app.id, &current)?;
    entitlements::refresh(tx, app.id, current.tenant)?;
    Ok(current)
}

fn paid_is_running() -> Error {
    Error::new(Code::SubscriptionRunning, "A paid subscription is running. Change or cancel it instead.")
}

/// `POST /billing/subscriptions`: whichever there is, else a first one.
pub fn ensure(tx: &mut Tx<'_>, app: &App, tenant: TenantId, plan_slug: Option<&str>) -> Result<Subscription> {
    if let Some(subscription) = locked(tx, app, tenant)? {
        return Ok(subscription);
    }
    let plan = match plan_slug {
        Some(key) => plan_to_assign(tx, app.id, "planSlug", key)?,
        None => match plans::first_free(tx, app.id)? {
            Some(plan) => plan_to_assign(tx, app.id, "planSlug", &plan.key)?,
            None => return Err(Error::invalid("planSlug", "is required, since the app has no free plan")),
        },
    };
    if plan.trial {
        return begin_trial(tx, app, tenant, None, &plan);
    }
    if !plan.is_free() && credentials::has_payprovider(tx, app.id)? {
        return Err(checkout_required());
    }
    begin(tx, app, tenant, Purchase::of(&plan, plan.prices.first()), Beginning::Assigned)
}

/// `POST /billing/cancel`.
pub(crate) fn cancel(tx: &mut Tx<'_>, app: &App, tenant: TenantId) -> Result<Change<Subscription>> {
    let current = locked(tx, app, tenant)?.ok_or_else(not_found)?;
    if matches!(current.agreement.state, State::Active | State::PastDue(_))
        && let Some(change) = by_provider(tx, app.id, tenant, Update::Cancel)?
    {
        return Ok(change);
    }
    apply(tx, app, current, &Command::Cancel).map(Change::Made)
}

/// `POST /billing/reactivate`.
pub(crate) fn reactivate(tx: &mut Tx<'_>, app: &App, tenant: TenantId) -> Result<Change<Subscription>> {
    let current = locked(tx, app, tenant)?.ok_or_else(not_found)?;
    let agreement = &current.agreement;
    if agreement.is_ending()
        && let Some(change) = by_provider(tx, app.id, tenant, Update::Reactivate)?
    {
        return Ok(change);
    }
    let must_pay = agreement.is_paid() && !agreement.runs_at_provider() && credentials::has_payprovider(tx, app.id)?;
    apply(tx, app, current, &Command::Reactivate { must_pay }).map(Change::Made)
}

/// `POST /billing/trial/start`. A workspace tries each plan once.
pub fn start_trial(tx: &mut Tx<'_>, app: &App, tenant: TenantId, plan_slug: &str) -> Result<Subscription> {
    let current = locked(tx, app, tenant)?;
    let plan = plan_to_assign(tx, app.id, "planSlug", plan_slug)?;
    if !plan.trial {
        return Err(Error::invalid("planSlug", "must be the key of a plan with a trial"));
    }
    match current.filter(|subscription| !subscription.agreement.is_over()) {
        Some(running) if running.agreement.trial_until().is_some() && running.agreement.bought.plan.key == plan.key => {
            Ok(running)
        }
        Some(running) if running.agreement.is_paid() && running.agreement.trial_until().is_none() => {
            let message = "A paid subscription is running; a trial cannot take its place.";
            Err(Error::new(Code::SubscriptionRunning, message))
        }
        running => begin_trial(tx, app, tenant, running, &plan),
    }
}

fn begin_trial(
    tx: &mut Tx<'_>,
    app: &App,
    tenant: TenantId,
    running: Option<Subscription>,
    plan: &Plan,
) -> Result<Subscription> {
    if !store::insert_trial(tx, app.id, tenant, plan.id)? {
        return Err(Error::new(Code::TrialUsed, format!("The trial of the plan {} has been used.", plan.key)));
    }
    let bought = Purchase::of(plan, plan.prices.first());
    let until = rules::trial_end(tx.now(), plan.trial_days.unwrap_or(1));
    let command = Command::StartTrial(bought.clone(), until);
    apply_or_begin(tx, app, tenant, running, &command, (bought, Beginning::Trial { until }))
}

fn checkout_required() -> Error {
    Error::new(Code::CheckoutRequired, "This plan has to be paid for. Start a checkout instead.")
}

fn not_found() -> Error {
    Error::not_found("subscription")
}
