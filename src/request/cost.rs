//! The cost of a request, read from the request itself.

use std::rc::Rc;

use crate::identity::sources::Sources;
use crate::identity::{self, Mistake, Source, SourceValue, query};
use crate::meanings::Meanings;
use diana_policy::number::{decimal, float, integer};
use diana_policy::port::Request;
use diana_policy::{Actor, ChosenCost, CostSource, NumberForm, NumberSource};

/// Reads the cost of requests from a source.
pub struct CostReader {
    by: CostBy,
    default: u64,
    most: u64,
}

/// The form of the cost in requests.
enum CostBy {
    Number {
        source: Rc<dyn Source>,
        form: NumberForm,
        /// The cost if the value is not a number.
        unreadable: u64,
    },
    Value {
        sources: Sources,
        costs: Meanings<u64>,
    },
}

impl CostReader {
    /// A reader of this source. Costs are limited to `most` permits.
    ///
    /// # Errors
    /// Every mistake in the configuration of the source.
    pub fn new(cost: &CostSource, most: u64) -> Result<CostReader, Vec<Mistake>> {
        let by = match cost {
            CostSource::Number(number) => CostBy::number(number, most)?,
            CostSource::Chosen(chosen) => CostBy::value(chosen)?,
        };
        Ok(CostReader { by, default: cost.default_cost(), most })
    }

    /// The cost of a request in permits, at least one. Several values, and those that cannot
    /// be read, cost the maximum, and so does a parameter that is not a number. A value that is not
    /// listed costs the default, and the maximum if it is a list.
    #[inline(never)]
    pub fn cost(&self, request: &dyn Request) -> u64 {
        let (found, cost) = match &self.by {
            CostBy::Number { source, form, unreadable } => {
                let found = source.find(request);
                let cost = |value: &[u8]| number(value, *form).unwrap_or(*unreadable);
                let cost =
                    if let SourceValue::Value(value) = &found { Some(cost(value)) } else { None };
                (found, cost)
            }
            CostBy::Value { sources, costs } => {
                let (source, found) = sources.find(request);
                let cost = match &found {
                    SourceValue::Value(value) => costs
                        .find(source, &sources.hashed(source, value))
                        // Proxies join repeated headers with commas.
                        .or_else(|| value.contains(&b',').then_some(self.most)),
                    _ => None,
                };
                (found, cost)
            }
        };
        let cost = match found {
            SourceValue::Unclear => self.most,
            _ => cost.unwrap_or(self.default),
        };
        cost.clamp(1, self.most.max(1))
    }
}

impl CostBy {
    fn number(number: &NumberSource, most: u64) -> Result<CostBy, Vec<Mistake>> {
        let source = identity::build(&number.source)?;
        // An upstream may read a number that this reader does not know, such as `1e3`.
        let is_query = number.source.kind == query::KIND.name;
        let unreadable = if is_query { most } else { number.default };
        Ok(CostBy::Number { source, form: number.form, unreadable })
    }

    /// If two listed values are one to a source, as by `lower`, the larger cost counts.
    fn value(chosen: &ChosenCost) -> Result<CostBy, Vec<Mistake>> {
        let sources = Sources::new(&Actor { name: String::new(), sources: chosen.by.clone() })?;
        let mut of: Vec<&(String, u64)> = chosen.of.iter().collect();
        of.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        let mut costs = Meanings::default();
        for (value, cost) in of {
            for (source, value) in sources.readings(value.as_bytes()) {
                costs.add(source, value, *cost);
            }
        }
        Ok(CostBy::Value { sources, costs })
    }
}

/// The number in a value, if it is one.
fn number(value: &[u8], form: NumberForm) -> Option<u64> {
    match form {
        // Proxies join repeated headers with commas.
        NumberForm::Text { .. } if value.contains(&b',') => Some(u64::MAX),
        NumberForm::Text { .. } => decimal(value),
        NumberForm::Number => float(value),
        NumberForm::Typed => integer(value),
    }
}
