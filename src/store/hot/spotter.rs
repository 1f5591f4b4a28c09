//! The hot keys of one rule in one worker.

use std::cmp::Reverse;
use std::fmt::Write;
use std::rc::Rc;

use super::counts::Counts;
use super::window::{HotWindow, SLICES};
use diana_policy::key::{GatewayId, Key, LoggedKey};
use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use diana_policy::{Hot, Memory, Scope};

/// After its last request, a worker reads the window this many more times, to read the counts of
/// others.
const IDLE_READS: u8 = 2;

/// Compare-and-swaps to lose in a row before the update is left to the next call.
const ATTEMPTS: usize = 100;

/// The location of a rule's window.
pub enum Storage {
    /// In this worker.
    Worker,
    /// In shared data, under a key.
    Gateway(Rc<dyn SharedData>, String),
}

impl Storage {
    /// The location for a rule with this fingerprint and scope.
    #[must_use]
    pub fn of(
        scope: Scope,
        data: &Rc<dyn SharedData>,
        namespace: &str,
        fingerprint: u64,
    ) -> Storage {
        match scope {
            Scope::Local => Storage::Worker,
            Scope::Gateway | Scope::Global => Storage::Gateway(
                data.clone(),
                format!("diana/1/{namespace}/{fingerprint:016x}/hot"),
            ),
        }
    }
}

/// Finds the hot keys of one rule.
pub struct Spotter {
    hot: Hot,
    storage: Storage,
    /// The gateway that made the keys.
    gateway: Option<GatewayId>,
    /// The window, if it is in this worker.
    window: HotWindow,
    counts: Counts,
    /// The number of hot callers.
    marked: usize,
    /// Remaining updates without requests.
    idle_reads: u8,
    /// Names of hot callers that sent requests since the latest update.
    names: Vec<(u64, String)>,
    /// The change of the number of hot callers since it was last read.
    pub change: i64,
    /// The text of the next log line: the number of hot callers, and the hottest ones with their
    /// counts.
    pub list: Option<String>,
}

impl Spotter {
    /// Maximum memory for hot keys, in a worker and in shared data.
    #[must_use]
    pub fn memory(is_local: bool) -> Memory {
        let [worker, shared] = if is_local { [HotWindow::BYTES, 0] } else { [0, HotWindow::BYTES] };
        Memory { worker: Counts::BYTES + worker, shared }
    }

    /// A spotter without hot callers, whose keys are of this gateway, or of the fleet.
    #[must_use]
    pub fn new(hot: Hot, storage: Storage, gateway: Option<GatewayId>) -> Spotter {
        Spotter {
            hot,
            storage,
            gateway,
            window: HotWindow::default(),
            counts: Counts::default(),
            marked: 0,
            idle_reads: 0,
            names: Vec::new(),
            change: 0,
            list: None,
        }
    }

    /// The configuration.
    #[must_use]
    pub fn hot(&self) -> &Hot {
        &self.hot
    }

