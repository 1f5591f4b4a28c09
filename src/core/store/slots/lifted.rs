//! When what callers used was last lifted, of one rule in one value: a lease that comes back when it is counted as out no
//! more may have been lifted, and must not come back then.

use super::{ATTEMPTS, Slots};
use crate::time::Micros;
use crate::words;

/// Callers that are remembered, the latest ones.
const CALLERS: usize = 64;

impl Slots {
    /// Notes that it is done for a caller. Whether nobody was faster again and again.
    pub(in crate::store) fn note_lifted(&self, name: &str, hash: u64, now: Micros) -> bool {
        (0..ATTEMPTS).any(|_| {
            let (known, number) = words::read_all(&*self.data, name);
            let mut words = vec![hash, now];
            let pairs = known.as_chunks::<2>().0.iter();
            words.extend(pairs.filter(|[other, _]| *other != hash).flatten());
            words.truncate(2 * CALLERS);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.swap_bytes(name, &bytes, number)
        })
    }

    /// When it was last done for a caller, or later; zero if it never was.
    pub(in crate::store) fn lifted(&self, name: &str, hash: u64) -> Micros {
        let (known, _) = words::read_all(&*self.data, name);
        let pairs = known.as_chunks::<2>().0;
        let own = pairs.iter().find(|[other, _]| *other == hash);
        // Of those that are remembered no more, the latest was lifted before any of these.
        let oldest = pairs.get(CALLERS - 1);
        own.or(oldest).map_or(0, |[_, when]| *when)
    }
}
