//! The same generated requests by a model of the original and by Diana's own worker.

use std::rc::Rc;

use diana_config::Reader;
use diana_policy::Policy;
use diana_policy::time::Micros;
use diana_replay::{PlainRequest, ReplayDecision, ReplayFleet};

use crate::document;
use crate::model::{LimiterModel, ModelDecision, ModelFleet};
use crate::outcome::ImportedRule;
use crate::traffic::{self, TrafficRequest};

/// Tuesday, 24 November 2026, 06:00:00 UTC.
const BEGIN: Micros = 1_795_500_000_000_000;

/// Maximum number of decisions for the search of a short example.
const MOST_DECISIONS: usize = 300_000;

/// The same for all examples of an import. Later ones are longer.
pub(crate) const MOST_SEARCHED: usize = 500_000;

/// Maximum number of parts of an example.
const SHOWN_RUNS: usize = 8;

/// Maximum number of differences from which an example is tried.
const MOST_TRIED: usize = 20;

/// Waits that differ by less are equal, in milliseconds: nginx computes whole ones.
const SAME_WAIT: u64 = 1;

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelComparison {
    /// The number of requests.
    pub requests: usize,
    /// A short sequence. Diana refuses the last request, or delays it longer.
    pub stricter: Option<Vec<ComparedRequest>>,
    /// A short sequence. Only the original refuses the last request, or delays it longer.
    pub looser: Option<Vec<ComparedRequest>>,
    /// Whether the original's rounding is the only difference.
    pub is_rounding: bool,
    /// Whether a request was refused or waited.
    pub is_reached: bool,
}

/// A request of a sequence, with both decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedRequest {
    /// Milliseconds since the first one.
    pub at: u64,
    /// The number of its caller; none if it has no key.
    pub caller: Option<u8>,
    /// Milliseconds that it takes.
    pub took: u64,
    /// The rules that do not count it, as bits: it has no value, or is of another part.
    pub lacks: u32,
    /// The decision of the original.
    pub original: ModelDecision,
    /// The decision of Diana.
    pub diana: ModelDecision,
}

impl ModelComparison {
    /// The result in a few words.
    #[must_use]
    pub fn summary(&self) -> String {
        let relation = match (&self.stricter, &self.looser, self.is_rounding) {
            (None, None, _) => "equal",
            (_, _, true) => "equal but for the rounding of the original",
            (Some(_), None, _) => "stricter",
            (None, Some(_), _) => "looser",
            (Some(_), Some(_), _) => "stricter and looser",
        };
        let beyond = match self.is_reached {
            true => "",
            false => ", none of which reaches the limit",
        };
        format!("{relation}, by {} generated requests{beyond}", self.requests)
    }

    /// The examples, in order of time. Equal requests are counted.
    #[must_use]
    pub fn examples(&self) -> Vec<String> {
        let examples = [("stricter", &self.stricter), ("looser", &self.looser)];
        let examples = examples.into_iter().filter_map(|(kind, it)| Some((kind, it.as_ref()?)));
        examples.map(|(kind, requests)| format!("{kind}: {}", described(requests))).collect()
    }
}

/// A sequence on one line. Requests of one caller with the same decisions are counted.
fn described(requests: &[ComparedRequest]) -> String {
    let mut runs: Vec<(&ComparedRequest, &ComparedRequest, usize)> = Vec::new();
    for request in requests {
        let is_same =
            |it: &ComparedRequest| ComparedRequest { at: request.at, ..it.clone() } == *request;
        match runs.last_mut() {
            Some((first, last, count)) if is_same(first) => (*last, *count) = (request, *count + 1),
            _ => runs.push((request, request, 1)),
        }
    }
    let skipped = runs.len().saturating_sub(SHOWN_RUNS);
    let shown = runs.into_iter().skip(skipped).map(|(first, last, count)| {
        let ComparedRequest { at, caller, took, lacks, original, diana } = first;
        let at = if last.at > *at { format!("{at} … {}", last.at) } else { at.to_string() };
        let caller = match caller {
            None => " without a key".into(),
            Some(0) => String::new(),
            Some(caller) => format!(" of caller {caller}"),
        };
        let took = if *took > 0 { format!(" for {took} ms") } else { String::new() };
        let decided = match original == diana {
            true => word(*diana),
            false => format!("original {}, Diana {}", word(*original), word(*diana)),
        };
        let lacking: Vec<String> = (0..u32::BITS)
            .filter(|bit| lacks >> bit & 1 == 1)
            .map(|bit| (bit + 1).to_string())
            .collect();
        let lacking = match lacking.as_slice() {
            [] => String::new(),
            rules => format!(" without rule {}", rules.join(", ")),
        };
        format!("{count} at {at} ms{caller}{lacking}{took}: {decided}")
    });
    let shown: Vec<String> = shown.collect();
    let skipped = if skipped > 0 { "…; " } else { "" };
    format!("{skipped}{}", shown.join("; "))
}

