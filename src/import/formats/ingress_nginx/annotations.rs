//! The annotations of an Ingress.

use std::net::IpAddr;

use diana_policy::tree::Tree;
use ipnet::IpNet;

use super::Annotation;
use crate::outcome::{Imported, Notes};
use crate::source::Origin;

/// The names of annotations that limit requests.
pub(super) const LIMITS: [&str; 3] = ["limit-rps", "limit-rpm", "limit-connections"];

/// Further names that the controller reads, and that look like limits.
const KNOWN: [&str; 5] = [
    "limit-burst-multiplier",
    "limit-whitelist",
    "limit-allowlist",
    "limit-rate",
    "limit-rate-after",
];

/// Names that the importer reads for routes.
const ROUTES: [&str; 5] = ["canary", "use-regex", "rewrite-target", "server-alias", "enable-cors"];

/// Names of texts in nginx's syntax.
const SNIPPETS: [&str; 2] = ["configuration-snippet", "server-snippet"];

/// Why `limit-rate` is no rule.
pub(super) const SHAPER: &str =
    "slows down the bytes of each response, and limits no requests; Diana has no substitute";

/// Why global limits are no rule.
pub(super) const GLOBAL: &str = "global limits were removed in ingress-nginx 1.12, without effect since; here they would be rules with \
                                 `scope: global`";

/// Why limits in a snippet are no rule.
pub(super) const SNIPPET: &str =
    "has limits in nginx's own syntax; save it as a file, and import it by `--from nginx`";

/// The multiplier of a burst, unless an annotation has another one.
const MULTIPLIER: u64 = 5;

/// The largest limit of requests that is written. The burst of a rule has 10⁹ permits at most.
const MOST: u64 = 100_000_000;
const MOST_BURST: u64 = 999_999_999;

/// The largest limit of connections that a rule has.
const MOST_CONNECTIONS: u64 = 1_000_000;

/// The limits of an Ingress.
#[derive(Debug, Default)]
pub(super) struct IngressLimits {
    pub(super) per_second: Option<(u64, Origin)>,
    pub(super) per_minute: Option<(u64, Origin)>,
    pub(super) connections: Option<(u64, Origin)>,
    pub(super) multiplier: u64,
    /// Addresses without a limit.
    pub(super) allowed: Vec<String>,
    /// Whether nginx answers `OPTIONS` before it counts.
    pub(super) has_cors: bool,
    /// Whether its paths are regular expressions.
    pub(super) is_regex: bool,
    /// Whether the Ingress is a canary: its paths belong to another one.
    pub(super) is_canary: bool,
    /// Further hosts with the same paths.
    pub(super) aliases: Vec<String>,
}

impl IngressLimits {
    pub(super) fn is_empty(&self) -> bool {
        self.per_second.is_none() && self.per_minute.is_none() && self.connections.is_none()
    }

    fn clear(&mut self) {
        (self.per_second, self.per_minute, self.connections) = (None, None, None);
    }
}

/// Returns true if an annotation may have to do with limits or routes.
pub(super) fn is_relevant(key: &str) -> bool {
    let Some((prefix, name)) = key.rsplit_once('/') else { return false };
    let is_nginx = prefix.contains("nginx");
    LIMITS.contains(&name)
        || KNOWN.contains(&name)
        || ROUTES.contains(&name)
        || is_nginx && (looks_like_limit(name) || SNIPPETS.contains(&name))
}

fn looks_like_limit(name: &str) -> bool {
    ["limit", "throttl"].iter().any(|part| name.contains(part))
        || name.split('-').any(|word| matches!(word, "rate" | "rps" | "rpm" | "burst"))
}

/// The annotations of an Ingress while they are read.
struct AnnotationReading<'r> {
    limits: IngressLimits,
    gaps: &'r mut Notes,
    inert: &'r mut Notes,
    /// Annotations for which the controller has dropped all limits of the Ingress.
    dropping: Vec<(&'r Annotation, &'static str)>,
}

