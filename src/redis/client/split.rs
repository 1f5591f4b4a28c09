//! Several stores behind one address, which count separately: two primaries, without a cluster.
//!
//! A gateway numbers some of its calls, by ordinals. Redis replies with the highest ordinal that it
//! has had of the gateway before. If another reply had confirmed a higher one, this is another
//! store. It may be the only one from now on, as after a failover that lost the last ordinals, or
//! all of them. But if its ordinal is older than the previous change of the store, the gateway has
//! returned to a former one.

use super::{Client, Endpoint};
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;

/// How often a call of a worker has an ordinal. Then so has its next call after the reply, which a
/// balancer that takes turns leads to another store.
const EVERY: Micros = SECOND;

/// How long calls must reach a single store before several are logged again.
const QUIET: Micros = 60 * SECOND;

/// The ordinals of a worker's calls.
#[derive(Debug)]
pub(super) struct Ordinals {
    /// The key of the record that all workers share.
    key: String,
    /// From when on the next call has one, and the latest of these ordinals.
    next: Micros,
    first: u64,
    /// Whether the next call has one in any case, since the reply to the first has arrived.
    is_between: bool,
}

/// The record: the latest ordinal, the highest confirmed one, the one by which the latest change of
/// the store was noticed, and when a former store last replied.
type SplitRecord = [u64; 4];

impl Ordinals {
    /// `key` is the beginning of the record's key. Another address leads to other stores.
    pub(super) fn new(key: &str, endpoint: &Endpoint) -> Ordinals {
        let Endpoint { destination, login, .. } = endpoint;
        let key = format!("{key}/stores/{}/{destination}", login.db);
        Ordinals { key, next: 0, first: 0, is_between: false }
    }
}

impl Client {
    /// The ordinal of a call to the first shard at `now`, and the highest confirmed ordinal. `None`
    /// if the call needs none.
    pub(super) fn next_ordinal(&mut self, now: Micros) -> Option<(u64, u64)> {
        let is_first = !std::mem::take(&mut self.ordinals.is_between);
        if is_first && now < self.ordinals.next {
            return None;
        }
        let ([latest, confirmed, changed, seen], version) = self.read_split();
        let ordinal = latest.saturating_add(1);
        if is_first {
            (self.ordinals.next, self.ordinals.first) = (now.saturating_add(EVERY), ordinal);
        }
        let record = [ordinal, confirmed, changed, seen];
        self.write_split(record, version).then_some((ordinal, confirmed))
    }

    /// Processes the reply to the call with this ordinal, which was sent when `confirmed` was the
    /// highest confirmed one. The store has had `latest` before.
    pub(super) fn find_split(&mut self, ordinal: u64, confirmed: u64, latest: u64, now: Micros) {
        self.ordinals.is_between |= ordinal == self.ordinals.first;
        let ([sent, highest, changed, seen], version) = self.read_split();
        let is_other = latest < confirmed;
        let is_former = is_other && (1..changed).contains(&latest);
        let changed = if is_other { changed.max(ordinal) } else { changed };
        let record = [sent, highest.max(ordinal), changed, if is_former { now } else { seen }];
        if !self.write_split(record, version) || !is_former {
            return;
        }
        self.counts.split += 1;
        if seen == 0 || now.saturating_sub(seen) >= QUIET {
            self.log_lines.push(format!(
                "global rules: calls to Redis ({}) reach several stores, each of which admits up to the whole limit; lead them to \
                 a single primary",
                self.endpoint.destination
            ));
        }
    }

    fn read_split(&self) -> (SplitRecord, Option<u32>) {
        words::read(&*self.data, &self.ordinals.key)
    }

    fn write_split(&self, record: SplitRecord, version: Option<u32>) -> bool {
        words::write(record, &*self.data, &self.ordinals.key, version)
    }
}
