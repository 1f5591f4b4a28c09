//! What is tried: rules, and the traffic that comes to them.

use std::rc::Rc;

use diana_policy::time::{Micros, SECOND};
use fastrand::Rng;
use serde::Deserialize;
use serde_json::Value;

use crate::pasted::Pasted;
use crate::visit::{MOST, START, Told, Visit, address};

/// Most workers of all gateways.
const MOST_WORKERS: usize = 64;

/// Longest time of an experiment, in seconds.
const LONGEST: f64 = 86_400.0;

/// An experiment as the page has it.
#[derive(Debug, Deserialize)]
pub struct Experiment {
    /// The rules, YAML or JSON.
    pub rules: String,
    /// What comes.
    pub traffic: Vec<Stream>,
    /// Lines of an access log, whose requests come as well.
    pub log: String,
    /// How long it comes, in seconds.
    pub seconds: f64,
    /// Gateways.
    pub gateways: usize,
    /// Workers of each gateway.
    pub workers: usize,
    /// Chooses what is random.
    pub seed: u64,
    /// Algorithms to be tried in place of those of the rules, by their short names; an empty one is the rules as they are.
    pub algorithms: Vec<String>,
}

/// Requests of one kind.
#[derive(Debug, Deserialize)]
pub struct Stream {
    /// How they come.
    pub kind: Kind,
    /// How many in a second; of bursts, how many at once.
    pub rate: f64,
    /// Seconds from the beginning of a burst to that of the next.
    pub every: f64,
    /// How many callers there are, each with a number and an address of its own.
    pub callers: u32,
    /// How long each takes until its response ends, in milliseconds.
    pub takes: f64,
    /// Status of the response.
    pub status: u16,
    /// Method, path and headers, each of which may name the caller's number, `{n}`.
    #[serde(flatten)]
    pub told: Told,
}

/// How requests come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One after the other, equally far apart, by the callers in turn.
    Steady,
    /// Many at once, again and again, by the callers in turn.
    Bursts,
    /// Each at an instant of its own, by whichever caller.
    Poisson,
}

impl Experiment {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Experiment, String> {
        let read: Experiment = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !(read.seconds > 0.0 && read.seconds <= LONGEST) {
            return Err(format!("the time has to be above 0 and at most {LONGEST} s"));
        }
        let workers = read.gateways.saturating_mul(read.workers);
        if !(1..=MOST_WORKERS).contains(&workers) {
            return Err(format!("there can be 1 to {MOST_WORKERS} workers in all"));
        }
        Ok(read)
    }

    /// All requests, in the order in which they come, and what is to be told of the log.
    ///
    /// # Errors
    /// If there are too many, or none.
    pub fn visits(&self) -> Result<(Vec<Rc<Visit>>, Value), String> {
        let pasted = Pasted::read(&self.log)?;
        let log = pasted.told();
        let end = START + (self.seconds * SECOND as f64) as Micros;
        let mut all = pasted.visits;
        all.retain(|visit| visit.at < end);
        let mut rng = Rng::with_seed(self.seed);
        for stream in &self.traffic {
            stream.add_to(&mut all, self.seconds, &mut rng)?;
        }
        if all.is_empty() {
            return Err("no request comes".into());
        }
        all.sort_by_key(|visit| visit.at);
        Ok((all.into_iter().map(Rc::new).collect(), log))
    }
}

impl Stream {
    fn add_to(&self, all: &mut Vec<Visit>, seconds: f64, rng: &mut Rng) -> Result<(), String> {
        let is_positive = |number: f64| number.is_finite() && number > 0.0;
        if !is_positive(self.rate) || self.kind == Kind::Bursts && !is_positive(self.every) {
            return Err("a rate has to be a number above 0".into());
        }
        if self.callers == 0 {
            return Err("there has to be a caller".into());
        }
        let expected = match self.kind {
            Kind::Steady | Kind::Poisson => self.rate * seconds,
            Kind::Bursts => self.rate.ceil() * (seconds / self.every).ceil(),
        };
        if expected + all.len() as f64 > MOST as f64 {
            return Err(format!("more than {MOST} requests: lower a rate or the time"));
        }
        let (mut at, mut number) = (self.first(rng), 0_u32);
        while at < seconds {
            let caller = match self.kind {
                Kind::Steady | Kind::Bursts => number % self.callers,
                Kind::Poisson => rng.u32(0..self.callers),
            };
            all.push(self.visit(at, caller));
            number += 1;
            at = self.next(number, at, rng);
        }
        Ok(())
    }

    fn first(&self, rng: &mut Rng) -> f64 {
        match self.kind {
            Kind::Steady | Kind::Bursts => 0.0,
            Kind::Poisson => self.gap(rng),
        }
    }

    /// When the request of a number comes, in seconds.
    fn next(&self, number: u32, last: f64, rng: &mut Rng) -> f64 {
        match self.kind {
            Kind::Steady => f64::from(number) / self.rate,
            Kind::Bursts => (f64::from(number) / self.rate.ceil()).floor() * self.every,
            Kind::Poisson => last + self.gap(rng),
        }
    }

    /// Times between the requests of a Poisson process are distributed exponentially.
    fn gap(&self, rng: &mut Rng) -> f64 {
        -(1.0 - rng.f64()).ln() / self.rate
    }

    fn visit(&self, at: f64, caller: u32) -> Visit {
        let ticks = |seconds: f64| (seconds * SECOND as f64) as Micros;
        Visit {
            at: START + ticks(at),
            took: ticks(self.takes.max(0.0) / 1_000.0),
            status: self.status,
            address: Some(address(caller)),
            host: "example.com".into(),
            told: self.told.by(caller),
        }
    }
}
