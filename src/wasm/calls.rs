//! What the host can do in one of its calls.

use std::rc::Rc;

use super::pairs::serialized;
use super::refused;
use super::request::HostRequest;
use super::shared::HostSharedData;
use super::{abi, stats, system};
use diana_core::port::{Answer, Call, Callout, Environment, Metrics, Request, SharedData};
use diana_core::report::Refusal;
use diana_core::time::Micros;
use diana_worker::AdminReply;
use diana_worker::host::{Clocks, Contexts, Host, Level, Log, Streams};

/// A call of the host about a root or one of its streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostCall {
    /// The host's number of the root.
    pub(super) root: u32,
}

/// To be made about a root, so that the root gets the answer.
impl Callout for HostCall {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        let headers = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = serialized(&headers.collect::<Vec<_>>());
        let timeout = u32::try_from(call.timeout / 1000).unwrap_or(u32::MAX);
        abi::call(&call.cluster, &headers, &call.body, timeout)
    }

    fn caller(&self) -> u32 {
        self.root
    }
}

impl Clocks for HostCall {
    fn monotonic(&self) -> Micros {
        system::monotonic()
    }

    fn wall(&self) -> Micros {
        system::wall()
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
            Level::Info => abi::INFO,
            Level::Warn => abi::WARN,
            Level::Error => abi::ERROR,
        };
        abi::log(level, line);
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

    fn tell(&self, state: &[u8]) {
        abi::set_property("diana", state);
    }

    fn refuse(&self, refusal: &Refusal) {
        refused::answer(refusal, self);
    }

    fn reply(&self, reply: &AdminReply) {
        const UNKNOWN: i32 = 2;
        let headers = serialized(&reply.headers().collect::<Vec<_>>());
        let status = reply.status.into();
        abi::reply(status, "diana_admin", reply.body.as_bytes(), &headers, UNKNOWN);
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
        u128::from_le_bytes(system::random().unwrap_or_default())
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
