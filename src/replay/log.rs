//! Access logs: each line is read as a request and how its stream ended.

mod columns;
mod entry;
mod fields;
mod instant;
mod json;
mod reader;
mod text;

pub use entry::LogEntry;
pub use fields::FieldMapping;
pub use reader::LogReader;
