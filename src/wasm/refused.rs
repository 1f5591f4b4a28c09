//! The answer to a refused request.
//!
//! All of it is written in memory that is kept from one to the next: who refuses a flood would spend a tenth of its time
//! on allocating it. Headers are written only if they differ from those of the answer before.

use std::cell::RefCell;

use super::abi;
use super::one_thread::OneThread;
use super::pairs::Pairs;
use super::request::HostRequest;
use diana_core::port::{Request, Values};
use diana_core::report::Refusal;
use diana_core::report::grounds::Grounds;
use diana_text::Text;
use diana_worker::host::{Level, Log, Streams};

/// gRPC's RESOURCE_EXHAUSTED and UNAVAILABLE.
const RESOURCE_EXHAUSTED: i32 = 8;
const UNAVAILABLE: i32 = 14;

/// More bytes are not kept.
const LONGEST: usize = 1 << 16;

static KEPT: OneThread<RefCell<Kept>> = OneThread::new(RefCell::new(Kept::NONE));

/// What is kept from one answer to the next.
struct Kept {
    state: Text,
    headers: Pairs,
    /// What the headers are made of, if that is known.
    grounds: Option<Grounds>,
}

impl Kept {
    const NONE: Kept = Kept { state: Text::NONE, headers: Pairs::NONE, grounds: None };

    fn answer(&mut self, refusal: &Refusal, host: &(impl Log + Streams)) {
        self.tell(refusal, host);
        if !self.grounds.as_ref().is_some_and(|grounds| refusal.stands_on(grounds)) {
            self.write_headers(refusal);
        }
        if refusal.tells_id() {
            let request = HostRequest::new(true);
            let id = match request.header("x-request-id") {
                Values::One(id) => id,
                _ => &[],
            };
            self.reply(refusal, id);
        } else {
            self.reply(refusal, &[]);
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

    fn write_headers(&mut self, refusal: &Refusal) {
        self.grounds = refusal.grounds();
        let headers = &mut self.headers;
        headers.clear();
        refusal.add_headers(&mut |name, write| headers.write(name, write));
        let configured = &refusal.response.headers;
        configured.iter().for_each(|(name, value)| headers.add(name, value));
        headers.add("content-type", refusal.content_type());
        headers.finish();
    }

    fn reply(&self, refusal: &Refusal, id: &[u8]) {
        let (status, body) = (refusal.status().into(), refusal.body(id));
        let grpc = if refusal.is_unavailable() { UNAVAILABLE } else { RESOURCE_EXHAUSTED };
        abi::reply(status, "diana_refused", &body, self.headers.as_bytes(), grpc);
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
