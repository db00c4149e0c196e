//! Token sets: what they say, and what is done with them.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use identity::{
    proof::Method,
    tokens::{Granted, codes},
};
use serde_json::{Value, json};

use crate::{Answer, Person, TestApp};

/// Where the first app takes codes.
pub const REDIRECT: &str = "http://localhost:3000/callback";

/// A verifier of PKCE, and its challenge.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

pub fn claims(token: &str) -> Value {
    part(token, 1)
}

pub fn part(token: &str, index: usize) -> Value {
    let part = token.split('.').nth(index).expect("three parts");
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("JSON")
}

pub async fn refresh(app: &TestApp, token: &str) -> Answer {
    let body = json!({ "client_id": app.app_id(), "grant_type": "refresh_token", "refresh_token": token });
    app.anon().post("/auth/token", body).await
}

/// Whether an access token is still good on the service's own routes.
pub async fn is_signed_in(app: &TestApp, token: &str) -> bool {
    app.anon().header("authorization", &format!("Bearer {token}")).get("/auth/userinfo").await.status() == 200
}

/// A code as the hosted login makes it.
pub async fn code(app: &TestApp, person: &Person, challenge: Option<&'static str>) -> String {
    let (app_id, user, member) = (app.app_id(), person.user, person.member);
    let service = app.service();
    let made = service.core().db.write(move |tx| {
        let granted = Granted::everything();
        let new = codes::NewCode {
            user,
            member,
            redirect_uri: REDIRECT,
            granted: &granted,
            nonce: Some("n-0S6"),
            code_challenge: challenge,
            mfa: false,
            method: Method::Password,
            authenticated_at: tx.now(),
            browser: None,
            reach: tenancy::logins::Reach::EVERYTHING,
        };
        codes::issue(tx, app_id, &new)
    });
    made.await.expect("a code")
}

pub async fn exchange(app: &TestApp, code: &str, verifier: Option<&str>) -> Answer {
    let mut body = json!({
        "client_id": app.app_id(), "grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT,
    });
    if let Some(verifier) = verifier {
        body["code_verifier"] = verifier.into();
    }
    app.anon().post("/auth/token", body).await
}
