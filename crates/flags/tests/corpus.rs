//! What the fuzzer found worth keeping, as it is and damaged in every way that fits into a few seconds.

#[path = "corpus/any_bytes.rs"]
mod any_bytes;

use std::fs;

use any_bytes::evaluate_any;
use proptest::prelude::*;

fn seeds() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds");
    let entries = fs::read_dir(folder).expect("the seeds are checked in");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).expect("a file")).collect()
}

#[test]
fn every_seed_is_a_rule_and_a_context() {
    let seeds = seeds();
    assert!(seeds.len() >= 10, "{}", seeds.len());
    for seed in seeds {
        assert!(evaluate_any(&seed), "{}", String::from_utf8_lossy(&seed));
    }
}

/// Two seeds crossed over, with some bytes changed or left out.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let seed = || prop::sample::select(seeds());
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<Option<u8>>()), 0..4);
    (seed(), seed(), any::<bool>(), changes).prop_map(|(one, other, crossed, changes)| {
        let middle = |seed: &[u8]| seed.iter().position(|byte| *byte == 0).expect("a zero byte");
        let mut bytes = if crossed { [&one[..middle(&one)], &other[middle(&other)..]].concat() } else { one };
        for (place, change) in changes {
            match change {
                Some(byte) => *place.get_mut(&mut bytes[..]) = byte,
                None => drop(bytes.remove(place.index(bytes.len()))),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_damaged_seed_makes_it_panic(bytes in damaged()) {
        evaluate_any(&bytes);
    }

    #[test]
    fn nor_do_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        evaluate_any(&bytes);
    }
}
