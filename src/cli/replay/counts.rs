//! What is counted, by the filter's own metrics.

use std::cell::RefCell;
use std::ops::AddAssign;

use diana_player::worker::NAMESPACE;
use diana_policy::port::Metrics;

/// What became of requests under one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests that went on and that it admits.
    pub admitted: u64,
    /// Requests that it was the first to refuse.
    pub refused: u64,
    /// Requests that it refused since it bans their callers.
    pub banned: u64,
    /// Requests that another rule refused while it was asked, too.
    pub beside: u64,
    /// Of those that it admitted, requests that it held.
    pub held: u64,
    /// Requests that it would have refused if it were not in shadow.
    pub shadow_refused: u64,
    /// Requests that it would have held if it were not in shadow.
    pub shadow_held: u64,
    /// Bans that began.
    pub bans: u64,
    /// Requests of hot callers.
    pub hot: u64,
}

impl Counts {
    /// Requests in which it had a say.
    pub fn consulted(&self) -> u64 {
        self.admitted + self.refused + self.banned + self.beside + self.shadow_refused
    }

    fn metric(&mut self, name: &str) -> Option<&mut u64> {
        match name {
            "allowed" => Some(&mut self.admitted),
            "refused" => Some(&mut self.refused),
            "banned" => Some(&mut self.banned),
            "held" => Some(&mut self.held),
            "shadow_refused" => Some(&mut self.shadow_refused),
            "shadow_held" => Some(&mut self.shadow_held),
            "bans" => Some(&mut self.bans),
            "hot" => Some(&mut self.hot),
            _ => None,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.banned += other.banned;
        self.beside += other.beside;
        self.held += other.held;
        self.shadow_refused += other.shadow_refused;
        self.shadow_held += other.shadow_held;
        self.bans += other.bans;
        self.hot += other.hot;
    }
}

/// Takes the metrics of some rules.
pub struct Taken<'r> {
    /// The rules' names, in their order.
    pub rules: &'r [String],
    /// What each of them counted.
    pub counts: RefCell<Vec<Counts>>,
}

impl Metrics for Taken<'_> {
    fn count(&self, name: &str, amount: u64) {
        let of_rule = name.strip_prefix("diana.").and_then(|it| it.strip_prefix(NAMESPACE));
        let of_rule = of_rule.and_then(|it| it.strip_prefix(".rule."));
        let Some((rule, what)) = of_rule.and_then(|it| it.split_once('.')) else { return };
        let number = self.rules.iter().position(|own| own == rule);
        let mut counts = self.counts.borrow_mut();
        if let Some(counts) = number.and_then(|number| counts.get_mut(number))
            && let Some(count) = counts.metric(what)
        {
            *count += amount;
        }
    }

    fn gauge(&self, _: &str, _: i64) {}

    fn set(&self, _: &str, _: u64) {}

    fn record(&self, _: &str, _: u64) {}
}
