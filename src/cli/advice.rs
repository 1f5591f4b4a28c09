//! Advice about files and manifests. That about rules is in the crate `config`.

pub mod overrides;
pub mod roots;

use diana_config::Advice;

/// The identifiers of this advice, and of other findings that `--accept` takes.
const OF_FILES: [&str; 4] =
    ["large-file", "native-module", "overridden-policy", "shared-namespace"];

/// Maximum size of `kubectl apply` in bytes, since it stores the whole manifest in an annotation.
const LARGE: usize = 256 << 10;

/// The identifiers of all advice, which `--accept` takes, in alphabetical order.
pub fn ids() -> Vec<&'static str> {
    let mut ids: Vec<&str> = diana_config::advice_ids().chain(OF_FILES).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Advice about the size in bytes of a file with rules.
pub fn of_size(bytes: usize) -> Option<Advice> {
    let message = format!(
        "the rules have {} KiB: above 256 KiB `kubectl apply` needs `--server-side`, and the filter and a ConfigMap accept at \
         most 1 MiB",
        bytes >> 10
    );
    (bytes > LARGE).then(|| Advice::new("large-file", message))
}
