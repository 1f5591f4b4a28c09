//! The callers with the most refusals, in bounded memory.

use std::rc::Rc;

use diana_limiter::Record;
use diana_policy::time::Micros;
use diana_policy::{Actor, Policy};
use hashbrown::HashMap;

use crate::callers;
use diana_replay::LogEntry;

/// The maximum number of remembered callers. Beyond it, those with the fewest refusals are
/// forgotten, so a caller may have more refusals than counted, and never fewer.
const MOST: usize = 1 << 17;

/// A caller that a rule refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCaller {
    /// The rule.
    pub rule: Rc<str>,
    /// Its values for all actors of the rule.
    pub caller: String,
    /// The number of refusals.
    pub times: u64,
    /// The times of the first and the latest refusal.
    pub between: (Micros, Micros),
}

/// All refused callers.
pub struct RefusedCallers {
    /// The actors of each rule, by its name.
    actors: HashMap<String, Vec<Actor>>,
    all: HashMap<(Rc<str>, u64), RefusedCaller>,
}

impl RefusedCallers {
    /// An empty set for the callers of these rules.
    pub fn new(policy: &Policy) -> RefusedCallers {
        let rules = policy.rules();
        let actors = |numbers: &[usize]| {
            numbers.iter().filter_map(|number| policy.actors.get(*number).cloned()).collect()
        };
        let actors = rules.map(|rule| (rule.name.clone(), actors(&rule.actor))).collect();
        RefusedCallers { actors, all: HashMap::new() }
    }

    /// Counts a refusal.
    pub fn add(&mut self, refused: &Record, entry: &LogEntry) {
        let rule = &refused.rule;
        let key = (rule.clone(), refused.caller.key.hash);
        let refused = self.all.entry(key).or_insert_with(|| RefusedCaller {
            rule: rule.clone(),
            caller: name(self.actors.get(&**rule).map_or(&[], Vec::as_slice), entry),
            times: 0,
            between: (entry.at, entry.at),
        });
        refused.times += 1;
        refused.between.1 = entry.at;
        if self.all.len() > MOST {
            self.forget();
        }
    }

    /// The number of remembered callers.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The callers with the most refusals, in descending order.
    pub fn most(&self, count: usize) -> Vec<&RefusedCaller> {
        let mut all: Vec<&RefusedCaller> = self.all.values().collect();
        all.sort_by(|one, other| {
            (other.times, &one.rule, &one.caller).cmp(&(one.times, &other.rule, &other.caller))
        });
        all.truncate(count);
        all
    }

    fn forget(&mut self) {
        let mut times: Vec<u64> = self.all.values().map(|refused| refused.times).collect();
        let (_, middle, _) = times.select_nth_unstable(MOST / 2);
        let fewest = *middle;
        self.all.retain(|_, refused| refused.times > fewest);
    }
}

fn name(actors: &[Actor], entry: &LogEntry) -> String {
    if actors.is_empty() {
        return "all".into();
    }
    let found = actors.iter().map(|actor| callers::find(actor, entry));
    let names: Vec<String> =
        found.map(|found| found.map_or_else(|| "?".into(), |(_, value)| value)).collect();
    names.join(" + ")
}
