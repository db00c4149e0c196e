//! What holds for everything that a provider may send.

use corpus::{edited, edits, nasty_text, replay, seeds, warped, warps};
use proptest::prelude::*;
use serde_json::Value;

use super::{ApiForm, calls::ApiSubscription, events::ProviderEvent};
use crate::providers::signature::SignatureHeader;

const HOME: &str = env!("CARGO_MANIFEST_DIR");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned()
}

fn asks_for_something(event: &str) -> bool {
    !matches!(ProviderEvent::read(event), ProviderEvent::Nothing)
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "signatures", |bytes| SignatureHeader::parse(&text(bytes)).is_some());
    replay(HOME, "events", |bytes| asks_for_something(&text(bytes)));
    replay(HOME, "subscriptions", |bytes| serde_json::from_slice::<ApiSubscription>(bytes).is_ok());
}

fn changed(parser: &str) -> impl Strategy<Value = String> + use<> {
    (prop::sample::select(seeds(HOME, parser)), edits()).prop_map(|(seed, edits)| text(&edited(&seed, &edits)))
}

fn warped_event() -> impl Strategy<Value = String> {
    (prop::sample::select(seeds(HOME, "events")), warps()).prop_map(|(seed, warps)| {
        let json: Value = serde_json::from_slice(&seed).expect("an event");
        warped(&json, &warps).to_string()
    })
}

proptest! {
    #[test]
    fn no_header_is_a_problem(header in prop_oneof![changed("signatures"), nasty_text()]) {
        if let Some(read) = SignatureHeader::parse(&header) {
            prop_assert_eq!(SignatureHeader::parse(&header), Some(read));
        }
    }

    #[test]
    fn ids_lead_nowhere_else(event in prop_oneof![changed("events"), warped_event(), nasty_text()]) {
        let leads = match ProviderEvent::read(&event) {
            ProviderEvent::Session(id) | ProviderEvent::Subscription(id) => Some(id),
            ProviderEvent::Invoice { invoice, .. } => {
                prop_assert!(invoice.attempt() >= 1);
                let _ = (invoice.paid(), invoice.due(), invoice.tax(), invoice.reason(), invoice.card_last4());
                invoice.subscription()
            }
            ProviderEvent::Nothing => None,
        };
        prop_assert!(leads.is_none_or(|id| !id.is_empty() && !id.contains(['/', '?', '#', '%', '.', ' '])));
    }

    #[test]
    fn no_subscription_is_a_problem(answer in changed("subscriptions")) {
        if let Ok(read) = serde_json::from_str::<ApiSubscription>(&answer) {
            let _ = (read.period(), read.price(), read.has_ended());
        }
    }

    #[test]
    fn forms_come_out_as_they_went_in(name in nasty_text(), value in nasty_text()) {
        let form = ApiForm::new().set(&name, &value).set_members("metadata", [("member", value.clone())]);
        let read: Vec<(String, String)> = url::form_urlencoded::parse(form.encoded().as_bytes()).into_owned().collect();
        prop_assert_eq!(read, [(name, value.clone()), ("metadata[member]".to_owned(), value)]);
    }
}
