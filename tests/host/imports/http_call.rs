//! Calls over HTTP.

use wasmi::Linker;

use super::host_functions;
use crate::call_out::CallOut;
use crate::guest::Guest;
use crate::memory::{Call, read, text, write_u32};
use crate::pairs;
use crate::status::{Outcome, Status};

pub fn link(linker: &mut Linker<Guest>) {
    host_functions!(linker, "env",
        proxy_http_call(
            cluster: u32, cluster_size: u32, headers: u32, headers_size: u32, body: u32,
            body_size: u32, trailers: u32, trailers_size: u32, timeout: u32, token: u32
        );
    );
}

/// Records the call, which the test answers. A call without an endpoint fails at once. Trailers are
/// accepted but never sent, as in Envoy.
#[allow(clippy::too_many_arguments, reason = "it is the ABI's signature")]
fn proxy_http_call(
    call: &mut Call,
    cluster: u32,
    cluster_size: u32,
    headers: u32,
    headers_size: u32,
    body: u32,
    body_size: u32,
    _trailers: u32,
    _trailers_size: u32,
    timeout: u32,
    token: u32,
) -> Outcome {
    let cluster = text(call, cluster, cluster_size)?;
    let headers = pairs::decode(&read(call, headers, headers_size)?);
    let body = read(call, body, body_size)?;
    let guest = call.data_mut();
    let is_complete = [":method", ":path", ":authority"]
        .iter()
        .all(|name| headers.iter().any(|(found, _)| found == name));
    let has_endpoints = guest.outside.clusters.borrow().get(&cluster).copied();
    match has_endpoints.filter(|_| is_complete) {
        Some(true) => {}
        Some(false) => return Err(Status::InternalFailure.into()),
        None => return Err(Status::BadArgument.into()),
    }
    let root = guest.root_of_context();
    guest.call_outs.last_token += 1;
    let number = guest.call_outs.last_token;
    guest.call_outs.open.push(CallOut { token: number, root, cluster, headers, body, timeout });
    write_u32(call, token, number)
}
