//! Shared by the formats of nginx.

pub(crate) mod paths;
pub(crate) mod variables;
