//! Redirect URIs, origins and web URLs: an accepted one hides nothing from whoever reads it otherwise.
#![no_main]

use kernel::text::{is_origin, is_redirect_uri, is_web_url};
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (redirect, page) = (is_redirect_uri(text), is_web_url(text));
    if is_origin(text) {
        assert!(redirect && page);
    }
    if !redirect && !page {
        return;
    }
    let url = Url::parse(text).expect("accepted ones parse");
    assert!(!text.contains(|c: char| c.is_whitespace() || c.is_control()));
    assert!(!redirect || !text.contains('#'));
    if matches!(url.scheme(), "http" | "https") {
        assert!(page && url.has_host());
        let rest = text.split_once("://").expect("a scheme and a host").1;
        assert!(!rest.starts_with(['/', '\\']) && !rest.contains('\\'));
        assert!(!redirect || url.username().is_empty() && url.password().is_none());
    } else {
        assert!(!["javascript", "data", "vbscript", "file", "blob", "about", "view-source"].contains(&url.scheme()));
    }
});