fn word(decision: ModelDecision) -> String {
    match decision {
        ModelDecision::Passes => "passes".into(),
        ModelDecision::Waits(ms) => format!("waits {ms} ms"),
        ModelDecision::Refused => "refused".into(),
    }
}

/// Compares rules that apply together with a model of the original. `unrounded` is the model
/// without its rounding; if that differs, too, the examples are without it. The rules count in one
/// gateway, the original in a number of processes. `search` is the number of decisions that are
/// left for short examples. `None` if a worker cannot build the rules.
pub(crate) fn compare(
    rules: &[&ImportedRule],
    model: &dyn LimiterModel,
    unrounded: Option<&dyn LimiterModel>,
    processes: u32,
    search: &mut usize,
) -> Option<ModelComparison> {
    let policy = policy(rules)?;
    let numbers = (0..rules.len()).filter(|number| document::is_part(rules, *number));
    let partial = numbers.map(traffic::bit).sum();
    let requests = traffic::generate(&policy, partial);
    let rounded =
        compare_with(&policy, &requests, partial, ModelFleet::new(model, processes), search)?;
    let is_equal = |it: &ModelComparison| it.stricter.is_none() && it.looser.is_none();
    if is_equal(&rounded) {
        return Some(rounded);
    }
    let Some(unrounded) = unrounded else { return Some(rounded) };
    let unrounded = ModelFleet::new(unrounded, processes);
    let plain = compare_with(&policy, &requests, partial, unrounded, search)?;
    Some(if is_equal(&plain) { ModelComparison { is_rounding: true, ..rounded } } else { plain })
}

fn compare_with(
    policy: &Policy,
    requests: &[TrafficRequest],
    partial: u32,
    model: ModelFleet,
    search: &mut usize,
) -> Option<ModelComparison> {
    let mut trial = Trial { policy, partial, model, left: MOST_DECISIONS };
    let decided = trial.run(requests)?;
    let mut find = |direction: i8| {
        let places = decided.iter().enumerate().filter(|(_, it)| it.direction() == direction);
        places.take(MOST_TRIED).find_map(|(at, _)| {
            trial.left = MOST_DECISIONS;
            let clean = trial.cleaned(requests.get(..=at)?, direction)?;
            let most = MOST_DECISIONS.min(*search);
            trial.left = most;
            let short = trial.shortened(clean, direction);
            *search -= most.saturating_sub(trial.left);
            short
        })
    };
    let (stricter, looser) = (find(1), find(-1));
    let passes = |it: &ComparedRequest| [it.original, it.diana] == [ModelDecision::Passes; 2];
    Some(ModelComparison {
        requests: requests.len(),
        stricter,
        looser,
        is_rounding: false,
        is_reached: !decided.iter().all(passes),
    })
}

/// The rules as a policy for all paths. Conditions are left out: they choose requests, and the
/// comparison is about their counts.
fn policy(rules: &[&ImportedRule]) -> Option<Policy> {
    let text = document::of_rules(rules);
    Reader::default().policy(text.as_bytes()).ok()
}

