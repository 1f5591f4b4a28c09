//! Who was given what on which day, remembered for ever.

use std::collections::HashMap;

use diana_core::time::{Now, SECOND};

use super::DAY;

/// The day in force, by the words of the specification, and what was given on it.
#[derive(Default)]
pub struct Oracle {
    day: Option<(u64, u64)>,
    latest: u64,
    stepped_back: bool,
    given: HashMap<u64, u64>,
}

impl Oracle {
    /// What the account was given today, and how long today lasts.
    pub fn given(&mut self, account: u64, now: Now) -> (u64, u64) {
        let number = now.wall / DAY;
        self.stepped_back |= now.wall + SECOND < self.latest;
        self.latest = self.latest.max(now.wall);
        let lasts = |(number, began): (u64, u64), stepped_back: bool| {
            let by_wall = ((number + 1) * DAY).saturating_sub(now.wall);
            let by_mono = (began + DAY).saturating_sub(now.mono);
            if stepped_back { by_wall.min(by_mono) } else { by_wall }
        };
        let is_over = |day| lasts(day, self.stepped_back) == 0;
        if self.day.is_none_or(is_over) || self.given.is_empty() {
            (self.latest, self.stepped_back) = (now.wall, false);
            self.day = Some((number, now.mono));
            self.given.clear();
        }
        let left = self.day.map_or(0, |day| lasts(day, self.stepped_back));
        (self.given.get(&account).copied().unwrap_or(0), left)
    }

    /// Gives the account more of it today.
    pub fn give(&mut self, account: u64, permits: u64) {
        *self.given.entry(account).or_default() += permits;
    }
}
