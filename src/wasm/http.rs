//! What the host tells of a stream.

use std::rc::Rc;

use super::abi;
use super::calls::HostCall;
use super::ending::HostEnding;
use super::request::HostRequest;
use super::vm::worker;
use diana_worker::{Field, Instance, Stream};

/// The host, which is calling about this stream.
fn host(stream: &Stream) -> HostCall {
    HostCall { root: stream.instance().root() }
}

/// The headers of a request have come. Whether the request goes on, and its stream if anything may be left to do.
pub(super) fn begin(instance: &Rc<Instance>, id: u32) -> (bool, Option<Stream>) {
    Stream::begin(instance, id, &read(instance), worker(), &HostCall { root: instance.root() })
}

/// The headers of its request have come. Whether the request goes on.
pub(super) fn request(stream: &mut Stream) -> bool {
    let (host, request) = (host(stream), read(stream.instance()));
    stream.request(&request, worker(), &host)
}

/// The request that the host is calling about, without what nobody but this filter may set.
#[inline]
fn read(instance: &Instance) -> HostRequest {
    let mut request = HostRequest::new(instance.reads_headers());
    for name in instance.marks() {
        request.take_off(name);
    }
    request
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
