//! Advice about settings that are allowed and probably unintended: a row for each kind.

pub mod about;
mod cover;
mod empty;
mod encoded;
mod grpc;
mod guards;
mod large;
mod presence;
mod renewed;
mod rounded;
mod total;
mod wildcards;

use about::{About, Advised, Find, Row, is_chosen_value, named, of_document};

use super::{settings, starts};
use diana_limiter::sizing;
use diana_policy::port::Destination;
use diana_policy::time::Unit;
use diana_policy::{ConditionBlock, CostSource, Limit, ModuleKind, OnFault, PlanKind, Rule, Scope};
use diana_request::identity::header;

/// Memory of a worker in bytes from which advice on memory is given.
const MUCH: u64 = 256 << 20;

/// Minimum number of Envoy's metric series per rule: limit, window, room for callers, and admitted
/// requests.
const SERIES: usize = 4;

/// Number of metric series from which advice on metrics is given.
const MANY_SERIES: usize = 2_000;

/// The advice in the log of a gateway, in its order.
pub const IN_LOG: &[Row] = &[
    other("actor-source", of_sources),
    mistake(other("wildcard", wildcards::find)),
    mistake(entries(
        "large-number",
        "conditions of these rules compare a claim or metadata with a number from 2⁵³ on; Envoy stores numbers as 64-bit floats, \
         so only a text equals it: let the issuer write the value as a text",
        |_, limit| large::compares_large(limit),
    )),
    other("chosen-key", guards::find),
    other("chosen-key-memory", of_chosen_keys),
    rules(
        "chosen-cost",
        "clients choose the cost of their requests under these rules, unless a proxy in front of Diana sets the header of \
         `cost`",
        |_, rule| match rule.cost_source.as_deref() {
            Some(CostSource::Number(cost)) => {
                cost.source.kind == header::KIND.name && rule.settling.is_none()
            }
            _ => false,
        },
    ),
    rules(
        "chosen-cost",
        "clients choose the value by which their requests cost more or less under these rules, unless a proxy or a filter in front \
         of Diana sets it; give a value that is not listed the `default` of a dear request, or read the value from metadata",
        |_, rule| match rule.cost_source.as_deref() {
            Some(CostSource::Chosen(chosen)) => chosen.by.iter().any(is_chosen_value),
            _ => false,
        },
    ),
    rules(
        "chosen-reserve",
        "clients choose the permits that their requests reserve under these rules, unless a proxy in front of Diana sets the header \
         or the parameter; many requests with a small reservation are admitted at once, so add a rule with `in_flight`",
        |_, rule| match rule.cost_source.as_deref() {
            Some(CostSource::Number(cost)) => {
                rule.settling.is_some() && is_chosen_value(&cost.source)
            }
            _ => false,
        },
    ),
    rules(
        "reserve-zero",
        "`reserve: 0` only checks that a permit is left, so all simultaneous requests are admitted, whatever they use; reserve \
         a typical cost, and add a rule with `in_flight`",
        |_, rule| rule.settling.as_ref().is_some_and(|it| it.reserve == 0),
    ),
    rules(
        "chosen-key-slots",
        "clients choose the key of these rules, so a stranger can occupy the `in_flight` slots of another caller with slow \
         requests; use an address or a verified token as the actor",
        |about, rule| rule.is_in_flight() && about.is_caller_chosen(rule),
    ),
    other("idle-rule", cover::find_idle),
    rules(
        "chosen-plan",
        "clients choose the plan of these rules, so every client can choose the largest",
        has_chosen_plans,
    ),
    rules(
        "ban-of-all",
        "all requests count as one caller under these rules, so a ban refuses all of them",
        |_, rule| rule.actor.is_empty() && rule.ban.is_some(),
    ),
    rules(
        "twin-rules",
        "these rules count the same for the same callers, so only their order tells them apart, and they exchange their counts \
         if it changes; give each a `name`",
        |about, rule| about.twins.contains(&rule.fingerprint),
    ),
    other("exempts-all", total::find_exempt),
    entries("excludes-all", "`unless` excludes every request of these rules", |about, limit| {
        !about.is_replaceable() && limit.matcher.unless.iter().any(total::always_holds)
    }),
    rules(
        "free",
        "`max: 0` of `cost` exempts every request: it is free, so these rules refuse none",
        |about, rule| {
            let cost = rule.settling.as_ref().and_then(|it| it.response_cost.as_ref());
            !about.is_replaceable() && rule.quota.rpu > 0 && cost.is_some_and(|it| it.most == 0)
        },
    ),
    other("refuses-all", total::find_closed),
    mistake(other("empty-condition", empty::find)),
    other("few-keys", settings::find_few_keys),
    other("on-fault-unused", of_on_fault),
    mistake(other("start-unused", starts::find_unused)),
    rules(
        "global-without-redis",
        "without `redis`, each gateway counts `global` rules by itself and admits the whole limit; with `quota`, each worker \
         does",
        |about, rule| {
            about.policy.redis.is_none() && rule.scope == Scope::Global && rule.share.is_none()
        },
    ),
    rules(
        "share-without-number",
        "`share: true`, but nothing reports the number of gateways, unless a configuration server has these rules: each gateway \
         admits the whole limit; write that number, such as `share: 3`",
        |about, rule| {
            let policy = about.policy;
            let has_source = policy.is_remote || policy.redis.is_some() || policy.remote.is_some();
            rule.share == Some(1) && !has_source
        },
    ),
    other("redis-unused", |about| {
        let message = "`redis` is not used, since no rule has `scope: global`";
        of_document(is_redis_idle(about).then_some(message))
    }),
    mistake(other("redis-without-namespace", of_namespace)),
    other("disabled", |about| {
        let message = "`disabled: true`: no request is counted, held or refused; usage stays, and counts go on without it";
        of_document(about.policy.disabled.then_some(message))
    }),
];

