//! The part of a rule that its algorithm is built from. What there is to read stands in the
//! registry of algorithms.

use std::rc::Rc;

use super::fields::Fields;
use super::keys;
use crate::algorithm::{Algorithm, Entry, REGISTRY};
use crate::quota::{MAX_PERMITS, Quota};
use crate::time::Unit;

/// A rule's algorithm and what it was built from.
pub struct Limiter {
    /// The numbers.
    pub quota: Quota,
    /// Short name of the algorithm.
    pub algo: &'static str,
    /// The algorithm.
    pub algorithm: Rc<dyn Algorithm>,
}

/// Reads the limiter of a rule in a time zone.
pub fn read(fields: &Fields<'_>, zone: i64) -> Option<Limiter> {
    let entry = entry(fields);
    let unit = unit(fields);
    let permits = format!("a whole number, 0 … {MAX_PERMITS}");
    let rpu = fields.require("rpu", &permits).and_then(|node| node.whole(0, MAX_PERMITS));
    let cost = fields.get("cost").map_or(Some(1), |node| node.whole(1, MAX_PERMITS));
    let entry = entry?;
    let mut options = Quota::new(Unit::Second, 0);
    fill(&mut options, fields, entry)?;
    let quota = Quota { unit: unit?, rpu: rpu?, cost: cost?, zone, ..options };
    match (entry.build)(&quota) {
        Ok(algorithm) => Some(Limiter { quota, algo: entry.short, algorithm }),
        Err(conflicts) => {
            for conflict in conflicts {
                fields.blame(conflict.key, conflict.message);
            }
            None
        }
    }
}

fn entry(fields: &Fields<'_>) -> Option<&'static Entry> {
    let Some(node) = fields.get("algo") else { return REGISTRY.first() };
    let names: Vec<&str> = REGISTRY.iter().flat_map(|entry| [entry.short, entry.long]).collect();
    let allowed: Vec<String> =
        REGISTRY.iter().map(|entry| format!("{} ({})", entry.short, entry.long)).collect();
    let name = node.choice(&names, &allowed.join(", "))?;
    REGISTRY.get(name / 2)
}

fn unit(fields: &Fields<'_>) -> Option<Unit> {
    let names = Unit::ALL.map(|(name, _)| name);
    let allowed = names.join(", ");
    let chosen = fields.require("unit", &allowed)?.choice(&names, &allowed)?;
    Unit::ALL.get(chosen).map(|(_, unit)| *unit)
}

/// Fills in the optional keys that `entry` takes; nothing if one of them is wrong.
fn fill(quota: &mut Quota, fields: &Fields<'_>, entry: &Entry) -> Option<()> {
    let mut sound = Some(());
    for name in keys::algorithms() {
        let Some(node) = fields.get(name) else { continue };
        let value = match entry.keys.iter().find(|key| key.name == name) {
            Some(key) => node.whole(key.min, key.max),
            None => {
                let takes = |entry: &&Entry| entry.keys.iter().any(|key| key.name == name);
                let takers: Vec<&str> =
                    REGISTRY.iter().filter(takes).map(|entry| entry.short).collect();
                let (short, takers) = (entry.short, takers.join(", "));
                node.key_problem(format!(
                    "means nothing to `algo: {short}`; it is a key of {takers}"
                ));
                None
            }
        };
        match name {
            "burst" => quota.burst = value,
            "slices" => quota.slices = value,
            "max_queue" => quota.max_queue = value,
            _ => {}
        }
        sound = sound.and(value.map(|_| ()));
    }
    sound
}
