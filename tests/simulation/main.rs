//! Fleets of the real core on a simulated clock, against a model of Redis: what they promise each other.

mod oracle;
mod parts;
mod promises;
