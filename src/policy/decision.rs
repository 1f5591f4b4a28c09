//! The decision of an algorithm about one request.

use crate::time::{Micros, SECOND};

/// The decision of one rule about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The request may proceed after `wait` ticks. Zero is at once.
    Admit {
        /// Ticks from now until the request's turn.
        wait: Micros,
    },
    /// The request is refused and nothing was charged.
    Refuse {
        /// When a request of the same cost is admitted if no other request arrives.
        retry: Retry,
    },
}

/// When a retry can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retry {
    /// At any time: only permits reserved for other requests are missing, and they may be returned.
    Soon,
    /// After this number of ticks. At that instant the request is admitted, one tick earlier it is
    /// refused.
    After(Micros),
    /// Never: the cost exceeds the limit.
    Never,
}

impl Retry {
    /// Ticks until a retry can succeed; a second where it can at any time, so that clients do not
    /// retry at once. `None` if it never can.
    #[must_use]
    pub const fn ticks(self) -> Option<Micros> {
        match self {
            Retry::Soon => Some(SECOND),
            Retry::After(ticks) => Some(ticks),
            Retry::Never => None,
        }
    }
}

impl Decision {
    /// Admitted at once.
    pub const NOW: Decision = Decision::Admit { wait: 0 };

    /// Refused until `after` ticks have passed.
    #[must_use]
    pub const fn retry(after: Micros) -> Decision {
        Decision::Refuse { retry: Retry::After(after) }
    }

    /// Refused permanently.
    pub const NEVER: Decision = Decision::Refuse { retry: Retry::Never };

    /// Ticks until the turn of an admitted request; zero for a refused one.
    #[must_use]
    pub const fn wait(self) -> Micros {
        match self {
            Decision::Admit { wait } => wait,
            Decision::Refuse { .. } => 0,
        }
    }

    /// Returns true if the request is admitted, at once or after a wait.
    #[must_use]
    pub const fn is_admitted(self) -> bool {
        matches!(self, Decision::Admit { .. })
    }
}
