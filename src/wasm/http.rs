//! One HTTP stream.

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use super::abi;
use super::calls::HostCall;
use super::ending::HostEnding;
use super::request::HostRequest;
use super::vm::worker;
use diana_worker::{Field, Stream};

pub(super) struct Http {
    pub(super) stream: Stream,
}

impl Http {
    /// The host, which is calling about this stream.
    fn host(&self) -> HostCall {
        HostCall { root: self.stream.instance().root() }
    }
}

impl Context for Http {}

impl Drop for Http {
    fn drop(&mut self) {
        if self.stream.is_open() {
            let host = self.host();
            self.stream.end(&HostEnding::default(), worker(), &host);
        }
    }
}

impl HttpContext for Http {
    fn on_http_request_headers(&mut self, _headers: usize, _end_of_stream: bool) -> Action {
        let (host, instance) = (self.host(), self.stream.instance());
        let mut request = HostRequest::new(instance.reads_headers());
        instance.marks().iter().for_each(|name| request.take_off(name));
        let goes_on = self.stream.request(&request, worker(), &host);
        if goes_on { Action::Continue } else { Action::Pause }
    }

    fn on_http_response_headers(&mut self, _headers: usize, _end_of_stream: bool) -> Action {
        if self.stream.is_open()
            && let Some(headers) = self.stream.response(&HostEnding::default(), &self.host())
        {
            add(headers);
        }
        Action::Continue
    }
}

/// Adds headers to the response.
#[inline(never)]
fn add(headers: Vec<Field>) {
    // Not set: an upstream's own fields stay.
    for (name, value) in headers {
        abi::add_header(abi::RESPONSE_HEADERS, &name, &value);
    }
}
