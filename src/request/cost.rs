//! What a request says that it takes.

use std::rc::Rc;

use crate::identity::{self, Found, Mistake, Source};
use diana_policy::Told;
use diana_policy::number::{decimal, float};
use diana_policy::port::Request;

/// Reads what requests take.
#[derive(Debug)]
pub struct Teller {
    source: Rc<dyn Source>,
    form: Form,
    default: u64,
    most: u64,
}

/// How a number is written.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// In decimals.
    Text,
    /// As the host hands out numbers in metadata: a 64-bit float, the lowest byte first.
    Float,
}

impl Teller {
    /// Reads what is told where `told` says, `most` permits at most.
    ///
    /// # Errors
    /// Every mistake in its source.
    pub fn new(told: &Told, most: u64) -> Result<Teller, Vec<Mistake>> {
        let source = identity::build(&told.source)?;
        let is_text = told.is_text || source.header().is_some();
        let form = if is_text { Form::Text } else { Form::Float };
        Ok(Teller { source, form, default: told.default, most })
    }

    /// What a request takes, at least one permit: what nobody can tell of several values is the most.
    pub fn cost(&self, request: &dyn Request) -> u64 {
        let told = |value: &[u8]| match self.form {
            // Proxies join repeated headers like this.
            Form::Text if value.contains(&b',') => Some(u64::MAX),
            Form::Text => decimal(value),
            Form::Float => float(value),
        };
        let cost = match self.source.find(request) {
            Found::Repeated => self.most,
            Found::Value(value) => told(&value).unwrap_or(self.default),
            Found::Absent | Found::NoMetadata => self.default,
        };
        cost.clamp(1, self.most.max(1))
    }
}
