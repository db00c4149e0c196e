//! What was proven at a login: how somebody showed who they are, and how far the second factor has come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::text_enum;
use tenancy::federation::Provider;

text_enum! {
    /// How somebody proved who they are.
    #[schemars(rename = "LoginMethod")]
    wire pub enum Method {
        Password = "password",
        Link = "link",
        Passkey = "passkey",
        /// Through a workspace's connection.
        Federation = "federation",
        SocialOne = "social-one",
        SocialTwo = "social-two",
        SocialThree = "social-three",
        SocialFour = "social-four",
        DirectoryAd = "directory-ad",
    }
}

impl Method {
    pub const fn of_provider(provider: Provider) -> Self {
        match provider {
            Provider::SocialOne => Self::SocialOne,
            Provider::SocialTwo => Self::SocialTwo,
            Provider::SocialThree => Self::SocialThree,
            Provider::SocialFour => Self::SocialFour,
            Provider::DirectoryAd => Self::DirectoryAd,
        }
    }

    /// The provider of the app that somebody came through.
    pub const fn provider(self) -> Option<Provider> {
        match self {
            Self::SocialOne => Some(Provider::SocialOne),
            Self::SocialTwo => Some(Provider::SocialTwo),
            Self::SocialThree => Some(Provider::SocialThree),
            Self::SocialFour => Some(Provider::SocialFour),
            Self::DirectoryAd => Some(Provider::DirectoryAd),
            Self::Password | Self::Link | Self::Passkey | Self::Federation => None,
        }
    }

    /// The same without the provider's name: `federation` for all of them.
    pub(crate) const fn kind(self) -> Self {
        if self.provider().is_some() { Self::Federation } else { self }
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
