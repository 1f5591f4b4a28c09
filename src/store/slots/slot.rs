//! A slot of shared data: some callers of one rule in one value, so that they share the host's
//! overhead per key.
//!
//! Words of 64 bits, little endian: a mark with the number of words of a state, the watermark on
//! both clocks, the instant until which new callers may have usage in an overflow bucket; then for
//! each caller the hash, the outstanding leases, the state, and its arrears where the gateway
//! counts its share of a fleet's limit.

use super::HOST;
use super::arrears::OpenArrears;
use super::outstanding::Outstanding;
use crate::slots::Found;
use crate::watermark::Watermark;
use diana_algorithm::Algorithm;
use diana_policy::time::{Micros, Now};

/// Words before the first caller.
const HEAD: usize = 4;
/// Words of a caller before the state.
const CALLER: usize = 2;
const WORD: usize = 8;
const MARK: u64 = u64::from_le_bytes(*b"diana\0\0\0");
/// The bit of the mark for arrears.
const WITH_ARREARS: u64 = 1 << 63;

/// The words of each caller in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SlotFormat {
    /// Words of the state.
    pub(crate) words: usize,
    /// Whether arrears follow.
    pub(crate) has_arrears: bool,
}

impl SlotFormat {
    /// Bytes of a slot with `callers` callers, including the host's overhead.
    pub(crate) fn bytes(self, callers: u64) -> u64 {
        HOST + (HEAD * WORD) as u64 + callers * (self.width() * WORD) as u64
    }

    /// Words of a caller.
    fn width(self) -> usize {
        CALLER + self.words + if self.has_arrears { OpenArrears::WORDS } else { 0 }
    }

    fn mark(self) -> u64 {
        MARK | (self.words as u64) << 48 | if self.has_arrears { WITH_ARREARS } else { 0 }
    }
}

/// A copy of a slot.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    bytes: Vec<u8>,
    format: SlotFormat,
}

impl Slot {
    /// An empty slot.
    pub(crate) fn empty(format: SlotFormat) -> Slot {
        let mut slot = Slot { bytes: vec![0; HEAD * WORD], format };
        slot.set(0, format.mark());
        slot
    }

    /// Parses a slot. `None` if the bytes are corrupt.
    pub(crate) fn read(bytes: Vec<u8>, format: SlotFormat) -> Option<Slot> {
        let slot = Slot { bytes, format };
        let callers = slot.bytes.len().checked_sub(HEAD * WORD)?;
        let whole = callers.is_multiple_of(format.width() * WORD);
        (whole && slot.get(0) == format.mark()).then_some(slot)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The latest instant at which state was dropped.
    pub(crate) fn watermark(&self) -> Watermark {
        Watermark(Now { mono: self.get(1), wall: self.get(2) })
    }

    /// The monotonic instant until which callers of this slot may have usage in an overflow bucket.
    pub(crate) fn spilled(&self) -> Micros {
        self.get(3)
    }

    pub(crate) fn spill(&mut self, until: Micros) {
        self.set(3, self.spilled().max(until));
    }

    /// The number of callers.
    pub(crate) fn len(&self) -> usize {
        (self.bytes.len() / WORD).saturating_sub(HEAD) / self.format.width()
    }

    /// The index of a caller.
    pub(crate) fn find(&self, hash: u64) -> Option<usize> {
        (0..self.len()).find(|&index| self.get(self.start(index)) == hash)
    }

    /// Copies the state at `index`. Returns the outstanding leases, as packed by [`Outstanding`].
    pub(crate) fn load(&self, index: usize, state: &mut [u64]) -> u64 {
        let start = self.start(index) + CALLER;
        state.iter_mut().enumerate().for_each(|(n, word)| *word = self.get(start + n));
        self.get(start - 1)
    }

    /// The arrears at `index`; none in a slot without arrears.
    pub(crate) fn arrears(&self, index: usize) -> OpenArrears {
        let start = self.start(index) + CALLER + self.format.words;
        match self.format.has_arrears {
            true => OpenArrears::unpack([self.get(start), self.get(start + 1)]),
            false => OpenArrears::default(),
        }
    }

    /// Writes a caller's state, in an existing or new entry. Arrears are written where they have
    /// room.
    pub(crate) fn put(&mut self, hash: u64, outstanding: u64, state: &[u64], arrears: OpenArrears) {
        let index = self.find(hash).unwrap_or(self.len());
        let start = self.start(index);
        let end = (start + self.format.width()) * WORD;
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.set(start, hash);
        self.set(start + 1, outstanding);
        let arrears = arrears.pack();
        let arrears = if self.format.has_arrears { &arrears[..] } else { &[] };
        let words = state.iter().chain(arrears).enumerate();
        words.for_each(|(n, word)| self.set(start + CALLER + n, *word));
    }

    /// Drops callers with expired state; `state` and `scratch` are buffers.
    pub(crate) fn sweep(
        &mut self,
        algorithm: &dyn Algorithm,
        now: Now,
        state: &mut [u64],
        scratch: &mut [u64],
    ) {
        for index in (0..self.len()).rev() {
            let mut outstanding = Outstanding::unpack(self.load(index, state), now.mono);
            outstanding.settle(algorithm, state, scratch, now.mono);
            if algorithm.expires(state, now) <= now.mono {
                self.remove(index);
                let mut watermark = self.watermark();
                watermark.raise(now);
                self.set(1, watermark.0.mono);
                self.set(2, watermark.0.wall);
            }
        }
    }

    fn remove(&mut self, index: usize) {
        let start = self.start(index) * WORD;
        let end = start + self.format.width() * WORD;
        if end <= self.bytes.len() {
            self.bytes.drain(start..end);
        }
    }

    fn start(&self, index: usize) -> usize {
        HEAD + index * self.format.width()
    }

    fn get(&self, word: usize) -> u64 {
        let bytes = self.bytes.get(word * WORD..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn set(&mut self, word: usize, value: u64) {
        let bytes = self.bytes.get_mut(word * WORD..).and_then(|rest| rest.first_chunk_mut());
        if let Some(bytes) = bytes {
            *bytes = value.to_le_bytes();
        }
    }
}

/// Classifies a slot of a removed rule.
pub(crate) fn classify(bytes: Vec<u8>, algorithm: &dyn Algorithm, now: Now) -> Found {
    let words = algorithm.properties().words;
    let mut state: Box<[u64]> = vec![0; words].into();
    let mut scratch = state.clone();
    let has_arrears = bytes.get(..WORD).is_some_and(|mark| mark.last() >= Some(&0x80));
    // Otherwise the rule has not written it.
    let Some(mut slot) = Slot::read(bytes, SlotFormat { words, has_arrears }) else {
        return Found::Empty;
    };
    if slot.len() == 0 {
        return Found::Empty;
    }
    let now = slot.watermark().no_earlier(now, algorithm.properties().window);
    slot.sweep(algorithm, now, &mut state, &mut scratch);
    let ends = (0..slot.len()).map(|index| {
        slot.load(index, &mut state);
        algorithm.expires(&state, now)
    });
    match ends.max() {
        None => Found::Over(slot.bytes),
        Some(over) => Found::InUse(over),
    }
}
