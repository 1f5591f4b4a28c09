//! The configurations of filters that limit, and of routes for them.

use crate::buckets::BucketSize;
use crate::envoy::actions::{self, RateLimitActions};
use crate::envoy::fields::{descend, field, flag, items, milliseconds, number, text};
use crate::manifest::ManifestNode;
use crate::outcome::Imported;
use crate::source::Origin;

/// A configuration of a filter, or of a route.
#[derive(Debug)]
pub(super) struct FilterLimit {
    pub(super) origin: Origin,
    /// Its name for readers.
    pub(super) title: String,
    /// The numbers of its own rate limits, in place of those of routes.
    pub(super) actions: Vec<usize>,
    pub(super) stage: u64,
    pub(super) inheritance: Inheritance,
    pub(super) kind: LimitKind,
}

#[derive(Debug)]
pub(super) enum LimitKind {
    /// `local_ratelimit`.
    Local(Box<LocalLimit>),
    /// `ratelimit`, which asks the rate limit service.
    Service(ServiceFilter),
}

/// The filter that asks the rate limit service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceFilter {
    /// None in the configuration of a route for the domain of the filter.
    pub(super) domain: Option<String>,
    pub(super) status: u16,
}

/// A configuration of `local_ratelimit`.
#[derive(Debug)]
pub(super) struct LocalLimit {
    /// The beginning of the names of its rules.
    pub(super) name: String,
    /// The bucket of all requests, or of those without a descriptor.
    pub(super) default: Option<(BucketSize, Origin)>,
    /// Whether requests with a descriptor pay the default bucket, too.
    pub(super) is_default_always: bool,
    pub(super) descriptors: Vec<LocalDescriptor>,
    pub(super) is_shadow: bool,
    pub(super) is_per_connection: bool,
    /// Whether all Envoys of a cluster share the buckets.
    pub(super) is_shared: bool,
    pub(super) status: u16,
    /// Maximum number of values of a descriptor.
    pub(super) most_dynamic: usize,
}

/// How a route uses the rate limits of its virtual host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inheritance {
    /// It takes them if it has none.
    Override,
    Include,
    Ignore,
}

/// A descriptor with a bucket.
#[derive(Debug)]
pub(super) struct LocalDescriptor {
    pub(super) origin: Origin,
    /// Keys and values; a value that is `None` stands for all, each with a bucket.
    pub(super) entries: Vec<(String, Option<String>)>,
    pub(super) size: BucketSize,
    pub(super) is_shadow: bool,
}

impl LocalDescriptor {
    pub(super) fn is_wild(&self) -> bool {
        self.entries.iter().any(|(_, value)| value.is_none())
    }

    /// The descriptor on one line.
    pub(super) fn shown(&self) -> String {
        let entry = |(key, value): &(String, Option<String>)| match value {
            Some(value) => format!("{key}={value}"),
            None => key.clone(),
        };
        let entries: Vec<String> = self.entries.iter().map(entry).collect();
        format!("the descriptor {}", entries.join(", "))
    }
}

impl FilterLimit {
    /// Reads a configuration of the filter `ratelimit`, or of a route for it.
    pub(super) fn service(
        node: &ManifestNode<'_>,
        place: &str,
        notes: &mut Imported,
    ) -> FilterLimit {
        if let Some(kind) = text(node, "request_type").filter(|kind| kind != "both") {
            let reason =
                "an entry does not distinguish internal and external requests: it counts both";
            notes.gaps.add(node.origin(), format!("request_type: {kind}"), reason);
        }
        FilterLimit {
            origin: node.origin(),
            title: format!("ratelimit of {place}"),
            actions: Vec::new(),
            stage: number(node, "stage").unwrap_or(0),
            inheritance: inheritance(node),
            kind: LimitKind::Service(ServiceFilter {
                domain: text(node, "domain").filter(|domain| !domain.is_empty()),
                status: status_of(node, "rate_limited_status.code"),
            }),
        }
    }

    /// The filter `ratelimit` of a domain by defaults.
    pub(super) fn of_domain(domain: &str, origin: Origin) -> FilterLimit {
        let kind = LimitKind::Service(ServiceFilter { domain: Some(domain.into()), status: 429 });
        let title = format!("the domain {domain}");
        let inheritance = Inheritance::Override;
        FilterLimit { origin, title, actions: Vec::new(), stage: 0, inheritance, kind }
    }

    /// Whether both send the same requests to the same domain.
    pub(super) fn is_same_service(&self, other: &FilterLimit) -> bool {
        let (LimitKind::Service(own), LimitKind::Service(filter)) = (&self.kind, &other.kind)
        else {
            return false;
        };
        let are_plain = self.actions.is_empty() && other.actions.is_empty();
        own == filter && own.domain.is_some() && are_plain && self.stage == other.stage
    }

