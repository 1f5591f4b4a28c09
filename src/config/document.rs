//! The forms of a configuration, and their common meaning.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::actors::SOURCES;
use super::advice::IN_LOG;
use super::advice::about::{About, Advice, Row};
use super::context::Context;
use super::entry::ENTRY;
use super::fields::{Fields, NameIndex};
use super::headers::MARKER;
use super::hint::Place;
use super::mapping::Allowed;
use super::mapping::Allowed::{Choice, Flag, List, Map, Named};
use super::mapping::{Mapping, MappingKey, optional, required, words};
use super::matching::{EXCEPT, MATCH};
use super::node::{self, Node};
use super::node_path::{NodePart, NodePath};
use super::operator::{ADMIN, EXPLAIN};
use super::plans::NAMED_PLANS;
use super::redis::REDIS;
use super::remote::REMOTE;
use super::report::ProblemReport;
use super::response::RESPONSE;
use super::rule::RULE;
use super::rule::{self, fingerprint, naming};
use super::settings::{ACCEPTED, KEYS, LOGS, NAMESPACE, ON_FAULTS};
use super::starts::{self, PeriodStarts};
use super::starts::{DAY_STARTS, MONTH_STARTS, WEEK_STARTS};
use super::time_zone::{self, TimeZone};
use super::values::TEXT;
use super::{actors, entry, mark, matching, plans, remote, response, settings};
use diana_policy::Policy;
use diana_policy::remote::Own;
use diana_policy::tree::Tree;

/// The entries of a document.
pub const LIMITS: Allowed = List("a list of `{Url, rules}`; `[]` for no limits", &Map(&ENTRY));

/// A document. Remote documents have no keys of [`own`].
pub static DOCUMENT: Mapping = Mapping {
    name: "document",
    what: "a mapping such as `{limits: […]}`, or a list of `{Url, rules}`",
    keys: &[
        required("limits", LIMITS),
        optional("actors", Named("a mapping such as `{tenant: [{header: x-tenant}]}`", &SOURCES)),
        optional("except", Map(&EXCEPT)),
        optional("time_zone", TEXT),
        optional("day_starts", DAY_STARTS),
        optional("week_starts", WEEK_STARTS),
        optional("month_starts", MONTH_STARTS),
        optional("response", Map(&RESPONSE)),
        optional("shadow", Flag),
        optional("disabled", Flag),
        optional(
            "plans",
            Named(
                "a mapping such as `{tiers: {by: […], of: {gold: {rpu: 1000}}}}`",
                &Map(&NAMED_PLANS),
            ),
        ),
    ],
    more: own,
};

fn own() -> Vec<MappingKey> {
    vec![
        optional("namespace", NAMESPACE),
        optional("keys", KEYS),
        optional("log", Choice(|| words(LOGS))),
        optional("on_fault", Choice(|| words(ON_FAULTS))),
        optional("accepted", Map(&ACCEPTED)),
        optional("mark", MARKER),
        optional("redis", Map(&REDIS)),
        optional("remote", Map(&REMOTE)),
        optional("explain", Map(&EXPLAIN)),
        optional("admin", Map(&ADMIN)),
    ]
}

/// Where the keys of these mappings belong, for hints.
pub static PLACES: [Place; 4] = [
    (&DOCUMENT, "at the top, next to `limits`"),
    (&ENTRY, "next to `rules`"),
    (&RULE, "in a rule"),
    (&MATCH, "in `match` or `unless`"),
];

/// Reads the documents of one configuration. Returns the policy, and the advice about it that the
/// log has, and that of `more`. `own` is given for a remote document.
pub fn read(
    report: &ProblemReport<'_>,
    own: Option<&Own>,
    more: &[Row],
) -> Option<(Policy, Vec<Advice>)> {
    let mut roots = node::roots(report);
    roots.retain(|root| *root.tree() != Tree::Null);
    match roots.as_slice() {
        [] => {
            let path = NodePath { steps: vec![0], part: NodePart::Missing("limits") };
            report.add(path, format!("required, allowed: {LIMITS}"));
            None
        }
        [root] if is_full(root.tree()) => {
            let top = Fields::read(root, &Allowed::Map(&DOCUMENT))?;
            if own.is_some() {
                refuse_gateway_keys(&top);
            }
            Some(policy((&top, &top.list("limits").unwrap_or_default()), own, more))
        }
        [first, ..] => {
            let entries: Vec<Node<'_>> = roots.iter().flat_map(blocks).collect();
            Some(policy((&Fields::none(first, &DOCUMENT), &entries), own, more))
        }
    }
}

