//! Access logs: what each of their lines says of a request, in the order in which the requests came.

mod columns;
mod entry;
mod fields;
mod instant;
mod json;
mod lines;
mod order;
mod progress;
mod source;
mod text;

pub use entry::Entry;
pub use fields::Mapping;
pub use order::Log;
pub use source::Seen;
