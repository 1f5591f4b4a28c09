//! Tests of the stores.

mod cache;
mod changes;
mod charging;
mod clocks;
mod conformance;
mod daily;
mod faults;
pub mod fleet;
mod hot;
mod lease_model;
mod leases;
mod memory;
mod operator;
mod overflow;
mod races;
mod reclaimer;
mod replies;
mod reservations;
mod resets;
mod scopes;
mod settlement;
mod table;
mod unknown_callers;
