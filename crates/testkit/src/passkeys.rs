//! Passkeys, with a software authenticator that was not written here.

use passkey::{
    authenticator::{Authenticator, UiHint, UserCheck, UserValidationMethod},
    client::{Client, DefaultClientData},
    crypto::AvailableBackend,
    types::{
        Passkey,
        ctap2::{Aaguid, Ctap2Error},
        webauthn::{CredentialCreationOptions, CredentialRequestOptions},
    },
};
use serde_json::{Value, json};
use url::Url;

use crate::{Answer, PAGE, Person, TestApp};

/// A person who touches the key and shows a finger whenever asked.
struct Willing;

#[async_trait::async_trait]
impl UserValidationMethod for Willing {
    type PasskeyItem = Passkey;

    async fn check_user<'a>(
        &self,
        _: UiHint<'a, Self::PasskeyItem>,
        _: bool,
        _: bool,
    ) -> Result<UserCheck, Ctap2Error> {
        Ok(UserCheck { presence: true, verification: true })
    }

    fn is_verification_enabled(&self) -> Option<bool> {
        Some(true)
    }

    fn is_presence_enabled(&self) -> bool {
        true
    }
}

/// An authenticator that counts its signatures, in a browser.
#[derive(Clone, Default)]
pub struct Device(Option<Passkey>);

impl Device {
    fn authenticator(&self) -> Authenticator<Option<Passkey>, Willing, AvailableBackend> {
        let mut authenticator = Authenticator::new(Aaguid::new_empty(), self.0.clone(), Willing, AvailableBackend);
        authenticator.set_make_credentials_with_signature_counter(true);
        authenticator
    }

    /// On a page of `origin`.
    pub async fn create(&mut self, origin: &str, options: CredentialCreationOptions) -> Value {
        let mut client = Client::new(self.authenticator()).allows_insecure_localhost(true);
        let origin = Url::parse(origin).expect("a URL");
        let made = client.register(&origin, options, DefaultClientData).await.expect("a credential");
        self.0.clone_from(client.authenticator().store());
        serde_json::to_value(made).expect("JSON")
    }

    pub async fn get(&mut self, origin: &str, options: CredentialRequestOptions) -> Value {
        let mut client = Client::new(self.authenticator()).allows_insecure_localhost(true);
        let origin = Url::parse(origin).expect("a URL");
        let shown = client.authenticate(&origin, options, DefaultClientData).await.expect("an assertion");
        self.0.clone_from(client.authenticator().store());
        serde_json::to_value(shown).expect("JSON")
    }
}

pub fn without_token(options: &Answer) -> Value {
    let mut options = options.json();
    options.as_object_mut().expect("options").remove("sdkChallengeToken").expect("a challenge token");
    json!({ "publicKey": options })
}

pub async fn setup_token(app: &TestApp, email: &str) -> String {
    let body = json!({ "username": email, "appId": app.app_id(), "mode": "sdk" });
    let answer = app.page().post("/auth/auth/passkeys/request-setup-link", body).await.expect(200);
    assert_eq!(answer.json(), json!({ "success": true }));
    app.drain().await;
    app.mailed_token(email)
}

pub async fn registration_options(app: &TestApp, token: &str) -> Answer {
    let page = app.page().header("x-app-id", &app.app_id().to_string());
    page.get(&format!("/auth/auth/passkeys/registration-options?passkeySetupToken={token}")).await
}

/// What a page sends after the ceremony of creation.
pub async fn created(app: &TestApp, device: &mut Device, options: &Answer) -> Value {
    let request: CredentialCreationOptions = serde_json::from_value(without_token(options)).expect("creation options");
    finished(app, device.create(PAGE, request).await, options)
}

pub fn finished(app: &TestApp, mut body: Value, options: &Answer) -> Value {
    body["appId"] = json!(app.app_id());
    body["sdkChallengeToken"] = options.at("/sdkChallengeToken");
    body["sdkOrigin"] = PAGE.into();
    body
}

pub async fn verify_registration(app: &TestApp, token: &str, body: Value) -> Answer {
    let path = format!("/auth/auth/passkeys/verify-registration?passkeySetupToken={token}");
    app.page().post(&path, body).await
}

/// Sets up a passkey for somebody.
pub async fn with_passkey(app: &TestApp, person: &Person) -> Device {
    let mut device = Device::default();
    let token = setup_token(app, &person.email).await;
    let options = registration_options(app, &token).await.expect(200);
    let body = created(app, &mut device, &options).await;
    assert_eq!(verify_registration(app, &token, body).await.expect(200).json(), json!({ "verified": true }));
    device
}

pub async fn authentication_options(app: &TestApp) -> Answer {
    let page = app.page().header("x-app-id", &app.app_id().to_string());
    page.get("/auth/auth/passkeys/authentication-options").await
}

/// What a page sends after the ceremony of signing in.
pub async fn asserted(app: &TestApp, device: &mut Device, options: &Answer) -> Value {
    let request: CredentialRequestOptions = serde_json::from_value(without_token(options)).expect("request options");
    let mut body = finished(app, device.get(PAGE, request).await, options);
    body["mode"] = "sdk".into();
    body
}

pub async fn verify_authentication(app: &TestApp, body: Value) -> Answer {
    app.page().post("/auth/auth/passkeys/verify-authentication", body).await
}
