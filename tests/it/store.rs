//! The stores, held against what they promise.

mod changes;
mod clocks;
mod conformance;
mod crowds;
mod faults;
pub mod gateway;
mod leases;
mod memory;
mod races;
mod remains;
mod reservations;
pub mod rule;
mod scopes;
mod thrift;