    /// Returns false for a configuration of a route that changes only some settings of the filter.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(&self.kind, LimitKind::Service(filter) if filter.domain.is_none())
    }

    /// Reads a configuration of `local_ratelimit`. None if it sets no limit.
    pub(super) fn local(
        node: &ManifestNode<'_>,
        place: &str,
        notes: &mut Imported,
    ) -> Option<FilterLimit> {
        let title = format!("local_ratelimit of {place}");
        let origin = node.origin();
        let default = field(node, "token_bucket").and_then(|it| Some((size(&it)?, it.origin())));
        let mut descriptors = Vec::new();
        for descriptor in items(node, "descriptors") {
            let entries = items(&descriptor, "entries").iter().map(actions::wanted).collect();
            let size = field(&descriptor, "token_bucket").and_then(|it| size(&it));
            let Some(size) = size else {
                let reason = "found no `token_bucket` with `max_tokens` and a `fill_interval` of at least 50ms, so Envoy refuses it";
                notes.gaps.add(descriptor.origin(), "a descriptor", reason);
                continue;
            };
            let is_shadow = flag(&descriptor, "shadow_mode") == Some(true);
            descriptors.push(LocalDescriptor {
                origin: descriptor.origin(),
                entries,
                size,
                is_shadow,
            });
        }
        if default.is_none() && descriptors.is_empty() {
            if let Some(bucket) = field(node, "token_bucket") {
                let reason = "found no `max_tokens` and no `fill_interval` of at least 50ms, so Envoy refuses it";
                notes.gaps.add(bucket.origin(), title, reason);
            }
            return None;
        }
        let enabled = percent(node, "filter_enabled");
        let enforced = percent(node, "filter_enforced");
        if enabled.is_none_or(|percent| percent == 0.0) {
            let reason = "it has no `filter_enabled`, or 0 %, so Envoy does not limit by it";
            notes.inert.add(origin, title, reason);
            return None;
        }
        let part = |percent: Option<f64>| percent.filter(|it| *it > 0.0 && *it < 100.0);
        for (key, percent) in
            [("filter_enabled", part(enabled)), ("filter_enforced", part(enforced))]
        {
            if let Some(percent) = percent {
                let reason = format!(
                    "Envoy applies it to {percent} % of requests, the rules to all; see `enforce`"
                );
                notes.gaps.add(origin.clone(), key, reason);
            }
        }
        let is_per_connection =
            flag(node, "local_rate_limit_per_downstream_connection") == Some(true);
        if is_per_connection {
            let reason = "no rule counts by connection; the rules count by client address, so connections of one address share a count";
            notes.gaps.add(origin.clone(), "local_rate_limit_per_downstream_connection", reason);
        }
        let local = LocalLimit {
            name: name(place).to_owned(),
            default,
            is_default_always: flag(node, "always_consume_default_token_bucket") != Some(false),
            descriptors,
            is_shadow: enforced.is_none_or(|percent| percent == 0.0),
            is_per_connection,
            is_shared: field(node, "local_cluster_rate_limit").is_some(),
            status: status_of(node, "status.code"),
            most_dynamic: number(node, "max_dynamic_descriptors")
                .and_then(|it| usize::try_from(it).ok())
                .unwrap_or(20),
        };
        Some(FilterLimit {
            origin,
            title,
            actions: Vec::new(),
            stage: number(node, "stage").unwrap_or(0),
            inheritance: inheritance(node),
            kind: LimitKind::Local(Box::new(local)),
        })
    }
}

/// How a route takes the rate limits of its virtual host.
fn inheritance(node: &ManifestNode<'_>) -> Inheritance {
    match text(node, "vh_rate_limits").as_deref() {
        Some("INCLUDE" | "1") => Inheritance::Include,
        Some("IGNORE" | "2") => Inheritance::Ignore,
        _ => Inheritance::Override,
    }
}

/// The status of refusals in a field. Envoy takes 429 in place of one that is no error.
fn status_of(node: &ManifestNode<'_>, path: &str) -> u16 {
    let status = text(node, path).and_then(|it| status(&it));
    status.filter(|status| (400..=599).contains(status)).unwrap_or(429)
}

/// The rate limits in a field.
pub(super) fn rate_limits(
    node: &ManifestNode<'_>,
    path: &str,
    cluster: Option<&str>,
    notes: &mut Imported,
) -> Vec<RateLimitActions> {
    let mut list = Vec::new();
    for limit in items(node, path) {
        match actions::read(&limit, cluster) {
            Ok(actions) => list.push(actions),
            Err(why) => notes.gaps.add(limit.origin(), "a rate limit", why),
        }
    }
    list
}

/// The name of a place without its kind.
fn name(place: &str) -> &str {
    let kinds = ["the route ", "the virtual host ", "the route configuration ", "the listener "];
    let bare = kinds.iter().find_map(|kind| place.strip_prefix(kind));
    bare.or_else(|| place.strip_prefix("EnvoyFilter ")).unwrap_or(place)
}

/// A status, by its number or its name in Envoy.
fn status(text: &str) -> Option<u16> {
    Some(match text {
        "BadRequest" => 400,
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "NotFound" => 404,
        "InternalServerError" => 500,
        "ServiceUnavailable" => 503,
        number => number.parse().ok()?,
    })
}

/// The size of a bucket.
fn size(node: &ManifestNode<'_>) -> Option<BucketSize> {
    let most = number(node, "max_tokens")?;
    let fill = number(node, "tokens_per_fill").unwrap_or(1);
    let interval = text(node, "fill_interval").and_then(|it| milliseconds(&it)).unwrap_or(0);
    let is_valid = most == 0 || (interval >= 50 && fill > 0);
    is_valid.then_some(BucketSize { most, fill, interval })
}

/// The per cent of a field that runtime may replace.
fn percent(node: &ManifestNode<'_>, name: &str) -> Option<f64> {
    let value = descend(node, name).and_then(|it| field(&it, "default_value"))?;
    let of = match text(&value, "denominator").as_deref() {
        Some("TEN_THOUSAND" | "1") => 10_000.0,
        Some("MILLION" | "2") => 1_000_000.0,
        _ => 100.0,
    };
    Some(number(&value, "numerator").unwrap_or(0) as f64 * 100.0 / of)
}
