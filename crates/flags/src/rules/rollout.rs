//! Where an identity stands in a flag's rollout: the same place on every node and for ever, so that raising a
//! percentage only ever adds people.

use sha2::{Digest as _, Sha256};

/// Buckets in a rollout: hundredths of a percent.
pub const BUCKETS: u32 = 10_000;

/// The bucket of `identity` in the flag `key`, below [`BUCKETS`].
pub fn bucket(key: &str, identity: &str) -> u32 {
    let digest = Sha256::new().chain_update(key).chain_update(b":").chain_update(identity).finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    // The remainder is below 10,000.
    (u64::from_be_bytes(first) % u64::from(BUCKETS)) as u32
}

/// How many of the buckets a percentage takes in. Rounds away what `0.07 * 100.0` adds to 7.
pub(super) fn buckets_of(percentage: f64) -> u32 {
    let exact = percentage.clamp(0.0, 100.0) * 100.0;
    // Between 0 and 10,000 by the clamp; NaN, which validation refuses, becomes 0.
    (exact - 1e-6).ceil().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_is_the_first_eight_bytes_of_the_digest() {
        // printf 'new-nav:user_1' | sha256sum, first 16 digits, modulo 10,000.
        for (key, identity, digest) in [("new-nav", "user_1", "new-nav:user_1"), ("a:b", "", "a:b:")] {
            let hash = Sha256::digest(digest.as_bytes());
            let number = hash[..8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            assert_eq!(u64::from(bucket(key, identity)), number % 10_000);
        }
        assert_eq!(bucket("new-nav", "user_1"), KNOWN);
    }

    /// Computed outside this program.
    const KNOWN: u32 = 7_897;

    #[test]
    fn percentages_become_whole_buckets() {
        for (percentage, buckets) in
            [(0.0, 0), (0.07, 7), (20.0, 2_000), (33.333, 3_334), (99.99, 9_999), (100.0, 10_000)]
        {
            assert_eq!(buckets_of(percentage), buckets, "{percentage}");
        }
        assert_eq!(buckets_of(f64::NAN), 0);
    }
}
