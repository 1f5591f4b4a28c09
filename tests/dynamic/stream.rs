//! The streams of a worker.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::{mem, ptr};

use fastrand::Rng;

use crate::config::Configuration;
use crate::gateway::Gateway;
use crate::hooks::{self, Buf};
use crate::worker::Queue;

pub type Headers = Vec<(Vec<u8>, Vec<u8>)>;

pub const PATHS: [&str; 10] = [
    "/exact", "/held", "/fleet", "/open", "/plan", "/used", "/upload", "/grpc", "/marked",
    "/update",
];

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has not been decided.
    Open,
    /// It goes to the upstream.
    Passed,
    /// The module has answered.
    Refused,
}

/// A stream. The module has its address.
pub struct Stream {
    pub id: u64,
    pub worker: usize,
    pub path: &'static str,
    pub outcome: Outcome,
    /// Envoy frees it soon.
    pub has_ended: bool,
    /// Whether what follows a reply or a continuation happens within the call.
    pub is_hasty: bool,
    pub request: Headers,
    pub response: Headers,
    /// The bytes of the body of the request that have arrived with a hook.
    pub chunk: usize,
    pub trailers: Headers,
    /// Whether its response has ended with status 0 of gRPC.
    pub is_fine: bool,
    pub state: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The headers of the module's own response.
    pub reply: Headers,
    /// Another stream of its connection, which ends within the reply to this one or its continuation.
    pub neighbour: *mut Stream,
    pub queue: Arc<Queue>,
    /// Bytes that the module may read until the end of the hook, or the next setter.
    lent: Vec<Box<[u8]>>,
    module: *mut c_void,
    pub config: Arc<Configuration>,
}

impl Stream {
    pub fn new(
        gateway: &Gateway,
        id: u64,
        worker: usize,
        path: &'static str,
        queue: Arc<Queue>,
        random: &mut Rng,
    ) -> Box<Stream> {
        let mut request: Headers =
            [(":path", path), (":method", "GET"), (":authority", "fake")].map(pair).into();
        for _ in 0..random.usize(..3) {
            request.push(pair(("x-account", &format!("account-{}", random.u8(..9)))));
        }
        if random.u8(..4) == 0 {
            request.push(pair(("content-type", "application/grpc")));
        }
        let stream = Stream::with(id, worker, path, request, queue, gateway.latest());
        Box::new(Stream { is_hasty: random.bool(), chunk: random.usize(..9), ..stream })
    }

    fn with(
        id: u64,
        worker: usize,
        path: &'static str,
        request: Headers,
        queue: Arc<Queue>,
        config: Arc<Configuration>,
    ) -> Stream {
        Stream {
            id,
            worker,
            path,
            outcome: Outcome::Open,
            has_ended: false,
            is_hasty: false,
            request,
            response: Vec::new(),
            chunk: 0,
            trailers: Vec::new(),
            is_fine: false,
            state: BTreeMap::new(),
            reply: Vec::new(),
            neighbour: ptr::null_mut(),
            queue,
            lent: Vec::new(),
            module: ptr::null_mut(),
            config,
        }
    }

    /// Lends bytes to the module.
    pub fn lend(&mut self, bytes: &[u8]) -> Buf {
        self.lent.push(bytes.into());
        Buf::of(self.lent.last().unwrap())
    }

    /// Frees the lent bytes.
    pub fn take_back(&mut self) {
        self.lent.clear();
    }
}

fn pair((name, value): (&str, &str)) -> (Vec<u8>, Vec<u8>) {
    (name.into(), value.into())
}

/// Calls a hook of the stream, and frees the lent bytes.
///
/// No reference to the stream may be alive, since the hook makes others.
fn within<T>(stream: *mut Stream, hook: impl FnOnce(*mut c_void, *mut c_void) -> T) -> T {
    // SAFETY: the worker frees the stream after all of its hooks.
    let module = unsafe { (*stream).module };
    let done = hook(stream.cast(), module);
    unsafe { (*stream).take_back() };
    done
}

/// The request arrives.
pub fn begin(stream: *mut Stream) {
    const CONTINUE: u32 = 0;
    // SAFETY: as in `within`.
    let config = unsafe { (*stream).config.module() };
    let module = hooks::new(config, stream.cast());
    unsafe { (*stream).module = module };
    let status = within(stream, |stream, module| hooks::request_headers(stream, module, true));
    let outcome = unsafe { &mut (*stream).outcome };
    match (*outcome, status) {
        (Outcome::Open, CONTINUE) => *outcome = Outcome::Passed,
        (Outcome::Passed, _) | (Outcome::Refused, CONTINUE) => panic!("{outcome:?}, {status}"),
        (Outcome::Open | Outcome::Refused, _) => (),
    }
}

/// Another stream of the worker begins and ends, within a change of this one. A hook that changes
/// streams while it has locked the worker would wait for ever.
pub fn begin_another(stream: *mut Stream) {
    // SAFETY: as in `within`.
    let (worker, queue, config) =
        unsafe { ((*stream).worker, (*stream).queue.clone(), (*stream).config.clone()) };
    let request = vec![pair((":path", "/none"))];
    let other = Box::into_raw(Box::new(Stream::with(0, worker, "/none", request, queue, config)));
    begin(other);
    end(other);
    // SAFETY: no hook of the stream follows.
    let other = unsafe { Box::from_raw(other) };
    assert_eq!(other.outcome, Outcome::Passed, "no rule covers it");
}

/// The neighbour of a stream ends, if it has one.
pub fn end_neighbour(stream: *mut Stream) {
    // SAFETY: as in `within`.
    let neighbour = unsafe { (*stream).neighbour };
    if !neighbour.is_null() {
        end(neighbour);
    }
}

/// An event that the module has committed.
pub fn schedule(stream: *mut Stream, event: u64) {
    within(stream, |stream, module| hooks::scheduled(stream, module, event));
}

/// The upstream responds.
pub fn respond(stream: *mut Stream) {
    let status = within(stream, |stream, module| hooks::request_body(stream, module, true));
    assert_eq!(status, 0, "the body passes");
    // SAFETY: as in `within`.
    let response = [(":status", "200"), ("x-used", "3"), ("content-type", "application/grpc")];
    unsafe { (*stream).response = response.map(pair).into() };
    within(stream, |stream, module| hooks::response_headers(stream, module, false));
    let is_fine = unsafe { (*stream).id }.is_multiple_of(2);
    let status = if is_fine { "0" } else { "16" };
    unsafe {
        ((*stream).trailers, (*stream).is_fine) =
            ([("grpc-status", status)].map(pair).into(), is_fine)
    };
    within(stream, hooks::response_trailers);
    unsafe { (*stream).trailers.clear() };
}

/// The stream ends, also within another hook.
pub fn end(stream: *mut Stream) {
    // SAFETY: as in `within`.
    if mem::replace(unsafe { &mut (*stream).has_ended }, true) {
        return;
    }
    within(stream, hooks::stream_complete);
    // Envoy drops the headers before it destroys the filter.
    unsafe { ((*stream).request, (*stream).response) = Default::default() };
    within(stream, |_, module| hooks::destroy(module));
}