    /// Returns true if this worker knows of no hot caller.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.marked == 0
    }

    /// Returns true if a caller is hot.
    #[inline]
    pub fn is_hot(&mut self, hash: u64) -> bool {
        self.counts.is_hot(hash)
    }

    /// Counts a request. Returns true if its caller is hot.
    #[inline(never)]
    pub fn count(&mut self, key: Key) -> bool {
        self.counts.add(key)
    }

    /// Returns true if a hot caller's name must be logged and is unknown.
    #[must_use]
    pub fn is_nameless(&self, hash: u64) -> bool {
        self.hot.reveal && self.name(hash).is_none()
    }

    /// Stores the name of a hot caller until the next list.
    pub fn learn(&mut self, hash: u64, name: String) {
        self.names.push((hash, name));
    }

    fn name(&self, hash: u64) -> Option<&str> {
        self.names.iter().find(|known| known.0 == hash).map(|(_, name)| name.as_str())
    }

    /// The callers with the most recent requests, and their counts. `None` if each worker has a
    /// separate window.
    #[must_use]
    pub fn top(&mut self, now: Micros) -> Option<Vec<(u64, Key)>> {
        if matches!(self.storage, Storage::Worker) {
            return None;
        }
        let slice = now / (self.hot.per / SLICES).max(1);
        let window = self.read_window(slice).0;
        let mut top: Vec<(u64, Key)> = window.hot(0, slice.max(window.newest())).collect();
        top.sort_unstable_by_key(|(count, key)| Reverse((*count, key.hash)));
        top.truncate(self.hot.top);
        Some(top)
    }

    /// Adds new counts to the window, and reads the hot callers from it. To be called ten times a
    /// second. Returns true if it should be called again soon, even without requests.
    pub fn maintain(&mut self, now: Micros) -> bool {
        self.update(now, self.hot.over)
    }

    /// Adds the remaining counts.
    pub fn close(&mut self, now: Micros) {
        self.update(now, u64::MAX);
        self.list = None;
    }

    fn update(&mut self, now: Micros, over: u64) -> bool {
        self.idle_reads = if self.counts.all > 0 { IDLE_READS + 1 } else { self.idle_reads };
        if self.idle_reads == 0 && self.marked == 0 {
            return false;
        }
        self.idle_reads = self.idle_reads.saturating_sub(1);
        let slice = now / (self.hot.per / SLICES).max(1);
        for _ in 0..ATTEMPTS {
            let (mut window, number) = self.read_window(slice);
            // Another worker's clock may be some ticks ahead.
            let slice = slice.max(window.newest());
            window.add(&mut self.counts, slice);
            let hot = window.hot(over, slice).count();
            let before = window.set_hot(hot as u64);
            // Not in the first update, so that hot callers can send another request, which reveals
            // their names.
            let tell = hot > 0 && self.marked > 0 && window.is_line_due(slice);
            let is_new = self.counts.all > 0 || before != hot as u64 || tell;
            if is_new && !self.write(&window, number) {
                continue;
            }
            if tell {
                self.list = Some(self.list(&window, hot, slice));
            }
            self.change += hot as i64 - before as i64;
            self.marked = hot;
            self.names.clear();
            self.counts.renew(window.hot(over, slice).map(|(_, key)| key));
            // A window in shared data is not kept in the worker as well.
            if matches!(self.storage, Storage::Worker) {
                self.window = window;
            }
            break;
        }
        self.idle_reads > 0 || self.marked > 0
    }

    /// The hottest callers, highest count first.
    fn list(&self, window: &HotWindow, hot: usize, slice: u64) -> String {
        let (requests, missed) = window.totals(slice);
        let mut list = format!("keys={hot} requests={requests} missed={missed} top=");
        let mut last = (u64::MAX, u64::MAX);
        for index in 0..self.hot.top {
            let hot = window.hot(self.hot.over, slice);
            let rest = hot.filter(|(count, key)| (*count, key.hash) < last);
            let Some((count, key)) = rest.max_by_key(|(count, key)| (*count, key.hash)) else {
                break;
            };
            last = (count, key.hash);
            let comma = if index > 0 { "," } else { "" };
            // Writing to a string cannot fail.
            _ = match self.name(key.hash) {
                Some(name) => write!(list, "{comma}{name}:{count}"),
                None => {
                    let key = LoggedKey { key, gateway: self.gateway }.spell();
                    write!(list, "{comma}{key}:{count}")
                }
            };
        }
        list
    }

    fn read_window(&mut self, slice: u64) -> (HotWindow, Option<u32>) {
        match &self.storage {
            Storage::Worker => (std::mem::take(&mut self.window), None),
            Storage::Gateway(data, key) => match data.get(key) {
                Some((bytes, number)) => {
                    (HotWindow::read(&bytes, self.hot.per, slice), Some(number))
                }
                None => (HotWindow::read(&[], self.hot.per, slice), None),
            },
        }
    }

    fn write(&self, window: &HotWindow, number: Option<u32>) -> bool {
        match &self.storage {
            Storage::Worker => true,
            Storage::Gateway(data, key) => data.swap(key, &window.bytes(), number),
        }
    }
}
