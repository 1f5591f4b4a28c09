//! Tests of the core, natively and without a host.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod actors;
mod arrows;
mod bans;
mod charges;
mod clocks;
mod conditions;
mod config;
mod daily;
mod engine;
mod fleet;
mod hold;
mod hot;
mod json;
mod keys;
#[path = "../laws/laws.rs"]
mod laws;
#[path = "../model/model.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
mod model;
mod paths;
mod pointer;
mod remote;
mod resp;
mod ring;
mod seed;
mod store;
mod table;
mod text;
mod trips;
mod warm_up;

use laws::case;

#[test]
fn every_algorithm_obeys_its_laws() {
    laws::hold(seed::fresh(), 400);
}
