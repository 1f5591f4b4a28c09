//! Advice for operators that would be too verbose for the log of a gateway.

mod balanced;
mod cover;
mod encoded;
mod grpc;
mod methods;
pub mod overrides;
mod presence;
mod renewed;
pub mod roots;
mod rounded;

use diana_config::Advice;
use diana_limiter::sizing;
use diana_policy::port::Destination;
use diana_policy::{ModuleKind, Policy, Rule};

/// The identifiers of all advice, which `--accept` takes.
pub const ADVICE: [&str; 40] = [
    "actor-source",
    "ban-of-all",
    "chosen-cost",
    "chosen-key",
    "chosen-key-memory",
    "chosen-key-slots",
    "chosen-plan",
    "chosen-reserve",
    "counts-none",
    "covered-rule",
    "disabled",
    "encoded-text",
    "excludes-all",
    "exempts-all",
    "few-keys",
    "free",
    "get-without-head",
    "global-without-redis",
    "grpc-header",
    "grpc-status",
    "held-late",
    "held-without-timeout",
    "idle-rule",
    "large-file",
    "local-scope",
    "many-metrics",
    "memory",
    "native-module",
    "on-fault-unused",
    "overridden-policy",
    "redis-unused",
    "redis-without-pipe",
    "refuses-all",
    "renewed-key",
    "reserve-zero",
    "rounded-caller",
    "server-error",
    "shared-namespace",
    "twin-rules",
    "unlimited-requests",
];

/// Memory of a worker in bytes from which advice on memory is given.
const MUCH: u64 = 256 << 20;

/// Minimum number of Envoy's metric series per rule: limit, window, room for callers, and admitted
/// requests.
const SERIES: usize = 4;

/// Number of metric series from which advice on metrics is given.
const MANY_SERIES: usize = 2_000;

/// Maximum size of `kubectl apply` in bytes, since it stores the whole manifest in an annotation.
const LARGE: usize = 256 << 10;

/// Advice about the size in bytes of a file with rules.
pub fn of_size(bytes: usize) -> Option<Advice> {
    let message = format!(
        "the rules have {} KiB: above 256 KiB `kubectl apply` needs `--server-side`, and the filter and a ConfigMap accept at \
         most 1 MiB",
        bytes >> 10
    );
    (bytes > LARGE).then(|| Advice::new("large-file", message))
}

/// Advice about rules without problems, for a form of the module. `has_replicas`: a manifest has several gateways.
pub fn of(policy: &Policy, module: ModuleKind, has_replicas: bool) -> Vec<Advice> {
    let mut advice = cover::advice(policy);
    advice.extend(balanced::advice(policy, has_replicas));
    advice.extend(of_redis(policy, module));
    advice.extend(encoded::advice(policy));
    advice.extend(grpc::advice(policy));
    advice.extend(methods::advice(policy));
    advice.extend(presence::advice(policy));
    advice.extend(rounded::advice(policy));
    advice.extend(renewed::advice(policy));
    advice.extend(about(
        policy,
        "local-scope",
        "each worker counts these rules for itself, so a gateway with N workers admits up to N times the limit; `scope: \
         gateway` counts all workers together",
        |rule| rule.is_local() && rule.daily.is_none() && !rule.shadow && rule.quota.rpu > 0,
    ));
    advice.extend(about(
        policy,
        "held-late",
        "requests that these rules hold continue when Envoy's timer fires, up to 4 ms late; with EVENT_PRECISE_TIMER=1 in \
         Envoy's environment, at most 2 ms late",
        holds,
    ));
    advice.extend(about(
        policy,
        "held-without-timeout",
        "if a worker's VM dies, requests that these rules hold last until a timeout of Envoy ends them; set `request_timeout` \
         or `stream_idle_timeout` above `max_delay`, since Istio sets neither",
        holds,
    ));
    let rules: usize = policy.limits.iter().map(|limit| limit.rules.len()).sum();
    if rules * SERIES >= MANY_SERIES {
        let message = format!(
            "the metrics of {rules} rules have at least {} series, and Envoy keeps the series of removed and renamed rules \
             until it restarts; keep the names of generated rules stable",
            rules * SERIES
        );
        advice.push(Advice::new("many-metrics", message));
    }
    let memory = sizing::memory(&policy.limits, policy.keys);
    if memory.worker.max(memory.shared) >= MUCH {
        let message = format!(
            "callers use up to {} MiB in each worker and {} MiB of shared data, with room for {} callers in each of {rules} \
             rules; reduce `keys`, rules or slices to use less",
            memory.worker >> 20,
            memory.shared >> 20,
            policy.keys
        );
        advice.push(Advice::new("memory", message));
    }
    advice
}

/// Advice about Redis without a pipe.
fn of_redis(policy: &Policy, module: ModuleKind) -> Option<Advice> {
    let message = "calls to Redis wait while Envoy's main thread is busy, and then the gateway is in degraded mode; set `pipe`, \
                   as in envoy/native-fleet.yaml";
    let is_by_cluster = matches!(policy.redis.as_ref()?.destination, Destination::Cluster(_));
    (module == ModuleKind::Native && is_by_cluster)
        .then(|| Advice::new("redis-without-pipe", message))
}

/// Returns true if a rule holds requests.
fn holds(rule: &Rule) -> bool {
    rule.quota.max_delay.map_or(rule.algo == "LB", |delay| delay > 0)
}

/// Advice about all rules for which `is` returns true, if there are any.
fn about(
    policy: &Policy,
    id: &'static str,
    message: &str,
    is: impl Fn(&Rule) -> bool,
) -> Option<Advice> {
    let rules = policy.limits.iter().flat_map(|limit| &limit.rules).filter(|rule| is(rule));
    let rules: Vec<String> = rules.map(|rule| rule.name.clone()).collect();
    (!rules.is_empty()).then(|| Advice { rules, ..Advice::new(id, message) })
}