impl ComparedRequest {
    /// 1 if Diana is stricter, -1 if it is looser, 0 if both agree.
    fn direction(&self) -> i8 {
        let wait = |decision| match decision {
            ModelDecision::Passes => 0,
            ModelDecision::Waits(ms) => ms,
            ModelDecision::Refused => u64::MAX,
        };
        let (original, diana) = (wait(self.original), wait(self.diana));
        if original.abs_diff(diana) <= SAME_WAIT {
            0
        } else if diana > original {
            1
        } else {
            -1
        }
    }
}

/// A policy and a model.
struct Trial<'t> {
    policy: &'t Policy,
    partial: u32,
    model: ModelFleet,
    /// The number of decisions that may still be made.
    left: usize,
}

impl Trial<'_> {
    /// The decisions of both about a sequence, from the beginning. `None` if there were too many.
    fn run(&mut self, requests: &[TrafficRequest]) -> Option<Vec<ComparedRequest>> {
        self.left = self.left.checked_sub(requests.len())?;
        let mut fleet = ReplayFleet::<PlainRequest>::new(self.policy, 1, 1).ok()?;
        self.model.reset();
        let first = requests.first().map_or(0, |request| request.at);
        let decide = |request: &TrafficRequest| {
            let plain = Rc::new(traffic::plain(request, self.policy, self.partial, BEGIN));
            let diana = match fleet.request(&plain) {
                ReplayDecision::Admitted => ModelDecision::Passes,
                ReplayDecision::Held { wait, .. } if wait < 1000 => ModelDecision::Passes,
                ReplayDecision::Held { wait, .. } => ModelDecision::Waits(wait / 1000),
                ReplayDecision::Refused(_) => ModelDecision::Refused,
            };
            ComparedRequest {
                at: request.at - first,
                caller: request.caller,
                took: request.took,
                lacks: request.lacks,
                original: self.model.decide(request.caller, &*plain),
                diana,
            }
        };
        Some(requests.iter().map(decide).collect())
    }

    /// The requests without those that are decided differently, if the last one still is. Otherwise
    /// its difference is a consequence of the earlier ones. Those of its caller only, if that is enough.
    fn cleaned(
        &mut self,
        requests: &[TrafficRequest],
        direction: i8,
    ) -> Option<Vec<TrafficRequest>> {
        let caller = requests.last()?.caller;
        let own: Vec<_> = requests.iter().filter(|it| it.caller == caller).cloned().collect();
        let own = self.without_differences(own, direction);
        own.or_else(|| self.without_differences(requests.to_vec(), direction))
    }

    fn without_differences(
        &mut self,
        mut own: Vec<TrafficRequest>,
        direction: i8,
    ) -> Option<Vec<TrafficRequest>> {
        loop {
            let decided = self.run(&own)?;
            let (end, earlier) = decided.split_last()?;
            if earlier.iter().all(|it| it.direction() == 0) {
                return (end.direction() == direction).then_some(own);
            }
            let mut is_equal = earlier.iter().map(|it| it.direction() == 0).chain([true]);
            own.retain(|_| is_equal.next() == Some(true));
        }
    }

    /// A shorter sequence in which only the last request differs, in the same direction.
    fn shortened(
        &mut self,
        mut best: Vec<TrafficRequest>,
        direction: i8,
    ) -> Option<Vec<ComparedRequest>> {
        let mut size = best.len().next_power_of_two() / 2;
        while size > 0 {
            let mut from = 0;
            while from + 1 < best.len() {
                let to = (from + size).min(best.len() - 1);
                let shorter = [best.get(..from)?, best.get(to..)?].concat();
                match self.run(&shorter) {
                    // No further decisions: the best so far.
                    None => {
                        self.left = best.len();
                        return self.run(&best);
                    }
                    Some(decided) if is_example(&decided, direction) => best = shorter,
                    Some(_) => from = to,
                }
            }
            size /= 2;
        }
        self.left = self.left.max(best.len());
        self.run(&best)
    }
}

/// Returns true if only the last request differs, in this direction.
fn is_example(decided: &[ComparedRequest], direction: i8) -> bool {
    let Some((last, earlier)) = decided.split_last() else { return false };
    last.direction() == direction && earlier.iter().all(|it| it.direction() == 0)
}
