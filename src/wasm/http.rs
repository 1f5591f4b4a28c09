//! One HTTP stream.

use std::rc::Rc;

use proxy_wasm::hostcalls;
use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::{Action, MapType};

use super::calls::HostCall;
use super::ending::HostEnding;
use super::request::HostRequest;
use super::step;
use super::vm::worker;
use diana_policy::headers::Headers;
use diana_worker::{Instance, Stream};

/// A stream context of the SDK. It is dropped when the stream ends and the host deletes it.
pub(super) struct Http {
    /// The host's number of the stream.
    id: u32,
    state: HttpState,
}

enum HttpState {
    /// The request has not arrived. This instance will decide about it, even if the root has
    /// another one by then.
    Begun(Rc<Instance>),
    /// The stream has work at its response or at its end, or its request waits.
    Open(Stream),
    /// The stream needs no further work, like most admitted requests.
    Done,
}

impl Http {
    /// A new stream of an instance. `None` if its root is not configured.
    pub(super) fn new(id: u32, instance: Option<Rc<Instance>>) -> Http {
        Http { id, state: instance.map_or(HttpState::Done, HttpState::Begun) }
    }
}

/// The host during a call about a stream of this instance.
fn host(instance: &Instance, id: u32) -> HostCall {
    HostCall { root: instance.root(), context: id }
}

impl Context for Http {}

impl HttpContext for Http {
    fn on_http_request_headers(&mut self, _: usize, _: bool) -> Action {
        let HttpState::Begun(instance) = &self.state else { return Action::Continue };
        let (request, was_forged) = read(instance);
        let host = host(instance, self.id);
        if was_forged && instance.enforces_by_route() {
            let step = Stream::refuse_forged(instance, worker(), &host);
            self.state = HttpState::Done;
            return step::take(step);
        }
        let (step, stream) = Stream::begin(instance, self.id, &request, worker(), &host);
        self.state = stream.filter(Stream::is_open).map_or(HttpState::Done, HttpState::Open);
        step::take(step)
    }

    fn on_http_response_headers(&mut self, _: usize, are_last: bool) -> Action {
        if let HttpState::Open(stream) = &mut self.state {
            let host = host(stream.instance(), self.id);
            let ending = HostEnding::new(MapType::HttpResponseHeaders, are_last);
            if let Some(headers) = stream.response(&ending, worker(), &host) {
                add(&headers);
            }
            if !stream.is_open() {
                self.state = HttpState::Done;
            }
        }
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        if let HttpState::Open(stream) = &mut self.state {
            let host = host(stream.instance(), self.id);
            stream.trailers(&HostEnding::new(MapType::HttpResponseTrailers, false), &host);
        }
        Action::Continue
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        if let HttpState::Open(stream) = &mut self.state {
            let host = host(stream.instance(), self.id);
            stream.end(&HostEnding::new(MapType::HttpResponseHeaders, false), worker(), &host);
        }
    }
}

/// The request of the host's current call, without headers that only this filter may set, and whether
/// it had any.
#[inline]
fn read(instance: &Instance) -> (HostRequest, bool) {
    let (mut request, mut was_forged) = (HostRequest::new(instance.reads_headers()), false);
    for name in instance.marks() {
        was_forged |= request.remove_forged(name);
    }
    (request, was_forged)
}

/// Adds headers to the response.
#[inline(never)]
fn add(headers: &Headers) {
    for (name, value) in headers.iter() {
        _ = hostcalls::add_map_value(MapType::HttpResponseHeaders, name, value);
    }
}
