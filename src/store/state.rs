//! A copy of one caller's state.

use std::ops::{Deref, DerefMut};

/// Words that need no allocation: the most that algorithms use by default.
const FEW: usize = 8;

/// A copy of a caller's state that does not borrow from its table.
#[derive(Debug, Clone)]
pub(super) struct State {
    words: usize,
    few: [u64; FEW],
    /// All words if there are more than `FEW`; otherwise empty.
    many: Box<[u64]>,
}

impl State {
    /// The state of an unused caller.
    #[inline]
    pub(super) fn unused(words: usize) -> State {
        let many = if words > FEW { many(words) } else { Box::default() };
        State { words, few: [0; FEW], many }
    }
}

impl Deref for State {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        self.few.get(..self.words).unwrap_or(&self.many)
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut [u64] {
        self.few.get_mut(..self.words).unwrap_or(&mut self.many)
    }
}

#[inline(never)]
fn many(words: usize) -> Box<[u64]> {
    vec![0; words].into()
}
