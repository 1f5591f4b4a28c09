//! Calls to clusters: to Redis and to configuration servers. Only Envoy's main thread makes calls without a request, so a worker hands
//! its calls over to it, and the reply returns to that worker.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use diana_policy::port::{Call, Destination};

use crate::abi::{ConfigCall, LogLevel, log};
use crate::configurations::Configurations;

/// The status with which Envoy replies if it cannot connect.
pub(crate) const UNAVAILABLE: u16 = 503;

/// The log line for a cluster that has returned only 503. Envoy does not report its address.
const UNREACHABLE: &str = "status 503, which Envoy returns if it cannot connect. The dynamic module calls from Envoy's main \
                           thread, which reaches no internal listener: for Redis, use `pipe`, as in envoy/native-fleet.yaml";

/// A call of a worker, which receives the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallId {
    pub(crate) cell: usize,
    pub(crate) root: u32,
    /// The number of the call in its worker.
    pub(crate) token: u32,
}

/// A reply to a call. Without a status the connection broke off, or the reply was too large.
pub(crate) struct CallReply {
    pub(crate) status: Option<u16>,
    pub(crate) body: Vec<u8>,
    /// Those of its headers that are read.
    pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
}

/// A call without a reply.
struct Sent {
    /// Envoy's number of it, unknown while Envoy receives the call.
    id: Option<u64>,
    caller: CallId,
    destination: Destination,
}

/// The known state of a destination.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reachability {
    /// The latest call could not be made.
    Lacking,
    /// Envoy has not been able to connect.
    Unreachable,
    /// It was reached.
    Reached,
}

#[derive(Default)]
struct KnownCalls {
    /// Calls that Envoy has not received.
    waiting: Vec<(CallId, Call)>,
    sent: Vec<Sent>,
    destinations: BTreeMap<Destination, Reachability>,
}

/// The calls of all workers.
#[derive(Default)]
pub(crate) struct Calls(Mutex<KnownCalls>);

impl KnownCalls {
    /// Records the state of a destination, and logs a new one.
    fn record(&mut self, destination: &Destination, seen: Reachability, line: &str) {
        if self.destinations.insert(destination.clone(), seen) != Some(seen) {
            log(LogLevel::Warn, &format!("{destination}: {line}"));
        }
    }

    /// Records a reply of a destination, or one of Envoy.
    fn record_reply(&mut self, destination: &Destination, status: u16) {
        if self.destinations.get(destination) == Some(&Reachability::Reached) {
            return;
        }
        if status == UNAVAILABLE {
            self.record(destination, Reachability::Unreachable, UNREACHABLE);
        } else {
            self.destinations.insert(destination.clone(), Reachability::Reached);
        }
    }
}

impl Calls {
    /// Records whether a pipe could be reached, or why not. The first such reason in a row is logged, once the worker has had requests:
    /// a heartbeat may come before Envoy opens its listeners.
    pub(crate) fn record_pipe(
        &self,
        pipe: &Destination,
        reached: Result<(), &str>,
        has_had_requests: bool,
    ) {
        if reached.is_err() && !has_had_requests {
            return;
        }
        let seen = if reached.is_ok() { Reachability::Reached } else { Reachability::Lacking };
        let is_new = self.known().destinations.insert(pipe.clone(), seen) != Some(seen);
        if let (Err(why), true) = (reached, is_new) {
            log(LogLevel::Warn, &format!("{pipe}: {why}"));
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a call of a worker over to the main thread.
    pub(crate) fn send(
        &self,
        caller: CallId,
        call: &Call,
        configurations: &Configurations,
    ) -> Result<(), &'static str> {
        self.known().waiting.push((caller, call.clone()));
        if configurations.schedule(caller.root) {
            return Ok(());
        }
        self.end(caller.root);
        Err("the configuration has ended")
    }

    /// The main thread makes the calls of a configuration. Returns replies to those that cannot be made.
    pub(crate) fn make(&self, root: u32, config: &ConfigCall) -> Vec<(CallId, CallReply)> {
        let mut failed = Vec::new();
        let waiting: Vec<_> =
            self.known().waiting.extract_if(.., |(caller, _)| caller.root == root).collect();
        for (caller, call) in waiting {
            let destination = call.destination.clone();
            self.known().sent.push(Sent { id: None, caller, destination });
            let made = config.http_call(&call);
            let mut calls = self.known();
            // Envoy may have replied within.
            let is_it = |it: &Sent| it.id.is_none() && it.caller == caller;
            let Some(position) = calls.sent.iter().position(is_it) else { continue };
            match made {
                Ok(id) => {
                    if let Some(sent) = calls.sent.get_mut(position) {
                        sent.id = Some(id);
                    }
                }
                Err(why) => {
                    calls.sent.remove(position);
                    calls.record(&call.destination, Reachability::Lacking, why);
                    let (status, body, headers) = (Some(UNAVAILABLE), Vec::new(), Vec::new());
                    failed.push((caller, CallReply { status, body, headers }));
                }
            }
        }
        failed
    }

    /// Envoy has a reply for a configuration. Returns the call that it is for.
    pub(crate) fn take(&self, root: u32, id: u64, status: Option<u16>) -> Option<CallId> {
        let mut calls = self.known();
        let position = |id| calls.sent.iter().position(|it| it.caller.root == root && it.id == id);
        // A call with this number, or the one that Envoy is receiving.
        let found = position(Some(id)).or_else(|| position(None))?;
        let Sent { caller, destination, .. } = calls.sent.remove(found);
        if let Some(status) = status {
            calls.record_reply(&destination, status);
        }
        Some(caller)
    }

    /// A configuration has ended: Envoy drops the replies to its calls.
    pub(crate) fn end(&self, root: u32) {
        let mut calls = self.known();
        calls.waiting.retain(|(caller, _)| caller.root != root);
        calls.sent.retain(|it| it.caller.root != root);
    }
}
