//! Ids, addresses, times, codes, phone numbers and `X-Forwarded-For`: what is accepted has one spelling, or comes back.
#![no_main]

use std::{fmt::Display, net::IpAddr, str::FromStr, sync::LazyLock};

use kernel::{AppId, Country, Currency, Locale, Timestamp, email_key, is_email, text::e164};
use libfuzzer_sys::fuzz_target;
use web::TrustedProxies;

static PROXIES: LazyLock<TrustedProxies> =
    LazyLock::new(|| TrustedProxies::new(vec!["10.0.0.0/8".parse().expect("a range")]));

fn has_one_spelling<T: FromStr + Display>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string(), text);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    has_one_spelling::<AppId>(text);
    has_one_spelling::<Locale>(text);
    has_one_spelling::<Country>(&text.to_ascii_uppercase());
    has_one_spelling::<Currency>(&text.to_ascii_uppercase());
    if let Ok(at) = text.parse::<Timestamp>() {
        let again: Timestamp = at.to_string().parse().expect("what was written can be read");
        assert!(at.as_micros().abs_diff(again.as_micros()) < 1_000);
    }
    if is_email(text) {
        assert!(text.is_ascii() && is_email(&email_key(text)));
    }
    if let Some(number) = e164(text) {
        assert_eq!(e164(&number).as_deref(), Some(number.as_str()));
    }
    forwarded(text);
});

fn forwarded(text: &str) {
    let Ok(value) = text.parse() else { return };
    let headers = [("x-forwarded-for".parse().expect("a name"), value)].into_iter().collect();
    let (peer, stranger): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
    assert_eq!(PROXIES.client(stranger, &headers), stranger);
    PROXIES.client(peer, &headers);
}