/// Returns true if a document is in the full form, with the key `limits`, and not a block.
pub fn is_full(root: &Tree) -> bool {
    let is_block = ["Url", "url", "rules"].iter().any(|key| root.get(key).is_some());
    matches!(root, Tree::Map(_)) && (root.get("limits").is_some() || !is_block)
}

/// The blocks of one of several documents.
fn blocks<'a>(root: &Node<'a>) -> Vec<Node<'a>> {
    match root.tree() {
        Tree::List(_) => root.children(),
        _ if is_full(root.tree()) => {
            root.reject(
                "only `{Url, rules}` blocks, since there are several documents; write settings and `limits` in a single \
                 document",
            );
            Vec::new()
        }
        Tree::Map(_) => vec![root.clone()],
        _ => {
            root.pairs(&DOCUMENT.what);
            Vec::new()
        }
    }
}

/// Reports keys that a remote document must not contain.
fn refuse_gateway_keys(top: &Fields<'_>) {
    let allowed: Vec<_> = DOCUMENT.keys.iter().map(|key| key.name).collect();
    for node in top.more().iter().filter_map(|key| top.get(key.name)) {
        node.key_problem(format!(
            "only allowed in the gateway's own configuration; allowed in a remote document: {}",
            allowed.join(", ")
        ));
    }
}

fn policy(
    (top, entries): (&Fields<'_>, &[Node<'_>]),
    own: Option<&Own>,
    more: &[Row],
) -> (Policy, Vec<Advice>) {
    let actors = actors::read(top);
    let TimeZone { zone, rule } = top.get("time_zone").map(time_zone::read).unwrap_or_default();
    let context = Context {
        actors: &actors,
        plans: plans::named(top),
        zone,
        starts: starts::read(top, &PeriodStarts::default()),
        names: RefCell::new(NameIndex::new()),
        quotas: Cell::new(0),
    };
    let response = response::read(top, &Rc::new(response::standard()));
    let mut limits: Vec<_> =
        entries.iter().filter_map(|node| entry::read(node, &response, &context)).collect();
    rule::check(entries, &context);
    let twins = fingerprint::fill(&mut limits, &actors, rule.as_deref());
    naming::fill(&mut limits, &actors, context.names.into_inner());
    let is_own = own.is_none();
    let own = own.cloned().unwrap_or_else(|| settings::own(top));
    if let (Some(explain), Some(node)) = (&own.explain, top.get("explain")) {
        actors::refuse_actor_header(&actors, &explain.header, node);
    }
    let callers = settings::fit(top, &limits, own.keys);
    let except = matching::except(top, false);
    mark::check(top, &own, &limits, &actors, &except);
    let mut policy = Policy {
        warnings: Vec::new(),
        except,
        shadow: top.flag("shadow", false),
        disabled: top.flag("disabled", false),
        namespace: top.text("namespace").map(Into::into),
        keys: callers,
        wanted_keys: own.keys,
        log_refused: own.log_refused,
        accepted: own.accepted,
        explain: own.explain,
        fields: response.fields,
        mark: own.mark,
        admin: own.admin,
        is_remote: !is_own,
        checksum: 0,
        redis: own.redis,
        remote: remote::read(top),
        module: own.module,
        on_fault: own.on_fault,
        limits,
        actors: actors.iter().map(|known| known.actor.clone()).collect(),
    };
    let about = About::new(&policy, &actors, top, entries, &twins);
    let (mut advice, more) = (about.advice(IN_LOG), about.advice(more));
    policy.warnings = advice.iter().map(Advice::line).collect();
    advice.extend(more);
    (policy, advice)
}
