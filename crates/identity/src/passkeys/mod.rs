//! Passkeys: discoverable WebAuthn credentials, set up with a mailed link and then used without a user name. A passkey
//! belongs to the host of the page that made it (its RP id) and always verifies its user, so that it counts as two
//! factors.
//!
//! What a ceremony has to remember travels in a signed token, which works once and for five minutes.

mod challenge;
pub mod http;
mod party;
#[cfg(test)]
mod properties;
mod store;

use std::net::IpAddr;

use kernel::{Actor, Code, Error, Result};
use serde_json::{Map, Value, json};
use tenancy::{
    App,
    links::{self, LinkPurpose},
    mails::AppMail,
    paths, people,
};
use url::Url;
use uuid::Uuid;
use webauthn_rs::prelude::{DiscoverableAuthentication, PasskeyRegistration};

use crate::{
    Identity, announcements,
    authorize::LoginRequest,
    facts::FactorChange,
    login::{self, first_proof, mail_to, payload},
    mfa::{self, store::passkeys},
    proof::Method,
    sessions::{BegunSession, SessionAnswer},
};
use challenge::{Kind, PasskeyChallenge};
pub use party::{PresentedPasskey, RelyingParty};
use party::{credential_id, rejected, unknown};

pub(crate) fn check_enabled(app: &App) -> Result<()> {
    if app.profile.passkeys_enabled {
        return Ok(());
    }
    Err(Error::new(Code::LoginMethodOff, "This app has turned passkeys off."))
}

