//! The relying party of one app for one page's host: what a browser sends back after a ceremony is read and judged here.
//! Pure.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{Code, Error, Result, UserId};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;
use webauthn_rs::prelude::{
    AuthenticationResult, DiscoverableAuthentication, Passkey, PasskeyRegistration, PublicKeyCredential,
    RegisterPublicKeyCredential, Webauthn, WebauthnBuilder,
};

use crate::login::host_of;

pub struct RelyingParty {
    /// The host of the page.
    pub(super) id: String,
    pub(super) webauthn: Webauthn,
}

/// A passkey as it was shown, not yet believed.
pub struct PresentedPasskey {
    pub user: UserId,
    /// The credential's id in its one spelling.
    pub id: String,
    credential: PublicKeyCredential,
}

impl RelyingParty {
    /// `name` is the app's, `origin` one that the app allows.
    pub fn new(name: &str, origin: &str) -> Result<Self> {
        let id = host_of(origin);
        let no_host = || Error::invalid("sdkOrigin", "must be the origin of a page with a host name");
        let origin = Url::parse(origin).map_err(|_| no_host())?;
        let builder = WebauthnBuilder::new(&id, &origin).map_err(|_| no_host())?;
        let webauthn = builder.rp_name(name).build().map_err(Error::internal)?;
        Ok(Self { id, webauthn })
    }

    /// The new passkey, when it answers what was asked for.
    pub fn registered(&self, asked: &PasskeyRegistration, credential: Value) -> Result<Passkey> {
        let credential: RegisterPublicKeyCredential = read(credential).ok_or_else(rejected)?;
        let passkey = self.webauthn.finish_passkey_registration(&credential, asked).map_err(|_| rejected())?;
        if passkey.cred_id().len() <= LONGEST_ID { Ok(passkey) } else { Err(rejected()) }
    }

    /// Whose passkey this claims to be.
    pub fn shown(&self, credential: Value) -> Result<PresentedPasskey> {
        let credential: PublicKeyCredential = read(credential).ok_or_else(unknown)?;
        let (handle, id) = self.webauthn.identify_discoverable_authentication(&credential).map_err(|_| unknown())?;
        Ok(PresentedPasskey { user: UserId::from_u128(handle.as_u128()), id: credential_id(id), credential })
    }

    /// Checks the signature, the page, the challenge, the user's verification, and that the counter went on.
    pub fn authenticated(
        &self,
        asked: DiscoverableAuthentication,
        shown: &PresentedPasskey,
        passkey: &Passkey,
    ) -> Result<AuthenticationResult> {
        let judged = self.webauthn.finish_discoverable_authentication_v2(&shown.credential, asked, passkey);
        judged.map_err(|_| unknown())
    }
}

/// The library does not look at `type`, of which there is one.
fn read<C: DeserializeOwned>(credential: Value) -> Option<C> {
    if credential["type"] != "public-key" {
        return None;
    }
    serde_json::from_value(credential).ok()
}

/// The credential in its one spelling.
pub(super) fn credential_id(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Bytes of a credential's id (WebAuthn Level 3, §4). It is a key in the store, and longer ones do not fit an index.
const LONGEST_ID: usize = 1_023;

pub(super) fn rejected() -> Error {
    Error::new(Code::PasskeyRejected, "The passkey's response does not match the request. Start again.")
}

pub(super) fn unknown() -> Error {
    Error::credential("This passkey is not registered here, or it could not be verified.")
}
