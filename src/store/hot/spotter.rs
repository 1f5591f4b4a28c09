//! The hot keys of one rule, as one worker knows them.

use std::cmp::Reverse;
use std::fmt::Write;
use std::rc::Rc;

use super::counts::Counts;
use super::window::{SLICES, Window};
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use diana_policy::{Hot, Memory, Scope};

/// How often a worker looks that has nothing to add any more: until the others have added theirs.
const LOOKS: u8 = 2;

/// Writes that may be lost to other workers in a row; then the next time will do.
const ATTEMPTS: usize = 100;

/// Where a rule's window is.
pub enum Storage {
    /// In this worker.
    Worker,
    /// In shared data, under a key.
    Gateway(Rc<dyn SharedData>, String),
}

impl Storage {
    /// Where the window of a rule with a fingerprint is that is counted so widely.
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
    /// The worker's own.
    window: Window,
    counts: Counts,
    /// Callers who are hot.
    marked: usize,
    /// How often to look again.
    looks: u8,
    /// How they are called, as far as they came since.
    names: Vec<(u64, String)>,
    /// How many callers more became hot than cold since this was last asked.
    pub change: i64,
    /// What there is to tell: how many are hot, and the hottest of them with their counts.
    pub list: Option<String>,
}

impl Spotter {
    /// What hot keys take at most, in a worker's memory and in shared data.
    #[must_use]
    pub fn memory(is_local: bool) -> Memory {
        let [worker, shared] = if is_local { [Window::BYTES, 0] } else { [0, Window::BYTES] };
        Memory { worker: Counts::BYTES + worker, shared }
    }

    /// Nobody is hot yet, as far as this worker knows.
    #[must_use]
    pub fn new(hot: Hot, storage: Storage) -> Spotter {
        Spotter {
            hot,
            storage,
            window: Window::default(),
            counts: Counts::default(),
            marked: 0,
            looks: 0,
            names: Vec::new(),
            change: 0,
            list: None,
        }
    }

    /// What is hot.
    #[must_use]
    pub fn hot(&self) -> &Hot {
        &self.hot
    }

    /// Whether nobody is hot, as far as this worker knows.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.marked == 0
    }

    /// Whether a caller is hot.
    #[inline]
    pub fn is_hot(&mut self, hash: u64) -> bool {
        self.counts.is_hot(hash)
    }

    /// Counts a request. Whether its caller is hot.
    #[inline(never)]
    pub fn see(&mut self, key: Key) -> bool {
        self.counts.add(key)
    }

    /// Whether a hot caller's name is wanted and not known.
    #[must_use]
    pub fn is_nameless(&self, hash: u64) -> bool {
        self.hot.reveal && self.name(hash).is_none()
    }

    /// Learns how a hot caller is called, until the next list.
    pub fn learn(&mut self, hash: u64, name: String) {
        self.names.push((hash, name));
    }

    fn name(&self, hash: u64) -> Option<&str> {
        self.names.iter().find(|known| known.0 == hash).map(|(_, name)| name.as_str())
    }

    /// The callers who came most lately, with how often they did; nothing if each worker knows its own.
    #[must_use]
    pub fn top(&mut self, now: Micros) -> Option<Vec<(u64, Key)>> {
        if matches!(self.storage, Storage::Worker) {
            return None;
        }
        let slice = now / (self.hot.per / SLICES).max(1);
        let window = self.look(slice).0;
        let mut top: Vec<(u64, Key)> = window.hot(0, slice.max(window.newest())).collect();
        top.sort_unstable_by_key(|(count, key)| Reverse((*count, key.hash)));
        top.truncate(self.hot.top);
        Some(top)
    }

    /// Adds what was counted to the window, and learns from it who is hot. To be done ten times a
    /// second. Whether there is more to do soon, even if no request comes.
    pub fn tidy(&mut self, now: Micros) -> bool {
        self.update(now, self.hot.over)
    }

    /// Ends this worker's part.
    pub fn close(&mut self, now: Micros) {
        self.update(now, u64::MAX);
        self.list = None;
    }

    fn update(&mut self, now: Micros, over: u64) -> bool {
        self.looks = if self.counts.all > 0 { LOOKS + 1 } else { self.looks };
        if self.looks == 0 && self.marked == 0 {
            return false;
        }
        self.looks = self.looks.saturating_sub(1);
        let slice = now / (self.hot.per / SLICES).max(1);
        for _ in 0..ATTEMPTS {
            let (mut window, number) = self.look(slice);
            // Another worker's clock may be some ticks ahead.
            let slice = slice.max(window.newest());
            window.add(&mut self.counts, slice);
            let hot = window.hot(over, slice).count();
            let before = window.set_hot(hot as u64);
            // Not at once, so that hot callers may come once more and be known by their names.
            let tell = hot > 0 && self.marked > 0 && window.tell(slice);
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
            // One in shared data is not to lie here, too.
            if matches!(self.storage, Storage::Worker) {
                self.window = window;
            }
            break;
        }
        self.looks > 0 || self.marked > 0
    }

    /// The hottest callers, those first who came most.
    fn list(&self, window: &Window, hot: usize, slice: u64) -> String {
        let (requests, missed) = window.totals(slice);
        let mut list = format!("keys={hot} requests={requests} missed={missed} top=");
        let mut last = (u64::MAX, u64::MAX);
        for place in 0..self.hot.top {
            let hot = window.hot(self.hot.over, slice);
            let rest = hot.filter(|(count, key)| (*count, key.hash) < last);
            let Some((count, key)) = rest.max_by_key(|(count, key)| (*count, key.hash)) else {
                break;
            };
            last = (count, key.hash);
            let comma = if place > 0 { "," } else { "" };
            // Writing to a string cannot fail.
            _ = match self.name(key.hash) {
                Some(name) => write!(list, "{comma}{name}:{count}"),
                None => write!(list, "{comma}{:016x}{:016x}:{count}", key.hash, key.second_hash),
            };
        }
        list
    }

    fn look(&mut self, slice: u64) -> (Window, Option<u32>) {
        match &self.storage {
            Storage::Worker => (std::mem::take(&mut self.window), None),
            Storage::Gateway(data, key) => match data.get(key) {
                Some((bytes, number)) => (Window::read(&bytes, self.hot.per, slice), Some(number)),
                None => (Window::read(&[], self.hot.per, slice), None),
            },
        }
    }

    fn write(&self, window: &Window, number: Option<u32>) -> bool {
        match &self.storage {
            Storage::Worker => true,
            Storage::Gateway(data, key) => data.swap(key, &window.bytes(), number),
        }
    }
}
