//! Counts of decisions, from the filter's own metrics.

use std::ops::AddAssign;

use diana_policy::Metric;

/// Decisions of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecisionCounts {
    /// Admitted requests that the rule evaluated and admits.
    pub admitted: u64,
    /// Requests that it was the first to refuse.
    pub refused: u64,
    /// Requests that it refused because the caller is banned.
    pub banned: u64,
    /// Requests that another rule refused while it was evaluated, too.
    pub beside: u64,
    /// Requests among `admitted` that it held.
    pub held: u64,
    /// Requests that it would have refused if it were not in shadow.
    pub shadow_refused: u64,
    /// Requests that it marked, since they exceeded its limit.
    pub over: u64,
    /// Requests that it would have held if it were not in shadow.
    pub shadow_held: u64,
    /// Bans that started.
    pub bans: u64,
    /// Requests of hot callers.
    pub hot: u64,
}

impl DecisionCounts {
    /// Requests that it evaluated.
    pub fn consulted(&self) -> u64 {
        self.admitted + self.refused + self.banned + self.beside + self.shadow_refused + self.over
    }

    /// The count that a metric of a rule goes to, if it is reported.
    pub fn metric(&mut self, metric: Metric) -> Option<&mut u64> {
        match metric {
            Metric::Allowed => Some(&mut self.admitted),
            Metric::Refused => Some(&mut self.refused),
            Metric::Banned => Some(&mut self.banned),
            Metric::Held => Some(&mut self.held),
            Metric::ShadowRefused => Some(&mut self.shadow_refused),
            Metric::Over => Some(&mut self.over),
            Metric::ShadowHeld => Some(&mut self.shadow_held),
            Metric::Bans => Some(&mut self.bans),
            Metric::Hot => Some(&mut self.hot),
            _ => None,
        }
    }
}

impl AddAssign for DecisionCounts {
    fn add_assign(&mut self, other: DecisionCounts) {
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.banned += other.banned;
        self.beside += other.beside;
        self.held += other.held;
        self.shadow_refused += other.shadow_refused;
        self.over += other.over;
        self.shadow_held += other.shadow_held;
        self.bans += other.bans;
        self.hot += other.hot;
    }
}
