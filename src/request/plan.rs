//! The plan of a request, selected by data in the request.

use std::rc::Rc;

use crate::identity::caller::Callers;
use crate::identity::sources::Sources;
use crate::identity::{self, Mistake, Source, SourceValue};
use crate::meanings::Meanings;
use diana_policy::number::{digits, integer, whole};
use diana_policy::port::Request;
use diana_policy::{Actor, IdentitySource, NumberForm, NumberSource};

/// Selects the plans of all rules. Each input is read at most once per request, even if several
/// rules use it.
#[derive(Default)]
pub struct PlanSelectors {
    all: Vec<PlanSelector>,
    /// Whether any input was read for the current request.
    is_used: bool,
}

struct PlanSelector {
    wanted: PlanSource,
    by: PlanReader,
    /// Plan names with the number of each.
    names: Meanings<u32>,
    count: u32,
    /// The result for the current request, once its input was read.
    found: Option<Option<u64>>,
}

/// The configuration of a selector. Equal configurations share one selector.
#[derive(PartialEq)]
enum PlanSource {
    Sources(Vec<IdentitySource>),
    Caller(usize),
    Number(IdentitySource, NumberForm),
}

enum PlanReader {
    Sources(Sources),
    Caller(usize),
    Number { source: Rc<dyn Source>, form: NumberForm },
}

impl PlanSelectors {
    /// Plans with these names, selected by the value of the sources `by`, or else of the actor with
    /// this number among `callers`. Returns the number of the selector, and of each name.
    ///
    /// # Errors
    /// Every mistake in the sources.
    pub fn of_names<'n>(
        &mut self,
        by: Option<&[IdentitySource]>,
        (callers, actor): (&Callers, Option<usize>),
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(usize, Vec<u32>), Vec<Mistake>> {
        let (wanted, by) = match (by, actor) {
            (Some(sources), _) => {
                let actor = Actor { name: String::new(), sources: sources.to_vec() };
                (
                    PlanSource::Sources(actor.sources.clone()),
                    PlanReader::Sources(Sources::new(&actor)?),
                )
            }
            (None, Some(actor)) => (PlanSource::Caller(actor), PlanReader::Caller(actor)),
            // Under `all`, callers have no value.
            (None, None) => (PlanSource::Sources(Vec::new()), PlanReader::Caller(usize::MAX)),
        };
        let number = self.find(wanted, by);
        let selector = self.all.get_mut(number);
        let numbers =
            selector.map(|selector| names.map(|name| selector.number(name, callers)).collect());
        Ok((number, numbers.unwrap_or_default()))
    }

    /// A number in trusted data. Returns the number of its selector.
    ///
    /// # Errors
    /// Every mistake in its source.
    pub fn of_number(&mut self, number: &NumberSource) -> Result<usize, Vec<Mistake>> {
        let (source, form) = (identity::build(&number.source)?, number.form);
        let wanted = PlanSource::Number(number.source.clone(), form);
        Ok(self.find(wanted, PlanReader::Number { source, form }))
    }

    fn find(&mut self, wanted: PlanSource, by: PlanReader) -> usize {
        if let Some(known) = self.all.iter().position(|known| known.wanted == wanted) {
            return known;
        }
        self.all.push(PlanSelector {
            wanted,
            by,
            names: Meanings::default(),
            count: 0,
            found: None,
        });
        self.all.len() - 1
    }

    /// Returns true if any input is in the headers.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.all.iter().any(|selector| match &selector.by {
            PlanReader::Sources(sources) => sources.reads_headers(),
            PlanReader::Number { source, .. } => source.reads_headers(),
            // The actor itself reports that it reads headers.
            PlanReader::Caller(_) => false,
        })
    }

    /// Drops the results of the previous request.
    #[inline]
    pub fn begin(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.all.iter_mut().for_each(|selector| selector.found = None);
        }
    }

    /// The number of the plan that the request has, or the number in trusted data. `None` if there
    /// is none, or if several values make it ambiguous.
    pub fn read(
        &mut self,
        selector: usize,
        callers: &Callers,
        request: &dyn Request,
    ) -> Option<u64> {
        let selector = self.all.get_mut(selector)?;
        self.is_used = true;
        if let Some(found) = selector.found {
            return found;
        }
        let found = selector.read(callers, request);
        selector.found = Some(found);
        found
    }
}

impl PlanSelector {
    /// The number of a plan's name, normalised as the sources normalise values of requests.
    fn number(&mut self, name: &str, callers: &Callers) -> u32 {
        let sources = self.sources(callers);
        let readings = sources.map_or_else(Vec::new, |sources| sources.readings(name.as_bytes()));
        let known = readings.iter().find_map(|(source, value)| self.names.find(*source, value));
        let number = known.unwrap_or(self.count + 1);
        self.count = self.count.max(number);
        readings.into_iter().for_each(|(source, value)| self.names.add(source, value, number));
        number
    }

    /// The sources of the selector.
    fn sources<'s>(&'s self, callers: &'s Callers) -> Option<&'s Sources> {
        match &self.by {
            PlanReader::Sources(sources) => Some(sources),
            PlanReader::Caller(actor) => callers.sources(*actor),
            PlanReader::Number { .. } => None,
        }
    }

    fn read(&self, callers: &Callers, request: &dyn Request) -> Option<u64> {
        if let PlanReader::Number { source, form } = &self.by {
            let SourceValue::Value(value) = source.find(request) else { return None };
            return match form {
                NumberForm::Number => whole(&value),
                NumberForm::Typed => integer(&value),
                NumberForm::Text { .. } => digits(&value),
            };
        }
        let sources = self.sources(callers)?;
        let (source, SourceValue::Value(value)) = sources.find(request) else { return None };
        self.names.find(source, &sources.hashed(source, &value)).map(u64::from)
    }
}
