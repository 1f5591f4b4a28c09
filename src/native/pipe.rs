//! Calls to a listener of this Envoy at the path of a socket, past Envoy's main thread. Each call is a connection, whose end
//! is the end of the reply. Both directions stay open until then: the filter `redis_proxy` drops its replies when the client
//! has closed its own.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use diana_policy::port::{Call, Destination};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

use crate::calls::{self, CallId, CallReply, Deliver, UNAVAILABLE};
use crate::clock;

/// The most bytes of a reply, as many as Envoy buffers of one.
const MOST: u64 = 1 << 20;

/// The status of a reply of Redis.
const OK: u16 = 200;

/// Starts a call of a worker. The end of its configuration does not cancel it, since it may have settlements.
pub(crate) fn send(
    id: CallId,
    path: &str,
    call: &Call,
    has_had_requests: bool,
    deliver: Deliver,
) -> Result<(), &'static str> {
    #[cfg(feature = "explored")]
    if crate::explored::keep(id, &call.body, deliver) {
        return Ok(());
    }
    let (pipe, body) = (Destination::Pipe(path.into()), call.body.clone());
    let thread = thread().map_err(|why| {
        calls::record_pipe(&pipe, Err(&format!("no thread for calls: {why}")), has_had_requests);
        "the module has no thread for calls to a pipe"
    })?;
    let ends_at = clock::monotonic().saturating_add(call.timeout);
    thread.spawn(async move {
        let rest = Duration::from_micros(ends_at.saturating_sub(clock::monotonic()));
        let replied = timeout(rest, exchange(&pipe, &body, has_had_requests)).await.ok().flatten();
        let (status, reply) = replied.unzip();
        deliver(id, CallReply { status, body: reply.unwrap_or_default(), headers: Vec::new() });
    });
    Ok(())
}

/// Sends a call and reads its reply, with its status. `None` if the connection breaks off, or the reply is too large.
async fn exchange(
    pipe: &Destination,
    body: &[u8],
    has_had_requests: bool,
) -> Option<(u16, Vec<u8>)> {
    let connected = UnixStream::connect(address(pipe.name())).await;
    let failure = connected.as_ref().err().map(|why| format!("cannot connect: {why}"));
    calls::record_pipe(pipe, failure.as_deref().map_or(Ok(()), Err), has_had_requests);
    let Ok(mut connection) = connected else { return Some((UNAVAILABLE, Vec::new())) };
    let written = connection.write_all(body).await;
    let mut reply = Vec::new();
    // After an error the reply may contain the reason.
    let end = connection.take(MOST + 1).read_to_end(&mut reply).await;
    match end {
        // Envoy does not read the call if it cannot connect to Redis itself, so that the end of the connection is an error.
        _ if reply.is_empty() && (written.is_err() || end.is_err()) => Some((UNAVAILABLE, reply)),
        Ok(_) if reply.len() as u64 <= MOST => Some((OK, reply)),
        _ => None,
    }
}

/// The address of a path. Linux begins abstract names with NUL, Envoy writes `@` instead.
fn address(path: &str) -> String {
    path.strip_prefix('@').map_or_else(|| path.into(), |name| format!("\0{name}"))
}

/// The thread that makes all calls. Started by the first call, or by a later one if the process had no room for it.
fn thread() -> io::Result<Handle> {
    static THREAD: Mutex<Option<Handle>> = Mutex::new(None);
    let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*thread {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("diana-pipe".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(thread.insert(handle).clone())
}
