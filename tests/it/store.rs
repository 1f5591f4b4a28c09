//! The stores, held against what they promise.

mod blocks;
mod changes;
mod clocks;
mod conformance;
mod crowds;
mod faults;
mod fleet;
mod leases;
mod lent;
mod lifted;
mod loans;
mod memory;
mod office;
mod races;
mod recall;
mod remains;
mod reservations;
mod scopes;
mod thrift;
