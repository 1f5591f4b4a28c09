//! Which room of the core uses which, and which file of the stores, as ARCHITECTURE.md says: nothing uses what is built
//! from it. The arrows between crates are kept by cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each module of the core with what it may use, which stands above it here: so there is no circle.
const ARROWS: &[(&str, &[&str])] = &[
    // Plain values and what the host can do.
    ("address", &[]),
    ("key", &[]),
    ("ring", &[]),
    ("time", &[]),
    ("number", &["time"]),
    ("tree", &[]),
    ("json", &[]),
    ("bloom", &["key"]),
    ("decision", &["time"]),
    ("port", &["time"]),
    ("settlement", &["time"]),
    ("spelling", &[]),
    ("words", &["port"]),
    // What is to be done.
    ("policy", &["bloom", "port", "spelling", "time", "tree"]),
    // How it is done.
    ("calendar", &["policy", "time"]),
    ("algorithm", &["calendar", "decision", "policy", "ring", "settlement", "time"]),
    ("matching", &["number", "policy", "port", "spelling"]),
    ("identity", &["address", "json", "key", "matching", "policy", "port", "spelling", "tree"]),
    ("plan", &["identity", "key", "number", "policy", "port"]),
    ("cost", &["identity", "number", "policy", "port"]),
    ("settling", &["number", "policy", "port"]),
    ("permit", &["key", "settlement", "settling", "time"]),
    ("ban", &["policy", "ring", "time"]),
    ("hot", &["key", "policy", "port", "ring", "time"]),
    (
        "store",
        &[
            "algorithm",
            "ban",
            "bloom",
            "calendar",
            "decision",
            "key",
            "permit",
            "policy",
            "port",
            "settlement",
            "time",
            "words",
        ],
    ),
    // Its store goes on with what `store` knows of a gateway; `store` knows nothing of Redis, and
    // it is the engine that tells which of both counts a rule.
    (
        "redis",
        &[
            "algorithm",
            "bloom",
            "calendar",
            "decision",
            "key",
            "permit",
            "policy",
            "port",
            "settlement",
            "store",
            "time",
            "words",
        ],
    ),
    (
        "report",
        &[
            "decision", "json", "key", "number", "redis", "policy", "port", "settling", "store",
            "time",
        ],
    ),
    ("verdict", &["key", "permit", "report", "time"]),
    ("bans", &["ban", "key", "policy", "port", "redis", "store", "time", "words"]),
    ("sizing", &["bans", "hot", "policy", "store"]),
    (
        "engine",
        &[
            "algorithm",
            "bans",
            "cost",
            "identity",
            "decision",
            "redis",
            "hot",
            "key",
            "permit",
            "plan",
            "policy",
            "port",
            "report",
            "matching",
            "settling",
            "store",
            "time",
            "verdict",
        ],
    ),
];

/// The same within `store`: what a store finds goes into a reservation, which knows no store. `store.rs` itself has
/// what all stores are, and uses the reservation only.
const STORES: &[(&str, &[&str])] = &[
    ("counter_spec", &[]),
    ("found", &[]),
    ("usage", &[]),
    ("lease", &[]),
    ("plans", &[]),
    ("slab", &[]),
    ("state", &[]),
    ("watermark", &[]),
    ("weak_registry", &[]),
    ("leases", &["counter_spec", "lease"]),
    ("table", &["slab", "watermark"]),
    ("slots", &["counter_spec", "found", "lease", "state", "watermark"]),
    ("row", &["state", "table"]),
    ("places", &["counter_spec", "found", "plans", "slots"]),
    ("reservation", &["lease", "places", "row", "slots"]),
    ("daily", &["plans", "reservation"]),
    ("in_flight", &["places", "reservation", "slots", "usage"]),
    ("local", &["plans", "reservation", "row", "state", "table"]),
    ("shared", &["lease", "leases", "plans", "reservation", "slots", "usage"]),
    ("tables", &["counter_spec", "daily", "places", "table", "weak_registry"]),
    ("remains", &["found", "places", "slots"]),
    (
        "stores",
        &["daily", "in_flight", "leases", "local", "places", "shared", "slots", "table", "tables"],
    ),
];

#[test]
fn nothing_uses_what_is_built_from_it() {
    hold(ARROWS, "", |_| &["crate::"]);
}

#[test]
fn no_reservation_knows_a_store() {
    hold(STORES, "store", |is_file| if is_file { &["store::", "super::"] } else { &["store::"] });
    let store = fs::read_to_string(core().join("store.rs")).unwrap();
    let used: Vec<&str> = STORES.iter().map(|(name, _)| *name).collect();
    let uses = |name: &&&str| store.contains(&format!("use {name}::"));
    assert_eq!(
        used.iter().filter(uses).collect::<Vec<_>>(),
        [&"counter_spec", &"usage", &"reservation"]
    );
}

/// Compares the modules of a folder of the core with a table. They name one another behind one of some words, which
/// depend on whether it is a file of the folder or lies deeper.
fn hold(arrows: &[(&str, &[&str])], folder: &str, words: impl Fn(bool) -> &'static [&'static str]) {
    let mut above = BTreeSet::new();
    for (module, used) in arrows {
        for used in *used {
            assert!(above.contains(used), "`{module}` may use `{used}`, which stands below it");
        }
        above.insert(*module);
    }
    let source = core().join(folder);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files(&source) {
        let path = file.strip_prefix(&source).unwrap();
        let module = module_of(path);
        let text = fs::read_to_string(&file).unwrap();
        let words = words(path.iter().count() == 1).iter();
        let used = words.flat_map(|word| text.split(word).skip(1)).map(|rest| {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            rest.split(|letter| !is_part(letter)).next().unwrap().to_owned()
        });
        let of_folder = used.filter(|used| folder.is_empty() || above.contains(used.as_str()));
        found.entry(module.clone()).or_default().extend(of_folder.filter(|used| *used != module));
    }
    found.remove("lib");
    for (module, used) in &found {
        let allowed = arrows.iter().find(|(known, _)| known == module);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("`{module}` is not in the table"));
        for used in used {
            assert!(allowed.contains(&used.as_str()), "`{module}` must not use `{used}`");
        }
    }
    // The table says no more than is true.
    for (module, allowed) in arrows {
        let used = found.get(*module).unwrap_or_else(|| panic!("there is no `{module}`"));
        for allowed in *allowed {
            assert!(used.contains(*allowed), "`{module}` does not use `{allowed}` any more");
        }
    }
}

fn core() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/core")
}

/// `engine` for `engine.rs` and for all that lies in `engine/`.
fn module_of(path: &Path) -> String {
    let first = path.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
