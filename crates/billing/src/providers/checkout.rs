//! Checkouts: what is to be bought, remembered as it was offered, until somebody pays for it.

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Code, Error, Key, Result, TenantId, Timestamp, WebUrl};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    App, Tenancy, apps,
    credentials::{self, Credential},
};
use web::Validate;

use super::{
    Provider, store,
    stripe::{
        Intent, Work,
        intents::{self, Bought},
    },
};
use crate::{
    catalog::PriceOffer,
    subscriptions::{self, BoughtPlan, BoughtPrice, Purchase},
};

/// How long somebody may take to pay.
const OPEN_FOR: Duration = Duration::from_hours(24);
/// What successUrl and cancelUrl may contain in place of the session's id.
const PLACEHOLDER: &str = "{CHECKOUT_SESSION_ID}";

#[derive(Clone, Debug)]
pub struct CheckoutSession {
    /// Random: whoever has it may pay.
    pub id: String,
    pub app: AppId,
    pub tenant: TenantId,
    pub bought: Purchase,
    pub price: BoughtPrice,
    pub success_url: Option<String>,
    pub cancel_url: Option<String>,
    pub paid_at: Option<Timestamp>,
    pub expires_at: Timestamp,
}

impl CheckoutSession {
    /// Where a customer goes who has paid.
    pub fn redirect_uri(&self, app: &App) -> Option<String> {
        let own = self.success_url.as_deref();
        let fallback = app.profile.ui_url.as_deref().or(app.profile.default_callback_uri.as_deref());
        own.or(fallback).map(|url| self.filled(url))
    }

    /// Where a customer goes who does not want to pay.
    pub fn cancel_uri(&self, app: &App) -> Option<String> {
        self.cancel_url.as_deref().or(app.profile.ui_url.as_deref()).map(|url| self.filled(url))
    }

    fn filled(&self, url: &str) -> String {
        url.replace(PLACEHOLDER, &self.id)
    }
}

/// The body of `POST /account/subscription/checkout`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutRequest {
    pub plan_key: Key,
    /// One of the plan's prices; its first one without it.
    pub price_offer: Option<PriceOffer>,
    /// Where a customer goes who has paid. `{CHECKOUT_SESSION_ID}` in it is replaced.
    pub success_url: Option<WebUrl>,
    /// Where a customer goes who does not want to pay.
    pub cancel_url: Option<WebUrl>,
}

impl Validate for CheckoutRequest {}

/// Three times `null` when there was nothing to pay, or nobody to be paid: the plan counts already.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutAnswer {
    pub session_id: Option<String>,
    pub public_key: Option<String>,
    pub checkout_url: Option<String>,
}

/// A checkout that was begun.
pub(crate) enum Begun {
    Here(CheckoutAnswer),
    /// The rest takes place at the provider.
    AtProvider(Box<Intent>),
}

/// Begins a checkout, or assigns the plan where nothing has to be paid.
pub(crate) fn begin(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    tenant: TenantId,
    request: &CheckoutRequest,
) -> Result<Begun> {
    let provider = super::of(tx, tenancy, app)?;
    let must_pay = provider != Provider::None;
    let to_pay = subscriptions::begin_checkout(tx, app, tenant, &request.plan_key, request.price_offer, must_pay)?;
    let Some((plan, price)) = to_pay else { return Ok(Begun::Here(CheckoutAnswer::default())) };
    let success_url: Option<String> = request.success_url.clone().map(Into::into);
    let cancel_url: Option<String> = request.cancel_url.clone().map(Into::into);
    if provider == Provider::Stripe {
        let own = app.profile.ui_url.clone().or(app.profile.default_callback_uri.clone());
        let lands_on = success_url.clone().or(own).unwrap_or_else(|| tenancy.base_url.to_string());
        let work = Work::Checkout { bought: Bought::of(&plan, &price), lands_on, success_url, cancel_url };
        return intents::begin(tx, app.id, tenant, work).map(|intent| Begun::AtProvider(Box::new(intent)));
    }
    let bought_price = BoughtPrice { amount: price.amount, interval: price.interval };
    let plan = BoughtPlan { key: plan.key, name: plan.name, free: false };
    let session = CheckoutSession {
        id: format!("cs_sandbox_{}", tx.entropy().base62(32)),
        app: app.id,
        tenant,
        bought: Purchase { plan, price: Some(bought_price) },
        price: bought_price,
        success_url,
        cancel_url,
        paid_at: None,
        expires_at: tx.now().plus(OPEN_FOR),
    };
    store::insert_session(tx, &session)?;
    Ok(Begun::Here(CheckoutAnswer {
        checkout_url: Some(format!("{}/cloud-views/sandbox/checkout/{}", tenancy.base_url, session.id)),
        session_id: Some(session.id),
        public_key: public_key(tx, tenancy, app.id)?,
    }))
}

/// What the provider's own script in a browser needs.
pub(crate) fn public_key(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId) -> Result<Option<String>> {
    let key = credentials::find(tx, tenancy, app, Credential::PayproviderPublicKey)?;
    Ok(key.map(|key| key.expose().clone()))
}

/// Whether a session is the sandbox's.
pub(crate) fn is_own(id: &str) -> bool {
    id.starts_with("cs_sandbox_")
}

/// A session, with its app.
pub fn find(tx: &mut Tx<'_>, id: &str) -> Result<(App, CheckoutSession)> {
    let missing = || Error::not_found("checkout session");
    let session = store::session(tx, id)?.ok_or_else(missing)?;
    let app = apps::get(tx, session.app).map_err(|_| missing())?;
    Ok((app, session))
}

/// What everybody may know of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutMetadata {
    pub session_id: String,
    pub plan_key: String,
    /// Where a customer goes who has paid.
    pub redirect_uri: Option<String>,
}

/// Whether a checkout was paid, and how the subscription stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutOutcome {
    pub status: subscriptions::Status,
    pub plan_key: String,
}

/// `POST /account/payprovider/confirm-checkout`.
pub fn confirm(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: &str) -> Result<CheckoutOutcome> {
    let (_, session) = find(tx, id)?;
    if session.app != app {
        return Err(Error::not_found("checkout session"));
    }
    if session.tenant != tenant {
        return Err(Error::new(Code::Forbidden, "This checkout session belongs to another workspace."));
    }
    let unpaid = || Error::new(Code::CheckoutUnpaid, "This checkout session has not been paid.");
    session.paid_at.ok_or_else(unpaid)?;
    let subscription = subscriptions::find(tx, app, tenant)?.ok_or_else(unpaid)?;
    Ok(CheckoutOutcome { status: subscription.agreement.status(), plan_key: session.bought.plan.key })
}
