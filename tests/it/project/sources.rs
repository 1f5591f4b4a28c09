//! Rules for every file of the source: its names, and the places of `unsafe`; and for every shipped
//! listener.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use diana_policy::Metric;

/// Types that mean the same in both adapters to Envoy.
const IN_BOTH_ADAPTERS: [&str; 3] = ["HostCall", "HostEnding", "HostRequest"];

const CRATES: [&str; 15] = [
    "algorithm",
    "cli",
    "compose",
    "config",
    "import",
    "limiter",
    "native",
    "policy",
    "redis",
    "replay",
    "request",
    "store",
    "wasm",
    "web",
    "worker",
];

fn texts(name: &str) -> Vec<(PathBuf, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src").join(name);
    let files = files(&source);
    assert!(!files.is_empty(), "{} has no files", source.display());
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn shipped_listeners_reject_names_with_underscores() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut count = 0;
    for folder in ["envoy", "envoy/istio", "envoy/llm", "envoy/redis", "charts/diana/templates"] {
        let files = fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|end| end == "yaml")) {
            let text = fs::read_to_string(&file).unwrap();
            let has = |key: &str| text.lines().any(|line| line.trim_start().starts_with(key));
            if has("stream_idle_timeout:") || has("use_remote_address:") {
                let is_set = text.contains("headers_with_underscores_action: REJECT_REQUEST");
                assert!(is_set, "{}", file.display());
                count += 1;
            }
        }
    }
    assert_eq!(count, 16);
}

/// A path that forgets idle connections does so after 240 s or more.
#[test]
fn shipped_clusters_of_redis_keep_their_connections_alive() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut count = 0;
    let folders = ["", "envoy-gateway", "istio", "recipes", "redis", "../charts/diana/templates"];
    let folders = folders.map(|folder| fs::read_dir(root.join("envoy").join(folder)).unwrap());
    for file in folders.into_iter().flatten().map(|file| file.unwrap().path()) {
        if file.is_dir() {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let mut name = "";
        let mut lines = text.lines().map(str::trim).peekable();
        while let Some(line) = lines.next() {
            let line = line.strip_prefix("- ").unwrap_or(line);
            name = line.strip_prefix("name: ").unwrap_or(name);
            if line.starts_with("connect_timeout:") && name.contains("redis") {
                lines.next_if(|line| line.starts_with('#'));
                let next = lines.next().unwrap_or_default();
                let is_set = next.contains("tcp_keepalive: { keepalive_time: 60,");
                assert!(is_set, "{}: {name}", file.display());
                count += 1;
            }
        }
    }
    assert_eq!(count, 14);
}

#[test]
fn each_type_name_occurs_once() {
    let mut known: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (file, text) in CRATES.iter().flat_map(|name| texts(name)) {
        let types = ["struct ", "enum ", "trait ", "type "];
        for line in text.lines() {
            let line = ["pub(crate) ", "pub(super) ", "pub "]
                .iter()
                .find_map(|prefix| line.strip_prefix(prefix))
                .unwrap_or(line);
            let Some(rest) = types.iter().find_map(|word| line.strip_prefix(word)) else {
                continue;
            };
            let of_word = |letter: &char| letter.is_ascii_alphanumeric();
            let word: String = rest.chars().take_while(of_word).collect();
            let other = known.insert(word.clone(), file.clone());
            assert!(
                other.is_none() || IN_BOTH_ADAPTERS.contains(&&*word),
                "`{word}` is in {} and {}",
                file.display(),
                other.unwrap().display()
            );
        }
    }
    assert!(known.len() > 300);
}

#[test]
fn only_the_files_at_the_abi_of_a_host_are_unsafe() {
    for (file, text) in CRATES.into_iter().flat_map(texts) {
        let is_unsafe = text.lines().any(|line| {
            !line.trim_start().starts_with("//")
                && ["unsafe {", "unsafe extern", "unsafe impl"].iter().any(|it| line.contains(it))
        });
        let abi = ["wasm/raw.rs", "native/abi.rs", "native/hooks.rs"];
        assert_eq!(is_unsafe, abi.iter().any(|end| file.ends_with(end)), "{}", file.display());
    }
}

/// Calls that failed have their metric by its name.
#[test]
fn each_metric_is_counted() {
    let code: String = texts("").into_iter().map(|(_, text)| text).collect();
    let words = code.split(|it: char| !it.is_alphanumeric() && it != ':').collect::<BTreeSet<_>>();
    for metric in Metric::ALL.iter().filter(|it| !it.name().starts_with("fleet.failed.")) {
        assert!(words.contains(&*format!("Metric::{metric:?}")), "{metric:?}");
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
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
