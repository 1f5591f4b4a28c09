//! The output of findings, one module per format.

pub mod github;
pub mod json;
pub mod sarif;
pub mod text;
