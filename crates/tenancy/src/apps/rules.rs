//! What a new app and its addresses must look like. Pure.

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
    #[schemars(length(min = 1), regex(pattern = "\\S"))]
    pub name: String,
    /// A host name that no other app has; it never changes.
    #[schemars(length(min = 1, max = 253), regex(pattern = HOST_NAME))]
    pub domain: String,
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    pub ui_url: Option<String>,
    #[schemars(length(max = 1000), inner(regex(pattern = REDIRECT_URI)))]
    pub redirect_uris: Option<Vec<String>>,
    #[schemars(length(max = 2048), regex(pattern = REDIRECT_URI))]
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
            problems.check(&format!("redirectUris[{index}]"), is_redirect_uri(uri), NO_REDIRECT_URI);
        }
        if let Some(uri) = &self.default_callback_uri {
            problems.check("defaultCallbackUri", is_redirect_uri(uri), NO_REDIRECT_URI);
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

pub(super) const NO_REDIRECT_URI: &str = "must be an absolute URI without a user name or a fragment";
const MAX_URL: usize = 2_048;

macro_rules! label {
    () => {
        "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    };
}

macro_rules! authority {
    () => {
        concat!(
            "((",
            label!(),
            "\\.){0,9}[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?|127\\.0\\.0\\.[1-9]|\\[::1\\])(:[0-9]{1,4})?"
        )
    };
}

// The documentation's patterns of what is accepted: everything that fits them is, along with rarer forms (hosts in
// other scripts, other address literals) that a pattern would make unreadable.
const HOST_NAME: &str = concat!("^", label!(), "(\\.", label!(), "){0,3}$");
pub(super) const WEB_URL: &str =
    concat!("^https?://", authority!(), "([/?][A-Za-z0-9._~:/?#@!$&'()*+,;=%-]{0,1000})?$");
pub(super) const ORIGIN: &str = concat!("^https?://", authority!(), "/?$");
pub(super) const REDIRECT_URI: &str = concat!(
    "^(https?://",
    authority!(),
    "([/?][A-Za-z0-9._~:/?@!$&'()*+,;=%-]{0,1000})?|[a-z][a-z0-9-]{0,60}(\\.[a-z0-9-]{1,60}){1,9}:/[A-Za-z0-9._~?&=-]{0,200})$"
);

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

/// An absolute `http` or `https` URL.
pub fn is_web_url(text: &str) -> bool {
    text.len() <= MAX_URL && is_visible(text) && Url::parse(text).is_ok_and(|url| is_web(text, &url))
}

/// Scheme, host and port, as a browser sends it.
pub fn is_origin(text: &str) -> bool {
    is_web_url(text)
        && Url::parse(text).is_ok_and(|url| {
            let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            bare && has_no_user(text, &url)
        })
}

fn is_web(text: &str, url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host() && authority(text, url).is_some()
}

/// What stands between `://` and the path, if it is there. Browsers also take `https:host` and backslashes for a web
/// address, where others read another host or none.
fn authority<'a>(text: &'a str, url: &Url) -> Option<&'a str> {
    let rest = text.get(url.scheme().len()..)?.strip_prefix("://")?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    (!rest.contains('\\')).then_some(authority)
}

/// Somebody's name before the host is easily taken for the host.
fn has_no_user(text: &str, url: &Url) -> bool {
    authority(text, url).is_some_and(|authority| !authority.contains('@'))
}

/// Neither spaces nor control characters: the parser would take them out of the middle of a URL.
fn is_visible(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Native apps have schemes of their own; those that run or read something in the browser are refused.
pub fn is_redirect_uri(text: &str) -> bool {
    const DANGEROUS: [&str; 7] = ["javascript", "data", "vbscript", "file", "blob", "about", "view-source"];
    text.len() <= MAX_URL
        && is_visible(text)
        && Url::parse(text).is_ok_and(|url| match url.scheme() {
            "http" | "https" => is_web(text, &url) && has_no_user(text, &url) && url.fragment().is_none(),
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
        for read_differently in
            ["https:a.example", "https:\\\\a.example", "https://a.example\\@b.example", "https://a@b.example"]
        {
            assert!(!is_redirect_uri(read_differently), "{read_differently}");
        }
    }

    #[test]
    fn an_origin_has_no_path() {
        for good in ["https://a.example", "http://localhost:3000", "https://a.example/", "http://[::1]:8080"] {
            assert!(is_origin(good) && is_web_url(good), "{good}");
        }
        let bad = [
            "*",
            "null",
            "https://",
            "https://a.example/x",
            "https://a.example?x",
            "https://u:p@a.example",
            "ftp://a.example",
        ];
        for bad in bad {
            assert!(!is_origin(bad), "{bad}");
        }
        for bad in [
            "",
            "a.example",
            "//a.example",
            "ftp://a.example",
            "javascript:alert(1)",
            "https://a.example/\n",
            "https:// a",
        ] {
            assert!(!is_web_url(bad), "{bad}");
        }
    }

    #[test]
    fn the_first_app_is_valid() {
        let mut problems = Problems::new();
        first_app().validate(&mut problems);
        assert!(problems.is_empty());
    }
}
