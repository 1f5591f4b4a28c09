//! An experiment: rules and the traffic they apply to.

use std::rc::Rc;

use diana_policy::time::{Micros, SECOND};
use diana_replay::PlainRequest;
use fastrand::Rng;
use serde::Deserialize;
use serde_json::Value;

use crate::pasted::Pasted;
use crate::traffic::{Contents, MOST, START, address};

/// Most workers over all gateways.
const MOST_WORKERS: usize = 64;

/// Longest time of an experiment, in seconds.
const LONGEST: f64 = 86_400.0;

/// An experiment, as the page sends it.
#[derive(Debug, Deserialize)]
pub struct Experiment {
    /// The rules, YAML or JSON.
    pub rules: String,
    /// The sources of traffic.
    pub traffic: Vec<TrafficStream>,
    /// Lines of an access log, whose requests are added.
    pub log: String,
    /// How long the traffic lasts, in seconds.
    pub seconds: f64,
    /// Number of gateways.
    pub gateways: usize,
    /// Workers per gateway.
    pub workers: usize,
    /// Seed of the random traffic.
    pub seed: u64,
    /// A pasted configuration of ingress-nginx or nginx, or nothing.
    #[serde(default)]
    pub original: String,
    /// Algorithms to compare, by their short names. An empty name leaves the rules unchanged, and
    /// `original` is that of the pasted configuration.
    pub algorithms: Vec<String>,
}

/// One source of traffic.
#[derive(Debug, Deserialize)]
pub struct TrafficStream {
    /// How requests are distributed over time.
    pub kind: TrafficKind,
    /// Requests per second, or per burst.
    pub rate: f64,
    /// Seconds from the start of a burst to the start of the next.
    pub every: f64,
    /// Number of callers. Each has its own number and address.
    pub callers: u32,
    /// Response time, in milliseconds.
    pub takes: f64,
    /// Status of the response.
    pub status: u16,
    /// Method, path and headers. In path and headers `{n}` stands for the number of the caller.
    #[serde(flatten)]
    pub contents: Contents,
}

/// Distribution of requests over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrafficKind {
    /// At equal distances, from the callers in turn.
    Steady,
    /// Several at once, repeatedly, from the callers in turn.
    Bursts,
    /// At random times from random callers.
    Poisson,
}

impl Experiment {
    /// Parses an experiment.
    ///
    /// # Errors
    /// If the JSON is malformed, or the duration or the number of workers is out of range.
    pub fn read(text: &str) -> Result<Experiment, String> {
        let read: Experiment = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !(read.seconds > 0.0 && read.seconds <= LONGEST) {
            let found = read.seconds;
            return Err(format!(
                "duration: found {found} s, allowed is more than 0 and at most {LONGEST} s"
            ));
        }
        let workers = read.gateways.saturating_mul(read.workers);
        if !(1..=MOST_WORKERS).contains(&workers) {
            return Err(format!(
                "found {workers} workers, 1 to {MOST_WORKERS} are allowed over all gateways"
            ));
        }
        Ok(read)
    }

    /// All requests in the order of their arrival, and a report about the log.
    ///
    /// # Errors
    /// If there are too many requests, or none.
    pub fn visits(&self) -> Result<(Vec<Rc<PlainRequest>>, Value), String> {
        let pasted = Pasted::read(&self.log)?;
        let log = pasted.report();
        let end = START + (self.seconds * SECOND as f64) as Micros;
        let mut all = pasted.visits;
        all.retain(|visit| visit.at < end);
        let mut rng = Rng::with_seed(self.seed);
        for stream in &self.traffic {
            stream.add_to(&mut all, self.seconds, &mut rng)?;
        }
        if all.is_empty() {
            return Err("there are no requests: add traffic, raise a rate or the duration".into());
        }
        all.sort_by_key(|visit| visit.at);
        Ok((all.into_iter().map(Rc::new).collect(), log))
    }
}

impl TrafficStream {
    fn add_to(
        &self,
        all: &mut Vec<PlainRequest>,
        seconds: f64,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let is_positive = |number: f64| number.is_finite() && number > 0.0;
        if !is_positive(self.rate) || self.kind == TrafficKind::Bursts && !is_positive(self.every) {
            return Err(
                "requests per second, per burst and seconds between bursts must be greater than 0"
                    .into(),
            );
        }
        if self.callers == 0 {
            return Err("traffic needs at least 1 caller".into());
        }
        let expected = match self.kind {
            TrafficKind::Steady | TrafficKind::Poisson => self.rate * seconds,
            TrafficKind::Bursts => self.rate.ceil() * (seconds / self.every).ceil(),
        };
        if expected + all.len() as f64 > MOST as f64 {
            return Err(format!(
                "at most {MOST} requests are allowed: lower a rate or the duration"
            ));
        }
        let (mut at, mut number) = (self.first(rng), 0_u32);
        while at < seconds {
            let caller = match self.kind {
                TrafficKind::Steady | TrafficKind::Bursts => number % self.callers,
                TrafficKind::Poisson => rng.u32(0..self.callers),
            };
            all.push(self.visit(at, caller));
            number += 1;
            at = self.next(number, at, rng);
        }
        Ok(())
    }

    fn first(&self, rng: &mut Rng) -> f64 {
        match self.kind {
            TrafficKind::Steady | TrafficKind::Bursts => 0.0,
            TrafficKind::Poisson => self.gap(rng),
        }
    }

    /// When the request with this number arrives, in seconds.
    fn next(&self, number: u32, last: f64, rng: &mut Rng) -> f64 {
        match self.kind {
            TrafficKind::Steady => f64::from(number) / self.rate,
            TrafficKind::Bursts => (f64::from(number) / self.rate.ceil()).floor() * self.every,
            TrafficKind::Poisson => last + self.gap(rng),
        }
    }

    /// A random gap between requests. The gaps of a Poisson process are distributed exponentially.
    fn gap(&self, rng: &mut Rng) -> f64 {
        -(1.0 - rng.f64()).ln() / self.rate
    }

    fn visit(&self, at: f64, caller: u32) -> PlainRequest {
        let ticks = |seconds: f64| (seconds * SECOND as f64) as Micros;
        let Contents { method, path, mut headers, route } = self.contents.by(caller);
        let host = headers.iter().position(|(name, _)| name == "host");
        let host = host.map(|at| headers.remove(at).1);
        PlainRequest {
            at: START + ticks(at),
            took: ticks(self.takes.max(0.0) / 1_000.0),
            status: self.status,
            address: Some(address(caller)),
            host: host.or(Some("example.com".into())),
            method,
            path,
            headers,
            route: Some(route).filter(|name| !name.is_empty()),
        }
    }
}