/// Further advice, which would be too verbose for the log of a gateway: only in `diana check`.
pub const ONLY_IN_CHECK: &[Row] = &[
    other("covered-rule", cover::find_covered),
    rules(
        "server-error",
        "refusals of these rules have a status of server errors, by default 503, for which a load balancer takes a gateway out of \
         use, and tries the request at the next one; set `response: {status: 429}`",
        |_, rule| rule.response.status >= 500 && !rule.shadow && rule.over.is_none(),
    ),
    other("redis-without-pipe", of_pipe),
    entries(
        "encoded-text",
        "`unless` of these rules contains percent-encoded text, but query parameters and cookies are decoded before they are \
         compared; write `@` instead of `%40`",
        |_, limit| encoded::has_encoded(limit),
    ),
    other("grpc-status", grpc::find_statuses),
    other("grpc-header", grpc::find_headers),
    entries(
        "get-without-head",
        "`match` of these rules has `GET` without `HEAD`, for which most upstreams do the same work; write `methods: [GET, HEAD]`",
        leaves_out_head,
    ),
    other("counts-none", presence::find_idle),
    other("unlimited-requests", presence::find_leaky),
    rules(
        "rounded-caller",
        "these rules read a claim by `payload`, where Envoy rounds numbers from 2⁵³ on, so that neighbours share permits and bans; \
         if the claim may have such numbers, read it by `payload_header`",
        rounded::may_be_rounded,
    ),
    rules(
        "renewed-key",
        "these rules count by a token or a certificate, and each new one has the whole limit again; count by a value that stays, \
         such as the claim `sub` or `uri_san` of the certificate; a key that is never renewed may stay",
        renewed::is_renewed,
    ),
    rules(
        "local-scope",
        "each worker counts these rules for itself, so a gateway with N workers admits up to N times the limit; `scope: gateway` \
         counts all workers together",
        |_, rule| rule.is_local() && rule.daily.is_none() && !rule.shadow && rule.quota.rpu > 0,
    ),
    rules(
        "ask-after-by-second",
        "with `ask: after` several gateways may admit more than the limit in each window of these rules, and in so short a window \
         up to the whole limit each; use `token bucket`, which makes up for it, or a unit of a minute or more",
        |_, rule| {
            rule.asks_after && rule.algo != "TB" && rule.quota.period() < Unit::Minute.micros()
        },
    ),
    rules(
        "held-late",
        "requests that these rules hold continue when Envoy's timer fires, up to 4 ms late; with EVENT_PRECISE_TIMER=1 in Envoy's \
         environment, at most 2 ms late",
        holds,
    ),
    rules(
        "held-without-timeout",
        "if a worker's VM dies, requests that these rules hold last until a timeout of Envoy ends them; set `request_timeout` or \
         `stream_idle_timeout` above `max_delay`, since Istio sets neither",
        holds,
    ),
    other("many-metrics", of_metrics),
    other("memory", of_memory),
];

/// The identifiers of all advice that operators may accept.
pub fn ids() -> impl Iterator<Item = &'static str> {
    let rows = IN_LOG.iter().chain(ONLY_IN_CHECK);
    rows.filter(|row| !row.is_mistake).map(|row| row.id)
}

