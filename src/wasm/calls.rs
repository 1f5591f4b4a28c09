//! What the host can do in one of its calls.

use std::rc::Rc;
use std::time::Duration;

use proxy_wasm::hostcalls::dispatch_http_call;
use proxy_wasm::types::{LogLevel, Status};

use super::request::HostRequest;
use super::shared::HostSharedData;
use super::{abi, pairs, stats};
use diana_core::port::{Answer, Call, Callout, Environment, Metrics, Request, SharedData, Values};
use diana_core::report::Refusal;
use diana_core::time::Micros;
use diana_worker::AdminReply;
use diana_worker::host::{Clocks, Contexts, Host, Level, Log, Streams};

/// gRPC's RESOURCE_EXHAUSTED.
const RESOURCE_EXHAUSTED: i32 = 8;

/// A call of the host about a root or one of its streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostCall {
    /// The host's number of the root.
    pub(super) root: u32,
}

/// Calls by way of the SDK, which must know of them: it panics on the answer to any other. To be
/// made about a root on its tick or on another answer, so that the root gets the answer.
impl Callout for HostCall {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        let headers = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let body = (!call.body.is_empty()).then_some(call.body.as_slice());
        let timeout = Duration::from_micros(call.timeout);
        dispatch_http_call(&call.cluster, headers.collect(), body, Vec::new(), timeout).map_err(
            |status| match status {
                Status::BadArgument => "Envoy knows no such cluster",
                _ => "the cluster has no endpoint that could be asked",
            },
        )
    }

    fn caller(&self) -> u32 {
        self.root
    }
}

impl Clocks for HostCall {
    fn monotonic(&self) -> Micros {
        abi::monotonic()
    }

    fn wall(&self) -> Micros {
        abi::wall()
    }
}

impl Contexts for HostCall {
    fn enter(&self, context: u32) -> bool {
        abi::set_effective_context(context)
    }

    fn set_period(&self, milliseconds: u32) {
        abi::set_tick_period(milliseconds);
    }
}

impl Log for HostCall {
    fn log(&self, level: Level, line: &str) {
        let level = match level {
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        abi::log(level as u32, line);
    }
}

impl Metrics for HostCall {
    fn count(&self, name: &str, amount: u64) {
        stats::count(name, amount);
    }

    fn gauge(&self, name: &str, change: i64) {
        stats::gauge(name, change);
    }

    fn set(&self, name: &str, value: u64) {
        stats::set(name, value);
    }

    fn record(&self, name: &str, value: u64) {
        stats::record(name, value);
    }
}

impl Streams for HostCall {
    fn read(&self, reads_headers: bool, read: &mut dyn FnMut(&dyn Request)) {
        read(&HostRequest::new(reads_headers));
    }

    fn mark(&self, header: &str, value: &str) {
        abi::set_header(abi::REQUEST_HEADERS, header, value);
    }

    fn take_off(&self, header: &str) {
        abi::remove_header(abi::REQUEST_HEADERS, header);
    }

    fn tell(&self, state: &str) {
        abi::set_property("diana", state.as_bytes());
    }

    fn refuse(&self, refusal: &Refusal) {
        let state = refusal.by.state();
        self.tell(&state);
        if refusal.is_logged {
            self.log(Level::Warn, &state);
        }
        let (response, told) = (&refusal.response, refusal.headers());
        let mut headers: Vec<_> = told.iter().map(|(name, value)| (*name, &**value)).collect();
        headers.extend(response.headers.iter().map(|(name, value)| (&**name, &**value)));
        headers.push(("content-type", refusal.content_type()));
        let headers = pairs::serialise(&headers);
        let request = HostRequest::new(true);
        let id = match refusal.tells_id().then(|| request.header("x-request-id")) {
            Some(Values::One(id)) => id,
            _ => &[],
        };
        let (status, body) = (u32::from(response.status), refusal.body(id));
        abi::reply(status, "diana_refused", &body, &headers, RESOURCE_EXHAUSTED);
    }

    fn reply(&self, reply: &AdminReply) {
        const UNKNOWN: i32 = 2;
        let headers: Vec<_> = reply.headers().collect();
        let headers = pairs::serialise(&headers);
        abi::reply(reply.status.into(), "diana_admin", &reply.body, &headers, UNKNOWN);
    }

    fn resume(&self, stream: u32) {
        abi::resume(stream, self.root);
    }
}

impl Host for HostCall {
    fn data(&self) -> Rc<dyn SharedData> {
        Rc::new(HostSharedData)
    }

    fn environment(&self) -> &dyn Environment {
        &HostEnvironment
    }

    fn counted(&self, name: &str) -> u64 {
        stats::counted(name)
    }

    fn random(&self) -> u128 {
        u128::from_le_bytes(abi::random().unwrap_or_default())
    }
}

/// The environment of this VM.
struct HostEnvironment;

impl Environment for HostEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Reads the answer that the host is calling about, of so many headers and bytes. Without headers it
/// has none that could be asked for.
pub(super) fn answer<T>(headers: usize, size: usize, read: impl FnOnce(&Answer<'_>) -> T) -> T {
    let status =
        || std::str::from_utf8(&abi::header(abi::CALL_HEADERS, ":status")?).ok()?.parse().ok();
    let status = if headers == 0 { None } else { status() };
    let body = || abi::buffer(abi::CALL_BODY, size);
    read(&Answer { status, size, body: &body })
}
