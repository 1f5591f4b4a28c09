//! One HTTP stream: asks the engine and carries out its verdict.

use std::cell::RefCell;
use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::{Action, LogLevel};

use super::clock::VmClock;
use super::host::HostRequest;
use super::{abi, pairs};
use crate::engine::Engine;
use crate::verdict::{Refusal, Verdict};

/// gRPC's RESOURCE_EXHAUSTED.
const RESOURCE_EXHAUSTED: i32 = 8;

pub(super) struct Stream {
    pub(super) engine: Rc<RefCell<Engine>>,
    pub(super) namespace: Rc<str>,
    /// Headers to add to the upstream's response.
    pub(super) fields: Vec<(&'static str, String)>,
}

impl Context for Stream {}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _headers: usize, _end_of_stream: bool) -> Action {
        // The host never calls about one stream while it is in a call about another.
        let Ok(mut engine) = self.engine.try_borrow_mut() else {
            abi::log(LogLevel::Error as u32, "a request was not judged: another one still is");
            return Action::Continue;
        };
        match engine.decide(&HostRequest, &VmClock { namespace: &self.namespace }) {
            Verdict::Admit { fields, state } => {
                self.fields = fields;
                if let Some(state) = state {
                    abi::set_property("diana", state.as_bytes());
                }
                Action::Continue
            }
            Verdict::Refuse(refusal) => {
                refuse(&refusal);
                Action::Pause
            }
        }
    }

    fn on_http_response_headers(&mut self, _headers: usize, _end_of_stream: bool) -> Action {
        // Added, not set: an upstream's own fields stay.
        for (name, value) in std::mem::take(&mut self.fields) {
            abi::add_header(abi::RESPONSE_HEADERS, name, &value);
        }
        Action::Continue
    }
}

fn refuse(refusal: &Refusal) {
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
