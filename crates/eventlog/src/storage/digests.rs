//! Digests of blocks.
//!
//! To work one out takes longer than all else that a question does with a block, so that it is done once. Afterwards a quick
//! sum tells whether the bytes are still the same. It stands against damage; whoever means to deceive, and can write to the
//! database, can write another digest too.

use std::sync::LazyLock;

use spine::Cached;

const LENGTH: usize = 16;
/// Blocks that are remembered: some megabytes.
const REMEMBERED: usize = 65_536;

/// Of bytes that have a digest, their quick sum.
static KNOWN: LazyLock<Cached<[u8; LENGTH], QuickSum>> = LazyLock::new(|| Cached::new(REMEMBERED));

pub fn digest(data: &[u8]) -> [u8; LENGTH] {
    let mut made = [0; LENGTH];
    made.copy_from_slice(&vault::sha256_bytes(data)[..LENGTH]);
    made
}

/// Whether these are the bytes of a digest.
pub fn is_digest_of(claimed: &[u8], data: &[u8]) -> bool {
    let Ok(claimed) = <[u8; LENGTH]>::try_from(claimed) else { return false };
    let quick = quick_sum(data);
    if KNOWN.get(&claimed) == Some(quick) {
        return true;
    }
    let is_right = digest(data) == claimed;
    if is_right {
        KNOWN.finish_fill(KNOWN.begin_fill(claimed), quick);
    }
    is_right
}

type QuickSum = [u64; 4];

/// Each step can be undone, so that bytes with a single word changed never have the same sum, and others hardly ever.
fn quick_sum(data: &[u8]) -> QuickSum {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let (rows, rest) = data.as_chunks::<32>();
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    let mut sums = [data.len() as u64; 4];
    for row in rows.iter().chain([&last]) {
        for (sum, word) in sums.iter_mut().zip(row.as_chunks::<8>().0) {
            *sum = (*sum ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts_in_the_quick_sum() {
        let good: Vec<u8> = (0..77).collect();
        for bit in 0..good.len() * 8 {
            let mut changed = good.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(quick_sum(&changed), quick_sum(&good), "{bit}");
            // The highest bits of two words too, which a product alone would let go.
            changed[(bit / 8 + 32) % 77] ^= 1 << (bit % 8);
            assert_ne!(quick_sum(&changed), quick_sum(&good), "{bit}");
        }
        assert_ne!(quick_sum(&[0; 8]), quick_sum(&[0; 9]));
    }

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
