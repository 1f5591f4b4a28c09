//! What is read of a request.

pub mod conditions;
mod identity;
mod paths;
mod presence;
