//! Tests of the stores.

mod changes;
mod clocks;
mod conformance;
mod crowds;
pub mod desk;
mod faults;
pub mod fleet;
mod known;
mod leases;
mod lent;
mod lifted;
mod lifts;
mod memory;
mod office;
mod orders;
mod races;
mod recall;
mod remains;
mod reservations;
mod scopes;
mod settles;
mod ways;
