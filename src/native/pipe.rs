//! Calls to a listener of this Envoy at the path of a socket, past Envoy's main thread. Each call is a connection, whose end
//! is the end of the reply. Both directions stay open until then: the filter `redis_proxy` drops its replies when the client
//! has closed its own.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use diana_policy::port::Call;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Handle};
use tokio::time::{Instant, timeout_at};

use crate::calls::{CallReply, UNAVAILABLE};

/// The most bytes of a reply, as many as Envoy buffers of one.
const MOST: u64 = 1 << 20;

/// The status of a reply of Redis.
const OK: u16 = 200;

/// The thread that makes all calls, once it runs.
#[derive(Default)]
pub(crate) struct PipeThread {
    handle: Mutex<Option<Handle>>,
    /// Calls without a reply, in a test that gives it.
    #[cfg(feature = "explored")]
    pub(crate) kept: Mutex<Option<Vec<KeptCall>>>,
}

/// The bytes of a call, and the receiver of its reply.
#[cfg(feature = "explored")]
pub(crate) type KeptCall = (Vec<u8>, Box<dyn FnOnce(CallReply) + Send>);

impl PipeThread {
    /// Starts a call of a worker. The end of its configuration does not cancel it, since it may have settlements. `record` is told
    /// whether the pipe could be reached.
    pub(crate) fn send(
        &self,
        path: &str,
        call: &Call,
        record: impl FnOnce(Result<(), &str>) + Send + 'static,
        deliver: impl FnOnce(CallReply) + Send + 'static,
    ) -> Result<(), &'static str> {
        #[cfg(feature = "explored")]
        if let Some(kept) = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.push((call.body.clone(), Box::new(deliver)));
            return Ok(());
        }
        let (address, body) = (address(path), call.body.clone());
        let thread = match self.thread() {
            Ok(thread) => thread,
            Err(why) => {
                record(Err(&format!("no thread for calls: {why}")));
                return Err("the module has no thread for calls to a pipe");
            }
        };
        let ends_at = Instant::now() + Duration::from_micros(call.timeout);
        thread.spawn(async move {
            let exchange = exchange(address, &body, record);
            let replied = timeout_at(ends_at, exchange).await.ok().flatten();
            let (status, reply) = replied.unzip();
            deliver(CallReply { status, body: reply.unwrap_or_default(), headers: Vec::new() });
        });
        Ok(())
    }

    /// The thread. Started by the first call, or by a later one if the process had no room for it.
    fn thread(&self) -> io::Result<Handle> {
        let mut thread = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
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
}

/// Sends a call and reads its reply, with its status. `None` if the connection breaks off, or the reply is too large.
async fn exchange(
    address: String,
    body: &[u8],
    record: impl FnOnce(Result<(), &str>),
) -> Option<(u16, Vec<u8>)> {
    let connected = UnixStream::connect(address).await;
    let failure = connected.as_ref().err().map(|why| format!("cannot connect: {why}"));
    record(failure.as_deref().map_or(Ok(()), Err));
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
