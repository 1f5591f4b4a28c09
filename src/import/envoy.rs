//! Shared by the formats of Envoy's configuration.

pub(crate) mod actions;
pub(crate) mod fields;
pub(crate) mod matchers;
