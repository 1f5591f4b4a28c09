//! What a worker knows of its caller, and what it should do: a record of every block.

use diana_core::redis::protocol::Back;
use diana_core::time::{Micros, Now};

use super::MS;

/// Whoever finds too little wants more for so long; a block is spent for as long at most.
pub const WHILE: Micros = 100 * MS;

/// From which nothing was spent for so long goes back, and where nothing is left above.
pub const IDLE: Micros = 50 * MS;
pub const IDLE_WHEN_DRY: Micros = 20 * MS;

/// A block, and what is left of it.
#[derive(Clone, Copy, Default)]
pub struct Held {
    pub receipt: u64,
    pub permits: u64,
    pub left: u64,
    pub begins: Micros,
    pub ends: Now,
}

/// What a worker knows of its caller, and what it should do.
#[derive(Default)]
pub struct Books {
    pub hand: Held,
    pub next: Held,
    pub used: Micros,
    pub above: u64,
    pub asking: bool,
    /// Permits that were needed soon when more was asked for.
    pub soon: u64,
    pub short: Micros,
    pub dry: Micros,
    /// Blocks that are to go back.
    pub back: Vec<Back>,
}

impl Held {
    pub fn has(&self, permits: u64, now: Now) -> bool {
        self.left >= permits && now.mono < self.ends.mono && now.wall < self.ends.wall
    }
}

impl Books {
    pub fn give_back(&mut self, Held { receipt, permits, left, .. }: Held) {
        if permits > 0 {
            self.back.push(Back::Block { receipt, term: receipt + 1, block: permits, left });
        }
    }

    /// Whether a request can be admitted at once.
    pub fn can_spend(&mut self, cost: u64, now: Now) -> bool {
        let turns =
            !self.hand.has(cost, now) && self.next.permits > 0 && now.mono >= self.next.begins;
        if turns {
            self.give_back(self.hand);
            (self.hand, self.next) = (self.next, Held::default());
        } else if self.hand.left == 0 {
            self.give_back(self.hand);
            self.hand = Held { permits: 0, ..self.hand };
        }
        self.hand.has(cost, now)
    }

    pub fn is_out(&self) -> bool {
        self.hand.permits + self.next.permits > 0
    }

    /// Gives back what is idle, or over.
    pub fn tidy(&mut self, now: Now) {
        let longest = if self.above == 0 { IDLE_WHEN_DRY } else { IDLE };
        let over = !self.hand.has(0, now) && self.next.permits == 0;
        if self.is_out() && (over || now.mono - self.used >= longest) {
            self.hand_in();
        } else if now.mono >= self.next.ends.mono {
            self.give_back(self.next);
            self.next = Held::default();
        }
    }

    /// Gives back everything.
    pub fn hand_in(&mut self) {
        self.give_back(self.hand);
        self.give_back(self.next);
        (self.hand, self.next, self.short) = (Held::default(), Held::default(), 0);
    }

    /// Instants at which something changes.
    pub fn turns(&self) -> [Micros; 8] {
        let Books { hand, next, used, short, dry, .. } = self;
        let [idle, idle_when_dry] = [IDLE, IDLE_WHEN_DRY].map(|ticks| used + ticks);
        [hand.ends.mono, next.begins, next.ends.mono, *short, *dry, idle, idle_when_dry, *used]
    }
}
