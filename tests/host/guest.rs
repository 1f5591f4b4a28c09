//! The host's state of one VM.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use fastrand::Rng;
use wasmi::{Memory, StoreLimits, StoreLimitsBuilder, TypedFunc};

use super::call_out::CallOuts;
use super::clock::Clock;
use super::metrics::{Kind, Metrics};
use super::shared_data::SharedData;
use super::status::Status;
use super::stream::{Reply, Stream};
use super::timer::{LATENESS, Timer};

/// The state that all VMs of a process share.
pub struct Outside {
    pub clock: Clock,
    pub shared_data: RefCell<SharedData>,
    /// Runs another worker once during a call.
    pub interruption: RefCell<Option<Interruption>>,
    pub metrics: RefCell<Metrics>,
    pub environment: RefCell<BTreeMap<String, String>>,
    /// By name, with whether they have endpoints.
    pub clusters: RefCell<BTreeMap<String, bool>>,
}

/// The number of accesses to shared data before it, and the function to run.
pub type Interruption = (u32, Box<dyn FnOnce()>);

impl Outside {
    /// Runs other workers if it is their turn. Call it before each access to shared data.
    pub fn interrupt(&self) {
        let waiting = self.interruption.take();
        match waiting {
            Some((0, run)) => run(),
            Some((more, run)) => *self.interruption.borrow_mut() = Some((more - 1, run)),
            None => {}
        }
    }
}

/// A live plugin configuration in a VM.
pub struct Root {
    pub config: String,
    pub timer: Timer,
    /// The configuration can be read only while the VM is being configured.
    pub configuring: bool,
}

/// An action that a call defers until it has returned.
pub enum Action {
    Resume(u32),
    Reply(u32, Reply),
}

/// Calls of host functions by name.
pub type Calls = BTreeMap<&'static str, u64>;

/// Envoy's limit on the memory of a VM.
const MEMORY_CAP: usize = 1 << 30;

pub struct Guest {
    pub outside: Rc<Outside>,
    pub memory: Option<Memory>,
    pub allocate: Option<TypedFunc<u32, u32>>,
    pub limits: StoreLimits,
    pub random: Rng,
    /// Replaces `random` in a VM without timer delays.
    pub fixed_random: Option<u128>,
    /// The source of timer delays.
    lateness: Rng,
    pub root_id: String,
    pub roots: BTreeMap<u32, Root>,
    pub streams: BTreeMap<u32, Stream>,
    /// Streams that ended at this instant of the monotonic clock. They remain contexts until the
    /// next iteration of the event loop.
    pub ended: (u64, BTreeSet<u32>),
    /// The context of the host's call.
    pub current: u32,
    /// The context that the module selected. Zero is none.
    pub effective: u32,
    /// While set, only the log, clocks, random bytes and the environment may be used.
    pub restricted: bool,
    /// Set by a local reply, which stops the stream for any return value of the callback.
    pub stopped: bool,
    pub actions: VecDeque<Action>,
    /// Maximum number of deferred actions when a call returned.
    pub most_deferred: usize,
    pub call_outs: CallOuts,
    pub metrics: BTreeMap<u32, (String, Kind)>,
    pub calls: Calls,
    pub fuel: u64,
    pub log: Vec<String>,
    /// The number of expired timers.
    pub ticks: u64,
}

impl Guest {
    pub fn new(outside: Rc<Outside>, root_id: String, seed: u64) -> Guest {
        Guest {
            outside,
            memory: None,
            allocate: None,
            limits: StoreLimitsBuilder::new().memory_size(MEMORY_CAP).build(),
            random: Rng::with_seed(seed),
            fixed_random: None,
            lateness: Rng::with_seed(seed),
            root_id,
            roots: BTreeMap::new(),
            streams: BTreeMap::new(),
            ended: (0, BTreeSet::new()),
            current: 0,
            effective: 0,
            restricted: true,
            stopped: false,
            actions: VecDeque::new(),
            most_deferred: 0,
            call_outs: CallOuts::default(),
            metrics: BTreeMap::new(),
            calls: Calls::new(),
            fuel: 0,
            log: Vec::new(),
            ticks: 0,
        }
    }

    /// The context of a host function. An effective context that has ended is ignored.
    pub fn context(&self) -> u32 {
        if self.is_context(self.effective) { self.effective } else { self.current }
    }

    pub fn is_context(&self, id: u32) -> bool {
        let (instant, ended) = &self.ended;
        self.roots.contains_key(&id)
            || self.streams.contains_key(&id)
            || *instant == self.outside.clock.monotonic() && ended.contains(&id)
    }

    /// Removes a stream that has ended.
    pub fn end(&mut self, id: u32) {
        let now = self.outside.clock.monotonic();
        if self.ended.0 != now {
            self.ended = (now, BTreeSet::new());
        }
        self.ended.1.insert(id);
        self.streams.remove(&id);
    }

    pub fn set_timer(&mut self, root: u32, period: u32) {
        let late = if self.fixed_random.is_some() { 0 } else { self.lateness.u64(0..=LATENESS) };
        let now = self.outside.clock.monotonic();
        if let Some(root) = self.roots.get_mut(&root) {
            root.timer.set(period, now, late);
        }
    }

    /// The stream of a host function, if it concerns one.
    pub fn stream(&mut self) -> Option<&mut Stream> {
        let id = self.context();
        self.streams.get_mut(&id)
    }

    /// The root of a host function: that of the stream, or the context itself.
    pub fn root_of_context(&self) -> u32 {
        let id = self.context();
        self.streams.get(&id).map_or(id, |stream| stream.root)
    }

    pub fn metric(&self, id: u32) -> Result<(String, Kind), Status> {
        self.metrics.get(&id).cloned().ok_or(Status::NotFound)
    }
}
