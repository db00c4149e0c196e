//! Checkouts for members and for backends, and what a payment provider tells.

use http::HeaderMap;
use kernel::{AppId, Error, Key, Result, TenantId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Tx;
use tenancy::{
    Tenancy,
    callers::{KeyCaller, TenantCaller, TenantWrite, UserCaller},
    workspaces,
};
use web::{
    Created, Describe, Empty, Failure, Json, Operation, Path, RawBody, Routes, State, Valid, ValidOrNone, Validate,
    required_header,
};

use super::{
    callbacks,
    checkout::{self, CheckoutAnswer, CheckoutMetadata, CheckoutOutcome, CheckoutRequest},
    sandbox,
};
use crate::{
    Billing,
    catalog::{PriceOffer, plans},
    subscriptions,
};

const PROVIDER_FAILED: &str = "The payment provider cannot be used";
const RUNNING: &str = "A paid subscription is running";

pub fn routes() -> Routes<Billing> {
    Routes::new("Payments")
        .post("/account/subscription/checkout", begin, "Begin to pay for a plan")
        .description(
            "Answers where to send the customer. A free plan, or any plan while the app has no payment provider, is assigned \
             directly: then all three members are `null`.",
        )
        .answers(409, RUNNING)
        .answers(502, PROVIDER_FAILED)
        .post("/account/tenant/{tenant_id}/checkoutId", begin_for_workspace, "Begin a checkout for a workspace")
        .description("For the workspace's own plan and price unless the body names others.")
        .answers(409, RUNNING)
        .answers(502, PROVIDER_FAILED)
        .post("/account/app/checkoutId", begin_by_header, "Begin a checkout for the workspace of x-tenant-id")
        .answers(409, RUNNING)
        .answers(502, PROVIDER_FAILED)
        .post("/account/payprovider/confirm-checkout", confirm, "Confirm that a checkout was paid")
        .answers(404, "There is no such checkout session here")
        .answers(409, "The checkout session has not been paid")
        .answers(502, PROVIDER_FAILED)
        .get(
            "/account/payprovider/checkoutSession/{session_id}/metadata",
            metadata,
            "Get what a checkout session is for, and where it leads",
        )
        .post("/account/payprovider/webhook/{app_id}", receive, "Receive an event of the payment provider")
        .merge(sandbox::page::routes())
        .merge(sandbox::portal::routes())
}

async fn begin(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(billing): State<Billing>,
    Valid(request): Valid<CheckoutRequest>,
) -> Result<Created<CheckoutAnswer>> {
    let owner = (user.app(), user.tenant());
    Ok(Created(billing.checkout(&user, owner, move |_| Ok(request.clone())).await?))
}

/// A checkout for whoever has the provider's own script.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutReference {
    /// The checkout session's.
    pub id: Option<String>,
    pub public_key: Option<String>,
}

impl From<CheckoutAnswer> for CheckoutReference {
    fn from(answer: CheckoutAnswer) -> Self {
        Self { id: answer.session_id, public_key: answer.public_key }
    }
}

/// The body of `POST /account/tenant/{tenant_id}/checkoutId`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OptionalPlanChoice {
    /// The workspace's own plan without it.
    pub plan_key: Option<Key>,
    pub price_offer: Option<PriceOffer>,
}

impl Validate for OptionalPlanChoice {}

async fn begin_for_workspace(
    caller: KeyCaller<TenantWrite>,
    State(billing): State<Billing>,
    Path(tenant): Path<TenantId>,
    ValidOrNone(choice): ValidOrNone<OptionalPlanChoice>,
) -> Result<Json<CheckoutReference>> {
    caller.in_workspace(tenant)?;
    let (app, choice) = (caller.app_id(), choice.unwrap_or_default());
    let request = move |tx: &mut Tx<'_>| {
        workspaces::get(tx, app, tenant)?;
        let OptionalPlanChoice { plan_key, price_offer } = choice.clone();
        let (plan_key, price_offer) = match plan_key {
            Some(key) => (must_be_paid(tx, app, key)?, price_offer),
            None => own_plan(tx, app, tenant, price_offer)?,
        };
        Ok(CheckoutRequest { plan_key, price_offer, success_url: None, cancel_url: None })
    };
    Ok(Json(billing.checkout(&caller, (app, tenant), request).await?.into()))
}

