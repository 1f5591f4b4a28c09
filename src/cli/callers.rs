//! The caller of a request, by each actor that a rule names.

use std::net::IpAddr;

use diana_policy::port::Request;
use diana_policy::{Actor, Policy};
use diana_request::identity::{self, Identifier, SourceValue};

use crate::text::plain;

/// The result of one actor.
pub struct ActorValue {
    /// The actor.
    pub actor: String,
    /// The kind of the source, and its value. `None` if no source has a value.
    pub found: Option<(&'static str, String)>,
}

/// The results for a request of all actors that rules name.
pub fn of(policy: &Policy, request: &dyn Request) -> Vec<ActorValue> {
    let rules = || policy.rules();
    let is_named = |number: usize| rules().any(|rule| rule.actor.contains(&number));
    let named = policy.actors.iter().enumerate().filter(|(number, _)| is_named(*number));
    named
        .map(|(_, actor)| ActorValue { actor: actor.name.clone(), found: find(actor, request) })
        .collect()
}

/// The kind of the source that finds a caller, and its value.
pub fn find(actor: &Actor, request: &dyn Request) -> Option<(&'static str, String)> {
    for wanted in &actor.sources {
        let Ok(source) = identity::build(wanted) else { continue };
        match source.find(request) {
            SourceValue::Absent | SourceValue::NoMetadata => {}
            SourceValue::Value(value) => return Some((wanted.kind, spelled(&value))),
            SourceValue::NoAddress => {
                return Some((
                    wanted.kind,
                    "unknown; all requests without an address are one caller".into(),
                ));
            }
            SourceValue::Unclear => {
                return Some((
                    wanted.kind,
                    "more than one value, or one that cannot be read, so it uses the shared bucket"
                        .into(),
                ));
            }
        }
    }
    None
}

fn spelled(value: &Identifier<'_>) -> String {
    match value {
        Identifier::V4(address) => IpAddr::from(*address).to_string(),
        Identifier::V6(address) => IpAddr::from(*address).to_string(),
        Identifier::Text(text) => plain(&String::from_utf8_lossy(text)),
    }
}
