//! One HTTP stream: asks the engine and carries out its verdict.

use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::{Action, LogLevel};

use super::fleet::Late;
use super::gate::Gate;
use super::{abi, pairs};
use diana_core::verdict::{Refusal, Report, Verdict};

/// gRPC's RESOURCE_EXHAUSTED.
const RESOURCE_EXHAUSTED: i32 = 8;

pub(super) struct Stream {
    gate: Rc<Gate>,
    /// The host's number of the stream.
    id: u32,
    /// Headers to add to the upstream's response.
    fields: Vec<(&'static str, String)>,
    /// What its gate knows with it, once it waits for an answer.
    late: Option<Rc<Late>>,
    /// Whether it may still wait.
    held: bool,
}

impl Stream {
    pub(super) fn new(gate: Rc<Gate>, id: u32) -> Stream {
        Stream { gate, id, fields: Vec::new(), late: None, held: false }
    }

    /// Carries out a verdict. Whether the request goes on.
    #[inline(never)]
    fn carry_out(&mut self, verdict: Verdict) -> Action {
        match verdict {
            Verdict::Admit(told) => {
                self.fields = report(told);
                Action::Continue
            }
            Verdict::Hold(mut held) => {
                self.fields = report(std::mem::take(&mut held.report));
                self.held = true;
                self.gate.hold(self.id, held);
                Action::Pause
            }
            Verdict::Ask { ticket } => {
                let late = self.late.insert(Rc::default());
                self.held = true;
                self.gate.wait(ticket, self.id, late.clone());
                Action::Pause
            }
            Verdict::Refuse(refusal) => {
                refuse(&refusal);
                Action::Pause
            }
        }
    }
}

impl Context for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.held {
            self.gate.leave(self.id, self.late.as_deref());
        }
    }
}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _headers: usize, _end_of_stream: bool) -> Action {
        let is_new = self.gate.open();
        let mut request = self.gate.request();
        self.gate.marks().iter().for_each(|name| request.take_off(name));
        let verdict = self.gate.decide(&request);
        let action = if verdict.is_pass() { Action::Continue } else { self.carry_out(verdict) };
        if is_new || action == Action::Pause || self.gate.is_pressed() {
            self.gate.settle();
        }
        action
    }

    fn on_http_response_headers(&mut self, _headers: usize, _end_of_stream: bool) -> Action {
        self.held = false;
        if self.fields.is_empty() && self.late.is_none() {
            return Action::Continue;
        }
        // Added, not set: an upstream's own fields stay.
        let late = self.late.take().map(|late| late.fields.take()).unwrap_or_default();
        for (name, value) in std::mem::take(&mut self.fields).into_iter().chain(late) {
            abi::add_header(abi::RESPONSE_HEADERS, name, &value);
        }
        Action::Continue
    }
}

/// Tells of a request that goes on. The headers for its response.
pub(super) fn report(report: Report) -> Vec<(&'static str, String)> {
    if let Some(state) = &report.state {
        abi::set_property("diana", state.as_bytes());
    }
    report.fields
}

/// Answers a request with a refusal.
pub(super) fn refuse(refusal: &Refusal) {
    abi::set_property("diana", refusal.state.as_bytes());
    if let Some(line) = &refusal.log {
        abi::log(LogLevel::Warn as u32, line);
    }
    let response = &refusal.response;
    let own = refusal.fields.iter().map(|(name, value)| (*name, value.as_str()));
    let configured = response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let headers = own.chain(configured).chain([("content-type", response.content_type.as_str())]);
    let headers = pairs::serialise(headers);
    let status = u32::from(response.status);
    abi::reply(status, "diana_refused", &response.body, &headers, RESOURCE_EXHAUSTED);
}
