//! Requests whose costs are known when their streams end, or that count only if they end in some way.

mod answered;
mod closing;
mod ends;
mod redirects;
pub mod upstream;

use crate::harness::{Envoy, Response};

/// Permits that a caller has left of a rule, as one more request with these headers learns.
pub fn left(envoy: &Envoy, path: &str, headers: &[(&str, &str)]) -> u64 {
    let probe = envoy.get(path, headers);
    assert_eq!(probe.status, 200);
    left_after(&probe)
}

/// Permits that are left after a request that was answered so.
pub fn left_after(answer: &Response) -> u64 {
    let told = answer.header("ratelimit").expect("it is told");
    let left = told.split(";r=").nth(1).and_then(|rest| rest.split(';').next());
    left.expect("it is told").parse().unwrap()
}
