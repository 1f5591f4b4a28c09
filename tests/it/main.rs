//! Native tests of the crates, without a host.

mod algorithm;
mod bans;
mod config;
mod cost;
mod explanation;
mod fleet;
mod hold;
mod house;
mod in_flight;
mod limiter;
mod memory;
mod pages;
mod pipeline;
mod plans;
mod policy;
mod remote;
mod request;
mod resp;
mod settling;
mod store;
mod support;
mod worker;

use kit::seed;

#[test]
fn every_algorithm_obeys_its_laws() {
    kit::laws::hold(seed::next(), 400);
}
