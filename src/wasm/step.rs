//! Steps of streams.

use std::borrow::Cow;

use diana_worker::{HostStream, Next, Step, Steps};
use proxy_wasm::hostcalls;
use proxy_wasm::types::{Action, MapType};

use super::{pairs, raw};

/// The stream of the host's current call, or the one that was entered.
pub(super) struct CurrentStream;

impl HostStream for CurrentStream {
    fn remove_header(&mut self, name: &str) {
        _ = hostcalls::remove_map_value(MapType::HttpRequestHeaders, name);
    }

    fn add_header(&mut self, name: &str, value: &str) {
        _ = hostcalls::add_map_value(MapType::HttpRequestHeaders, name, value);
    }

    fn filter_state(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        raw::property(own(name).as_bytes()).map(Cow::Owned)
    }

    fn set_filter_state(&mut self, name: &str, value: &[u8]) {
        raw::set_property(own(name), value);
    }
}

/// The name of a filter state without the prefix that the host adds.
fn own(name: &str) -> &str {
    name.strip_prefix("wasm.").unwrap_or(name)
}

/// Takes the step of the current stream.
#[inline]
pub(super) fn take(step: Step) -> Action {
    // Most do, and need no call.
    if matches!(step, Step { effects: None, next: Next::Continue }) {
        return Action::Continue;
    }
    take_changes(step)
}

#[inline(never)]
fn take_changes(step: Step) -> Action {
    match step.apply(&mut CurrentStream) {
        Next::Continue => Action::Continue,
        Next::Wait => Action::Pause,
        Next::Reply(reply) => {
            let headers = pairs::serialized(&reply.headers);
            let (status, grpc_status) = (reply.status.into(), reply.grpc_status.into());
            raw::reply(status, reply.details, &reply.body, &headers, grpc_status);
            Action::Pause
        }
    }
}

/// Takes steps of waiting requests, at the end of a call about a root.
pub(super) fn take_all(steps: Steps) {
    for (stream, step) in steps {
        // It may have ended, and its root be another one.
        let is_there = hostcalls::set_effective_context(stream).is_ok();
        if is_there && take(step) == Action::Continue {
            _ = hostcalls::resume_http_request();
        }
    }
}
