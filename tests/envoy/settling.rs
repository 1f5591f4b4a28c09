//! Requests with costs that are known at the end of their streams, or that count only with certain
//! outcomes.

mod bytes;
mod ends;
mod grpc;
mod local_replies;
mod outcomes;
mod redirects;
mod shutdown;
pub mod upstream;

use crate::harness::{Envoy, Response};

/// A caller's remaining permits, read from the response to one more request with these headers.
pub fn left(envoy: &Envoy, path: &str, headers: &[(&str, &str)]) -> u64 {
    let probe = envoy.get(path, headers);
    assert_eq!(probe.status, 200);
    left_after(&probe)
}

/// The remaining permits in a response.
pub fn left_after(answer: &Response) -> u64 {
    let field = answer.header("ratelimit").expect("it is reported");
    let left = field.split(";r=").nth(1).and_then(|rest| rest.split(';').next());
    left.expect("it is reported").parse().unwrap()
}
