//! Lines of access logs: what each of them says of a request, and of how it ended.

mod columns;
mod entry;
mod fields;
mod instant;
mod json;
mod reader;
mod text;

pub use entry::Entry;
pub use fields::Mapping;
pub use reader::Reader;
