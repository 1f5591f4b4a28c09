//! Simulates fleets and prints the results as tables. Arguments select tables.

mod busy;
mod demand;
mod faults;
mod outage;
mod parts;
mod simulation;
mod size;
mod table;

/// A table's name, and the function that prints it.
type Table = (&'static str, fn());

const TABLES: &[Table] = &[
    ("size", size::print),
    ("demand", demand::print),
    ("busy", busy::print),
    ("faults", faults::print),
    ("outage", outage::print),
    ("parts", parts::print),
];

fn main() {
    // Cargo adds an option.
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|one| !one.starts_with('-')).collect();
    for name in &chosen {
        assert!(TABLES.iter().any(|(table, _)| table == name), "no table is called {name}");
    }
    for (name, print) in TABLES {
        if chosen.is_empty() || chosen.iter().any(|one| one == name) {
            print();
        }
    }
}
