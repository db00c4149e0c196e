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

use super::{Provider, store};
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

/// Begins a checkout, or assigns the plan where nothing has to be paid.
pub fn begin(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    tenant: TenantId,
    request: &CheckoutRequest,
) -> Result<CheckoutAnswer> {
    let provider = super::of(tx, tenancy, app);
    // Whoever gets a plan for nothing needs no provider.
    let must_pay = !matches!(provider, Ok(Provider::None));
    let to_pay = subscriptions::begin_checkout(tx, app, tenant, &request.plan_key, request.price_offer, must_pay)?;
    let Some((plan, price)) = to_pay else { return Ok(CheckoutAnswer::default()) };
    provider?;
    let bought_price = BoughtPrice { amount: price.amount, interval: price.interval };
    let plan = BoughtPlan { key: plan.key, name: plan.name, free: false };
    let session = CheckoutSession {
        id: format!("cs_sandbox_{}", tx.entropy().base62(32)),
        app: app.id,
        tenant,
        bought: Purchase { plan, price: Some(bought_price) },
        price: bought_price,
        success_url: request.success_url.clone().map(Into::into),
        cancel_url: request.cancel_url.clone().map(Into::into),
        paid_at: None,
        expires_at: tx.now().plus(OPEN_FOR),
    };
    store::insert_session(tx, &session)?;
    let public_key = credentials::find(tx, tenancy, app.id, Credential::PayproviderPublicKey)?;
    Ok(CheckoutAnswer {
        checkout_url: Some(format!("{}/cloud-views/sandbox/checkout/{}", tenancy.base_url, session.id)),
        session_id: Some(session.id),
        public_key: public_key.map(|key| key.expose().clone()),
    })
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
