//! What the host tells of a stream.

use super::abi;
use super::calls::HostCall;
use super::ending::HostEnding;
use super::request::HostRequest;
use super::vm::worker;
use diana_worker::{Field, Stream};

/// The host, which is calling about this stream.
fn host(stream: &Stream) -> HostCall {
    HostCall { root: stream.instance().root() }
}

/// The headers of its request have come. Whether the request goes on.
pub(super) fn request(stream: &mut Stream) -> bool {
    let (host, instance) = (host(stream), stream.instance());
    let mut request = HostRequest::new(instance.reads_headers());
    instance.marks().iter().for_each(|name| request.take_off(name));
    stream.request(&request, worker(), &host)
}

/// The headers of its response have come.
pub(super) fn response(stream: &mut Stream) {
    if !stream.is_open() {
        return;
    }
    let host = host(stream);
    if let Some(headers) = stream.response(&HostEnding::default(), worker(), &host) {
        add(headers);
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

/// It has ended.
pub(super) fn end(stream: &mut Stream) {
    if stream.is_open() {
        let host = host(stream);
        stream.end(&HostEnding::default(), worker(), &host);
    }
}
