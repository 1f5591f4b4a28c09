//! Bans: the step, and who is remembered.

mod fleet;
mod flood;
mod gateway;
mod law;
mod race;