/// A key that no plan has is refused where the plan is assigned.
fn must_be_paid(tx: &mut Tx<'_>, app: AppId, key: Key) -> Result<Key> {
    match plans::find_by_key(tx, app, &key)? {
        Some(plan) if plan.is_free() => Err(Error::invalid("planKey", "must be the key of a paid plan")),
        _ => Ok(key),
    }
}

/// The plan and price of the workspace, if they have to be paid for.
fn own_plan(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    offer: Option<PriceOffer>,
) -> Result<(Key, Option<PriceOffer>)> {
    let none = || Error::invalid("planKey", "is required, since the workspace has no paid plan");
    let subscription = subscriptions::find(tx, app, tenant)?.ok_or_else(none)?;
    let agreement = subscription.agreement;
    if agreement.is_over() || !agreement.is_paid() {
        return Err(none());
    }
    let key = agreement.bought.plan.key.parse().map_err(|_| none())?;
    Ok((key, offer.or(agreement.bought.price.map(|price| price.offer()))))
}

/// The body of `POST /account/app/checkoutId`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppCheckout {
    pub plan_key: Key,
    pub price_offer: Option<PriceOffer>,
}

impl Validate for AppCheckout {}

async fn begin_by_header(
    caller: TenantCaller<TenantWrite>,
    State(billing): State<Billing>,
    Valid(choice): Valid<AppCheckout>,
) -> Result<Json<CheckoutReference>> {
    let owner = (caller.app_id(), caller.tenant());
    let request = move |_: &mut Tx<'_>| {
        let AppCheckout { plan_key, price_offer } = choice.clone();
        Ok(CheckoutRequest { plan_key, price_offer, success_url: None, cancel_url: None })
    };
    Ok(Json(billing.checkout(&caller, owner, request).await?.into()))
}

/// The body of `POST /account/payprovider/confirm-checkout`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmRequest {
    #[schemars(length(min = 1, max = 255))]
    pub session_id: String,
}

impl Validate for ConfirmRequest {}

async fn confirm(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(billing): State<Billing>,
    Valid(request): Valid<ConfirmRequest>,
) -> Result<Json<CheckoutOutcome>> {
    let (app, tenant) = (user.app(), user.tenant());
    Ok(Json(billing.confirm(app, tenant, request.session_id).await?))
}

async fn metadata(State(billing): State<Billing>, Path(id): Path<String>) -> Result<Json<CheckoutMetadata>> {
    let (app, session) = billing.tenancy.db.snapshot(move |tx| checkout::find(tx, &id)).await?;
    Ok(Json(CheckoutMetadata {
        redirect_uri: session.redirect_uri(&app),
        plan_key: session.bought.plan.key,
        session_id: session.id,
    }))
}

/// The header that proves who speaks.
pub struct ProviderSignature(String);

impl<S: Sync> axum::extract::FromRequestParts<S> for ProviderSignature {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Failure> {
        let headers: &HeaderMap = &parts.headers;
        Ok(Self(required_header(headers, "provider-signature")?.to_owned()))
    }
}

impl Describe for ProviderSignature {
    fn describe(operation: &mut Operation) {
        operation.header("provider-signature", true, "`t=<unix seconds>,v1=<hex HMAC-SHA256 of t.body>`");
    }
}

async fn receive(
    ProviderSignature(signature): ProviderSignature,
    State(billing): State<Billing>,
    Path(app): Path<AppId>,
    RawBody(body): RawBody,
) -> Result<Empty> {
    let tenancy: Tenancy = billing.tenancy.clone();
    billing.tenancy.db.write(move |tx| callbacks::receive(tx, &tenancy, app, &signature, &body)).await?;
    billing.told.wake();
    Ok(Empty)
}
