//! Naive exact models of one caller, for the algorithms that promise never to refuse what fits.

use super::bound::Admission;
use super::rule::Rule;

/// What the model holds of one caller.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// W: the window in force and what was used in it.
    window: (i64, u64),
    /// TB: permits that are missing, times the unit, and when that was so.
    missing: u128,
    since: u64,
}

/// How a request that does not fit is told: the microseconds until it does.
type Refused = u64;

impl Model {
    /// Whether a request fits now; if so it is charged. Nothing for an algorithm that promises
    /// only bounds.
    pub fn decide(&mut self, rule: &Rule, now: Admission) -> Option<Result<(), Refused>> {
        match rule.algo {
            "W" => Some(self.window(rule, now)),
            "TB" => Some(self.bucket(rule, now, rule.burst.unwrap_or(rule.rpu))),
            _ => None,
        }
    }

    fn window(&mut self, rule: &Rule, now: Admission) -> Result<(), Refused> {
        let number = rule.window(now.wall);
        let used = if self.window.0 == number { self.window.1 } else { 0 };
        if used + rule.cost > rule.rpu {
            return Err(rule.left(now.wall));
        }
        self.window = (number, used + rule.cost);
        Ok(())
    }

    fn bucket(&mut self, rule: &Rule, now: Admission, burst: u64) -> Result<(), Refused> {
        let refilled = u128::from(now.monotonic - self.since) * u128::from(rule.rpu);
        let missing = self.missing.saturating_sub(refilled);
        let unit = u128::from(rule.unit);
        let after = missing + u128::from(rule.cost) * unit;
        let over = after.saturating_sub(u128::from(burst) * unit);
        if over > 0 {
            return Err(over.div_ceil(u128::from(rule.rpu)) as u64);
        }
        (self.missing, self.since) = (after, now.monotonic);
        Ok(())
    }
}
