//! Models of other limiters.

use std::any::Any;
use std::fmt::Debug;

use diana_replay::Arrival;
use hashbrown::HashMap;

/// The decision of a model about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelDecision {
    /// It passes at once.
    Passes,
    /// It passes after this number of milliseconds.
    Waits(u64),
    /// It is refused.
    Refused,
}

/// The behaviour of the original for one rule, or for one object.
pub trait LimiterModel: Debug + Any {
    /// Forgets all requests.
    fn reset(&mut self);

    /// Decides about a request. Requests arrive in the order of their times.
    fn decide(&mut self, request: &dyn Arrival) -> ModelDecision;

    /// Another process of the original, with the same requests behind it.
    fn copy(&self) -> Box<dyn LimiterModel>;
}

/// Processes of the original, which count apart. Each receives the requests of a caller in turn.
#[derive(Debug)]
pub(crate) struct ModelFleet {
    processes: usize,
    /// Those that have received a request.
    models: Vec<Box<dyn LimiterModel>>,
    fresh: Box<dyn LimiterModel>,
    /// The number of requests of each caller.
    turns: HashMap<Option<u8>, usize>,
}

impl ModelFleet {
    /// A number of processes like this one, without requests.
    pub(crate) fn new(model: &dyn LimiterModel, processes: u32) -> ModelFleet {
        let mut fresh = model.copy();
        fresh.reset();
        let processes = usize::try_from(processes).unwrap_or(usize::MAX).max(1);
        ModelFleet { processes, models: Vec::new(), fresh, turns: HashMap::new() }
    }

    /// Forgets all requests.
    pub(crate) fn reset(&mut self) {
        self.models.clear();
        self.turns.clear();
    }

    /// The decision of the process that gets the request. A caller's requests go to each in turn.
    pub(crate) fn decide(&mut self, caller: Option<u8>, request: &dyn Arrival) -> ModelDecision {
        let turn = self.turns.entry(caller).or_insert(0);
        let number = *turn % self.processes;
        *turn += 1;
        while self.models.len() <= number {
            self.models.push(self.fresh.copy());
        }
        let model = self.models.get_mut(number);
        model.map_or(ModelDecision::Passes, |model| model.decide(request))
    }
}
