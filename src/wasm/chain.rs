//! Several filters of this module in one chain, for example before and after the login. They may be
//! in different VMs, so a later one knows an earlier one only by the filter state of the stream, which
//! no client can set. It reads that state only before it writes the log or removes a mark.

use proxy_wasm::hostcalls;
use proxy_wasm::types::MapType;

use super::raw;

/// The filter state for the access log.
const LOG: &str = "diana";

/// Between the entries of several filters in it.
const SEPARATOR: &[u8] = b"; ";

/// Adds an entry to the filter state for the access log.
pub(super) fn log(entry: &[u8]) {
    match raw::property(LOG.as_bytes()) {
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
