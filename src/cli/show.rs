//! How what was found is told, in one format each.

pub mod github;
pub mod json;
pub mod sarif;
pub mod text;
