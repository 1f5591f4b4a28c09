//! A rule in Redis.

use diana_algorithm::{Entry, REGISTRY};
use diana_policy::Quota;
use diana_redis::protocol::Numbers;

use crate::laws::case::Case;

pub struct Rule {
    pub entry: &'static Entry,
    pub case: Case,
    pub numbers: Numbers,
    pub fingerprint: u64,
    /// Whether only some outcomes count.
    pub counts: bool,
}

impl Rule {
    pub fn new(short: &str, quota: Quota) -> Rule {
        let entry = REGISTRY.iter().find(|entry| entry.short == short).unwrap();
        let algorithm = (entry.build)(&quota).unwrap();
        Rule::of(entry, Case { quota, algorithm }).unwrap()
    }

    /// `None` if Redis does not support the rule.
    pub fn of(entry: &'static Entry, case: Case) -> Option<Rule> {
        let numbers = Numbers::of_rule(entry, &case.quota)?;
        Some(Rule { entry, case, numbers, fingerprint: 0, counts: false })
    }
}
