//! The promises of `docs/guarantees.md` in every small world: all that can happen in it is tried, by the code that is shipped.

mod choices;
mod interleavings;
mod messages;
mod traces;

/// The size of the worlds.
fn depth() -> usize {
    std::env::var("DIANA_DEPTH").map_or(3, |depth| depth.parse().expect("a number"))
}
