//! Imported password digests, `ALGORITHM value`: judging one never fails otherwise than in words, and what is kept
//! comes back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vault::passwords::{DigestAlgorithm, Imported};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((algorithm, value)) = text.split_once(' ') else { return };
    let Ok(algorithm) = serde_json::from_value::<DigestAlgorithm>(algorithm.into()) else { return };
    let digest = Imported { algorithm, value: value.into(), pepper: None };
    let _ = digest.check();
    assert_eq!(Imported::from_json(&digest.to_json().expect("JSON")).expect("reads"), digest);
});
