//! A fake host: a clock that tests set, and a request made of parts.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::rc::Rc;

use diana_policy::port::{
    Call, Callout, Clock, Environment, Metrics, Property, Pseudo, Request, SharedData, Values,
};
use diana_policy::spelling;
use diana_policy::time::Now;
use diana_policy::{Metric, MetricKind};

/// A clock that moves only when a test sets it.
#[derive(Debug, Default)]
pub struct FakeClock(pub Cell<Now>);

impl FakeClock {
    #[must_use]
    pub fn at(now: Now) -> FakeClock {
        FakeClock(Cell::new(now))
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Now {
        self.0.get()
    }
}

/// Metrics as lines in order, such as `diana.ns.rule.r.allowed 1`, `diana.ns.rule.r.keys +1` and `diana.ns.disabled = 1`.
#[derive(Debug, Default)]
pub struct FakeMetrics(pub RefCell<Vec<String>>);

impl FakeMetrics {
    /// The sum of all additions to a metric.
    #[must_use]
    pub fn of(&self, name: &str) -> i64 {
        let lines = self.0.borrow();
        let added = lines.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        added.filter_map(|change| change.parse::<i64>().ok()).sum()
    }
}

impl Metrics for FakeMetrics {
    fn add(&self, metric: Metric, labels: &[&str], change: i64) {
        let name = metric.stat(labels);
        self.0.borrow_mut().push(match metric.kind() {
            MetricKind::Counter => format!("{name} {change}"),
            _ => format!("{name} {change:+}"),
        });
    }

    fn set(&self, metric: Metric, labels: &[&str], value: u64) {
        self.0.borrow_mut().push(format!("{} = {value}", metric.stat(labels)));
    }

    fn record(&self, _: Metric, _: &[&str], _: &[u64]) {}
}

/// A value of shared data.
#[derive(Clone)]
struct Value {
    bytes: Vec<u8>,
    number: u32,
    /// How often its key was written.
    writes: u32,
}

/// Shared data with Envoy's semantics: one counter numbers all writes, and any version is accepted
/// for an absent key.
#[derive(Default)]
pub struct FakeSharedData {
    values: RefCell<BTreeMap<String, Value>>,
    written: Cell<u32>,
    /// Called before each write with its key, to let another worker write first.
    #[allow(clippy::type_complexity)]
    pub before_swap: RefCell<Option<Box<dyn FnMut(&FakeSharedData, &str)>>>,
    /// Runs once, after this number of accesses, to let another worker run in the middle of a call.
    #[allow(clippy::type_complexity)]
    pub interruption: RefCell<Option<(u32, Box<dyn FnOnce()>)>>,
    /// Called before each access with its key, to let all other workers run first, and in their turn as far.
    #[allow(clippy::type_complexity)]
    pub before_access: RefCell<Option<Rc<dyn Fn(&FakeSharedData, &str)>>>,
}

impl FakeSharedData {
    /// Writes unconditionally.
    pub fn set(&self, key: &str, value: &[u8]) {
        let number = self.written.get() + 1;
        self.written.set(number);
        let mut values = self.values.borrow_mut();
        let writes = values.get(key).map_or(0, |value| value.writes) + 1;
        values.insert(key.into(), Value { bytes: value.into(), number, writes });
    }

    /// Hashes what an access to a key finds. Numbers are only compared with others of the same key, so the number of writes is
    /// enough.
    pub fn hash_value(&self, key: &str, hasher: &mut impl Hasher) {
        let values = self.values.borrow();
        values.get(key).map(|value| (&value.bytes, value.writes)).hash(hasher);
    }

    /// Hashes everything.
    pub fn hash_all(&self, hasher: &mut impl Hasher) {
        for (key, Value { bytes, writes, .. }) in &*self.values.borrow() {
            (key, bytes, writes).hash(hasher);
        }
    }

    /// Removes everything, as a restart does.
    pub fn clear(&self) {
        self.values.borrow_mut().clear();
    }

    fn interrupt(&self, key: &str) {
        let before_access = self.before_access.borrow().clone();
        if let Some(pause) = before_access {
            pause(self, key);
        }
        let waiting = self.interruption.take();
        match waiting {
            Some((0, run)) => run(),
            Some((more, run)) => *self.interruption.borrow_mut() = Some((more - 1, run)),
            None => {}
        }
    }

    /// All keys, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.values.borrow().keys().cloned().collect()
    }
}

