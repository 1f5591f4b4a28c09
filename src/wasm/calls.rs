//! The capabilities of the host during one of its calls.

use std::rc::Rc;
use std::time::Duration;

use proxy_wasm::hostcalls;
use proxy_wasm::types::{BufferType, MapType, Status};

use super::request::HostRequest;
use super::shared::HostSharedData;
use super::{raw, stats};
use diana_policy::Metric;
use diana_policy::port::{
    Answer, Call, Callout, Destination, Environment, Metrics, Property, Request, SharedData,
};
use diana_policy::time::Micros;
use diana_worker::host::{Clocks, Host, Level, Log};

/// A call of the host about a root or one of its streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostCall {
    /// The host's number of the root.
    pub(super) root: u32,
    /// The number of the root or of the stream.
    pub(super) context: u32,
}

impl HostCall {
    /// Acts in another context. Returns false if it does not exist.
    fn within(&self, context: u32, act: impl FnOnce()) -> bool {
        let is_there = hostcalls::set_effective_context(context).is_ok();
        if is_there {
            act();
            _ = hostcalls::set_effective_context(self.context);
        }
        is_there
    }
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
    fn add(&self, metric: Metric, labels: &[&str], change: i64) {
        if let Some(id) = stats::id(metric, labels) {
            _ = hostcalls::increment_metric(id, change);
        }
    }

    fn set(&self, metric: Metric, labels: &[&str], value: u64) {
        self.record(metric, labels, &[value]);
    }

    fn record(&self, metric: Metric, labels: &[&str], values: &[u64]) {
        if let Some(id) = stats::id(metric, labels) {
            values.iter().for_each(|value| _ = hostcalls::record_metric(id, *value));
        }
    }
}

impl Host for HostCall {
    fn data(&self) -> Rc<dyn SharedData> {
        Rc::new(HostSharedData)
    }

    fn environment(&self) -> &dyn Environment {
        &HostEnvironment
    }

    fn set_period(&self, root: u32, milliseconds: u32) -> bool {
        let set = || {
            _ = hostcalls::set_tick_period(Duration::from_millis(milliseconds.into()));
        };
        if root == self.root {
            // In a stream's context, too.
            set();
            return true;
        }
        self.within(root, set)
    }

    fn request(&self, stream: u32, reads_headers: bool, read: &mut dyn FnMut(&dyn Request)) {
        self.within(stream, || read(&HostRequest::new(reads_headers)));
    }

    fn counter(&self, metric: Metric, labels: &[&str]) -> u64 {
        stats::id(metric, labels).and_then(|id| hostcalls::get_metric(id).ok()).unwrap_or(0)
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

    fn node(&self) -> Option<String> {
        let id = raw::property(Property::new(&["xds", "node", "id"]).encoded())?;
        String::from_utf8(id).ok()
    }
}

/// Reads the reply that the host reports. `headers` is the number of its headers, `size` the length
/// of its body in bytes. The SDK panics if a header is read when there are none.
pub(super) fn answer<T>(headers: usize, size: usize, read: impl FnOnce(&Answer<'_>) -> T) -> T {
    let header = |name: &str| match headers {
        0 => None,
        _ => hostcalls::get_map_value_bytes(MapType::HttpCallResponseHeaders, name).ok()?,
    };
    let status = header(":status").and_then(|it| std::str::from_utf8(&it).ok()?.parse().ok());
    let body = || hostcalls::get_buffer(BufferType::HttpCallResponseBody, 0, size).ok()?;
    read(&Answer { status, size, body: &body, header: &header })
}
