//! The parameters of a simulation.

use std::ops::Range;
use std::rc::Rc;

use diana_algorithm::{Algorithm, REGISTRY};
use diana_policy::Quota;
use diana_policy::key::Seed;
use diana_policy::time::{Micros, SECOND, Unit};
use diana_redis::part::Parts;

/// A fleet, its rule, and its load.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub gateways: usize,
    /// Per gateway.
    pub workers: usize,
    pub algo: &'static str,
    /// Permits per second, for all callers together, or for each if there are several.
    pub rpu: u64,
    pub callers: u32,
    /// The unevenness of callers, see `crowd::zipf`.
    pub zipf: f64,
    /// Requests per second, at random instants within this part of each second.
    pub demand: u64,
    pub pulse: Range<Micros>,
    /// Percentage of requests to the first gateway. The others are spread over all.
    pub skew: u8,
    pub seconds: u64,
    /// Gateways join one after the other within this time, and receive no requests before.
    pub joins: Micros,
    /// The first worker is stopped in this part of each second.
    pub still: Range<Micros>,
    pub line: Line,
}

/// The network to Redis, and Redis itself.
#[derive(Debug, Clone)]
pub struct Line {
    /// Mean round trip in ticks, without the time of Redis. Each direction takes between a quarter
    /// and three quarters of it.
    pub latency: Micros,
    /// The gateways' timeout.
    pub timeout: Micros,
    /// Lost calls per thousand, in either direction.
    pub lost: u64,
    /// The outage of Redis, and the number of gateways, beginning with the first, that cannot reach
    /// it then.
    pub away: Range<Micros>,
    pub cut_off: usize,
    /// Whether calls queue for a single processor of Redis. Otherwise it has unlimited processors.
    pub queues: bool,
    /// Several Redis with a proxy. `None` if gateways call the only one directly.
    pub proxy: Option<Proxied>,
}

/// The distribution of keys by each worker's proxy.
#[derive(Debug, Clone, Copy)]
pub struct Proxied {
    /// Number of shards.
    pub parts: usize,
    /// Number of Redis processes, each with a processor and equally many shards.
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
            // Room for all callers. Otherwise they would share overflow buckets.
            self.callers.max(50_000),
            self.line.timeout / 1000,
            self.line.proxy.map(proxied).unwrap_or_default()
        )
    }

    /// When a worker that is called at `now` continues.
    pub fn goes_on(&self, worker: usize, now: Micros) -> Micros {
        let is_still = worker == 0 && self.still.contains(&(now % SECOND));
        if is_still { now - now % SECOND + self.still.end } else { now }
    }

    /// The number of shards.
    pub fn parts(&self) -> Parts {
        self.line.proxy.map_or(Parts::ONE, |it| Parts::new(it.parts as u16))
    }

    /// The secret for hashing callers.
    pub fn seed_of_callers(&self) -> Seed {
        Seed { k0: self.seed, k1: !self.seed }
    }

    /// The secret that all gateways propose, in the form of shared data.
    pub fn secret(&self) -> [u8; 16] {
        (u128::from(!self.seed) << 64 | u128::from(self.seed)).to_le_bytes()
    }

    /// The rule as a single counter without leases.
    pub fn algorithm(&self) -> Rc<dyn Algorithm> {
        let entry = REGISTRY.iter().find(|entry| entry.short == self.algo).unwrap();
        (entry.build)(&Quota::new(Unit::Second, self.rpu)).unwrap()
    }

    /// The number of seconds in which the whole fleet would have had as many requests.
    pub fn full_seconds(&self) -> f64 {
        (self.end() - self.joins / 2) as f64 / SECOND as f64
    }

    /// The duration of the simulation.
    pub fn end(&self) -> Micros {
        self.seconds * SECOND
    }
}
