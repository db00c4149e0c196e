//! What a new app must look like. Pure.

use kernel::{HostName, Name, RedirectUri, WebUrl};
use schemars::JsonSchema;
use serde::Deserialize;
use web::Validate;

use super::Profile;

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

/// The app that an empty installation starts with.
pub fn first_app() -> NewApp {
    let callback = RedirectUri::from_static("http://localhost:3000/callback");
    NewApp {
        name: Name::from_static("My app"),
        domain: HostName::from_static("localhost"),
        ui_url: Some(WebUrl::from_static("http://localhost:3000")),
        redirect_uris: Some(vec![callback.clone()]),
        default_callback_uri: Some(callback),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_app_is_valid() {
        super::first_app();
    }
}
