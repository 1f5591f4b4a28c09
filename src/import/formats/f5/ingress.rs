//! Annotations of Ingresses.

use hashbrown::HashMap;

use super::servers::RatePolicy;
use super::{ControllerLimit, SNIPPET, ServerWriter, created, directive, name_of};
use crate::ingress_classes::class_of;
use crate::manifest::ManifestNode;
use crate::nginx::syntax::Directive;
use crate::outcome::Imported;
use crate::source::Origin;

/// The prefix of the annotations.
const PREFIX: &str = "nginx.org/";

/// The prefix of the annotations of limits.
const LIMIT: &str = "nginx.org/limit-req-";

/// The names after [`LIMIT`] that the controller reads.
const LIMITS: [&str; 10] = [
    "rate",
    "key",
    "zone-size",
    "delay",
    "no-delay",
    "burst",
    "dry-run",
    "log-level",
    "reject-code",
    "scale",
];

/// An annotation: its value and its line.
type F5Annotation = (String, Origin);

/// Part of a host that several Ingresses share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergeableRole {
    /// None: the Ingress has its hosts alone.
    Alone,
    Master,
    Minion,
}

/// The relevant parts of an Ingress.
pub(super) struct F5Ingress {
    origin: Origin,
    name: String,
    pub(super) created: Option<String>,
    pub(super) class: Option<String>,
    /// Whether it has annotations of the community's controller.
    pub(super) is_community: bool,
    role: MergeableRole,
    /// Annotations with the prefix, by their names with it.
    annotations: HashMap<String, F5Annotation>,
    /// Each host with its paths.
    rules: Vec<(String, Vec<F5Path>)>,
}

/// A path: its text, whether it is exact, and its line.
type F5Path = (String, bool, Origin);

impl F5Ingress {
    pub(super) fn read(root: &ManifestNode<'_>) -> F5Ingress {
        let all = root.descend("metadata.annotations").map(|it| it.pairs()).unwrap_or_default();
        let is_community = all.iter().any(|(key, _)| {
            let name = key.rsplit('/').next();
            key.starts_with("nginx.ingress.kubernetes.io/")
                || name
                    .is_some_and(|it| ["limit-rps", "limit-rpm", "limit-connections"].contains(&it))
        });
        let own = all.iter().filter(|(key, _)| {
            key.starts_with(LIMIT)
                || [
                    "policies",
                    "path-regex",
                    "mergeable-ingress-type",
                    "server-snippets",
                    "location-snippets",
                ]
                .iter()
                .any(|name| key.strip_prefix(PREFIX) == Some(name))
        });
        let annotations: HashMap<String, F5Annotation> = own
            .map(|(key, node)| {
                let value = node.tree().text().map_or_else(|| node.tree().found(), Into::into);
                ((*key).to_owned(), (value, node.origin()))
            })
            .collect();
        let role = annotations.get("nginx.org/mergeable-ingress-type").map(|(value, _)| value);
        let rules = root.descend("spec.rules");
        let rules = rules.iter().flat_map(ManifestNode::items).map(|rule| {
            let paths = rule.descend("http.paths");
            let paths = paths.iter().flat_map(ManifestNode::items).map(|path| {
                let text = path.text_of("path").filter(|text| !text.is_empty()).unwrap_or("/");
                (text.to_owned(), path.text_of("pathType") == Some("Exact"), path.origin())
            });
            (rule.text_of("host").unwrap_or_default().to_ascii_lowercase(), paths.collect())
        });
        F5Ingress {
            origin: root.origin(),
            name: name_of(root),
            created: created(root),
            class: class_of(root).map(|(class, _)| class.to_owned()),
            is_community,
            role: match role.map(String::as_str) {
                Some("master") => MergeableRole::Master,
                Some("minion") => MergeableRole::Minion,
                _ => MergeableRole::Alone,
            },
            annotations,
            rules: rules.collect(),
        }
    }

    pub(super) fn has_limits(&self) -> bool {
        self.annotations.keys().any(|key| key.starts_with(LIMIT))
    }

