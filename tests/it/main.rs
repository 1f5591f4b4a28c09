//! Native tests of the crates, without a host.

mod algorithm;
mod config;
mod features;
mod limiter;
mod policy;
mod project;
mod redis;
mod request;
mod store;
mod support;
mod worker;

use kit::seed;

#[test]
fn every_algorithm_obeys_its_laws() {
    kit::laws::hold(seed::next(), 400);
}
