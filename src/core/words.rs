//! Small records in shared data: a fixed number of words that all workers read and write.

use crate::port::SharedData;

/// The words under a key, and the number to write under. Whatever is no such record is taken for
/// an empty one.
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

/// Writes them, if nobody else did since they were read. Whether they were written.
#[inline(never)]
pub fn write<const N: usize>(
    words: [u64; N],
    data: &dyn SharedData,
    key: &str,
    number: Option<u32>,
) -> bool {
    data.swap(key, words.map(u64::to_le_bytes).as_flattened(), number)
}
