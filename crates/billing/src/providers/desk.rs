//! What routes and pages ask of whoever is paid, in the name of whoever asks: checkouts, portals, and changes that a provider has to
//! make first.

use kernel::{AppId, Authored, Code, Error, Result, TenantId};
use store::Tx;
use tenancy::{App, apps};

use super::{
    Provider,
    checkout::{self, Begun, CheckoutAnswer, CheckoutOutcome, CheckoutRequest},
    sandbox::{self, portal},
    stripe::{
        self, Intent, Work,
        intents::{self, Outcome},
    },
};
use crate::{
    Billing,
    catalog::PriceOffer,
    subscriptions::{self, Change, Subscription},
};

/// A change that was made, or that the provider has to make first.
enum Begin<T> {
    Done(T),
    AtProvider(Box<Intent>),
}

/// What a workspace has at a provider outside.
pub struct ProviderSubscription {
    pub subscription: String,
    pub customer: String,
}

impl Billing {
    /// Begins a checkout, or assigns the plan where nothing has to be paid.
    pub async fn checkout(
        &self,
        who: &impl Authored,
        (app, tenant): (AppId, TenantId),
        request: impl Fn(&mut Tx<'_>) -> Result<CheckoutRequest> + Send + 'static,
    ) -> Result<CheckoutAnswer> {
        let tenancy = self.tenancy.clone();
        let begun = self.tenancy.db.by(who).write(move |tx| {
            let app = apps::get(tx, app)?;
            let request = request(tx)?;
            checkout::begin(tx, &tenancy, &app, tenant, &request)
        });
        let intent = match begun.await? {
            Begun::Here(answer) => return Ok(answer),
            Begun::AtProvider(intent) => intent,
        };
        let Outcome::Checkout(session) = self.carry_out(&intent).await? else {
            return Err(Error::internal("a checkout came to something else"));
        };
        let tenancy = self.tenancy.clone();
        let public_key = self.tenancy.db.read(move |tx| checkout::public_key(tx, &tenancy, app)).await?;
        Ok(CheckoutAnswer { session_id: Some(session.id), public_key, checkout_url: session.url })
    }

    /// Whether a checkout was paid. One at a provider is asked for there, so that nobody has to wait for its callback.
    pub(super) async fn confirm(&self, app: AppId, tenant: TenantId, id: String) -> Result<CheckoutOutcome> {
        let named = id.clone();
        let read = move |tx: &mut Tx<'_>| checkout::confirm(tx, app, tenant, &named);
        match self.tenancy.db.snapshot(read.clone()).await {
            Err(error) if error.code() == Code::CheckoutUnpaid && !checkout::is_own(&id) => {
                if self.take_over_session(app, &id).await? { self.tenancy.db.snapshot(read).await } else { Err(error) }
            }
            known => known,
        }
    }

    /// The address of the provider's portal for what a workspace pays there; `None` when it pays nobody.
    pub async fn portal(&self, who: &impl Authored, app: AppId, tenant: TenantId) -> Result<Option<String>> {
        let tenancy = self.tenancy.clone();
        let opened = self.tenancy.db.by(who).write(move |tx| {
            let app = apps::get(tx, app)?;
            let subscription = subscriptions::find(tx, app.id, tenant)?;
            if !subscription.is_some_and(|found| found.agreement.runs_at_provider()) {
                return Ok((None, None));
            }
            if let Some(there) = stripe::find(tx, app.id, tenant)? {
                return Ok((None, Some((there.customer, app.profile.ui_url.clone(), tx.entropy().base62(16)))));
            }
            match super::of(tx, &tenancy, &app)? {
                Provider::Sandbox => Ok((Some(portal::open(tx, &tenancy, app.id, tenant, portal::OPEN_FOR)?), None)),
                Provider::None | Provider::Stripe => Ok((None, None)),
            }
        });
        let (here, there) = opened.await?;
        let Some((customer, back, key)) = there else { return Ok(here) };
        let account = self.account(app).await?;
        Ok(Some(account.create_portal(&customer, back.as_deref(), &key).await?.url))
    }

    /// `POST /billing/cancel`.
    pub async fn cancel(&self, who: &impl Authored, app: AppId, tenant: TenantId) -> Result<Subscription> {
        self.change_standing(who, app, tenant, subscriptions::cancel).await
    }

    /// `POST /billing/reactivate`.
    pub async fn reactivate(&self, who: &impl Authored, app: AppId, tenant: TenantId) -> Result<Subscription> {
        self.change_standing(who, app, tenant, subscriptions::reactivate).await
    }

    async fn change_standing(
        &self,
        who: &impl Authored,
        app: AppId,
        tenant: TenantId,
        change: fn(&mut Tx<'_>, &App, TenantId) -> Result<Change<Subscription>>,
    ) -> Result<Subscription> {
        match self.begin_change(who, app, tenant, change).await? {
            Begin::Done(subscription) => Ok(subscription),
            Begin::AtProvider(intent) => match self.carry_out(&intent).await? {
                Outcome::Changed(Some(subscription)) => Ok(*subscription),
                Outcome::Changed(None) | Outcome::Checkout(_) => Err(Error::not_found("subscription")),
            },
        }
    }

    /// `POST /account/subscription/select`.
    pub async fn select(&self, who: &impl Authored, app: AppId, tenant: TenantId, plan: String) -> Result<()> {
        let change = move |tx: &mut Tx<'_>, app: &App, tenant| subscriptions::select(tx, app, tenant, &plan);
        self.change_plan(who, app, tenant, change).await
    }

    /// `POST /account/subscription/change`.
    pub async fn change(
        &self,
        who: &impl Authored,
        (app, tenant): (AppId, TenantId),
        plan: String,
        offer: Option<PriceOffer>,
    ) -> Result<()> {
        let change = move |tx: &mut Tx<'_>, app: &App, tenant| subscriptions::change(tx, app, tenant, &plan, offer);
        self.change_plan(who, app, tenant, change).await
    }

    async fn change_plan(
        &self,
        who: &impl Authored,
        app: AppId,
        tenant: TenantId,
        change: impl Fn(&mut Tx<'_>, &App, TenantId) -> Result<Change<()>> + Send + 'static,
    ) -> Result<()> {
        match self.begin_change(who, app, tenant, change).await? {
            Begin::Done(()) => Ok(()),
            Begin::AtProvider(intent) => self.carry_out(&intent).await.map(|_| ()),
        }
    }

    async fn begin_change<T: Send + 'static>(
        &self,
        who: &impl Authored,
        app: AppId,
        tenant: TenantId,
        change: impl Fn(&mut Tx<'_>, &App, TenantId) -> Result<Change<T>> + Send + 'static,
    ) -> Result<Begin<T>> {
        let tenancy = self.tenancy.clone();
        let begun = self.tenancy.db.by(who).write(move |tx| {
            let app = apps::get(tx, app)?;
            sandbox::catch_up(tx, &tenancy, app.id, tenant)?;
            match change(tx, &app, tenant)? {
                Change::Made(made) => Ok(Begin::Done(made)),
                Change::ByProvider { subscription, how } => {
                    let work = Work::Update { subscription, how };
                    intents::begin(tx, app.id, tenant, work).map(|intent| Begin::AtProvider(Box::new(intent)))
                }
            }
        });
        begun.await
    }

    /// What a workspace has at a provider outside.
    pub async fn at_provider(&self, app: AppId, tenant: TenantId) -> Result<Option<ProviderSubscription>> {
        let found = self.tenancy.db.read(move |tx| stripe::find(tx, app, tenant)).await?;
        Ok(found.map(|there| ProviderSubscription { subscription: there.subscription, customer: there.customer }))
    }
}
