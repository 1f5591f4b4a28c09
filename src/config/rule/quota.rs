//! `quota` of a rule: many accounts in fixed memory.

use crate::context::Context;
use crate::fields::Fields;
use crate::node::Node;
use crate::rule::algo::Limiter;
use crate::values;
use diana_core::algorithm::REGISTRY;
use diana_core::bloom::Shape;
use diana_core::policy::{Plans, Scope};
use diana_core::time::Unit;
use diana_core::tree::Tree;

const WHAT: &str = "a mapping such as `{accounts: 1000000, error: 0.01}`";
/// Its keys.
pub const KEYS: &[&str] = &["accounts", "error", "memory"];
const ERROR: &str = "the chance that an account is refused too early, 0.0001 … 0.1, such as `0.01`";

const MAX_ACCOUNTS: u64 = 1_000_000_000;

/// In millionths.
const MIN_ERROR: u64 = 100;
const MAX_ERROR: u64 = 100_000;
const DEFAULT_ERROR: u64 = 10_000;

/// Most that all quotas of a worker may take: three quarters of what callers may.
const MAX_BYTES: u64 = 384 << 20;

/// Reads the `quota` of a rule whose numbers are those of `limiter`, if they could be read.
pub fn read(
    rule: &Fields<'_>,
    limiter: Option<&Limiter>,
    plans: Option<&Plans>,
    (scope, is_all): (Scope, bool),
    context: &Context<'_>,
) -> Option<Shape> {
    let node = rule.get("quota")?;
    let fields = Fields::read(node, WHAT, KEYS)?;
    let accounts = fields.require("accounts", &format!("a whole number, 1 … {MAX_ACCOUNTS}"));
    let accounts = accounts.and_then(|node| node.whole(1, MAX_ACCOUNTS));
    let error = fields.get("error").map_or(Some(DEFAULT_ERROR), error);
    let memory = fields.get("memory").and_then(|node| values::size(node, MAX_BYTES));
    let limiter = limiter?;
    blame_what_does_not_fit(rule, limiter, scope, is_all);
    let (accounts, error) = (accounts?, error?);
    let largest = plans.map_or(limiter.quota, Plans::largest);
    let most = largest.rpu / limiter.quota.cost.max(1);
    let shape = Shape::new(accounts, error, most);
    let bytes = shape.bytes();
    if let (Some(memory), Some(node)) = (memory, fields.get("memory"))
        && bytes > memory
    {
        node.problem(format!(
            "{} KiB are too little, allowed: at least `{}KiB`; or `accounts: {}`, or a larger `error`",
            memory >> 10,
            bytes.div_ceil(1 << 10),
            (accounts * memory / bytes).max(1)
        ));
    }
    let all = context.quotas.get().saturating_add(bytes);
    context.quotas.set(all);
    if all > MAX_BYTES {
        node.problem(format!(
            "the quotas up to this one could take {} MiB in each worker, allowed: at most {} MiB; \
             choose fewer `accounts` or a larger `error`",
            all >> 20,
            MAX_BYTES >> 20
        ));
        return None;
    }
    Some(shape)
}

/// What else stands in the rule must suit a quota.
fn blame_what_does_not_fit(rule: &Fields<'_>, limiter: &Limiter, scope: Scope, is_all: bool) {
    let Limiter { quota, told, settling, entry, .. } = limiter;
    let answered = settling.as_ref().is_some_and(|settling| settling.told.is_some());
    let by_calendar = REGISTRY.iter().filter(|entry| entry.by_calendar).map(|entry| entry.short);
    for (key, is_wrong, allowed) in [
        ("unit", quota.unit != Unit::Day, "day"),
        ("algo", !entry.by_calendar, &*by_calendar.collect::<Vec<_>>().join(", ")),
        ("rpu", quota.rpu == 0, "1 or more"),
        ("cost", told.is_some() || answered, "a number, the same for all requests"),
        ("scope", scope == Scope::Gateway, "local, global"),
        (
            "count",
            settling.is_some() && !answered,
            "nothing, since what was counted cannot be taken back",
        ),
        ("actor", is_all, "one that tells callers apart"),
    ] {
        if is_wrong {
            rule.blame(key, format!("allowed beside `quota`: {allowed}"));
        }
    }
}

/// A chance in millionths.
fn error(node: &Node<'_>) -> Option<u64> {
    let millionths = match node.tree() {
        Tree::Number(text) => text.strip_prefix("0.").and_then(millionths),
        _ => None,
    };
    let fits = millionths.filter(|error| (MIN_ERROR..=MAX_ERROR).contains(error));
    if fits.is_none() {
        node.reject(ERROR);
    }
    fits
}

/// What the digits behind a point mean; nothing if there are more than six.
fn millionths(digits: &str) -> Option<u64> {
    let missing = 6_usize.checked_sub(digits.len())?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| is_plain)?;
    Some(number * 10_u64.pow(missing as u32))
}
