//! Bans: the step, and who is remembered.

mod flood;
mod law;
mod race;
