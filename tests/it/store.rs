//! Tests of the stores.

mod cache;
mod changes;
mod charging;
mod clocks;
mod daily;
mod faults;
mod hot;
mod leases;
mod memory;
mod process;
pub mod races;
mod reclaimer;
mod reservations;
mod resets;
mod table;
mod unknown_callers;
