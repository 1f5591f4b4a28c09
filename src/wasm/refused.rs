//! The answer to a refused request.
//!
//! All of it is written in memory that is kept from one to the next: who refuses a flood would spend a tenth of its time
//! on allocating it.

use std::cell::Cell;

use super::abi;
use super::one_thread::OneThread;
use super::pairs::Pairs;
use super::request::HostRequest;
use diana_core::port::{Request, Values};
use diana_core::report::Refusal;
use diana_worker::host::{Level, Log, Streams};

/// gRPC's RESOURCE_EXHAUSTED.
const RESOURCE_EXHAUSTED: i32 = 8;

/// More bytes are not kept.
const LONGEST: usize = 1 << 16;

/// The memory, while nothing is written in it.
static SPARE: OneThread<Cell<(String, Pairs)>> =
    OneThread::new(Cell::new((String::new(), Pairs::NONE)));

/// Answers the request that the host is calling about.
pub(super) fn answer(refusal: &Refusal, host: &(impl Log + Streams)) {
    let (mut text, mut headers) = SPARE.take();
    text.clear();
    refusal.by.add_state(&mut text);
    host.tell(&text);
    if refusal.is_logged {
        host.log(Level::Warn, &text);
    }
    headers.clear();
    refusal.add_headers(&mut text, &mut |name, value| headers.add(name, value));
    let response = &refusal.response;
    response.headers.iter().for_each(|(name, value)| headers.add(name, value));
    headers.add("content-type", refusal.content_type());
    let request = HostRequest::new(true);
    let id = match refusal.tells_id().then(|| request.header("x-request-id")) {
        Some(Values::One(id)) => id,
        _ => &[],
    };
    let (status, body) = (u32::from(response.status), refusal.body(id));
    abi::reply(status, "diana_refused", &body, headers.serialise(), RESOURCE_EXHAUSTED);
    if text.capacity() + headers.capacity() <= LONGEST {
        SPARE.set((text, headers));
    }
}
