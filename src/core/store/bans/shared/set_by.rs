//! Bans that an operator begins and lifts.

use super::{Shared, set};
use crate::key::Key;
use crate::time::Micros;

impl Shared {
    /// All workers learn of it with the record, which then says that one more ban has begun.
    pub(super) fn set_by_operator(&mut self, key: Key, length: Micros, now: Micros) -> bool {
        let place = self.claim(key, now);
        let until = now.saturating_add(length);
        let (until, change) = match length {
            0 => (0, set::Change::Lift),
            _ => (until, set::Change::Ban(until)),
        };
        let found = self.change(key, change, now).until;
        let is_set = length == 0 || found == until;
        self.learn(Some(until), now);
        let epoch = self.record.epoch;
        if let Some(line) = self.lines.get_mut(place) {
            (line.until, line.epoch, line.refusals, line.recent) = (until, epoch, 0, 0);
        }
        is_set
    }
}
