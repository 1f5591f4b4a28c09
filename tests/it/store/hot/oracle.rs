//! Counters in bounded memory, compared with plain maps that expire in the same way.

use std::collections::HashMap;
use std::rc::Rc;

use diana_policy::Hot;
use diana_policy::port::SharedData;
use diana_policy::ring::Ring;
use diana_policy::time::SECOND;
use diana_store::hot::spotter::{Spotter, Storage};
use fastrand::Rng;
use kit::fake::FakeSharedData;

use super::workers::whole;

const OVER: u64 = 300;
const PER: u64 = 10 * SECOND;

/// Slices of `PER`. The window holds them and the current one.
const SLICES: u64 = 5;

/// The capacity for callers in a worker between two additions, and in a window.
const TABLE: usize = 4096 / 4 * 3;
const WINDOW: usize = 2048;

/// The number of callers in a list.
const TOP: usize = 7;

/// The lowest number with at most `most` counts above it.
fn cut(most: usize, counts: impl Iterator<Item = u64>) -> u64 {
    let mut counts: Vec<u64> = counts.collect();
    counts.sort_by_key(|count| std::cmp::Reverse(*count));
    counts.get(most).copied().unwrap_or(0)
}

/// Counts by slice, the oldest first.
#[derive(Default, Clone)]
struct Sum(Vec<(u64, u64)>);

impl Sum {
    fn add(&mut self, slice: u64, count: u64) {
        self.0.push((slice, count));
    }

    fn pass(&mut self, slice: u64) {
        self.0.retain(|(old, _)| old + SLICES >= slice);
    }

    fn lower(&mut self, mut least: u64) {
        for (_, count) in &mut self.0 {
            let some = least.min(*count);
            (*count, least) = (*count - some, least - some);
        }
    }