    /// An annotation of a limit, that of the master if it has none.
    fn annotation<'i>(
        &'i self,
        name: &str,
        master: Option<&'i F5Ingress>,
    ) -> Option<&'i F5Annotation> {
        let key = format!("{LIMIT}{name}");
        let inherited = || master.and_then(|master| master.annotations.get(&key));
        self.annotations.get(&key).or_else(inherited)
    }

    /// The limit of its paths, if it has one.
    fn limit(&self, master: Option<&F5Ingress>, notes: &mut Imported) -> Option<ControllerLimit> {
        let read = |name: &str| self.annotation(name, master);
        let mut inert = |name: &str, (value, origin): &F5Annotation, reason: &str| {
            notes.inert.add(origin.clone(), format!("{LIMIT}{name}: {value}"), reason);
        };
        let Some((rate, origin)) = read("rate") else {
            for name in LIMITS.iter().filter(|name| **name != "log-level") {
                if let Some(annotation) = self.annotation(name, None) {
                    inert(name, annotation, "has no effect without `nginx.org/limit-req-rate`");
                }
            }
            return None;
        };
        if !is_rate(rate.trim()) {
            let reason = "the controller reads rates such as 10r/s and 10r/m, so there is no limit";
            inert("rate", &(rate.clone(), origin.clone()), reason);
            return None;
        }
        let key = read("key");
        if let Some(annotation) = key.filter(|(key, _)| !is_key(key)) {
            inert(
                "key",
                annotation,
                "the controller refuses the Ingress: it reads variables such as ${binary_remote_addr} only",
            );
            return None;
        }
        let mut number = |name: &str| {
            let annotation = read(name)?;
            match annotation.0.parse::<i64>() {
                // The template leaves 0 out.
                Ok(0) => None,
                Ok(number) => Some(number.to_string()),
                Err(_) => {
                    inert(name, annotation, "is no whole number, so the controller ignores it");
                    None
                }
            }
        };
        let (burst, delay) = (number("burst"), number("delay"));
        let status = match read("reject-code") {
            Some((value, _)) if value.parse::<i64>().is_ok() => number("reject-code"),
            Some(_) => number("reject-code").or(Some("429".into())),
            None => Some("429".into()),
        };
        let mut is_on = |name: &str| {
            let annotation = read(name);
            match annotation.map(|(value, _)| value.as_str()) {
                None | Some("0" | "f" | "F" | "false" | "False" | "FALSE") => false,
                Some("1" | "t" | "T" | "true" | "True" | "TRUE") => true,
                Some(_) => {
                    if let Some(annotation) = annotation {
                        inert(
                            name,
                            annotation,
                            "is neither true nor false, so the controller ignores it",
                        );
                    }
                    false
                }
            }
        };
        Some(ControllerLimit {
            zone: self.name.clone(),
            key: key.map_or_else(|| "${binary_remote_addr}".into(), |(key, _)| key.clone()),
            rate: rate.trim().into(),
            burst,
            delay,
            has_no_delay: is_on("no-delay"),
            is_dry_run: is_on("dry-run"),
            status,
            is_scaled: is_on("scale"),
            origin: origin.clone(),
        })
    }

    /// The locations of paths, each with these limits.
    fn locations(&self, paths: &[F5Path], limit: Option<&ControllerLimit>) -> Vec<Directive> {
        let regex = self.annotations.get("nginx.org/path-regex").map(|(value, _)| value.as_str());
        let location = |(path, is_exact, origin): &F5Path| {
            let block =
                limit.map_or_else(Vec::new, |it| ControllerLimit::place(std::slice::from_ref(it)));
            let anchored = format!("^{path}");
            let words = match regex {
                Some("case_sensitive") => vec!["location", "~", &anchored],
                Some("case_insensitive") => vec!["location", "~*", &anchored],
                Some("exact") => vec!["location", "=", path],
                _ if *is_exact => vec!["location", "=", path],
                _ => vec!["location", path],
            };
            directive(origin, &words, block)
        };
        paths.iter().map(location).collect()
    }

    /// Remarks about annotations that are no limit of their own.
    fn notes(&self, policies: &HashMap<String, Option<RatePolicy>>, notes: &mut Imported) {
        for (key, (value, origin)) in &self.annotations {
            let name = key.strip_prefix(LIMIT);
            if name.is_some_and(|name| !LIMITS.contains(&name)) {
                let reason = "the controller has no such annotation";
                notes.inert.add(origin.clone(), format!("{key}: {value}"), reason);
            } else if key.ends_with("-snippets") && value.contains("limit_") {
                notes.gaps.add(origin.clone(), key.as_str(), SNIPPET);
            } else if key == "nginx.org/policies" {
                let namespace = self.name.split('/').next().unwrap_or_default();
                for policy in value.split(',').map(str::trim) {
                    let whole = if policy.contains('/') {
                        policy.to_owned()
                    } else {
                        format!("{namespace}/{policy}")
                    };
                    if let Some(Some(_)) = policies.get(&whole) {
                        let reason = "a Policy of a limit is for VirtualServers; for an Ingress with it the controller answers 500 to all \
                                      requests";
                        notes.gaps.add(origin.clone(), format!("the Policy {whole}"), reason);
                    }
                }
            }
        }
    }
}

