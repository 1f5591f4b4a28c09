//! `limit_req` and `limit_conn` as nginx computes them, in whole milliseconds and thousandths of a
//! request, but for full zones.

use std::collections::BTreeMap;
use std::net::IpAddr;

use diana_replay::Arrival;
use hashbrown::HashMap;
use ipnet::IpNet;

use crate::key::KeySource;
use crate::model::{LimiterModel, ModelDecision};
use crate::open_requests::OpenRequests;

#[cfg(test)]
mod tests;

/// The number of milliseconds after which nginx drops a key without excess.
const IDLE: u64 = 60_000;

/// The limits of a place, in the order of their directives.
#[derive(Debug, Default, Clone)]
pub(crate) struct PlaceModel {
    requests: Vec<RequestLimit>,
    connections: Vec<ConnectionLimit>,
}

/// A `limit_req` with its zone.
#[derive(Debug, Clone)]
pub(crate) struct RequestLimit {
    pub(crate) key: KeyReader,
    pub(crate) rate: RequestRate,
    pub(crate) burst: u64,
    /// The number of requests beyond the first that do not wait; none if no request waits.
    pub(crate) undelayed: Option<u64>,
    zone: RequestZone,
}

/// A rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestRate {
    /// Requests in a number of seconds.
    pub(crate) requests: u64,
    pub(crate) seconds: u64,
    /// Whether it is rounded down to thousandths of a request a second, as in nginx.
    pub(crate) is_rounded: bool,
}

/// A `limit_conn` with its zone.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit {
    pub(crate) key: KeyReader,
    open: OpenRequests,
}

/// Reads keys. An empty key is not limited.
#[derive(Debug, Clone)]
pub(crate) struct KeyReader {
    pub(crate) sources: Vec<KeySource>,
    /// Networks without a key.
    pub(crate) exempt: Vec<IpNet>,
    /// Whether no other request is without a key.
    has_text: bool,
}

/// The keys of a zone.
#[derive(Debug, Default, Clone)]
struct RequestZone {
    keys: HashMap<Vec<u8>, KeyState>,
    /// The keys by their latest use.
    queue: BTreeMap<u64, Vec<u8>>,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct KeyState {
    /// In thousandths of a request; unless the rate is rounded, in parts that divide evenly.
    excess: u64,
    last: u64,
    used: u64,
}

impl KeyReader {
    /// A reader of these sources. Texts that are no networks exempt none.
    pub(crate) fn new(sources: Vec<KeySource>, exempt: &[String]) -> KeyReader {
        let net = |text: &String| {
            let net = text.parse::<IpNet>();
            net.or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
        };
        let has_text = sources.is_empty();
        KeyReader { sources, exempt: exempt.iter().filter_map(net).collect(), has_text }
    }

    /// The same with a constant text as a part of each key, or without it.
    pub(crate) fn with_text(self, has_text: bool) -> KeyReader {
        KeyReader { has_text: self.has_text || has_text, ..self }
    }

    fn read(&self, request: &dyn Arrival) -> Vec<u8> {
        let is_exempt =
            request.client().is_some_and(|it| self.exempt.iter().any(|net| net.contains(&it)));
        if is_exempt {
            return Vec::new();
        }
        let text = self.has_text.then_some(b'-');
        let values = self.sources.iter().flat_map(|source| source.value(request));
        text.into_iter().chain(values).collect()
    }
}

impl RequestRate {
    /// The parts of a request in which excess is counted, and the parts that drain in a
    /// millisecond, as a fraction.
    fn parts(self) -> (u64, u64, u64) {
        match self.is_rounded {
            true => (1000, self.requests * 1000 / self.seconds, 1000),
            false => (1000 * self.seconds, self.requests, 1),
        }
    }

    /// The parts that drain in a number of milliseconds.
    fn drained(self, ms: u64) -> u64 {
        let (_, drain, per) = self.parts();
        let drained = u128::from(drain) * u128::from(ms) / u128::from(per);
        u64::try_from(drained).unwrap_or(u64::MAX)
    }
}

impl RequestLimit {
    pub(crate) fn new(
        key: KeyReader,
        rate: RequestRate,
        burst: u64,
        undelayed: Option<u64>,
    ) -> RequestLimit {
        RequestLimit { key, rate, burst, undelayed, zone: RequestZone::default() }
    }

    /// The excess of a key with one more request.
    fn excess(&self, state: KeyState, now: u64) -> u64 {
        let (one, ..) = self.rate.parts();
        let drained = self.rate.drained(now.saturating_sub(state.last));
        (state.excess + one).saturating_sub(drained)
    }

