//! Reading requests.

pub mod conditions;
mod identity;
mod paths;
mod presence;
mod routes;
