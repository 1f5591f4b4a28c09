//! Bans: the step, and who is remembered.

mod flood;
mod gateway;
mod law;
mod race;