/// Reads the annotations of an Ingress. `prefix` is that of the controller's annotations. `is_f5`
/// is true if NGINX Inc.'s controller reads the Ingress, too.
pub(super) fn read(
    prefix: &str,
    annotations: &[Annotation],
    is_f5: bool,
    imported: &mut Imported,
) -> IngressLimits {
    let limits = IngressLimits { multiplier: MULTIPLIER, ..IngressLimits::default() };
    let Imported { gaps, inert, .. } = imported;
    let mut reading = AnnotationReading { limits, gaps, inert, dropping: Vec::new() };
    for annotation in annotations {
        match annotation.key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) => reading.annotation(name, annotation),
            None if is_f5 && is_of_f5(annotation) => {}
            None => reading.foreign(prefix, annotation),
        }
    }
    reading.finish()
}

impl<'r> AnnotationReading<'r> {
    fn inert(&mut self, annotation: &Annotation, reason: &str) {
        self.inert.add(annotation.origin.clone(), annotation.shown(), reason);
    }

    fn gaps(&mut self, annotation: &Annotation, reason: &str) {
        self.gaps.add(annotation.origin.clone(), annotation.shown(), reason);
    }

    /// An annotation with another prefix.
    fn foreign(&mut self, prefix: &str, annotation: &Annotation) {
        let Some((own, name)) = annotation.key.rsplit_once('/') else { return };
        if is_of_f5(annotation) {
            if looks_like_limit(name) {
                let reason =
                    "an annotation of F5's controller, which the community's one does not read";
                self.inert(annotation, reason);
            }
        } else if LIMITS.contains(&name) || own.contains("nginx") && looks_like_limit(name) {
            let reason =
                format!("the controller reads annotations with the prefix `{prefix}` only");
            self.inert(annotation, &reason);
        }
    }

    /// An annotation of the controller.
    fn annotation(&mut self, name: &str, annotation: &'r Annotation) {
        let Some(text) = annotation.text.as_deref() else {
            if looks_like_limit(name) {
                let reason = "is no text, so Kubernetes refuses the Ingress; put it in quotes";
                self.inert(annotation, reason);
            }
            return;
        };
        let number = text.parse::<i64>().ok();
        match name {
            _ if LIMITS.contains(&name) => self.limit(name, number, annotation),
            "limit-burst-multiplier" => match number {
                None => self.inert(annotation, "is no whole number, so the multiplier is 5"),
                Some(number) => self.multiplier(number, annotation),
            },
            "limit-whitelist" | "limit-allowlist" => match addresses(text) {
                Some(addresses) if self.limits.allowed.is_empty() || name == "limit-allowlist" => {
                    self.limits.allowed = addresses;
                }
                Some(_) => {}
                None => {
                    let reason = "has something else than addresses and networks, so the controller drops all limits of the Ingress";
                    self.dropping.push((annotation, reason));
                }
            },
            "limit-rate" | "limit-rate-after" => match number {
                Some(1..) => self.gaps(annotation, SHAPER),
                Some(_) => {}
                None => self.inert(annotation, "is no whole number"),
            },
            "canary" => self.limits.is_canary = text == "true",
            "use-regex" => self.limits.is_regex |= text == "true",
            "rewrite-target" => self.limits.is_regex |= text.contains('$'),
            "enable-cors" => self.limits.has_cors = text == "true",
            "server-alias" => self.aliases(annotation, text),
            _ if SNIPPETS.contains(&name) => {
                if text.contains("limit_req") || text.contains("limit_conn") {
                    self.gaps.add(annotation.origin.clone(), &*annotation.key, SNIPPET);
                }
            }
            _ if name.starts_with("global-rate-limit") => self.inert(annotation, GLOBAL),
            _ => self.inert(annotation, &unknown(name)),
        }
    }

