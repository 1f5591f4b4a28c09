//! Requests whose costs are known when their streams end, or that count only if they end in some way.

pub mod crowd;
mod ends;
pub mod logins;
pub mod upstream;

use crate::harness::Envoy;

/// Permits that an account has left of a rule, as a request learns that uses none of those that are reserved for it.
fn left(envoy: &Envoy, path: &str, account: &str) -> u64 {
    let act = "sleep 0 tokens 0";
    let probe = envoy.get(path, &[("x-account-id", account), (upstream::ACT, act)]);
    assert_eq!(probe.status, 200);
    let told = probe.header("ratelimit").expect("it is told");
    let left = told.split(";r=").nth(1).and_then(|rest| rest.split(';').next());
    left.expect("it is told").parse().unwrap()
}
