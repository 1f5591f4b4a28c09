//! Hot keys, checked by an oracle that remembers every request.

mod law;
mod oracle;
mod sharing;
mod workers;
