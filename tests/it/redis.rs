//! The stores of the fleet, and their client.

pub mod client;
mod replies;
mod resp;
pub mod store;
