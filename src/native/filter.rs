//! The filter of one HTTP stream.

use std::mem;

use diana_policy::OnFault;
use diana_policy::headers::Headers;
use diana_worker::{Next, Step, Stream};

use crate::abi::{StreamCall, StreamPointer};
use crate::cell::WorkerCell;
use crate::config::{self, FilterConfig};
use crate::ending::HostEnding;
use crate::host::{HostCall, HostState, PASS};
use crate::module::Module;
use crate::request::{self, HostRequest};
use crate::response;

/// A filter. Envoy has it from the beginning of a stream to its end.
pub(crate) struct HttpFilter {
    pub(crate) module: &'static Module,
    /// The number of the configuration.
    root: u32,
    /// What happens to the request after a panic.
    on_fault: OnFault,
    state: FilterStage,
    /// The bytes of the request's body so far, if they are read at the end.
    request_bytes: Option<u64>,
}

enum FilterStage {
    /// The request has not arrived at this worker.
    Begun(&'static WorkerCell),
    /// The stream has work at its response or at its end, or its request waits.
    Open { cell: &'static WorkerCell, generation: u32, id: u32, stream: Stream },
    /// The filter could not be created.
    Failed,
    /// The stream needs no further work, like most admitted requests.
    Done,
}

impl HttpFilter {
    pub(crate) fn new(config: &FilterConfig, call: &StreamCall<'_>) -> HttpFilter {
        let module = config.module;
        let cell = module.cells().get(call.worker());
        HttpFilter {
            module,
            root: config.number,
            on_fault: config.on_fault,
            state: cell.map_or(FilterStage::Failed, FilterStage::Begun),
            request_bytes: None,
        }
    }

    /// A filter that could not be created.
    pub(crate) fn failed(config: &FilterConfig) -> HttpFilter {
        let &FilterConfig { module, number: root, on_fault } = config;
        HttpFilter { module, root, on_fault, state: FilterStage::Failed, request_bytes: None }
    }

    /// The request has arrived.
    pub(crate) fn request(&mut self, call: &mut StreamCall<'_>) -> Step {
        let state = mem::replace(&mut self.state, FilterStage::Done);
        let FilterStage::Begun(cell) = state else { return self.step_of_fault() };
        let root = self.root;
        let metrics = &self.module.metrics;
        if metrics.need_a_stream() {
            metrics.flush(root, |kind, id, labels, value| call.change(kind, id, labels, value));
        }
        cell.enter(|state| {
            let Some(known) = state.root(root) else { return self.step_of_fault() };
            // Without rules, if those of a configuration server are not there.
            let Some(instance) = known.instance().cloned() else { return Step::default() };
            for name in instance.marks() {
                request::remove_forged(call, name);
            }
            let id = state.host.new_stream();
            let host = HostCall::new(root, &state.host);
            let request = HostRequest::new(call, &state.host.headers);
            let (mut step, stream) = Stream::begin(&instance, id, &request, &state.worker, &host);
            let mut stream = stream.filter(Stream::is_open);
            if let Next::Wait = step.next {
                // Only the worker's thread resumes requests, and Envoy names the first worker for its main thread.
                if config::is_main_thread() {
                    step.next = Next::Continue;
                    if let Some(mut stream) = stream.take() {
                        stream.end(&HostEnding::new(None, None), &state.worker, &host);
                    }
                } else {
                    state.host.wait(id, call);
                }
            }
            if let Some(mut stream) = stream {
                self.request_bytes = stream.reads_request_bytes().then_some(0);
                let generation = state.generation;
                self.state = FilterStage::Open { cell, generation, id, stream };
            }
            step
        })
    }

    /// What happens to the request after a panic.
    pub(crate) fn step_of_fault(&self) -> Step {
        Step { effects: None, next: response::of_fault(self.on_fault) }
    }

    /// A part of the request's body has arrived.
    #[inline]
    pub(crate) fn request_body(&mut self, call: &StreamCall<'_>) {
        if let Some(bytes) = &mut self.request_bytes {
            *bytes = bytes.saturating_add(call.request_chunk());
        }
    }

    /// The response headers have arrived. `end` is true if they end the response. Returns headers to add.
    pub(crate) fn response(&mut self, end: bool, call: &StreamCall<'_>) -> Option<Headers> {
        let state = mem::replace(&mut self.state, FilterStage::Done);
        let FilterStage::Open { cell, generation, id, mut stream } = state else { return None };
        let (root, request_bytes) = (self.root, self.request_bytes);
        cell.enter(|state| {
            state.host.forget(id);
            if state.generation != generation {
                drop(stream);
                return None;
            }
            let host = HostCall::new(root, &state.host);
            let ending = HostEnding::of_headers(call, request_bytes, end);
            let fields = stream.response(&ending, &state.worker, &host);
            if stream.is_open() {
                self.state = FilterStage::Open { cell, generation, id, stream };
            }
            fields
        })
    }

    /// The response trailers have arrived.
    pub(crate) fn trailers(&mut self, call: &StreamCall<'_>) {
        let FilterStage::Open { cell, generation, stream, .. } = &mut self.state else { return };
        let root = self.root;
        cell.enter(|state| {
            if state.generation == *generation {
                let host = HostCall::new(root, &state.host);
                stream.trailers(&HostEnding::of_trailers(call), &host);
            }
        });
    }

    /// The stream has ended. Without a call, the host has dropped the stream's data.
    pub(crate) fn end(&mut self, call: Option<&StreamCall<'_>>) {
        let state = mem::replace(&mut self.state, FilterStage::Done);
        let FilterStage::Open { cell, generation, id, mut stream } = state else { return };
        let (root, request_bytes) = (self.root, self.request_bytes);
        cell.enter(move |state| {
            state.host.forget(id);
            if state.generation == generation {
                let host = HostCall::new(root, &state.host);
                stream.end(&HostEnding::new(call, request_bytes), &state.worker, &host);
            }
            drop(stream);
        });
    }

    /// An event was committed.
    pub(crate) fn scheduled(&mut self, event: u64, pointer: StreamPointer) {
        let FilterStage::Open { cell, .. } = self.state else { return };
        if event == PASS {
            return self.missed(event, pointer);
        }
        cell.enter(|state| {
            state.host.take_over();
            state.tick();
        });
    }

    /// What an event needs without the worker, also after a panic: the request does not wait, or the
    /// thread of the module runs the timers again.
    pub(crate) fn missed(&mut self, event: u64, pointer: StreamPointer) {
        let FilterStage::Open { cell, id, .. } = self.state else { return };
        let next = response::of_fault(self.on_fault);
        cell.with_host(|host| match event {
            PASS => host.conclude(id, pointer, next),
            _ => host.take_over(),
        });
    }

    /// The cell of the worker, if the stream needs further work.
    pub(crate) fn cell(&self) -> Option<&'static WorkerCell> {
        match self.state {
            FilterStage::Open { cell, .. } => Some(cell),
            _ => None,
        }
    }
}

/// Runs the actions that are due.
pub(crate) fn act(cell: &WorkerCell) {
    // One at a time, since each may end other streams.
    while let Some(action) = cell.with_host(HostState::next_action) {
        action.run();
    }
}
