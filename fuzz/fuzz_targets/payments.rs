//! What a payment provider sends, and what it is sent: signature headers, events, and forms that come out as they went in.
#![no_main]

use billing::providers::{
    signature::{SignatureHeader, is_genuine},
    stripe::{
        ApiForm,
        events::{ProviderEvent, matters},
    },
};
use kernel::{Secret, Timestamp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = SignatureHeader::parse(text);
    assert!(!is_genuine(text, bytes, &Secret::new("whsec".into()), Timestamp::from_seconds(1_800_000_000)));
    match ProviderEvent::read(text) {
        ProviderEvent::Nothing => {}
        ProviderEvent::Session(id) | ProviderEvent::Subscription(id) => {
            assert!(!id.contains(['/', '?', '#', '%']), "{id}");
        }
        ProviderEvent::Invoice { invoice, .. } => {
            let _ = (invoice.customer(), invoice.paid(), invoice.due(), invoice.tax(), invoice.card_last4());
            assert!(invoice.attempt() >= 1 && !invoice.reason().is_empty());
            assert!(invoice.subscription().is_none_or(|id| !id.contains(['/', '?', '#'])));
        }
    }
    let _ = matters(text);
    let form = ApiForm::new().set("name", text).set_members("metadata", [("member", text.to_owned())]);
    let read: Vec<String> = url::form_urlencoded::parse(form.encoded().as_bytes()).map(|(_, value)| value.into()).collect();
    assert_eq!(read, [text, text]);
});
