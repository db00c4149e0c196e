//! `/auth/logout`: an app signs somebody out in the words of OpenID Connect RP-Initiated Logout 1.0.

use std::sync::Arc;

use kernel::{AppId, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::App;
use web::{Form, Params, Routes};

use super::{Reply, sign_out, sign_out_to};
use crate::{
    Identity,
    authorize::{MAX_TEXT, redirects},
    browser::{ForRequest, Request},
    tokens,
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::new("Login redirects")
        .get("/auth/logout", end_session, "Sign out of this browser, and return to the app")
        .description(
            "OpenID Connect RP-Initiated Logout 1.0: ends this browser's session, revokes the tokens that were issued for it, and \
             redirects to `post_logout_redirect_uri` with `state`; without one, to the login.",
        )
        .page()
        .post("/auth/logout", end_session_by_form, "Sign out, with the parameters in a form")
        .description("Redirects to the same with GET: a browser sends its cookies there, and not with a form of another site.")
        .page()
        .all_answer(&[(404, "There is no such app")])
}

/// What an app says when it signs somebody out.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct EndSession {
    /// The app's id; not needed with an `id_token_hint`.
    client_id: Option<String>,
    /// An ID token of the login that is over, expired or not.
    id_token_hint: Option<String>,
    /// One of the app's `redirectUris`, or its `uiUrl`, letter for letter.
    post_logout_redirect_uri: Option<String>,
    /// Comes back as it is.
    state: Option<String>,
}

/// What is asked of an ID token here. It was issued to the app that shows it; whether it has expired does not matter.
#[derive(Deserialize)]
struct Hint {
    aud: AppId,
}

impl EndSession {
    /// The app that asks, and where the person returns to.
    fn judge(&self, identity: &Identity, request: &Request) -> Result<(Arc<App>, Option<String>)> {
        let hinted = match &self.id_token_hint {
            Some(token) => Some(hinted(identity, token)?),
            None => None,
        };
        let named = match &self.client_id {
            Some(id) => Some(id.parse().map_err(|_| Error::invalid("client_id", "must be the id of an app"))?),
            None => None,
        };
        if let (Some(named), Some(hinted)) = (named, hinted)
            && named != hinted
        {
            return Err(Error::invalid("id_token_hint", "must be an ID token of the app that client_id names"));
        }
        let app =
            named.or(hinted).ok_or_else(|| Error::invalid("client_id", "is required without an id_token_hint"))?;
        let app = identity.app(request, app)?;
        if self.state.as_ref().is_some_and(|state| state.len() > MAX_TEXT) {
            return Err(Error::invalid("state", format!("must not be longer than {MAX_TEXT} bytes")));
        }
        let returns = self.post_logout_redirect_uri.as_deref().map(|uri| self.returning(&app, uri)).transpose()?;
        Ok((app, returns))
    }

    fn returning(&self, app: &App, uri: &str) -> Result<String> {
        let known = redirects::registered(&app.profile, Some(uri)).or(app.profile.ui_url.as_deref());
        let Some(uri) = known.filter(|known| *known == uri) else {
            let message = "must be one of the app’s registered redirect URIs, or its uiUrl";
            return Err(Error::invalid("post_logout_redirect_uri", message));
        };
        Ok(match &self.state {
            Some(state) => redirects::with_query(uri, &[("state", state)]),
            None => uri.to_owned(),
        })
    }
}

/// The app that an ID token was issued to.
fn hinted(identity: &Identity, token: &str) -> Result<AppId> {
    let hint = tokens::verify_id_token::<Hint>(&identity.tenancy, token);
    let hint = hint.ok_or_else(|| Error::invalid("id_token_hint", "must be an ID token that was issued here"))?;
    Ok(hint.aud)
}

async fn end_session(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(asked): Params<EndSession>,
) -> Result<Reply> {
    let (app, returns) = asked.judge(&identity, &request)?;
    match returns {
        Some(location) => sign_out_to(&identity, &request, &app, location).await,
        None => sign_out(&identity, &request, &app, None).await,
    }
}

async fn end_session_by_form(
    request: Request,
    ForRequest(identity): ForRequest,
    Form(asked): Form<EndSession>,
) -> Result<Reply> {
    let (app, _) = asked.judge(&identity, &request)?;
    let mut parameters = vec![("client_id", app.id.to_string())];
    parameters.extend(asked.post_logout_redirect_uri.map(|uri| ("post_logout_redirect_uri", uri)));
    parameters.extend(asked.state.map(|state| ("state", state)));
    let parameters: Vec<(&str, &str)> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let again = redirects::with_query(&format!("{}/auth/logout", identity.tenancy.base_url), &parameters);
    Ok(Reply::see(again))
}
