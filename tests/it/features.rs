//! What runs through several crates.

mod bans;
mod cost;
mod in_flight;
mod memory;
mod plans;
mod settling;
