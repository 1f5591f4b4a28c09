//! Several filters of this module in one chain, for example before and after the login. They may be
//! in different VMs, so a later one knows an earlier one only by the filter state of the stream, which
//! no client can set. It reads that state only before it writes the log or removes a mark, and the log
//! only where the process has filters of several roots: the read costs 4 % of a refusal.

use std::cell::Cell;

use proxy_wasm::hostcalls;
use proxy_wasm::types::MapType;

use super::raw;
use super::shared::HostSharedData;
use diana_policy::key::KeyHasher;
use diana_policy::words;

/// The filter state for the access log.
const LOG: &str = "diana";

/// Between the entries of several filters in it.
const SEPARATOR: &[u8] = b"; ";

/// The shared record of the roots that this process ever configured: a hash of the only one, or
/// `SEVERAL`.
const ROOTS: &str = "diana/2/roots";
const SEVERAL: u64 = u64::MAX;

/// Entries of the log until this worker reads the record again: another worker may have configured
/// another root.
const ENTRIES: u32 = 16;

thread_local! {
    /// The entries of the log until the next read of the record, and whether it has one root.
    static READ: Cell<(u32, bool)> = const { Cell::new((0, false)) };
}

/// Adds a root to the record. A lost compare-and-swap is repeated a few times: the workers of a process
/// write the same root, and each root twice at most.
pub(super) fn register(root_id: &[u8]) {
    let mut hasher = KeyHasher::public();
    hasher.part(0, root_id);
    let own = hasher.finish().hash.clamp(1, SEVERAL - 1);
    for _ in 0..8 {
        let ([known], number) = words::read::<1>(&HostSharedData, ROOTS);
        let new = if known == 0 || known == own { own } else { SEVERAL };
        if new == known || words::write([new], &HostSharedData, ROOTS, number) {
            break;
        }
    }
    READ.set((0, false));
}

/// Returns true if no filter of another root can be in the chain.
fn is_alone() -> bool {
    let (mut left, mut is_alone) = READ.get();
    if left == 0 {
        let ([known], _) = words::read::<1>(&HostSharedData, ROOTS);
        (left, is_alone) = (ENTRIES, known != 0 && known != SEVERAL);
    }
    READ.set((left - 1, is_alone));
    is_alone
}

/// Adds an entry to the filter state for the access log.
pub(super) fn log(entry: &[u8]) {
    let earlier = if is_alone() { None } else { raw::property(LOG.as_bytes()) };
    match earlier {
        Some(earlier) if !earlier.is_empty() => {
            raw::set_property(LOG, &[&earlier, SEPARATOR, entry].concat());
        }
        _ => raw::set_property(LOG, entry),
    }
}

/// Marks the request with a header, in addition to the mark of an earlier filter. There is no forged
/// one any more.
pub(super) fn mark(header: &str, value: &str) {
    _ = hostcalls::add_map_value(MapType::HttpRequestHeaders, header, value);
    raw::set_property(&state_of_mark(header), b"1");
}

/// Returns true if an earlier filter has marked the request with this header.
pub(super) fn is_marked(header: &str) -> bool {
    raw::property(state_of_mark(header).as_bytes()).is_some()
}

/// The filter state which shows that this header is a mark.
fn state_of_mark(header: &str) -> String {
    ["diana_mark.", header].concat()
}
