//! The fuzzer's way into what the tests do with the inputs that it found.

#![no_main]

#[path = "../../tests/corpus/any_bytes.rs"]
mod any_bytes;

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    // Only what is a rule at all is worth keeping and changing further.
    if any_bytes::evaluate_any(data) { Corpus::Keep } else { Corpus::Reject }
});
