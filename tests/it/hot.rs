//! Hot keys, checked by an oracle that remembers every request.

mod crowd;
mod law;
mod oracle;
mod sharing;
