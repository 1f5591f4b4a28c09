//! The configuration centre, reached through the host.

use super::abi;
use super::host::HostSharedData;
use super::outside::{self, HostCallout, HostEnvironment};
use diana_core::policy::Policy;
use diana_core::time::Micros;
use diana_worker::remote::{Host, Outcome, Poller};

/// The poller of a configuration that has a centre.
pub(super) fn poller(policy: &Policy, namespace: &str) -> Option<Result<Poller, String>> {
    let id = u128::from_le_bytes(abi::random().unwrap_or_default()) as u64;
    let poller = |remote| {
        let who = (id, abi::monotonic());
        Poller::new(remote, policy.own(), namespace, &HostEnvironment, who)
    };
    policy.remote.clone().map(poller)
}

/// The rules of the last good document.
pub(super) fn last_good(poller: &mut Poller) -> Option<Policy> {
    poller.last_good(&HostSharedData)
}

pub(super) fn tick(poller: &mut Poller, root: u32, now: Micros) -> Outcome {
    poller.tick(&Host { data: &HostSharedData, callout: &HostCallout { root }, now })
}

/// Takes the answer to a call.
pub(super) fn answer(
    poller: &mut Poller,
    root: u32,
    token: u32,
    headers: usize,
    size: usize,
) -> Outcome {
    let callout = &HostCallout { root };
    let host = Host { data: &HostSharedData, callout, now: abi::monotonic() };
    outside::answer(headers, size, |answer| poller.answer(token, answer, &host))
}
