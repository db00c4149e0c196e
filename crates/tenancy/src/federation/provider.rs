//! Social and directory providers: the app's own word for who somebody is, unlike a workspace's connection. The app turns them on and
//! has a client with each; where they are, the operator's settings say.

use ::store::text_enum;

use crate::apps::Profile;

text_enum! {
    /// A provider by its name in addresses and in `force_federation`.
    #[derive(Hash)]
    #[schemars(rename = "FederationProvider")]
    wire pub enum Provider {
        SocialOne = "social-one",
        SocialTwo = "social-two",
        SocialThree = "social-three",
        SocialFour = "social-four",
        DirectoryAd = "directory-ad",
    }
}

impl Provider {
    /// Whether the app has turned it on.
    pub const fn is_on(self, profile: &Profile) -> bool {
        match self {
            Self::SocialOne => profile.social_one_sso_enabled,
            Self::SocialTwo => profile.social_two_sso_enabled,
            Self::SocialThree => profile.social_three_sso_enabled,
            Self::SocialFour => profile.social_four_sso_enabled,
            Self::DirectoryAd => profile.directory_ad_sso_enabled,
        }
    }

    /// Its name in the settings.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::SocialOne => "socialOne",
            Self::SocialTwo => "socialTwo",
            Self::SocialThree => "socialThree",
            Self::SocialFour => "socialFour",
            Self::DirectoryAd => "directoryAd",
        }
    }
}
