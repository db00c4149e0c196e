//! What a new app must look like. Pure.

use kernel::Problems;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;
use web::Validate;

use super::Profile;

/// The body of `POST /admin/apps`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewApp {
    #[schemars(length(min = 1))]
    pub name: String,
    /// A host name that no other app has; it never changes.
    #[schemars(length(min = 1, max = 253))]
    pub domain: String,
    pub ui_url: Option<String>,
    pub redirect_uris: Option<Vec<String>>,
    pub default_callback_uri: Option<String>,
}

impl Validate for NewApp {
    fn validate(&self, problems: &mut Problems) {
        problems.text("name", &self.name);
        problems.check("domain", is_host_name(&self.domain), "must be a host name such as app.example.com");
        if let Some(url) = &self.ui_url {
            problems.check("uiUrl", is_web_url(url), "must be an absolute http or https URL");
        }
        let redirects = self.redirect_uris.as_deref().unwrap_or_default();
        problems.list("redirectUris", redirects);
        for (index, uri) in redirects.iter().enumerate() {
            problems.check(&format!("redirectUris[{index}]"), is_redirect_uri(uri), REDIRECT_URI);
        }
        if let Some(uri) = &self.default_callback_uri {
            problems.check("defaultCallbackUri", is_redirect_uri(uri), REDIRECT_URI);
        }
    }
}

impl NewApp {
    pub(super) fn to_profile(&self) -> Profile {
        Profile {
            name: self.name.trim().to_owned(),
            domain: self.domain.to_lowercase(),
            ui_url: self.ui_url.clone(),
            redirect_uris: self.redirect_uris.clone().unwrap_or_default(),
            default_callback_uri: self.default_callback_uri.clone(),
            ..Profile::default()
        }
    }
}

/// The app that an empty installation starts with.
pub fn first_app() -> NewApp {
    NewApp {
        name: "My app".into(),
        domain: "localhost".into(),
        ui_url: Some("http://localhost:3000".into()),
        redirect_uris: Some(vec!["http://localhost:3000/callback".into()]),
        default_callback_uri: Some("http://localhost:3000/callback".into()),
    }
}

const REDIRECT_URI: &str = "must be an absolute URI without a fragment";
const MAX_URL: usize = 2_048;

/// Letters, digits and hyphens in labels between dots, as in DNS.
fn is_host_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

pub(crate) fn is_web_url(text: &str) -> bool {
    text.len() <= MAX_URL
        && !text.contains('\0')
        && Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Native apps have schemes of their own; those that run or read something in the browser are refused.
fn is_redirect_uri(text: &str) -> bool {
    const DANGEROUS: [&str; 7] = ["javascript", "data", "vbscript", "file", "blob", "about", "view-source"];
    text.len() <= MAX_URL
        && !text.contains('\0')
        && Url::parse(text).is_ok_and(|url| match url.scheme() {
            "http" | "https" => url.has_host() && url.fragment().is_none(),
            scheme => !DANGEROUS.contains(&scheme) && url.fragment().is_none(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_as_in_dns() {
        for good in ["localhost", "app.example.com", "a-1.test", "ACME"] {
            assert!(is_host_name(good), "{good}");
        }
        for bad in ["", ".", "a..b", "-a", "a-", "a b", "a_b/c", "ä.example", &"a".repeat(64), &"a.".repeat(127)] {
            assert!(!is_host_name(bad), "{bad}");
        }
    }

    #[test]
    fn redirects_may_be_native_but_not_dangerous() {
        for good in ["https://a.example/cb?x=1", "http://127.0.0.1:3000/", "com.example.app:/cb"] {
            assert!(is_redirect_uri(good), "{good}");
        }
        for bad in ["", "/cb", "a.example/cb", "javascript:alert(1)", "data:text/html,x", "https://a.example/#x"] {
            assert!(!is_redirect_uri(bad), "{bad}");
        }
    }

    #[test]
    fn the_first_app_is_valid() {
        let mut problems = Problems::new();
        first_app().validate(&mut problems);
        assert!(problems.is_empty());
    }
}
