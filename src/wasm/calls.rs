//! The capabilities of the host during one of its calls.

use std::rc::Rc;
use std::time::Duration;

use proxy_wasm::hostcalls;
use proxy_wasm::types::{BufferType, MapType, Status};

use super::pairs::serialized;
use super::request::HostRequest;
use super::shared::HostSharedData;
use super::{chain, raw, reply, stats};
use diana_limiter::Refusal;
use diana_policy::port::{
    Answer, Call, Callout, Destination, Environment, Metrics, Request, SharedData,
};
use diana_policy::time::Micros;
use diana_worker::AdminReply;
use diana_worker::host::{Clocks, Contexts, Host, Level, Log, Streams};

/// A call of the host about a root or one of its streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostCall {
    /// The host's number of the root.
    pub(super) root: u32,
}

/// Only valid in a tick of a root or in a reply to it: the SDK delivers the reply to the context of
/// the host's latest call.
impl Callout for HostCall {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        // `diana_config` leaves no other destination to this module.
        let Destination::Cluster(cluster) = &call.destination else {
            return Err("the wasm module calls clusters only");
        };
        let headers = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let timeout = Duration::from_micros(call.timeout);
        hostcalls::dispatch_http_call(
            cluster,
            headers.collect(),
            Some(&call.body),
            Vec::new(),
            timeout,
        )
        .map_err(|status| match status {
            Status::BadArgument => "Envoy has no such cluster",
            _ => "the cluster has no available endpoint",
        })
    }

    fn caller(&self) -> u32 {
        self.root
    }
}

impl Clocks for HostCall {
    fn monotonic(&self) -> Micros {
        raw::monotonic()
    }

    fn wall(&self) -> Micros {
        raw::wall()
    }
}

impl Contexts for HostCall {
    fn enter(&self, context: u32) -> bool {
        hostcalls::set_effective_context(context).is_ok()
    }

    fn set_period(&self, milliseconds: u32) {
        _ = hostcalls::set_tick_period(Duration::from_millis(milliseconds.into()));
    }
}

impl Log for HostCall {
    fn log(&self, level: Level, line: &str) {
        let level = match level {
            Level::Info => log::Level::Info,
            Level::Warn => log::Level::Warn,
            Level::Error => log::Level::Error,
        };
        log::log!(level, "{line}");
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
        chain::mark(header, value);
    }

    fn remove_header(&self, header: &str) {
        _ = hostcalls::remove_map_value(MapType::HttpRequestHeaders, header);
    }

    fn set_filter_state(&self, state: &[u8]) {
        chain::log(state);
    }

    fn refuse(&self, refusal: &Refusal, request: &dyn Request) {
        reply::answer(refusal, request, self);
    }

    fn reply(&self, reply: &AdminReply) {
        const UNKNOWN: i32 = 2;
        let headers = serialized(&reply.headers().collect());
        let status = reply.status.into();
        raw::reply(status, "diana_admin", reply.body.as_bytes(), &headers, UNKNOWN);
    }

    fn resume(&self, stream: u32) {
        if hostcalls::set_effective_context(stream).is_ok() {
            _ = hostcalls::resume_http_request();
        }
        // Further host calls concern the root again.
        _ = hostcalls::set_effective_context(self.root);
    }
}

impl Host for HostCall {
    fn data(&self) -> Rc<dyn SharedData> {
        Rc::new(HostSharedData)
    }

    fn environment(&self) -> &dyn Environment {
        &HostEnvironment
    }

    fn counter(&self, name: &str) -> u64 {
        stats::counter(name)
    }

    fn random(&self) -> u128 {
        u128::from_le_bytes(raw::random().unwrap_or_default())
    }
}

/// The environment of this VM.
struct HostEnvironment;

impl Environment for HostEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Reads the reply that the host reports. `headers` is the number of its headers, `size` the length
/// of its body in bytes. The SDK panics if a header is read when there are none.
pub(super) fn answer<T>(headers: usize, size: usize, read: impl FnOnce(&Answer<'_>) -> T) -> T {
    let header = |name| match headers {
        0 => None,
        _ => hostcalls::get_map_value_bytes(MapType::HttpCallResponseHeaders, name).ok()?,
    };
    let status = header(":status").and_then(|it| std::str::from_utf8(&it).ok()?.parse().ok());
    let body = || hostcalls::get_buffer(BufferType::HttpCallResponseBody, 0, size).ok()?;
    read(&Answer { status, size, body: &body, etag: &|| header("etag") })
}