/// The origin of the hosted pages.
pub(crate) fn own_origin(identity: &Identity) -> String {
    let url = Url::parse(&identity.tenancy.base_url);
    url.map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

/// Whether the hosted pages can work with the app's passkeys. A host that is an IP address cannot have any.
pub(crate) fn are_possible(identity: &Identity, app: &App) -> bool {
    app.profile.passkeys_enabled && RelyingParty::new(&app.profile.name, &own_origin(identity)).is_ok()
}

/// Mails a link that sets up a passkey, and then leads to where the app asked for the login, to whoever has an account.
pub(crate) async fn mail_setup_link(
    identity: &Identity,
    app: &App,
    username: &str,
    asked: Option<LoginRequest>,
) -> Result<()> {
    check_enabled(app)?;
    let tenancy = identity.tenancy.clone();
    mail_to(identity, app, username, move |tx, app, account| {
        links::keep_newest(tx, app.id, LinkPurpose::PasskeySetup, account.user)?;
        let token = links::create(
            tx,
            app.id,
            LinkPurpose::PasskeySetup,
            Some(account.user),
            &payload(&tenancy, asked.as_ref())?,
        )?;
        Ok(AppMail::PasskeySetup { link: format!("{}{}?token={token}", tenancy.base_url, paths::PASSKEY_SETUP) })
    })
    .await
}

/// Options for the browser, with the token that brings the challenge back.
pub struct Options {
    public_key: Map<String, Value>,
    sdk_challenge_token: String,
}

impl Options {
    pub fn into_json(self) -> Map<String, Value> {
        let mut options = self.public_key;
        options.insert("sdkChallengeToken".into(), self.sdk_challenge_token.into());
        options
    }
}

fn public_key(options: &impl serde::Serialize) -> Result<Map<String, Value>> {
    match serde_json::to_value(options).map_err(Error::internal)?["publicKey"].take() {
        Value::Object(members) => Ok(members),
        _ => Err(Error::internal("WebAuthn options without publicKey")),
    }
}

pub(crate) async fn registration_options(identity: &Identity, app: &App, origin: &str, token: &str) -> Result<Options> {
    let party = RelyingParty::new(&app.profile.name, origin)?;
    let (app_id, token, rp_id) = (app.id, token.to_owned(), party.id.clone());
    let (person, known) = identity
        .tenancy
        .db
        .read(move |tx| {
            let link = links::peek(tx, LinkPurpose::PasskeySetup, &token)?;
            let user = link.user.filter(|_| link.app == app_id).ok_or_else(invalid_setup)?;
            let person = people::find(tx, app_id, user)?.ok_or_else(invalid_setup)?;
            Ok((person, passkeys::of_user(tx, app_id, user, &rp_id)?))
        })
        .await?;
    let exclude = known.iter().map(|passkey| passkey.cred_id().clone()).collect();
    let name = people::full_name(&person.first_name, &person.last_name);
    let name = if name.is_empty() { person.email.clone() } else { name };
    let handle = Uuid::from_u128(person.id.as_u128());
    let (options, state) = party
        .webauthn
        .start_passkey_registration(handle, &person.email, &name, Some(exclude))
        .map_err(Error::internal)?;
    let mut public_key = public_key(&options)?;
    // A credential that cannot be discovered could never sign in here, because nobody is asked for a name.
    let selection = public_key.entry("authenticatorSelection").or_insert_with(|| json!({}));
    selection["residentKey"] = "required".into();
    selection["requireResidentKey"] = true.into();
    let challenge = PasskeyChallenge::new(identity, Kind::Registration, app.id, &party.id, &state)?;
    Ok(Options { public_key, sdk_challenge_token: challenge.sign(identity)? })
}

/// What a browser sends back after a ceremony.
pub(crate) struct Ceremony {
    /// The page on which it took place: one that the app allows, or this service's own.
    pub(crate) origin: String,
    pub(crate) challenge_token: String,
    pub(crate) credential: Value,
}

pub(crate) async fn verify_registration(identity: &Identity, app: &App, token: &str, ceremony: Ceremony) -> Result<()> {
    let party = RelyingParty::new(&app.profile.name, &ceremony.origin)?;
    let challenge =
        PasskeyChallenge::verify(identity, Kind::Registration, app.id, &party.id, &ceremony.challenge_token)?;
    let state: PasskeyRegistration = challenge.state()?;
    let passkey = party.registered(&state, ceremony.credential)?;
    let (app_id, token, rp_id, room) = (app.id, token.to_owned(), party.id, identity.clone());
    identity
        .tenancy
        .db
        .write(move |tx| {
            let link = links::consume(tx, LinkPurpose::PasskeySetup, &token)?;
            let user = link.user.filter(|_| link.app == app_id).ok_or_else(invalid_setup)?;
            links::revoke(tx, app_id, LinkPurpose::PasskeySetup, user)?;
            challenge.use_up(tx)?;
            first_proof::forget_factor(tx, &room.tenancy, app_id, user)?;
            // The mailbox alone allowed this: it must not make up for a second factor that the person has.
            let unproven = mfa::find_factor(tx, app_id, user)?.is_some();
            if !passkeys::insert(tx, app_id, user, &rp_id, &credential_id(passkey.cred_id()), &passkey, unproven)? {
                return Err(rejected());
            }
            people::verify_email(tx, app_id, user)?;
            tx.acting_as(Actor::user(user));
            announcements::factor_changed(tx, &room.tenancy, app_id, user, FactorChange::PasskeyAdded)
        })
        .await
}

pub(crate) fn authentication_options(identity: &Identity, app: &App, origin: &str) -> Result<Options> {
    let party = RelyingParty::new(&app.profile.name, origin)?;
    let (options, state) = party.webauthn.start_discoverable_authentication().map_err(Error::internal)?;
    let challenge = PasskeyChallenge::new(identity, Kind::Authentication, app.id, &party.id, &state)?;
    Ok(Options { public_key: public_key(&options)?, sdk_challenge_token: challenge.sign(identity)? })
}

/// Signs in with a passkey. A failure counts against the client's address.
pub(crate) async fn sign_in(
    identity: &Identity,
    app: &App,
    client: IpAddr,
    ceremony: Ceremony,
) -> Result<SessionAnswer> {
    check_enabled(app)?;
    let begun = identity.addresses.judge(client, verify_authentication(identity, app, ceremony)).await?;
    begun.sign(&identity.tenancy)
}

async fn verify_authentication(identity: &Identity, app: &App, ceremony: Ceremony) -> Result<BegunSession> {
    let party = RelyingParty::new(&app.profile.name, &ceremony.origin)?;
    let challenge =
        PasskeyChallenge::verify(identity, Kind::Authentication, app.id, &party.id, &ceremony.challenge_token)?;
    let state: DiscoverableAuthentication = challenge.state()?;
    let shown = party.shown(ceremony.credential)?;
    let user = shown.user;
    let (app_id, rp_id, key) = (app.id, party.id.clone(), shown.id.clone());
    let found = identity.tenancy.db.read(move |tx| passkeys::find(tx, app_id, user, &rp_id, &key)).await?;
    let (stored, mut passkey) = found.ok_or_else(unknown)?;
    let result = party.authenticated(state, &shown, &passkey)?;
    let verified = result.user_verified();
    passkey.update_credential(&result);
    let (app, room) = (app.clone(), identity.clone());
    let begun = identity.tenancy.db.write(move |tx| {
        challenge.use_up(tx)?;
        let unproven = passkeys::used(tx, app.id, &shown.id, &stored, &passkey)?.ok_or_else(unknown)?;
        let strong = verified && !(unproven && mfa::find_factor(tx, app.id, user)?.is_some());
        login::begin(tx, &room, &app, user, Method::Passkey, strong)
    });
    begun.await
}

pub(crate) fn invalid_setup() -> Error {
    Error::credential(
        "This setup link is no longer valid: it has expired, has already been used, or has been replaced.",
    )
}
