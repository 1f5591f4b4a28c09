//! How a replay is told.

pub mod html;
pub mod json;
pub mod text;
