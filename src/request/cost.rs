//! The cost of a request, read from the request itself.

use std::rc::Rc;

use crate::identity::{self, Mistake, Source, SourceValue, query};
use diana_policy::number::{decimal, float, integer};
use diana_policy::port::Request;
use diana_policy::{NumberForm, NumberSource};

/// Reads the cost of requests from a source.
#[derive(Debug)]
pub struct CostReader {
    source: Rc<dyn Source>,
    form: NumberForm,
    default: u64,
    /// The cost if the value is not a number.
    unreadable: u64,
    most: u64,
}

impl CostReader {
    /// A reader of this source. Costs are limited to `most` permits.
    ///
    /// # Errors
    /// Every mistake in the configuration of the source.
    pub fn new(cost: &NumberSource, most: u64) -> Result<CostReader, Vec<Mistake>> {
        let source = identity::build(&cost.source)?;
        // An upstream may read a number that this reader does not know, such as `1e3`.
        let unreadable = if cost.source.kind == query::KIND.name { most } else { cost.default };
        Ok(CostReader { source, form: cost.form, default: cost.default, unreadable, most })
    }

    /// The cost of a request in permits, at least one. Several values, and those that cannot
    /// be read, cost the maximum, and so does a parameter that is not a number.
    pub fn cost(&self, request: &dyn Request) -> u64 {
        let number = |value: &[u8]| match self.form {
            // Proxies join repeated headers with commas.
            NumberForm::Text { .. } if value.contains(&b',') => Some(u64::MAX),
            NumberForm::Text { .. } => decimal(value),
            NumberForm::Number => float(value),
            NumberForm::Typed => integer(value),
        };
        let cost = match self.source.find(request) {
            SourceValue::Unclear => self.most,
            SourceValue::Value(value) => number(&value).unwrap_or(self.unreadable),
            SourceValue::Absent | SourceValue::NoMetadata | SourceValue::NoAddress => self.default,
        };
        cost.clamp(1, self.most.max(1))
    }
}
