//! Digests of blocks.
//!
//! To work one out takes longer than all else that a question does with a block, so that it is done once. Afterwards a quick
//! hash, with a seed that only this process knows, tells whether the bytes are still the same.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::LazyLock,
};

use spine::Cached;
use twox_hash::XxHash64;

const LENGTH: usize = 16;
/// Blocks that are remembered: some megabytes.
const REMEMBERED: usize = 65_536;

static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(()));
/// Of bytes that have a digest, their quick hash.
static KNOWN: LazyLock<Cached<[u8; LENGTH], u64>> = LazyLock::new(|| Cached::new(REMEMBERED));

pub fn digest(data: &[u8]) -> [u8; LENGTH] {
    let mut made = [0; LENGTH];
    made.copy_from_slice(&vault::sha256_bytes(data)[..LENGTH]);
    made
}

/// Whether these are the bytes of a digest.
pub fn is_digest_of(claimed: &[u8], data: &[u8]) -> bool {
    let Ok(claimed) = <[u8; LENGTH]>::try_from(claimed) else { return false };
    let quick = XxHash64::oneshot(*SEED, data);
    if KNOWN.get(&claimed) == Some(quick) {
        return true;
    }
    let is_right = digest(data) == claimed;
    if is_right {
        KNOWN.finish_fill(KNOWN.begin_fill(claimed), quick);
    }
    is_right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_change_after_they_were_checked_are_noticed() {
        let (good, other) = (vec![7; 1_000], [vec![7; 999], vec![8]].concat());
        let claimed = digest(&good);
        for _ in 0..2 {
            assert!(is_digest_of(&claimed, &good));
            assert!(!is_digest_of(&claimed, &other) && !is_digest_of(&claimed, &good[1..]));
            assert!(!is_digest_of(&claimed[1..], &good));
        }
    }
}
