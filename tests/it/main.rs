//! Native tests of the crates, without a host.

mod address;
mod algorithms;
mod allocated;
mod bans;
mod calendar;
mod charges;
mod clocks;
mod conditions;
mod config;
mod cookies;
mod cost;
mod daily;
mod documents;
mod explained;
mod fleet;
mod hold;
mod hot;
mod house;
mod identity;
mod in_flight;
mod json;
mod keys;
mod limiter;
mod memory;
mod pages;
mod paths;
mod pending;
mod plans;
mod pointer;
mod presence;
mod remote;
mod resp;
mod ring;
mod settling;
mod steps;
mod store;
mod table;
mod trips;
mod warm_up;
mod worker;

use kit::seed;

#[test]
fn every_algorithm_obeys_its_laws() {
    kit::laws::hold(seed::next(), 400);
}
