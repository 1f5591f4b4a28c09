//! Fleets of the real core on a simulated clock, against a model of Redis: what they promise each other.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

#[path = "../laws/case.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
mod case;
#[path = "../model/model.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
mod model;
mod oracle;
mod promises;
#[path = "../it/seed.rs"]
mod seed;
#[path = "simulation.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
mod simulation;
