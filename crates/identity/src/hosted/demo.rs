//! A page at which a first login can end, before there is an app: it shows the code that the app would get, trades it for
//! tokens when asked to, and shows what these say. Only where the service itself runs at a loopback address; elsewhere there
//! is no such page.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{AppId, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tenancy::apps;
use url::form_urlencoded;
use web::{Form, Params, Routes, pages::HostedPage};

use super::{Guest, Reply, paths};
use crate::{
    Identity,
    authorize::redirects,
    browser::{ForRequest, Request},
    tokens::{self, codes::PresentedCode},
};

// Developers read these, so that they are not translated.
const LOGIN: &str = "A login of {appName}";
const TOKENS: &str = "The tokens of {appName}";

pub(super) fn routes() -> Routes<Identity> {
    Routes::pages("Hosted login").get(paths::DEMO, show, "In development: try a login, or see its code").post(
        paths::DEMO,
        submit,
        "In development: trade a code for tokens and show them",
    )
}

/// The app to begin with, or the answer of a login that ended here: the app is its `state`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct DemoQuery {
    app: Option<AppId>,
    state: Option<AppId>,
    code: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

async fn show(request: Request, ForRequest(identity): ForRequest, Params(query): Params<DemoQuery>) -> Result<Reply> {
    let app = query.app.or(query.state).ok_or_else(|| Error::invalid("app", "is required: the id of an app"))?;
    let (guest, address) = open(&identity, &request, app).await?;
    let page = guest.page(LOGIN);
    let page = match (&query.code, &query.error) {
        (Some(code), _) => {
            let form = web::pages::PostForm::new(paths::DEMO).hidden("app", &app.to_string()).hidden("code", code);
            page.paragraph(
                "The login succeeded. Your app would now be opened with this code, which is good for a minute:",
            )
            .code(code)
            .form(&form.hidden("csrf", &guest.csrf()).button("Trade the code for tokens"))
        }
        (None, Some(error)) => {
            let why = query.error_description.unwrap_or_default();
            page.alert(&format!("The login failed: {error}. {why}")).link("", "Try again", &begin(app, &address))
        }
        (None, None) if redirects::registered(&guest.app.profile, Some(&address)).is_none() => page
            .paragraph("Logins of this app cannot end here yet. Add this address to its redirectUris:")
            .code(&address),
        (None, None) => page
            .paragraph("Sign in as a user of this app would. You come back here and see what the app gets.")
            .link("", "Sign in", &begin(app, &address)),
    };
    Ok(guest.show(page))
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct CodeForm {
    app: AppId,
    #[serde(default)]
    code: String,
    #[serde(default)]
    csrf: String,
}

async fn submit(request: Request, ForRequest(identity): ForRequest, Form(form): Form<CodeForm>) -> Result<Reply> {
    let (guest, redirect_uri) = open(&identity, &request, form.app).await?;
    guest.check_form(&form.csrf)?;
    let shown = PresentedCode { code: form.code, redirect_uri: redirect_uri.clone(), verifier: None };
    let tokens = tokens::from_code(&identity.tenancy, &guest.app, shown).await?.tokens;
    let page = guest.page(TOKENS);
    let page = content(page, "The access token, for your backend:", &tokens.access_token)?;
    let page = content(page, "The ID token, about who signed in:", &tokens.id_token)?;
    let page = page
        .aside("The refresh token gets new ones. Verify a token's signature, iss, aud and exp before you trust it.");
    Ok(guest.show(page.link("", "Sign in again", &begin(form.app, &redirect_uri))))
}

/// The page with what a token says. We made it a moment ago, so that nothing has to be verified.
fn content(page: HostedPage, title: &str, token: &str) -> Result<HostedPage> {
    let mut page = page.paragraph(title);
    for part in token.split('.').take(2) {
        let json = BASE64_URL_SAFE_NO_PAD.decode(part).map_err(Error::internal)?;
        let value: Value = serde_json::from_slice(&json).map_err(Error::internal)?;
        page = page.block(&format!("{value:#}"));
    }
    Ok(page)
}

/// Somebody in front of the page, and its address; 404 where there is none.
async fn open(identity: &Identity, request: &Request, app: AppId) -> Result<(Guest, String)> {
    let address = apps::demo_address(&identity.tenancy.base_url).ok_or_else(|| Error::not_found("page"))?;
    let app = identity.app(request, app)?;
    Ok((Guest::of(identity, request, app, None).await?, address))
}

/// Where a login begins that ends here.
fn begin(app: AppId, address: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("redirectUri", address)
        .append_pair("state", &app.to_string())
        .finish();
    format!("/auth/url/login/{app}?{query}")
}
