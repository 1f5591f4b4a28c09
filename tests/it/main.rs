//! Native tests of the crates, without a host.

mod algorithm;
mod bans;
mod config;
mod cost;
mod house;
mod in_flight;
mod limiter;
mod memory;
mod pages;
mod plans;
mod policy;
mod redis;
mod request;
mod settling;
mod store;
mod support;
mod worker;

use kit::seed;

#[test]
fn every_algorithm_obeys_its_laws() {
    kit::laws::hold(seed::next(), 400);
}