    fn all(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

#[derive(Default)]
struct Oracle {
    /// Since the last addition: requests of each caller, and the maximum error by which they are
    /// too low.
    table: HashMap<u64, u64>,
    lowered: u64,
    requests: u64,
    /// The hot callers, with their counts at the last addition.
    hot: HashMap<u64, u64>,
    window: HashMap<u64, Sum>,
    missed: Sum,
    all: Sum,
    reported_at: u64,
}

impl Oracle {
    fn count(&mut self, caller: u64) -> bool {
        self.requests += 1;
        *self.table.entry(caller).or_default() += 1;
        if self.table.len() > TABLE {
            self.thin();
        }
        self.hot.contains_key(&caller)
    }

    fn thin(&mut self) {
        let Oracle { table, hot, lowered, .. } = self;
        let is_cold = |(caller, count): &(&u64, &u64)| !hot.contains_key(*caller) && **count > 0;
        let cold: Vec<u64> = table.iter().filter(is_cold).map(|(_, count)| *count).collect();
        let least = cut(cold.len() / 2, cold.into_iter());
        *lowered += least;
        table.retain(|caller, count| {
            let is_hot = hot.contains_key(caller);
            *count = if is_hot { *count } else { count.saturating_sub(least) };
            is_hot || *count > 0
        });
    }

    /// Adds up the counts. Returns the callers that were hot before, and whether they are to be
    /// listed.
    fn maintain(&mut self, slice: u64) -> bool {
        self.missed.add(slice, std::mem::take(&mut self.lowered));
        self.all.add(slice, std::mem::take(&mut self.requests));
        let table = std::mem::take(&mut self.table);
        for (caller, count) in &table {
            self.window.entry(*caller).or_default().add(slice, *count);
        }
        let sums = self.window.values_mut().chain([&mut self.missed, &mut self.all]);
        sums.for_each(|sum| sum.pass(slice));
        self.window.retain(|_, sum| sum.all() > 0);
        if self.window.len() > WINDOW {
            let least = cut(WINDOW, self.window.values().map(Sum::all));
            self.missed.add(slice, least);
            self.window.values_mut().for_each(|sum| sum.lower(least));
            self.window.retain(|_, sum| sum.all() > 0);
        }
        let before = std::mem::take(&mut self.hot);
        for (caller, sum) in &self.window {
            if sum.all() > OVER {
                self.hot.insert(*caller, table.get(caller).copied().unwrap_or(0));
            }
        }
        self.table = self.hot.keys().map(|caller| (*caller, 0)).collect();
        let reports =
            !before.is_empty() && !self.hot.is_empty() && slice >= self.reported_at + SLICES;
        self.reported_at = if reports { slice } else { self.reported_at };
        reports
    }

    fn list(&self) -> String {
        let sum = |caller: &u64| self.window[caller].all();
        let mut hot: Vec<(u64, u64)> =
            self.hot.keys().map(|caller| (sum(caller), *caller)).collect();
        hot.sort_by_key(|one| std::cmp::Reverse(*one));
        let top = hot
            .iter()
            .take(TOP)
            .map(|(count, caller)| format!("{caller:016x}{:016x}:{count}", !*caller));
        format!(
            "keys={} requests={} missed={} top={}",
            hot.len(),
            self.all.all(),
            self.missed.all(),
            top.collect::<Vec<_>>().join(",")
        )
    }
}

/// The sums of a window in shared data: of missed requests, of all requests, and of callers.
fn read(bytes: &[u8], slice: u64) -> (u64, u64, HashMap<u64, u64>) {
    let words: Vec<u64> =
        bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let ring = Ring::new(SLICES as usize + 1);
    let mut rows = words.chunks_exact(6).map(|row| (row[0], ring.sum(&row[2..], slice)));
    let (missed, all) = (rows.next().unwrap().1, rows.next().unwrap().1);
    (missed, all, rows.collect())
}

#[test]
fn spotter_agrees_with_the_oracle() {
    let seed = kit::seed::next();
    for round in 0..6 {
        let mut rng = Rng::with_seed(seed.wrapping_add(round));
        let data = Rc::new(FakeSharedData::default());
        let storage = Storage::Gateway(data.clone(), "hot".into());
        let hot = Hot { over: OVER, per: PER, header: None, top: TOP, reveal: false };
        let mut spotter = Spotter::new(hot, storage, None);
        let mut oracle = Oracle::default();
        let mut now = 1_000 * SECOND;
        let few: Vec<u64> = (0..40).map(|_| rng.u64(..)).collect();
        // Neighbours in the table displace each other.
        let near = rng.u64(..) / 4096 * 4096 + rng.u64(..4096);
        for _ in 0..40 {
            let once = if rng.bool() { 0 } else { rng.u64(0..8_000) };
            for number in 0..once {
                let caller = if rng.bool() { rng.u64(..) } else { near.wrapping_add(number * 7) };
                for _ in 0..rng.u64(1..4) {
                    assert_eq!(spotter.count(whole(caller)), oracle.count(caller));
                }
                if rng.u8(..4) == 0 {
                    let caller = few[rng.usize(..few.len())];
                    assert_eq!(spotter.count(whole(caller)), oracle.count(caller));
                }
            }
            for _ in 0..rng.u64(1..3_000) {
                let caller = few[rng.usize(..few.len()).min(rng.usize(..few.len()))];
                assert_eq!(spotter.count(whole(caller)), oracle.count(caller));
            }
            now += rng.u64(SECOND / 10..2 * SECOND);
            let slice = now / (PER / SLICES);
            assert!(spotter.maintain(now), "there is more to do soon");
            let reports = oracle.maintain(slice);
            let (missed, all, rows) = read(&data.get("hot").unwrap().0, slice);
            let window: HashMap<u64, u64> =
                oracle.window.iter().map(|(caller, sum)| (*caller, sum.all())).collect();
            assert_eq!((missed, all), (oracle.missed.all(), oracle.all.all()));
            assert_eq!(rows, window);
            assert_eq!(spotter.list.take(), reports.then(|| oracle.list()));
            assert_eq!(spotter.change, oracle.hot.len() as i64);
            assert_eq!(spotter.is_calm(), oracle.hot.is_empty());
            for caller in few.iter().chain(window.keys().take(100)) {
                assert_eq!(spotter.is_hot(*caller), oracle.hot.contains_key(caller));
            }
        }
    }
}

/// Counts are lowered by the smallest number that makes room for the rest.
#[test]
fn full_window_keeps_the_most_frequent_callers() {
    let data = Rc::new(FakeSharedData::default());
    let hot = Hot { over: OVER, per: PER, header: None, top: TOP, reveal: false };
    let mut spotter = Spotter::new(hot, Storage::Gateway(data.clone(), "hot".into()), None);
    for caller in 0..WINDOW as u64 + 100 {
        let times = if caller < WINDOW as u64 { 5 } else { 3 };
        (0..times).for_each(|_| _ = spotter.count(whole(caller)));
    }
    spotter.maintain(SECOND);
    let (missed, _, rows) = read(&data.get("hot").unwrap().0, 0);
    assert_eq!((missed, rows.len()), (3, WINDOW));
    assert!(rows.values().all(|count| *count == 2));
    // A window that is just full is read as it was written.
    spotter.count(whole(0));
    spotter.maintain(SECOND);
    let (missed, _, rows) = read(&data.get("hot").unwrap().0, 0);
    assert_eq!((missed, rows.len(), rows[&0]), (3, WINDOW, 3));
    // A window with one more row is invalid.
    let (mut bytes, _) = data.get("hot").unwrap();
    bytes.extend_from_within(bytes.len() - 48..);
    data.set("hot", &bytes);
    spotter.count(whole(0));
    spotter.maintain(SECOND);
    assert_eq!(read(&data.get("hot").unwrap().0, 0).2, HashMap::from([(0, 1)]));
}

/// Half of the ordinary callers make room, for any number of hot ones. Hot callers are not lowered.
#[test]
fn table_evicts_only_ordinary_callers() {
    const OFTEN: u64 = 5;
    let data = Rc::new(FakeSharedData::default());
    let hot = Hot { over: OFTEN, per: PER, header: None, top: TOP, reveal: false };
    let mut spotter = Spotter::new(hot, Storage::Gateway(data.clone(), "hot".into()), None);
    let see = |spotter: &mut Spotter, callers: std::ops::Range<u64>, times: u64| {
        callers.for_each(|caller| (0..times).for_each(|_| _ = spotter.count(whole(caller))));
    };
    see(&mut spotter, 0..1000, OFTEN + 1);
    spotter.maintain(SECOND);
    let end = TABLE as u64;
    see(&mut spotter, 0..1000, 10);
    // More than half of the others have one request, including one after the table is full.
    see(&mut spotter, 1000..2200, 1);
    see(&mut spotter, 2200..end, 3);
    see(&mut spotter, end..end + 1, 1);
    spotter.maintain(SECOND);
    let (missed, _, rows) = read(&data.get("hot").unwrap().0, 0);
    assert_eq!((missed, rows.len() as u64), (1, end - 1200));
    assert!(rows.iter().all(|(caller, count)| *count == if *caller < 1000 { 16 } else { 2 }));
}
