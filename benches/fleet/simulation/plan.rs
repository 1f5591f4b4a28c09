//! What is simulated.

use std::ops::Range;
use std::rc::Rc;

use diana_algorithm::{Algorithm, REGISTRY};
use diana_policy::Quota;
use diana_policy::key::Seed;
use diana_policy::time::{Micros, SECOND, Unit};
use diana_redis::part::Parts;

/// A fleet, its rule, and what comes its way.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub gateways: usize,
    /// Of each gateway.
    pub workers: usize,
    pub algo: &'static str,
    /// Permits per second, for all together or, with more than one caller, for each.
    pub rpu: u64,
    pub callers: u32,
    /// How unevenly they call; see `crowd::zipf`.
    pub zipf: f64,
    /// Requests per second, at random instants within this part of each.
    pub demand: u64,
    pub pulse: Range<Micros>,
    /// Per cent of them that go to the first gateway; the rest goes to all alike.
    pub skew: u8,
    pub seconds: u64,
    /// Within this time gateways join one after the other; until then no requests come to them.
    pub joins: Micros,
    /// Within this part of each second the first worker stands still.
    pub still: Range<Micros>,
    pub line: Line,
}

/// The way to Redis and back, and Redis itself.
#[derive(Debug, Clone)]
pub struct Line {
    /// Ticks there and back on average, without what Redis takes; each way takes half of it, half as
    /// much or half as much again.
    pub latency: Micros,
    /// How long gateways wait for an answer.
    pub timeout: Micros,
    /// Of a thousand calls, those that get lost on the way there or back.
    pub lost: u64,
    /// While Redis does not answer, and the gateways (the first ones) that cannot reach it then.
    pub away: Range<Micros>,
    pub cut_off: usize,
    /// Whether calls wait for each other, since Redis has one processor; otherwise it has as many as it
    /// needs.
    pub queues: bool,
    /// Several Redis behind a proxy; nothing if gateways call the only one themselves.
    pub proxy: Option<Proxied>,
}

/// How keys are spread behind the proxy that each worker has of its own.
#[derive(Debug, Clone, Copy)]
pub struct Proxied {
    /// Parts into which the keys fall.
    pub parts: usize,
    /// Processes of Redis, each with a processor and the same number of parts.
    pub nodes: usize,
}

impl Default for Line {
    fn default() -> Line {
        let (latency, timeout) = (1000, 20_000);
        Line { latency, timeout, lost: 0, away: 0..0, cut_off: 0, queues: false, proxy: None }
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seed: 1,
            gateways: 10,
            workers: 4,
            algo: "TB",
            rpu: 10_000,
            callers: 1,
            zipf: 0.0,
            demand: 20_000,
            pulse: 0..SECOND,
            skew: 0,
            seconds: 30,
            joins: 0,
            still: 0..0,
            line: Line::default(),
        }
    }
}

impl Plan {
    /// A gateway's configuration.
    pub fn configuration(&self) -> String {
        let Plan { algo, rpu, .. } = self;
        let actor = if self.callers > 1 { "account" } else { "all" };
        let proxied = |Proxied { parts, .. }| format!(", proxied: true, parts: {parts}");
        format!(
            "keys: {}\n\
             redis: {{cluster: redis, timeout: {}ms{}}}\n\
             limits: [{{Url: /, rules: [{{actor: {actor}, unit: second, rpu: {rpu}, algo: {algo}, \
             scope: global}}]}}]\n",
            // Room for all of them, or those beyond it would share buckets.
            self.callers.max(50_000),
            self.line.timeout / 1000,
            self.line.proxy.map(proxied).unwrap_or_default()
        )
    }

    /// When a worker goes on that would be called now.
    pub fn goes_on(&self, worker: usize, now: Micros) -> Micros {
        let is_still = worker == 0 && self.still.contains(&(now % SECOND));
        if is_still { now - now % SECOND + self.still.end } else { now }
    }

    /// Into how many parts keys fall.
    pub fn parts(&self) -> Parts {
        self.line.proxy.map_or(Parts::ONE, |it| Parts::new(it.parts as u16))
    }

    /// The same as a secret that callers are hashed with.
    pub fn seed_of_callers(&self) -> Seed {
        Seed { k0: self.seed, k1: !self.seed }
    }

    /// The secret that all gateways propose, as shared data has it.
    pub fn secret(&self) -> [u8; 16] {
        (u128::from(!self.seed) << 64 | u128::from(self.seed)).to_le_bytes()
    }

    /// The rule as one counter without leases has it.
    pub fn algorithm(&self) -> Rc<dyn Algorithm> {
        let entry = REGISTRY.iter().find(|entry| entry.short == self.algo).unwrap();
        (entry.build)(&Quota::new(Unit::Second, self.rpu)).unwrap()
    }

    /// In how many seconds the whole fleet would have got as many requests.
    pub fn full_seconds(&self) -> f64 {
        (self.end() - self.joins / 2) as f64 / SECOND as f64
    }

    /// How long the simulation lasts.
    pub fn end(&self) -> Micros {
        self.seconds * SECOND
    }
}
