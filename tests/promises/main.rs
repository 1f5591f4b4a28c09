//! The promises of `docs/guarantees.md` in every small world: all that can happen in it is tried, by the code that is shipped.

mod choices;
mod traces;
