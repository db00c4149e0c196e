//! What holds for every address that an app may register.

use corpus::{edited, edits, nasty_text, replay, seeds};
use kernel::text::{is_origin, is_redirect_uri, is_web_url};
use proptest::prelude::*;
use url::Url;

use super::profile::origin_of;

const HOME: &str = env!("CARGO_MANIFEST_DIR");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "redirects", |bytes| is_redirect_uri(&text(bytes)));
    replay(HOME, "origins", |bytes| is_origin(&text(bytes)));
    replay(HOME, "web-urls", |bytes| is_web_url(&text(bytes)));
}

/// A URL in parts that are each right or a little wrong.
fn url() -> impl Strategy<Value = String> {
    let scheme = prop_oneof![
        4 => Just("https://".to_owned()),
        2 => prop::sample::select(vec![
            "http://", "https:", "https:/", "https:\\\\", "https:///", "//", "HTTPS://", "com.example.app:/", "javascript:",
            "JavaScript://", "data:", "blob:https://", "file://", "ftp://", "about:", "view-source:https://", "x:", "",
        ])
        .prop_map(str::to_owned),
        1 => nasty_text(),
    ];
    let user = prop_oneof![6 => Just(""), 1 => Just("good.example@"), 1 => Just("a:b@")];
    let host = prop_oneof![
        4 => Just("app.example".to_owned()),
        2 => prop::sample::select(vec!["localhost", "127.0.0.1", "[::1]", "0x7f.1", "2130706433", "xn--bcher-kva.example", "bücher.example", "app.example.", "a_b.example", "EXAMPLE.com", "%61.example", "app。example"])
            .prop_map(str::to_owned),
        1 => nasty_text(),
    ];
    let port = prop_oneof![4 => Just(""), 1 => Just(":443"), 1 => Just(":3000"), 1 => Just(":99999"), 1 => Just(":")];
    let path = prop_oneof![2 => Just("/cb".to_owned()), 1 => Just(String::new()), 1 => Just("/a/../b".into()), 1 => Just("\\@evil.example".into()), 1 => nasty_text()];
    let tail = prop_oneof![3 => Just(String::new()), 1 => Just("?a=b".into()), 1 => Just("#x".into()), 1 => Just("#".into()), 1 => nasty_text()];
    (scheme, user, host, port, path, tail)
        .prop_map(|(scheme, user, host, port, path, tail)| format!("{scheme}{user}{host}{port}{path}{tail}"))
}

fn changed(parser: &str) -> impl Strategy<Value = String> + use<> {
    (prop::sample::select(seeds(HOME, parser)), edits()).prop_map(|(seed, edits)| text(&edited(&seed, &edits)))
}

/// What stands before the host, in the text itself, is the scheme and nothing that some reader takes for the host.
fn names_its_host(text: &str, url: &Url) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest[..end].rsplit_once('@').map_or(&rest[..end], |(_, host)| host);
    let again = Url::parse(&format!("{scheme}://{authority}/"));
    !rest.contains('\\') && again.is_ok_and(|again| again.origin() == url.origin())
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let parsed = Url::parse(text);
    if is_redirect_uri(text) {
        let url = parsed.clone().expect("accepted ones parse");
        prop_assert!(!text.contains('#') && !text.contains(|c: char| c.is_whitespace() || c.is_control()));
        prop_assert!(
            !["javascript", "data", "vbscript", "file", "blob", "about", "view-source"].contains(&url.scheme())
        );
        if matches!(url.scheme(), "http" | "https") {
            prop_assert!(names_its_host(text, &url), "{}", text);
            prop_assert!(is_web_url(text));
            prop_assert!(url.username().is_empty() && url.password().is_none(), "{}", text);
        }
        // A redirect with parameters added goes to the same place.
        let mut with_code = url.clone();
        with_code.query_pairs_mut().append_pair("code", "x").append_pair("state", "\r\n&#");
        prop_assert_eq!(
            (with_code.scheme(), with_code.host(), with_code.port(), with_code.path()),
            (url.scheme(), url.host(), url.port(), url.path())
        );
        prop_assert!(with_code.as_str().is_ascii() && !with_code.as_str().contains(['\r', '\n', '#']));
    }
    if is_web_url(text) {
        let url = parsed.clone().expect("accepted ones parse");
        prop_assert!(url.has_host() && names_its_host(text, &url), "{}", text);
        let origin = origin_of(text).expect("web pages have an origin");
        prop_assert!(is_origin(&origin), "{}", origin);
        prop_assert_eq!(origin_of(&origin), Some(origin));
    }
    if is_origin(text) {
        prop_assert!(is_web_url(text) && is_redirect_uri(text), "{}", text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn accepted_addresses_are_what_they_seem(url in url(), changed in changed("redirects"), origin in changed("origins"), text in nasty_text()) {
        for text in [url, changed, origin, text] {
            check(&text)?;
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_address_that_hides_something(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        check(&text(&bytes))?;
        check(&format!("https://{}", text(&bytes)))?;
    }
}
