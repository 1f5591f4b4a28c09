//! Requests in flight: never more than the limit, and whoever fits is let in, whatever becomes of them.

mod config;
mod fleet;
mod gateway;
mod holders;
mod law;
mod ledger;
mod local;
mod places;
pub mod reports;
mod spoiled;
mod store;
mod values;