    fn limit(&mut self, name: &str, number: Option<i64>, annotation: &'r Annotation) {
        let Some(number) = number else {
            let reason = "is no whole number, so the controller drops all limits of the Ingress";
            self.dropping.push((annotation, reason));
            return;
        };
        let Ok(number @ 1..) = u64::try_from(number) else {
            self.inert(annotation, "0 and less are no limit");
            return;
        };
        let (field, most) = match name {
            "limit-rps" => (&mut self.limits.per_second, MOST),
            "limit-rpm" => (&mut self.limits.per_minute, MOST),
            _ => (&mut self.limits.connections, MOST_CONNECTIONS),
        };
        *field = Some((number.min(most), annotation.origin.clone()));
        if number > most {
            let reason = format!("is more than a rule can have; {most} is written instead");
            self.gaps(annotation, &reason);
        }
    }

    fn multiplier(&mut self, number: i64, annotation: &'r Annotation) {
        match u64::try_from(number) {
            Ok(number @ 1..) => self.limits.multiplier = number,
            _ => {
                let reason = "makes `burst=0`, which nginx refuses together with all of the controller's configuration, so the limits \
                              never began to hold";
                self.dropping.push((annotation, reason));
            }
        }
    }

    fn aliases(&mut self, annotation: &Annotation, text: &str) {
        let aliases = text.split(',').map(str::trim).filter(|alias| !alias.is_empty());
        for alias in aliases {
            if alias.starts_with('~') {
                let reason = "no host of a rule is a regular expression; requests to these hosts have no limit";
                self.gaps(annotation, reason);
            } else {
                self.limits.aliases.push(alias.to_ascii_lowercase());
            }
        }
    }

    fn finish(mut self) -> IngressLimits {
        let has_any = !self.limits.is_empty();
        for (annotation, reason) in std::mem::take(&mut self.dropping) {
            // A multiplier alone has no effect.
            if has_any || LIMITS.iter().any(|name| annotation.key.ends_with(name)) {
                self.inert(annotation, reason);
            }
            self.limits.clear();
        }
        let largest = [&self.limits.per_second, &self.limits.per_minute]
            .into_iter()
            .flatten()
            .max_by_key(|(number, _)| number);
        if let Some((number, origin)) = largest
            && number.saturating_mul(self.limits.multiplier) > MOST_BURST
        {
            let most = MOST_BURST / number;
            let reason = format!("is more than a rule can have; {most} is written instead");
            let about = format!("limit-burst-multiplier: {}", self.limits.multiplier);
            self.gaps.add(origin.clone(), about, reason);
            self.limits.multiplier = most;
        }
        self.limits
    }
}

fn is_of_f5(annotation: &Annotation) -> bool {
    ["nginx.org/", "nginx.com/"].iter().any(|prefix| annotation.key.starts_with(prefix))
}

/// Why a name has no effect.
fn unknown(name: &str) -> String {
    let words: Vec<&str> = name.split('-').collect();
    let has = |word: &str| words.contains(&word);
    let meant = if has("burst") {
        "limit-burst-multiplier"
    } else if has("conn") || has("connection") || has("connections") {
        "limit-connections"
    } else if has("rpm") || has("minute") {
        "limit-rpm"
    } else if has("rate") || has("rps") || has("req") || has("requests") {
        "limit-rps"
    } else {
        return "the controller has no such annotation".into();
    };
    format!("the controller has no such annotation; perhaps `{meant}` was meant")
}

/// Addresses and networks, separated by commas.
fn addresses(text: &str) -> Option<Vec<String>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let is_one = part.parse::<IpNet>().is_ok() || part.parse::<IpAddr>().is_ok();
            is_one.then(|| part.to_owned())
        })
        .collect()
}

/// At most 60 characters of a text, on one line.
pub(super) fn short(text: &str) -> String {
    Tree::Text(text.into()).found().trim_matches('`').to_owned()
}
