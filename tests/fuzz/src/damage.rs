//! Damaged values of shared data.

use fastrand::Rng;

/// Damages a value made of words. The `kind` 0 replaces it by at most `longest` bytes, 1 truncates
/// it, and any other changes some of its words.
pub fn damage_words(bytes: &mut Vec<u8>, kind: u8, longest: usize, rng: &mut Rng) {
    match kind {
        0 => *bytes = rng.rest(longest),
        1 => bytes.truncate(rng.usize(0..=bytes.len())),
        _ => {
            let words = bytes.len() / 8;
            for _ in 0..rng.u8(0..6).min(words as u8) {
                let place = rng.usize(0..words) * 8;
                let value = rng.u64(..) >> rng.u8(0..64);
                bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
}
