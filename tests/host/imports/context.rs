//! Contexts, and the resumption and end of streams.

use wasmi::Linker;

use super::host_functions;
use crate::guest::{Action, Guest};
use crate::memory::{Call, read, text};
use crate::pairs;
use crate::status::{Outcome, Status};
use crate::stream::Reply;

pub fn link(linker: &mut Linker<Guest>) {
    host_functions!(linker, "env",
        proxy_set_effective_context(id: u32);
        proxy_continue_stream(kind: u32);
        proxy_send_local_response(
            status: u32, details: u32, details_size: u32, body: u32, body_size: u32,
            headers: u32, headers_size: u32, grpc_status: i32
        );
        proxy_done();
    );
}

fn proxy_set_effective_context(call: &mut Call, id: u32) -> Outcome {
    let guest = call.data_mut();
    if !guest.is_context(id) {
        return Err(Status::BadArgument.into());
    }
    guest.effective = id;
    Ok(())
}

const REQUEST: u32 = 0;
const RESPONSE: u32 = 1;

/// Resumes a held request after this call into the VM. From now on its headers are unreadable.
fn proxy_continue_stream(call: &mut Call, kind: u32) -> Outcome {
    let guest = call.data_mut();
    if kind != REQUEST && kind != RESPONSE {
        return Err(Status::BadArgument.into());
    }
    let id = guest.context();
    if let Some(stream) = guest.stream() {
        stream.is_readable = false;
        if kind == REQUEST {
            guest.actions.push_back(Action::Resume(id));
        }
    }
    Ok(())
}

/// Responds to a request after this call into the VM.
#[allow(clippy::too_many_arguments, reason = "it is the ABI's signature")]
fn proxy_send_local_response(
    call: &mut Call,
    status: u32,
    details: u32,
    details_size: u32,
    body: u32,
    body_size: u32,
    headers: u32,
    headers_size: u32,
    grpc_status: i32,
) -> Outcome {
    let reply = Reply {
        status,
        details: text(call, details, details_size)?.replace(' ', "_"),
        body: read(call, body, body_size)?,
        headers: pairs::decode(&read(call, headers, headers_size)?),
        grpc_status: u32::try_from(grpc_status).ok(),
    };
    let guest = call.data_mut();
    guest.stopped = true;
    let id = guest.context();
    if guest.stream().is_some() {
        guest.actions.push_back(Action::Reply(id, reply));
    }
    Ok(())
}

/// Roots of this host never wait for it.
fn proxy_done(_: &mut Call) -> Outcome {
    Err(Status::NotFound.into())
}
