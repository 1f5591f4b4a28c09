//! The small settings of the full form.

use std::iter::successors;

use super::advice::about::{About, Advised, of_document};
use super::fields::Fields;
use super::mapping::Allowed;
use super::mapping::Allowed::{Flag, Whole};
use super::mapping::{Choices, Mapping, mapping, optional};
use super::{headers, operator, redis};
use diana_limiter::sizing::memory;
use diana_policy::remote::{DEFAULT_KEYS, MOST_KEYS, Own};
use diana_policy::{Accepted, Limit, OnFault};

/// Whether refusals are logged.
pub const LOGS: Choices<bool> = &[("none", false), ("refused", true)];

/// What happens to a request after a fault of the dynamic module.
pub const ON_FAULTS: Choices<OnFault> = &[("pass", OnFault::Pass), ("refuse", OnFault::Refuse)];

/// `accepted`.
pub static ACCEPTED: Mapping = mapping(
    "accepted",
    "a mapping such as `{headers: true, filter_state: true}`",
    &[optional("headers", Flag), optional("filter_state", Flag)],
);

/// Maximum size of a worker's tables. A VM has 1 GiB, and during a configuration change it holds
/// the old and the new tables.
const MAX_BYTES: u64 = 512 << 20;

/// The allowed numbers of callers in a table.
pub const KEYS: Allowed = Whole(1, MOST_KEYS as u64);

/// The allowed values of `namespace`.
pub const NAMESPACE: Allowed =
    Allowed::Text("1 … 64 of the characters A-Z, a-z, 0-9, `_` and `-`", |text| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        (1..=64).contains(&text.len()) && text.bytes().all(is_plain)
    });

/// The settings that a remote document cannot change.
pub fn own(top: &Fields<'_>) -> Own {
    Own {
        keys: top.number("keys").unwrap_or(DEFAULT_KEYS),
        log_refused: top.choice("log", LOGS).unwrap_or(false),
        accepted: accepted(top),
        explain: operator::explain(top),
        mark: headers::marker(top, "mark"),
        admin: operator::admin(top),
        redis: redis::read(top),
        module: top.module(),
        on_fault: top.choice("on_fault", ON_FAULTS).unwrap_or_default(),
    }
}

/// The largest `keys` up to the wanted number with which the tables fit into a VM: a VM that runs
/// out of memory loses all usage. If a configured number does not fit, that is a problem, and the
/// default is reduced. Rules that do not fit with any number are a problem, too, since
/// overflow buckets have a fixed size.
pub fn fit(top: &Fields<'_>, limits: &[Limit], keys: usize) -> usize {
    let bytes = |keys| memory(limits, keys).worker;
    let fewer = |keys: &usize| Some(keys * 9 / 10).filter(|&fewer| fewer > 0);
    let fits = successors(Some(keys), fewer).find(|&keys| bytes(keys) <= MAX_BYTES);
    let could = |keys| {
        format!(
            "with `keys: {keys}` the tables of a worker use up to {} MiB, allowed: at most {} MiB",
            bytes(keys) >> 20,
            MAX_BYTES >> 20
        )
    };
    match (fits, top.get("keys")) {
        (None, _) => top.report("limits", format!("{}; use fewer rules or slices", could(1))),
        (Some(fits), Some(node)) if fits < keys => {
            let message = format!("{}; use `keys: {fits}`, or fewer rules or slices", could(keys));
            node.problem(message);
        }
        _ => {}
    }
    fits.unwrap_or(1)
}

/// A reduced number of callers, compared with the default, or with the gateway's setting for remote
/// rules.
pub fn find_few_keys(about: &About<'_>) -> Vec<Advised> {
    let (keys, wanted) = (about.policy.keys, about.policy.wanted_keys);
    of_document((keys < wanted).then(|| {
        format!(
            "each of these {} rules has room for `keys: {keys}` live callers instead of {wanted}, since the tables of a \
             worker are limited to {} MiB; beyond that, new callers share buckets and may be refused because of each other; \
             use `scope: gateway`, which stores callers outside the workers, or fewer rules or slices",
            about.rules().count(),
            MAX_BYTES >> 20
        )
    }))
}

fn accepted(top: &Fields<'_>) -> Accepted {
    top.mapping("accepted").map_or_else(Accepted::default, |fields| Accepted {
        headers: fields.flag("headers", false),
        filter_state: fields.flag("filter_state", false),
    })
}
