//! What was proven at a login: how somebody showed who they are, and how far the second factor has come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::text_enum;

text_enum! {
    /// How somebody proved who they are.
    #[schemars(rename = "LoginMethod")]
    wire pub enum Method {
        Password = "password",
        Link = "link",
        Passkey = "passkey",
        Federation = "federation",
    }
}

text_enum! {
    /// What a second factor can be proven with.
    #[schemars(rename = "SecondFactorMethod")]
    wire pub enum MfaMethod {
        Sms = "sms",
        Totp = "totp",
        Passkey = "passkey",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum MfaState {
    /// No second factor is asked for.
    Disabled,
    /// A code is wanted before tokens are issued.
    Required,
    /// A factor has to be set up first.
    Setup,
    /// The second factor was presented.
    Completed,
}

impl MfaState {
    /// Whether nothing more is asked for before tokens are issued.
    pub const fn is_met(self) -> bool {
        matches!(self, Self::Disabled | Self::Completed)
    }
}
