//! The cost of a request, read from the request itself.

use std::rc::Rc;

use crate::identity::{self, Mistake, Source, SourceValue};
use diana_policy::NumberSource;
use diana_policy::number::{decimal, float};
use diana_policy::port::Request;

/// Reads the cost of requests from a source.
#[derive(Debug)]
pub struct CostReader {
    source: Rc<dyn Source>,
    form: CostForm,
    default: u64,
    most: u64,
}

/// The encoding of a number.
#[derive(Debug, Clone, Copy)]
enum CostForm {
    /// Decimal digits.
    Text,
    /// A 64-bit float, little-endian: the host's encoding of numbers in metadata.
    Float,
}

impl CostReader {
    /// A reader of this source. Costs are limited to `most` permits.
    ///
    /// # Errors
    /// Every mistake in the configuration of the source.
    pub fn new(cost: &NumberSource, most: u64) -> Result<CostReader, Vec<Mistake>> {
        let source = identity::build(&cost.source)?;
        let is_text = cost.is_text || source.header().is_some();
        let form = if is_text { CostForm::Text } else { CostForm::Float };
        Ok(CostReader { source, form, default: cost.default, most })
    }

    /// The cost of a request in permits, at least one. Several values, and those that cannot
    /// be read, cost the maximum.
    pub fn cost(&self, request: &dyn Request) -> u64 {
        let number = |value: &[u8]| match self.form {
            // Proxies join repeated headers with commas.
            CostForm::Text if value.contains(&b',') => Some(u64::MAX),
            CostForm::Text => decimal(value),
            CostForm::Float => float(value),
        };
        let cost = match self.source.find(request) {
            SourceValue::Unclear => self.most,
            SourceValue::Value(value) => number(&value).unwrap_or(self.default),
            SourceValue::Absent | SourceValue::NoMetadata | SourceValue::NoAddress => self.default,
        };
        cost.clamp(1, self.most.max(1))
    }
}
