//! HTTP calls: to Redis and to configuration servers. Only Envoy's main thread makes calls without a request, so a worker hands
//! its calls over to it, and the reply returns to that worker.

use std::sync::{Mutex, MutexGuard, PoisonError};

use diana_policy::port::Call as HttpCall;

use crate::abi::{ConfigCall, LogLevel, log};
use crate::{config, slot};

/// The receiver of a reply.
#[derive(Debug, Clone, Copy)]
struct Caller {
    slot: usize,
    root: u32,
    /// The number of the call in its worker.
    token: u32,
}

/// A reply. Without a status the connection broke off, or the reply was too large.
pub(crate) struct Reply {
    pub(crate) root: u32,
    pub(crate) token: u32,
    pub(crate) status: Option<u16>,
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct Calls {
    /// Calls that Envoy has not received.
    waiting: Vec<(Caller, HttpCall)>,
    /// Calls without a reply, by the configuration and Envoy's number. The number is unknown while Envoy receives the call.
    sent: Vec<(Option<u64>, Caller)>,
    /// Clusters to which the latest call could not be made.
    lacking: Vec<String>,
}

static CALLS: Mutex<Calls> =
    Mutex::new(Calls { waiting: Vec::new(), sent: Vec::new(), lacking: Vec::new() });

fn calls() -> MutexGuard<'static, Calls> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands a call of a worker over to the main thread.
pub(crate) fn send(
    slot: usize,
    root: u32,
    token: u32,
    call: &HttpCall,
) -> Result<(), &'static str> {
    calls().waiting.push((Caller { slot, root, token }, call.clone()));
    if config::schedule(root) {
        return Ok(());
    }
    end(root);
    Err("the configuration has ended")
}

/// The main thread makes the calls of a configuration.
pub(crate) fn make(root: u32, config: &ConfigCall) {
    let waiting: Vec<_> =
        calls().waiting.extract_if(.., |(caller, _)| caller.root == root).collect();
    for (caller, call) in waiting {
        calls().sent.push((None, caller));
        let made = config.http_call(&call);
        let mut calls = calls();
        // Envoy may have replied within.
        let Some(position) =
            calls.sent.iter().position(|(id, it)| id.is_none() && it.token == caller.token)
        else {
            continue;
        };
        match made {
            Ok(id) => {
                calls.lacking.retain(|cluster| *cluster != call.cluster);
                if let Some((known, _)) = calls.sent.get_mut(position) {
                    *known = Some(id);
                }
            }
            Err(why) => {
                calls.sent.remove(position);
                let is_new = !calls.lacking.contains(&call.cluster);
                if is_new {
                    calls.lacking.push(call.cluster.clone());
                }
                drop(calls);
                if is_new {
                    log(LogLevel::Warn, &format!("cluster `{}`: {why}", call.cluster));
                }
                // The status with which Envoy replies if it cannot connect.
                deliver(caller, Some(503), Vec::new());
            }
        }
    }
}

/// Envoy has a reply for a configuration.
pub(crate) fn reply(root: u32, id: u64, status: Option<u16>, body: Vec<u8>) {
    let caller = {
        let mut calls = calls();
        let is_own = |known: &Option<u64>, caller: &Caller| {
            caller.root == root && known.is_none_or(|known| known == id)
        };
        // A call with this number, or the one that Envoy is receiving.
        let found =
            calls.sent.iter().position(|(known, caller)| known.is_some() && is_own(known, caller));
        let found =
            found.or_else(|| calls.sent.iter().position(|(known, caller)| is_own(known, caller)));
        found.map(|position| calls.sent.remove(position).1)
    };
    if let Some(caller) = caller {
        deliver(caller, status, body);
    }
}

/// A configuration has ended: Envoy drops the replies to its calls.
pub(crate) fn end(root: u32) {
    let mut calls = calls();
    calls.waiting.retain(|(caller, _)| caller.root != root);
    calls.sent.retain(|(_, caller)| caller.root != root);
}

fn deliver(caller: Caller, status: Option<u16>, body: Vec<u8>) {
    let Caller { slot, root, token } = caller;
    if let Some(slot) = slot::all().get(slot) {
        slot.enter(|state| state.deliver(Reply { root, token, status, body }));
    }
}