const fn rules(id: &'static str, message: &'static str, is: fn(&About<'_>, &Rule) -> bool) -> Row {
    Row { id, is_mistake: false, find: Find::Rules(message, is) }
}

const fn entries(
    id: &'static str,
    message: &'static str,
    is: fn(&About<'_>, &Limit) -> bool,
) -> Row {
    Row { id, is_mistake: false, find: Find::Entries(message, is) }
}

const fn other(id: &'static str, find: fn(&About<'_>) -> Vec<Advised>) -> Row {
    Row { id, is_mistake: false, find: Find::Other(find) }
}

const fn mistake(row: Row) -> Row {
    Row { is_mistake: true, ..row }
}

fn of_sources(about: &About<'_>) -> Vec<Advised> {
    let warnings = about.actors.iter().flat_map(|known| {
        let warnings = known.sources.iter().filter_map(|source| source.warning());
        warnings.map(|warning| format!("actor `{}`: {warning}", known.actor.name))
    });
    warnings.map(|message| (message, Vec::new())).collect()
}

fn of_chosen_keys(about: &About<'_>) -> Vec<Advised> {
    let message = format!(
        "clients choose the key of these rules, and each key is stored for hours; beyond `keys: {}` live callers, new callers \
         share buckets, so check that `keys` is large enough",
        about.policy.keys
    );
    let is_long = |rule: &&Rule| {
        about.is_caller_chosen(rule)
            && rule.daily.is_none()
            && rule.quota.period() >= Unit::Hour.micros()
    };
    named(&message, about.rules().filter(is_long))
}

/// Returns true if clients choose the plan of a rule.
fn has_chosen_plans(about: &About<'_>, rule: &Rule) -> bool {
    match rule.plans.as_ref().map(|plans| &plans.kind) {
        Some(PlanKind::Listed { by: Some(by), .. }) => by.iter().any(is_chosen_value),
        Some(PlanKind::Listed { by: None, of, .. }) => {
            !of.is_empty() && about.is_caller_chosen(rule)
        }
        Some(PlanKind::FromData(_)) | None => false,
    }
}

/// A setting of the other form of the module.
fn of_on_fault(about: &About<'_>) -> Vec<Advised> {
    let policy = about.policy;
    let is_idle = !policy.is_remote
        && policy.on_fault == OnFault::Refuse
        && policy.module == ModuleKind::Wasm;
    of_document(is_idle.then_some(
        "`on_fault: refuse` is for the dynamic module; after a fault of the wasm module, Envoy's `failure_policy` decides, \
         and `FAIL_RELOAD` refuses the request, too",
    ))
}

/// Returns true if no rule uses Redis, and no remote document may replace the rules.
fn is_redis_idle(about: &About<'_>) -> bool {
    let policy = about.policy;
    let are_final = !policy.is_remote && policy.remote.is_none();
    let mut rules = about.rules();
    policy.redis.is_some() && are_final && rules.all(|rule| rule.scope != Scope::Global)
}

/// Redis without a namespace, in the gateway's own document.
fn of_namespace(about: &About<'_>) -> Vec<Advised> {
    let policy = about.policy;
    let uses_redis = !policy.is_remote && policy.redis.is_some() && !is_redis_idle(about);
    of_document((uses_redis && !about.top.has("namespace")).then_some(
        "`redis` without `namespace`: all gateways with this Redis and root id count together, those of another environment, \
         too; set `namespace` to another name in each environment, such as `production` (usage then starts from zero once)",
    ))
}

/// Redis without a pipe.
fn of_pipe(about: &About<'_>) -> Vec<Advised> {
    let redis = about.policy.redis.as_ref();
    let is_by_cluster =
        redis.is_some_and(|redis| matches!(redis.destination, Destination::Cluster(_)));
    of_document((about.policy.module == ModuleKind::Native && is_by_cluster).then_some(
        "calls to Redis wait while Envoy's main thread is busy, and then the gateway is in degraded mode; set `pipe`, as in \
         envoy/native-fleet.yaml",
    ))
}

/// Returns true if an entry for `GET` leaves out `HEAD`.
fn leaves_out_head(_: &About<'_>, limit: &Limit) -> bool {
    let has = |block: &ConditionBlock, name: &str| block.methods.iter().any(|it| it == name);
    let any = &limit.matcher.any;
    any.iter().any(|block| has(block, "GET")) && !any.iter().any(|block| has(block, "HEAD"))
}

/// Returns true if a rule holds requests.
fn holds(_: &About<'_>, rule: &Rule) -> bool {
    rule.quota.max_delay.map_or(rule.algo == "LB", |delay| delay > 0)
}

fn of_metrics(about: &About<'_>) -> Vec<Advised> {
    let rules = about.rules().count();
    of_document((rules * SERIES >= MANY_SERIES).then(|| {
        format!(
            "the metrics of {rules} rules have at least {} series, and Envoy keeps the series of removed and renamed rules \
             until it restarts; keep the names of generated rules stable",
            rules * SERIES
        )
    }))
}

fn of_memory(about: &About<'_>) -> Vec<Advised> {
    let policy = about.policy;
    let memory = sizing::memory(&policy.limits, policy.keys);
    of_document((memory.worker.max(memory.shared) >= MUCH).then(|| {
        format!(
            "callers use up to {} MiB in each worker and {} MiB of shared data, with room for {} callers in each of {} rules; \
             reduce `keys`, rules or slices to use less",
            memory.worker >> 20,
            memory.shared >> 20,
            policy.keys,
            about.rules().count()
        )
    }))
}
