//! Small records in shared data: words that all workers read and write, mostly of a fixed number.

use crate::port::SharedData;

/// The words under a key, and their version. A value of another length counts as an empty record.
#[inline(never)]
pub fn read<const N: usize>(data: &dyn SharedData, key: &str) -> ([u64; N], Option<u32>) {
    let mut words = [0; N];
    let Some((bytes, number)) = data.get(key) else { return (words, None) };
    if bytes.len() == N * 8 {
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
    (words, Some(number))
}

/// As [`read`], with a variable number of words. None if the bytes are not words.
pub fn read_all(data: &dyn SharedData, key: &str) -> (Vec<u64>, Option<u32>) {
    let Some((bytes, number)) = data.get(key) else { return (Vec::new(), None) };
    let words = match bytes.as_chunks() {
        (words, []) => words.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
        _ => Vec::new(),
    };
    (words, Some(number))
}

/// Writes the words if the key still has the version `number`. Returns true if they were written.
#[inline(never)]
pub fn write<const N: usize>(
    words: [u64; N],
    data: &dyn SharedData,
    key: &str,
    number: Option<u32>,
) -> bool {
    data.swap(key, words.map(u64::to_le_bytes).as_flattened(), number)
}

/// As [`write()`], with a variable number of words.
pub fn write_all(words: &[u64], data: &dyn SharedData, key: &str, number: Option<u32>) -> bool {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    data.swap(key, &bytes, number)
}
