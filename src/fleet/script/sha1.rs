//! SHA-1, by which Redis knows scripts. Only the compiler works it out.

/// The digest of `text` in hexadecimal.
#[allow(clippy::indexing_slicing, reason = "the compiler would tell")]
pub(super) const fn sha1(text: &[u8]) -> [u8; 40] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut block = 0;
    while block < (text.len() + 9).div_ceil(64) {
        let mut words = [0; 16];
        let mut at = 0;
        while at < 64 {
            words[at / 4] = words[at / 4] << 8 | padded(text, block * 64 + at) as u32;
            at += 1;
        }
        state = mixed(state, words);
        block += 1;
    }
    let mut hex = [0; 40];
    let mut digit = 0;
    while digit < 40 {
        let nibble = state[digit / 8] >> (28 - digit % 8 * 4) & 0xf;
        hex[digit] = b"0123456789abcdef"[nibble as usize];
        digit += 1;
    }
    hex
}

/// A byte of the text, of the mark behind it, or of its length at the end of the last block.
#[allow(clippy::indexing_slicing, reason = "the compiler would tell")]
const fn padded(text: &[u8], at: usize) -> u8 {
    let end = (text.len() + 9).div_ceil(64) * 64;
    if at < text.len() {
        text[at]
    } else if at == text.len() {
        0x80
    } else if at + 8 >= end {
        ((text.len() as u64 * 8) >> ((end - 1 - at) * 8)) as u8
    } else {
        0
    }
}

/// The state after one more block.
#[allow(clippy::indexing_slicing, reason = "the compiler would tell")]
const fn mixed(state: [u32; 5], mut words: [u32; 16]) -> [u32; 5] {
    let [mut a, mut b, mut c, mut d, mut e] = state;
    let mut round = 0;
    while round < 80 {
        let word = words[round % 16];
        let (mix, constant) = match round / 20 {
            0 => (b & c | !b & d, 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => (b & c | b & d | c & d, 0x8f1b_bcdc_u32),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mix)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        words[round % 16] =
            (word ^ words[(round + 2) % 16] ^ words[(round + 8) % 16] ^ words[(round + 13) % 16])
                .rotate_left(1);
        round += 1;
    }
    [
        state[0].wrapping_add(a),
        state[1].wrapping_add(b),
        state[2].wrapping_add(c),
        state[3].wrapping_add(d),
        state[4].wrapping_add(e),
    ]
}
