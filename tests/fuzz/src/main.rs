//! Fuzz targets for all external bytes, in one program. `DIANA_FUZZ` selects the target.
//! `tools/fuzz.py` builds and runs them.

#![no_main]

mod bounded;
mod damage;
mod targets;
mod worker;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("DIANA_FUZZ").unwrap_or_default();
        let found = targets::ALL.iter().find(|(known, _)| *known == name);
        let (_, target) = found.unwrap_or_else(|| panic!("no target `{name}` in DIANA_FUZZ"));
        _ = CHOSEN.set(*target);
    },
    |input: &[u8]| {
        CHOSEN.get().expect("a target is chosen")(input);
    }
);
