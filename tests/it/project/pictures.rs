//! The pictures of the book, drawn from what the shipped code decides and from tables of measurements. `INSTA_UPDATE=always` writes
//! them.

mod bans;
mod bursts;
mod costs;
mod drawing;
mod hops;
mod outage;
mod scopes;
mod settling;

use std::fs;
use std::path::Path;

use drawing::Drawing;

type Draw = fn() -> Drawing;

/// A name, and the function that draws it.
const PICTURES: [(&str, Draw); 8] = [
    ("bursts", bursts::draw),
    ("settling", settling::draw),
    ("outage", outage::draw),
    ("hops", hops::draw),
    ("scopes", scopes::draw),
    ("bans", bans::draw),
    ("instructions", costs::instructions),
    ("calls", costs::calls),
];

#[test]
fn pictures_show_what_the_code_decides() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    for (name, draw) in PICTURES {
        let file = folder.join(name).with_extension("svg");
        let drawn = draw().finish();
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            fs::write(&file, &drawn).unwrap();
        }
        let is_same = fs::read_to_string(&file).is_ok_and(|old| old == drawn);
        assert!(
            is_same,
            "docs/pictures/{name}.svg is another picture. INSTA_UPDATE=always writes it"
        );
    }
}
