//! Addresses on the web: which ones are accepted. An accepted one hides nothing from a reader who parses it otherwise.

use url::Url;

const MAX_URL: usize = 2_048;

/// Letters, digits and hyphens in labels between dots, as in DNS.
pub fn is_host_name(text: &str) -> bool {
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
    text.chars().count() <= MAX_URL && is_visible(text) && Url::parse(text).is_ok_and(|url| is_web(text, &url))
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
    text.chars().count() <= MAX_URL
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
        for bad in [
            "",
            "/cb",
            "a.example/cb",
            "javascript:alert(1)",
            "data:text/html,x",
            "https://a.example/#x",
            "com.example.app:/cb#x",
        ] {
            assert!(!is_redirect_uri(bad), "{bad}");
        }
        for read_differently in [
            "https:a.example",
            "https:\\\\a.example",
            "https://a.example\\@b.example",
            "https://a.example\\.b.example",
            "https://a@b.example",
        ] {
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
            "https://a.example\\@b.example",
            "https:// a",
        ] {
            assert!(!is_web_url(bad), "{bad}");
        }
    }
}
