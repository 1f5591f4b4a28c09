//! The answer to a refused request.
//!
//! All of it is written in memory that is kept from one to the next: who refuses a flood would spend a tenth of its time
//! on allocating it.

use std::cell::RefCell;

use super::abi;
use super::one_thread::OneThread;
use super::pairs::Pairs;
use super::request::HostRequest;
use diana_core::port::{Request, Values};
use diana_core::report::Refusal;
use diana_core::report::protocol::{Protocol, RefusalReply};
use diana_text::Text;
use diana_worker::host::{Level, Log, Streams};

/// More bytes are not kept.
const LONGEST: usize = 1 << 16;

static KEPT: OneThread<RefCell<Kept>> = OneThread::new(RefCell::new(Kept::NONE));

/// What is kept from one answer to the next.
struct Kept {
    state: Text,
    headers: Pairs,
}

impl Kept {
    const NONE: Kept = Kept { state: Text::NONE, headers: Pairs::NONE };

    fn answer(&mut self, refusal: &Refusal, host: &(impl Log + Streams)) {
        self.tell(refusal, host);
        let request_header = |name| abi::header(abi::REQUEST_HEADERS, name);
        let content_type = request_header("content-type");
        let protocol = content_type.as_ref().map_or(Protocol::Http, |content_type| {
            Protocol::of(content_type, || request_header("connect-protocol-version").is_some())
        });
        if refusal.tells_id() {
            let request = HostRequest::new(true);
            let id = match request.header("x-request-id") {
                Values::One(id) => id,
                _ => &[],
            };
            self.reply(refusal, protocol, id);
        } else {
            self.reply(refusal, protocol, &[]);
        }
        if self.state.capacity() + self.headers.capacity() > LONGEST {
            *self = Kept::NONE;
        }
    }

    /// Writes what is told of the request, which the log may get, too.
    fn tell(&mut self, refusal: &Refusal, host: &(impl Log + Streams)) {
        self.state.clear();
        refusal.by.add_state(&mut self.state);
        host.tell(self.state.as_bytes());
        if refusal.is_logged {
            host.log(Level::Warn, self.state.as_str());
        }
    }

    fn write_headers(&mut self, refusal: &Refusal, reply: &RefusalReply<'_>) {
        let headers = &mut self.headers;
        headers.clear();
        refusal.add_headers(&mut |name, write| headers.write(name, write));
        let configured = &refusal.response.headers;
        configured.iter().for_each(|(name, value)| headers.add(name, value));
        headers.add("content-type", reply.content_type);
        // Envoy adds them only to requests that are gRPC where they come from, not to those that a filter before this one
        // has made gRPC.
        if let Some(message) = &reply.grpc_message {
            headers.write("grpc-status", |text| text.decimal(reply.grpc_status.into()));
            headers.add("grpc-message", message);
        }
        headers.finish();
    }

    fn reply(&mut self, refusal: &Refusal, protocol: Protocol<'_>, id: &[u8]) {
        let reply = refusal.reply(protocol, id);
        self.write_headers(refusal, &reply);
        let (status, grpc_status) = (reply.status.into(), reply.grpc_status.into());
        let headers = self.headers.as_bytes();
        abi::reply(status, "diana_refused", &reply.body, headers, grpc_status);
    }
}

/// Answers the request that the host is calling about.
pub(super) fn answer(refusal: &Refusal, host: &(impl Log + Streams)) {
    // Were the host to call again from within, nothing would be kept of that answer.
    match KEPT.try_borrow_mut() {
        Ok(mut kept) => kept.answer(refusal, host),
        Err(_) => {
            let mut unkept = Kept::NONE;
            unkept.answer(refusal, host);
        }
    }
}
