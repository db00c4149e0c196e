//! What holds for every text that somebody may send as an id, an address, a time or a code.

use std::{fmt::Display, str::FromStr};

use corpus::{edited, edits, nasty_text, replay, seeds};
use proptest::prelude::*;

use crate::{AppId, Country, Currency, EMAIL_PATTERN, Locale, MemberId, Timestamp, email_key, is_email};

const HOME: &str = env!("CARGO_MANIFEST_DIR");

fn parses<T: FromStr>(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<T>().is_ok())
}

fn is_email_in_bytes(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(is_email)
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "ids", parses::<AppId>);
    replay(HOME, "emails", is_email_in_bytes);
    replay(HOME, "timestamps", parses::<Timestamp>);
}

/// A good input of the corpus with some changes, if it is still text.
fn changed(parser: &str) -> impl Strategy<Value = String> + use<> {
    let seed = prop::sample::select(seeds(HOME, parser));
    (seed, edits()).prop_map(|(seed, edits)| String::from_utf8_lossy(&edited(&seed, &edits)).into_owned())
}

/// Whatever is accepted is written exactly as it was read: nothing has two spellings.
fn has_one_spelling<T: FromStr + Display>(text: &str) -> bool {
    text.parse::<T>().map_or(true, |read| read.to_string() == text)
}

/// RFC 3339, §5.6, with what jiff is known to take beyond it.
fn rfc3339() -> impl Strategy<Value = String> {
    "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9]([.,][0-9]{1,12})?([Zz]|[+-][0-2][0-9]:?[0-6][0-9])"
}

fn email() -> impl Strategy<Value = String> {
    let unanchored = EMAIL_PATTERN.trim_start_matches('^').trim_end_matches('$').replace(")*", "){0,3}");
    prop::string::string_regex(&unanchored).expect("a pattern")
}

fn label() -> &'static str {
    "[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?"
}

fn check_email(text: &str) -> Result<(), TestCaseError> {
    if !is_email(text) {
        return Ok(());
    }
    prop_assert!(text.len() <= 254 && text.is_ascii());
    prop_assert!(!text.contains(|c: char| c.is_whitespace() || c.is_control() || "<>()[],;:\\\"".contains(c)));
    prop_assert_eq!(text.matches('@').count(), 1);
    let key = email_key(text);
    prop_assert!(is_email(&key));
    prop_assert_eq!(&email_key(&key), &key);
    prop_assert_eq!(&email_key(&text.to_ascii_uppercase()), &key);
    Ok(())
}

fn check_timestamp(text: &str) -> Result<(), TestCaseError> {
    let Ok(read) = text.parse::<Timestamp>() else { return Ok(()) };
    prop_assert!((Timestamp::MIN..=Timestamp::MAX).contains(&read));
    let again: Timestamp = read.to_string().parse().expect("what was written can be read");
    prop_assert!(read.as_micros().abs_diff(again.as_micros()) < 1_000, "{} became {}", text, again);
    prop_assert_eq!(again.to_string(), read.to_string());
    // A year that is not the written one, give or take an offset, was not what was meant.
    if let Some(year) = text.get(..4).and_then(|digits| digits.parse::<i64>().ok()) {
        let shown: i64 = read.to_string()[..4].parse().expect("four digits");
        prop_assert!(shown.abs_diff(year) <= 1, "{} became {}", text, read);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn ids_have_one_spelling(value in any::<u128>(), changed in changed("ids"), text in nasty_text()) {
        let id = AppId::from_u128(value);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert!(id.to_string().parse::<MemberId>().is_err());
        for text in [changed, text.clone(), format!("app_{text}")] {
            prop_assert!(has_one_spelling::<AppId>(&text), "{}", text);
        }
    }

    #[test]
    fn ids_sort_as_they_are_written(one in any::<u128>(), other in any::<u128>()) {
        let (one, other) = (AppId::from_u128(one), AppId::from_u128(other));
        prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
    }

    #[test]
    fn accepted_emails_hide_nothing(changed in changed("emails"), text in nasty_text(), local in "[a-z.]{1,8}", host in label()) {
        for text in [&changed, &text, &format!("{text}@{host}"), &format!("{local}@{host}{text}")] {
            check_email(text)?;
        }
    }

    #[test]
    fn documented_emails_are_accepted(email in email()) {
        let fits = email.len() <= 254 && email.split('@').next().is_some_and(|local| local.len() <= 64);
        prop_assert_eq!(is_email(&email), fits, "{}", email);
        check_email(&email)?;
    }

    #[test]
    fn times_round_trip_to_the_millisecond(micros in any::<i64>(), written in rfc3339(), changed in changed("timestamps"), text in nasty_text()) {
        check_timestamp(&Timestamp::from_micros(micros).to_string())?;
        for text in [written, changed, text] {
            check_timestamp(&text)?;
        }
    }

    #[test]
    fn codes_are_those_of_the_lists(text in prop_oneof!["[A-Za-z]{1,4}", nasty_text()]) {
        prop_assert!(has_one_spelling::<Locale>(&text));
        prop_assert!(has_one_spelling::<Country>(&text.to_ascii_uppercase()));
        prop_assert!(has_one_spelling::<Currency>(&text.to_ascii_uppercase()));
        prop_assert_eq!(text.parse::<Country>().is_ok(), text.is_ascii() && text.to_ascii_lowercase().parse::<Country>().is_ok());
    }
}
