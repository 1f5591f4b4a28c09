//! What lies outside of requests: calls of our own, and the environment of the VM.

use std::time::Duration;

use proxy_wasm::hostcalls::dispatch_http_call;
use proxy_wasm::types::Status;

use super::abi;
use diana_core::port::{Answer, Call, Callout, Environment};

/// The environment of this VM.
pub(super) struct HostEnvironment;

impl Environment for HostEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Calls by way of the SDK, which must know of them: it panics on the answer to any other. To be
/// made by a root on its tick or on another answer, so that the root gets the answer.
pub(super) struct HostCallout {
    /// The root that the host is calling about.
    pub(super) root: u32,
}

impl Callout for HostCallout {
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

/// Reads the answer that the host is calling about, of so many headers and bytes. Without headers it
/// has none that could be asked for.
pub(super) fn answer<T>(headers: usize, size: usize, read: impl FnOnce(&Answer<'_>) -> T) -> T {
    let status =
        || std::str::from_utf8(&abi::header(abi::CALL_HEADERS, ":status")?).ok()?.parse().ok();
    let status = if headers == 0 { None } else { status() };
    let body = || abi::buffer(abi::CALL_BODY, size);
    read(&Answer { status, size, body: &body })
}
