//! Requests whose costs are known when their streams end, or that count only if they end in some way.

pub mod crowd;
mod ends;
pub mod logins;
pub mod upstream;
