//! What an algorithm decides about one request.

use crate::time::Micros;

/// The answer of one rule to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The request may go on after `wait` ticks; zero is at once.
    Admit {
        /// Ticks from now until the request's turn.
        wait: Micros,
    },
    /// The request is refused and nothing was charged.
    Refuse {
        /// When a request of the same cost would be admitted if nobody else came.
        retry: Retry,
    },
}

/// When it makes sense to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retry {
    /// Only what is reserved for others is in the way, which may come back at any time.
    Soon,
    /// Ticks from now. At that instant the request is admitted, one tick earlier it is not.
    After(Micros),
    /// Such a request can never be admitted.
    Never,
}

impl Retry {
    /// Ticks after which it makes sense to come back, if it ever does.
    #[must_use]
    pub const fn ticks(self) -> Option<Micros> {
        match self {
            Retry::Soon => Some(1),
            Retry::After(ticks) => Some(ticks),
            Retry::Never => None,
        }
    }
}

impl Decision {
    /// Admitted without waiting.
    pub const NOW: Decision = Decision::Admit { wait: 0 };

    /// Refused until `after` ticks have passed.
    #[must_use]
    pub const fn retry(after: Micros) -> Decision {
        Decision::Refuse { retry: Retry::After(after) }
    }

    /// Refused for good.
    pub const NEVER: Decision = Decision::Refuse { retry: Retry::Never };

    /// Ticks until the turn of an admitted request; zero for a refused one.
    #[must_use]
    pub const fn wait(self) -> Micros {
        match self {
            Decision::Admit { wait } => wait,
            Decision::Refuse { .. } => 0,
        }
    }

    /// Whether the request was admitted, at once or after a wait.
    #[must_use]
    pub const fn is_admitted(self) -> bool {
        matches!(self, Decision::Admit { .. })
    }
}
