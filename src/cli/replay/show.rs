//! Formats of a replay's result.

pub mod html;
pub mod json;
pub mod text;
