//! Actors: kinds of callers in the configuration.

use super::NumberForm;
use crate::tree::Tree;

/// A named kind of caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Actor {
    /// The name that rules use.
    pub name: String,
    /// Read in order. The first source with a value identifies the caller.
    pub sources: Vec<IdentitySource>,
}

/// The configuration of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentitySource {
    /// The name of its kind in the registry, such as `header`.
    pub kind: &'static str,
    /// The value of the main key.
    pub value: Tree,
    /// The options next to the main key.
    pub options: Vec<(String, Tree)>,
}

/// The source of a request's cost. The maximum is in [`Quota::cost`](super::Quota::cost).
#[derive(Debug, Clone, PartialEq)]
pub enum CostSource {
    /// The request contains the number.
    Number(NumberSource),
    /// A value of the request chooses it.
    Chosen(ChosenCost),
}

impl CostSource {
    /// The cost of requests without a value, 1 ..= the maximum.
    #[must_use]
    pub fn default_cost(&self) -> u64 {
        match self {
            CostSource::Number(number) => number.default,
            CostSource::Chosen(chosen) => chosen.default,
        }
    }

    /// The sources of the value, in order.
    #[must_use]
    pub fn sources(&self) -> &[IdentitySource] {
        match self {
            CostSource::Number(number) => std::slice::from_ref(&number.source),
            CostSource::Chosen(chosen) => &chosen.by,
        }
    }
}

/// Costs by a value of the request.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenCost {
    /// The sources of the value, in order.
    pub by: Vec<IdentitySource>,
    /// Each listed value with its cost, at least 1.
    pub of: Vec<(String, u64)>,
    /// The cost of other values, and of requests without one, at least 1.
    pub default: u64,
}

/// The source of a number in requests.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberSource {
    /// A header, a query parameter or metadata.
    pub source: IdentitySource,
    /// The encoding of the value.
    pub form: NumberForm,
    /// The cost if the value is missing or not a number, 1 ..= the maximum.
    pub default: u64,
}
