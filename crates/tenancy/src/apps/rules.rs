//! What a new app must look like. Pure.

use kernel::{HostName, Name, RedirectUri, WebUrl};
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;
use web::Validate;

use super::Profile;
use crate::paths;

/// The body of `POST /admin/apps`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewApp {
    pub name: Name,
    /// A host name that no other app has; it never changes.
    pub domain: HostName,
    pub ui_url: Option<WebUrl>,
    pub redirect_uris: Option<Vec<RedirectUri>>,
    pub default_callback_uri: Option<RedirectUri>,
}

impl Validate for NewApp {}

impl NewApp {
    pub(super) fn to_profile(&self) -> Profile {
        Profile {
            name: self.name.to_string(),
            domain: self.domain.to_lowercase(),
            ui_url: self.ui_url.clone().map(String::from),
            redirect_uris: self.redirect_uris.iter().flatten().map(RedirectUri::to_string).collect(),
            default_callback_uri: self.default_callback_uri.clone().map(String::from),
            ..Profile::default()
        }
    }
}

/// The page of this service at which a login can end before there is an app; only where the service is at a loopback
/// address, for development.
pub fn demo_address(base_url: &str) -> Option<String> {
    let is_local = Url::parse(base_url).is_ok_and(|url| spine::outbound::is_loopback(&url));
    is_local.then(|| format!("{base_url}{}", paths::DEMO))
}

/// The app that an empty installation starts with.
pub fn first_app(base_url: &str) -> NewApp {
    let callback = RedirectUri::from_static("http://localhost:3000/callback");
    let demo = demo_address(base_url).and_then(|address| address.parse().ok());
    NewApp {
        name: Name::from_static("My app"),
        domain: HostName::from_static("localhost"),
        ui_url: Some(WebUrl::from_static("http://localhost:3000")),
        redirect_uris: Some([callback.clone()].into_iter().chain(demo).collect()),
        default_callback_uri: Some(callback),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_app_can_be_tried_in_development() {
        let redirects = |base_url: &str| {
            first_app(base_url).redirect_uris.into_iter().flatten().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(redirects("https://login.example"), ["http://localhost:3000/callback"]);
        for local in ["http://localhost:4780", "http://127.0.0.1:4780", "http://[::1]:4780"] {
            assert_eq!(redirects(local)[1..], [format!("{local}/auth/demo")]);
        }
    }
}
