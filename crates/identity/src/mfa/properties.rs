//! What holds for every phone number and code that somebody may type.

use corpus::{edited, edits, nasty_text, replay, seeds};
use kernel::Timestamp;
use kernel::text::e164;
use proptest::prelude::*;

use super::totp::matching_step;

const HOME: &str = env!("CARGO_MANIFEST_DIR");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "phones", |bytes| e164(&text(bytes)).is_some());
}

/// Whatever is accepted can be dialled, and is its own international form.
fn check_phone(typed: &str) -> Result<(), TestCaseError> {
    if let Some(number) = e164(typed) {
        let digits = number.strip_prefix('+').unwrap_or_default();
        prop_assert!(
            (4..=17).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()),
            "{typed} became {number}"
        );
        prop_assert_eq!(e164(&number), Some(number.clone()), "{}", typed);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn accepted_numbers_have_one_form(seed in prop::sample::select(seeds(HOME, "phones")), edits in edits(), any in "\\+[0-9]{1,16}", odd in "[+＋]?[0-9 ().;extx#*~/-]{1,30}", junk in nasty_text()) {
        for typed in [text(&edited(&seed, &edits)), any, odd, format!("+{junk}"), junk] {
            check_phone(&typed)?;
        }
    }

    #[test]
    fn only_six_digits_of_now_match(typed in prop_oneof!["[0-9]{6}", "[0-9 ]{5,8}", nasty_text()], at in 0i64..4_000_000_000, shift in -10i64..=10) {
        let (secret, now) = (b"12345678901234567890", Timestamp::from_seconds(at));
        let step = matching_step(secret, &typed, now).expect("judged");
        if let Some(step) = step {
            prop_assert!(typed.trim().len() == 6 && typed.trim().bytes().all(|b| b.is_ascii_digit()), "{}", typed);
            prop_assert!((at / 30).abs_diff(step) <= 1);
            // Its own step goes on matching around its time, and no longer.
            let later = matching_step(secret, &typed, Timestamp::from_seconds((step + shift).max(0) * 30)).expect("judged");
            prop_assert!(later.is_some() || shift.abs() > 1);
        }
    }
}
