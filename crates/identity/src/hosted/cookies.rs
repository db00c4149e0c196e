//! The cookies of the hosted pages. All apps share this origin, so each has its own, and none is of use to another.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use kernel::AppId;

/// What a cookie is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookie {
    /// Tells this browser from others: its forms carry a value that only it can know.
    Browser,
    /// A login under way.
    Login,
    /// Somebody is signed in.
    SignedIn,
    /// Who has signed in here before.
    Known,
    /// Somebody is in a portal.
    Portal,
    /// What a form left for the page that it led back to.
    Flash,
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// A portal's pages know a browser by its session there.
fn is_key(name: &str) -> bool {
    name.contains("tenantry-browser-") || name.contains("tenantry-portal-")
}

/// What only this browser knows, for all apps together: the same as long as it keeps its cookies.
pub(super) fn browser_keys(headers: &HeaderMap) -> Option<String> {
    let mut keys: Vec<&str> = pairs(headers).filter(|(name, _)| is_key(name)).map(|(_, value)| value).collect();
    keys.sort_unstable();
    (!keys.is_empty()).then(|| keys.join(" "))
}

/// One app's cookies in a request.
#[derive(Clone, Copy, Debug)]
pub struct Jar {
    app: AppId,
    /// On https, browsers let nobody but this very host set cookies of such a name.
    is_secure: bool,
}

impl Jar {
    pub fn new(app: AppId, base_url: &str) -> Self {
        Self { app, is_secure: base_url.starts_with("https://") }
    }

    fn name(self, cookie: Cookie) -> String {
        let prefix = if self.is_secure { "__Host-" } else { "" };
        let what = match cookie {
            Cookie::Browser => "browser",
            Cookie::Login => "login",
            Cookie::SignedIn => "session",
            Cookie::Known => "known",
            Cookie::Flash => "flash",
            Cookie::Portal => "portal",
        };
        format!("{prefix}tenantry-{what}-{}", self.app)
    }

    pub fn read(self, headers: &HeaderMap, cookie: Cookie) -> Option<&str> {
        let name = self.name(cookie);
        pairs(headers).find(|(known, _)| *known == name).map(|(_, value)| value).filter(|value| !value.is_empty())
    }

    /// `value` is of our own making: base62, or a token.
    pub fn set(self, cookie: Cookie, value: &str, lifetime: Duration) -> HeaderValue {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let (name, seconds) = (self.name(cookie), lifetime.as_secs());
        let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(text).expect("an app's id and our own values are visible ASCII")
    }

    pub(crate) fn clear(self, cookie: Cookie) -> HeaderValue {
        self.set(cookie, "", Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_belongs_to_one_app() {
        let (one, other) = (AppId::from_u128(1), AppId::from_u128(2));
        let jar = Jar::new(one, "https://id.example");
        let set = jar.set(Cookie::SignedIn, "abc", Duration::from_secs(60));
        let set = set.to_str().unwrap();
        assert_eq!(
            set,
            format!("__Host-tenantry-session-{one}=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure")
        );
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("theme=dark"));
        headers.append(header::COOKIE, set.split(';').next().unwrap().parse().unwrap());
        assert_eq!(jar.read(&headers, Cookie::SignedIn), Some("abc"));
        assert_eq!(jar.read(&headers, Cookie::Login), None);
        assert_eq!(Jar::new(other, "https://id.example").read(&headers, Cookie::SignedIn), None);
        assert_eq!(Jar::new(one, "http://localhost").read(&headers, Cookie::SignedIn), None);
        let plain = Jar::new(one, "http://localhost").clear(Cookie::Login);
        assert!(!plain.to_str().unwrap().contains("Secure") && plain.to_str().unwrap().contains("Max-Age=0"));
    }
}