impl SharedData for FakeSharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.interrupt(key);
        self.values.borrow().get(key).map(|value| (value.bytes.clone(), value.number))
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        self.interrupt(key);
        // Removed while it runs, so that its own writes do not call it.
        let hook = self.before_swap.borrow_mut().take();
        if let Some(mut hook) = hook {
            hook(self, key);
            *self.before_swap.borrow_mut() = Some(hook);
        }
        let present = self.values.borrow().get(key).map(|value| value.number);
        let fits = present.is_none() || present == number;
        if fits {
            self.set(key, value);
        }
        fits
    }
}

/// Shared data that counts its accesses.
#[derive(Default)]
pub struct CountingData {
    /// The data.
    pub data: FakeSharedData,
    /// The number of reads.
    pub reads: Cell<u64>,
    /// The number of attempted writes.
    pub writes: Cell<u64>,
}

impl SharedData for CountingData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.reads.set(self.reads.get() + 1);
        self.data.get(key)
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        self.writes.set(self.writes.get() + 1);
        self.data.swap(key, value, number)
    }
}

/// An environment with these variables.
#[derive(Debug, Default)]
pub struct FakeEnvironment(pub HashMap<String, String>);

/// A variable of this name is the password in the secret of a host that has secrets. Empty until
/// the host has received it.
pub const SECRET: &str = "the secret of the host";

/// A variable of this name is the id of the host's node.
pub const NODE: &str = "the node of the host";

impl Environment for FakeEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    fn node(&self) -> Option<String> {
        self.variable(NODE)
    }

    fn has_secrets(&self) -> bool {
        self.0.contains_key(SECRET)
    }

    fn password(&self) -> Option<String> {
        self.variable(SECRET).filter(|password| !password.is_empty())
    }
}

/// HTTP calls that tests answer.
#[derive(Debug, Default)]
pub struct FakeCallout {
    /// The calls so far. The number of a call is its index.
    pub sent: RefCell<Vec<Call>>,
    /// The error of all calls, if they fail.
    pub refusal: Cell<Option<&'static str>>,
}

impl Callout for FakeCallout {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        if let Some(why) = self.refusal.get() {
            return Err(why);
        }
        let mut sent = self.sent.borrow_mut();
        sent.push(call.clone());
        Ok(sent.len() as u32 - 1)
    }

    fn caller(&self) -> u32 {
        0
    }
}

/// A request made of parts.
#[derive(Debug, Clone, Default)]
pub struct FakeRequest {
    /// `:path`, `:method` and `:authority`, where present.
    pub path: Option<Vec<u8>>,
    /// See `path`.
    pub method: Option<Vec<u8>>,
    /// See `path`.
    pub authority: Option<Vec<u8>>,
    /// Names in lower case with their values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Properties with their bytes.
    pub properties: Vec<(Property, Vec<u8>)>,
}

impl FakeRequest {
    /// `GET path` on `example.com`.
    #[must_use]
    pub fn get(path: &str) -> FakeRequest {
        FakeRequest {
            path: Some(path.into()),
            method: Some("GET".into()),
            authority: Some("example.com".into()),
            ..FakeRequest::default()
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> FakeRequest {
        self.headers.push((name.into(), value.as_ref().into()));
        self
    }

    /// Adds a property.
    #[must_use]
    pub fn property(mut self, path: &[&str], value: impl AsRef<[u8]>) -> FakeRequest {
        self.properties.push((Property::new(path), value.as_ref().into()));
        self
    }

    /// Sets the name of the route.
    #[must_use]
    pub fn routed(self, name: &str) -> FakeRequest {
        self.property(&["xds", "route_name"], name)
    }

    /// Sets the client address, such as `192.0.2.1:4000`.
    #[must_use]
    pub fn from(self, address: &str) -> FakeRequest {
        self.property(&["source", "address"], address)
    }
}

impl Request for FakeRequest {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let value = match which {
            Pseudo::Path => &self.path,
            Pseudo::Method => &self.method,
            Pseudo::Authority => &self.authority,
        };
        value.as_deref().map(Cow::Borrowed)
    }

    fn header(&self, name: &str) -> Values<'_> {
        let same = |pair: &&(String, Vec<u8>)| pair.0 == name;
        self.headers.iter().filter(same).fold(Values::None, |found, (_, value)| found.and(value))
    }

    fn client(&self) -> Option<IpAddr> {
        let is_source = |(key, _): &&(Property, Vec<u8>)| key.encoded() == b"source\0address";
        spelling::address(&self.properties.iter().find(is_source)?.1)
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        Request::property(self, &Property::new(&["xds", "route_name"]))
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        let (_, value) = self.properties.iter().find(|(key, _)| key == property)?;
        Some(Cow::Borrowed(value))
    }
}