    /// Looks a key up. The excess, or `None` if the request is refused.
    fn look_up(&mut self, key: &[u8], now: u64) -> Option<u64> {
        let (one, ..) = self.rate.parts();
        self.zone.uses += 1;
        let number = self.zone.uses;
        if let Some(state) = self.zone.keys.get_mut(key) {
            self.zone.queue.remove(&state.used);
            state.used = number;
            self.zone.queue.insert(number, key.to_vec());
            let state = *state;
            let excess = self.excess(state, now);
            return (excess <= self.burst * one).then_some(excess);
        }
        self.expire(now);
        // Until it is charged, the key counts as one that is idle since 1970.
        let state = KeyState { excess: 0, last: 0, used: number };
        self.zone.keys.insert(key.to_vec(), state);
        self.zone.queue.insert(number, key.to_vec());
        Some(0)
    }

    /// A new key makes nginx drop up to two of the oldest ones that are idle.
    fn expire(&mut self, now: u64) {
        for _ in 0..2 {
            let Some((&number, key)) = self.zone.queue.first_key_value() else { return };
            let Some(state) = self.zone.keys.get(key).copied() else { return };
            let ms = now.saturating_sub(state.last);
            if ms < IDLE || state.excess > self.rate.drained(ms) {
                return;
            }
            self.zone.keys.remove(key);
            self.zone.queue.remove(&number);
        }
    }

    /// Charges a key, and returns the wait of the request.
    fn charge(&mut self, key: &[u8], now: u64, excess: u64) -> u64 {
        let (one, drain, per) = self.rate.parts();
        if let Some(state) = self.zone.keys.get_mut(key) {
            state.excess = excess;
            state.last = now;
        }
        let Some(undelayed) = self.undelayed else { return 0 };
        let waiting = u128::from(excess.saturating_sub(undelayed * one));
        u64::try_from(waiting * u128::from(per) / u128::from(drain.max(1))).unwrap_or(u64::MAX)
    }
}

impl ConnectionLimit {
    pub(crate) fn new(key: KeyReader, limit: u64) -> ConnectionLimit {
        ConnectionLimit { key, open: OpenRequests::new(limit) }
    }
}

impl PlaceModel {
    pub(crate) fn add_requests(&mut self, limit: RequestLimit) {
        self.requests.push(limit);
    }

    pub(crate) fn add_connections(&mut self, limit: ConnectionLimit) {
        self.connections.push(limit);
    }

    /// Decides about a request to which the limits of several places apply, with the number of the
    /// place that refuses it, or lets it wait the longest.
    pub(crate) fn decide_together(
        places: &mut [&mut PlaceModel],
        request: &dyn Arrival,
    ) -> (ModelDecision, usize) {
        let now = request.at() / 1000;
        let mut charges: Vec<(usize, usize, Vec<u8>, u64)> = Vec::new();
        for (place, model) in places.iter_mut().enumerate() {
            for (number, limit) in model.requests.iter_mut().enumerate() {
                let key = limit.key.read(request);
                if key.is_empty() {
                    continue;
                }
                match limit.look_up(&key, now) {
                    Some(excess) => charges.push((place, number, key, excess)),
                    None => return (ModelDecision::Refused, place),
                }
            }
        }
        let (mut wait, mut slowest) = (0, 0);
        for (place, number, key, excess) in charges {
            let limit = places.get_mut(place).and_then(|it| it.requests.get_mut(number));
            let own = limit.map_or(0, |limit| limit.charge(&key, now, excess));
            if own > wait {
                (wait, slowest) = (own, place);
            }
        }
        // A request that waits takes its slots here at once, in nginx after its wait.
        let mut taken = Vec::new();
        for (place, model) in places.iter_mut().enumerate() {
            for limit in &mut model.connections {
                let key = limit.key.read(request);
                if key.is_empty() {
                    continue;
                }
                if !limit.open.has_room(&key, now) {
                    return (ModelDecision::Refused, place);
                }
                taken.push((&mut limit.open, key));
            }
        }
        let end = now + wait + request.took() / 1000;
        taken.into_iter().for_each(|(open, key)| open.enter(key, end));
        match wait {
            0 => (ModelDecision::Passes, 0),
            wait => (ModelDecision::Waits(wait), slowest),
        }
    }
}

impl LimiterModel for PlaceModel {
    fn reset(&mut self) {
        self.requests.iter_mut().for_each(|limit| limit.zone = RequestZone::default());
        self.connections.iter_mut().for_each(|limit| limit.open.clear());
    }

    fn decide(&mut self, request: &dyn Arrival) -> ModelDecision {
        PlaceModel::decide_together(&mut [self], request).0
    }

    fn copy(&self) -> Box<dyn LimiterModel> {
        Box::new(self.clone())
    }
}
