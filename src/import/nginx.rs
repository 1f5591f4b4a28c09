//! Shared by the formats of nginx.

pub(crate) mod keys;
pub(crate) mod model;
pub(crate) mod syntax;
pub(crate) mod variables;