/// Returns true if the controller reads a text as a rate.
pub(super) fn is_rate(text: &str) -> bool {
    let number = text.strip_suffix("r/s").or_else(|| text.strip_suffix("r/m"));
    number.is_some_and(|it| {
        it.bytes().all(|byte| byte.is_ascii_digit()) && it.parse::<u64>().is_ok_and(|it| it > 0)
    })
}

/// Returns true if a text is one variable or several.
fn is_key(text: &str) -> bool {
    let mut parts = text.split('$');
    parts.next() == Some("")
        && parts.clone().next().is_some()
        && parts.all(|part| {
            let name = match part.strip_prefix('{') {
                Some(rest) => rest.strip_suffix('}'),
                None => Some(part),
            };
            name.is_some_and(|name| {
                name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            })
        })
}

/// Writes the servers of Ingresses, the oldest first.
pub(super) fn write(
    ingresses: &[F5Ingress],
    policies: &HashMap<String, Option<RatePolicy>>,
    writer: &mut ServerWriter<'_>,
) {
    for ingress in ingresses {
        ingress.notes(policies, writer.notes);
        if ingress.role == MergeableRole::Minion {
            continue;
        }
        let is_master = ingress.role == MergeableRole::Master;
        let limit = if is_master { None } else { ingress.limit(None, writer.notes) };
        limit.iter().for_each(|limit| writer.zone(limit));
        for (host, paths) in &ingress.rules {
            let name = format!("the Ingress {}", ingress.name);
            let has_time = ingress.created.is_some();
            if !writer.hosts.take(host, &name, has_time, &ingress.origin, writer.notes) {
                continue;
            }
            let mut block = Vec::new();
            if is_master {
                for minion in ingresses {
                    block.extend(minion.of_master(ingress, host, writer));
                }
            } else {
                block.extend(ingress.locations(paths, limit.as_ref()));
            }
            writer.server(&ingress.origin, host, block);
        }
    }
    let masters: Vec<&str> = ingresses
        .iter()
        .filter(|it| it.role == MergeableRole::Master)
        .flat_map(|it| it.rules.iter().map(|(host, _)| host.as_str()))
        .collect();
    for minion in ingresses.iter().filter(|it| it.role == MergeableRole::Minion) {
        let has_master = minion.rules.iter().any(|(host, _)| masters.contains(&host.as_str()));
        if !has_master && minion.has_limits() {
            let reason = "no Ingress of these files is the master of its host, so the controller does not serve it";
            let about = format!("the minion {}", minion.name);
            writer.notes.inert.add(minion.origin.clone(), about, reason);
        }
    }
}

impl F5Ingress {
    /// The locations of a minion at a host of its master.
    fn of_master(
        &self,
        master: &F5Ingress,
        host: &str,
        writer: &mut ServerWriter<'_>,
    ) -> Vec<Directive> {
        let rule = self.rules.iter().find(|(own, _)| own == host);
        let (MergeableRole::Minion, Some((_, paths))) = (self.role, rule) else {
            return Vec::new();
        };
        let limit = self.limit(Some(master), writer.notes);
        limit.iter().for_each(|limit| writer.zone(limit));
        self.locations(paths, limit.as_ref())
    }
}
