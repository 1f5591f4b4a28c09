//! Tests that run through several crates, by feature.

mod after;
mod bans;
mod cost;
mod in_flight;
mod memory;
mod plans;
mod policies;
mod settling;
mod share;
