//! `limit_req` of NGINX Inc.'s Ingress controller (F5): annotations of Ingresses, and Policies of
//! VirtualServers.
//!
//! The controller writes a configuration of nginx. So this format writes its zones and servers,
//! and the format `nginx` imports them.

mod ingress;
mod servers;

use hashbrown::HashMap;

use super::{FormatReader, ImportFormat, nginx};
use crate::envoy::fields::{flag, text};
use crate::gateway_routes::text_or;
use crate::ingress_classes::IngressClasses;
use crate::manifest::{ManifestNode, ManifestObject};
use crate::nginx::syntax::Directive;
use crate::outcome::{Imported, Notes};
use crate::source::Origin;
use ingress::F5Ingress;
use servers::{RatePolicy, VirtualServer};

/// `f5` in the registry.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "f5", reader: || Box::<F5Reader>::default() };

/// Why limits in a snippet are no rule.
const SNIPPET: &str =
    "has limits in nginx's own syntax; save it as a file, and import it by `--from nginx`";

#[derive(Default)]
struct F5Reader {
    ingresses: Vec<F5Ingress>,
    servers: Vec<VirtualServer>,
    /// VirtualServerRoutes, by their namespaces and names.
    routes: HashMap<String, VirtualServer>,
    /// All Policies. Those without a limit are none.
    policies: HashMap<String, Option<RatePolicy>>,
    classes: IngressClasses,
    /// The number of pods, if it is known.
    pods: Option<u32>,
    notes: Imported,
}

impl FormatReader for F5Reader {
    fn object(&mut self, object: &ManifestObject) -> bool {
        let root = object.root();
        if root.text_of("kind") == Some("Ingress") {
            return self.ingress(&root);
        }
        self.classes.read(&root);
        if root.text_of("kind") == Some("ConfigMap") {
            return self.settings(&root);
        }
        let is_own = root.text_of("apiVersion").is_some_and(|it| it.starts_with("k8s.nginx.org/"));
        match root.text_of("kind").filter(|_| is_own) {
            Some("VirtualServer") => {
                self.servers.push(VirtualServer::read(&root, "routes", &mut self.notes.gaps));
            }
            Some("VirtualServerRoute") => {
                let route = VirtualServer::read(&root, "subroutes", &mut self.notes.gaps);
                self.routes.insert(route.name.clone(), route);
            }
            Some("Policy") => {
                self.policies.insert(name_of(&root), RatePolicy::read(&root));
            }
            _ => return false,
        }
        true
    }

    fn processes(&mut self, pods: u32) {
        self.pods = Some(pods);
    }

    fn finish(self: Box<Self>) -> Imported {
        self.import()
    }
}

/// `<namespace>/<name>` of an object.
fn name_of(root: &ManifestNode<'_>) -> String {
    let namespace = text_or(root, "metadata.namespace", "default");
    format!("{namespace}/{}", text_or(root, "metadata.name", "unnamed"))
}

/// When an object was created, as RFC 3339 writes it, so that texts order as times.
fn created(root: &ManifestNode<'_>) -> Option<String> {
    text(root, "metadata.creationTimestamp")
}

/// A directive with a block, which may be empty.
fn directive(origin: &Origin, words: &[&str], block: Vec<Directive>) -> Directive {
    let words = words.iter().map(|&word| word.to_owned()).collect();
    Directive { words, origin: origin.clone(), block }
}

/// A `limit_req` with its zone, as the controller writes them.
struct ControllerLimit {
    zone: String,
    key: String,
    rate: String,
    burst: Option<String>,
    delay: Option<String>,
    has_no_delay: bool,
    is_dry_run: bool,
    /// None writes no status.
    status: Option<String>,
    is_scaled: bool,
    origin: Origin,
}

impl ControllerLimit {
    fn limit_req(&self) -> Directive {
        let mut words = vec!["limit_req".to_owned(), format!("zone={}", self.zone)];
        words.extend(self.burst.iter().map(|burst| format!("burst={burst}")));
        match self.has_no_delay {
            true => words.push("nodelay".into()),
            false => words.extend(self.delay.iter().map(|delay| format!("delay={delay}"))),
        }
        Directive { words, origin: self.origin.clone(), block: Vec::new() }
    }

    /// The directives of a place with these limits. The first one has the options of all.
    fn place(limits: &[ControllerLimit]) -> Vec<Directive> {
        let mut block: Vec<Directive> = limits.iter().map(ControllerLimit::limit_req).collect();
        let Some(first) = limits.first() else { return block };
        if first.is_dry_run {
            block.push(directive(&first.origin, &["limit_req_dry_run", "on"], Vec::new()));
        }
        if let Some(status) = &first.status {
            block.push(directive(&first.origin, &["limit_req_status", status], Vec::new()));
        }
        block
    }
}

/// The rate of each of a number of pods, as the controller divides it.
fn scaled(rate: &str, pods: u32) -> String {
    let pods = u64::from(pods);
    let Some((number, unit)) = rate.split_once('r') else { return rate.into() };
    match number.parse::<u64>() {
        Ok(number) if unit == "/s" && number < pods => {
            format!("{}r/m", number.saturating_mul(60) / pods)
        }
        Ok(number) => format!("{}r{unit}", number / pods),
        Err(_) => rate.into(),
    }
}

/// Hosts, each with its first owner.
#[derive(Default)]
struct TakenHosts(HashMap<String, (String, bool)>);

impl TakenHosts {
    /// Returns true if an object has a host, and not an older one.
    fn take(
        &mut self,
        host: &str,
        name: &str,
        has_time: bool,
        origin: &Origin,
        notes: &mut Imported,
    ) -> bool {
        let Some((owner, has_own_time)) = self.0.get(host) else {
            self.0.insert(host.into(), (name.into(), has_time));
            return true;
        };
        if owner == name {
            return true;
        }
        let about = format!("the host {host} of {name}");
        match has_time && *has_own_time {
            true => {
                let reason = format!(
                    "{owner} has the same host and is older, so the controller ignores it here"
                );
                notes.inert.add(origin.clone(), about, reason);
            }
            false => {
                let reason = format!(
                    "{owner} has the same host; the older one has it, but the manifests have no creationTimestamp, so the first one is taken"
                );
                notes.gaps.add(origin.clone(), about, reason);
            }
        }
        false
    }
}

/// What becomes of the servers: directives of `http`.
struct ServerWriter<'r> {
    http: Vec<Directive>,
    zones: Vec<String>,
    hosts: TakenHosts,
    pods: Option<u32>,
    notes: &'r mut Imported,
}

impl ServerWriter<'_> {
    /// Adds the zone of a limit, once.
    fn zone(&mut self, limit: &ControllerLimit) {
        if self.zones.contains(&limit.zone) {
            return;
        }
        self.zones.push(limit.zone.clone());
        let rate = match (limit.is_scaled, self.pods) {
            (false, _) => limit.rate.clone(),
            (true, Some(pods)) => scaled(&limit.rate, pods),
            (true, None) => {
                let reason = "the controller divides the rate by the number of its pods, and each gateway admits all of it; `--fleet N` with \
                              the number of pods writes a rule with the same total";
                self.notes.gaps.add(
                    limit.origin.clone(),
                    format!("the scaled rate {}", limit.rate),
                    reason,
                );
                limit.rate.clone()
            }
        };
        let (zone, rate) = (format!("zone={}:10m", limit.zone), format!("rate={rate}"));
        let words = ["limit_req_zone", &limit.key, &zone, &rate];
        self.http.push(directive(&limit.origin, &words, Vec::new()));
    }

    /// Adds a server. An empty host is the default one.
    fn server(&mut self, origin: &Origin, host: &str, mut block: Vec<Directive>) {
        let head = match host {
            "" => ["listen", "default_server"],
            host => ["server_name", host],
        };
        block.push(directive(origin, &head, Vec::new()));
        self.http.push(directive(origin, &["server"], block));
    }
}

impl F5Reader {
    /// Reads the controller's ConfigMap.
    fn settings(&mut self, root: &ManifestNode<'_>) -> bool {
        let mut is_own = false;
        for (key, node) in root.get("data").map(|data| data.pairs()).unwrap_or_default() {
            let value = node.tree().text().unwrap_or_default();
            let reason = match key {
                "zone-sync" if value == "true" => {
                    "the pods of the controller count together; write rules without `--fleet`, and add `scope: global` to them"
                }
                "http-snippets" | "server-snippets" | "location-snippets"
                    if value.contains("limit_") =>
                {
                    SNIPPET
                }
                _ => continue,
            };
            is_own = true;
            self.notes.gaps.add(node.origin(), key, reason);
        }
        is_own
    }

    fn import(self) -> Imported {
        let F5Reader { mut ingresses, mut servers, routes, policies, classes, pods, mut notes } =
            self;
        let order = |created: &Option<String>| (created.is_none(), created.clone());
        ingresses.sort_by_key(|it| order(&it.created));
        servers.sort_by_key(|it| order(&it.created));
        let ingresses: Vec<F5Ingress> =
            ingresses.into_iter().filter(|it| classes.is_f5(it.class.as_deref())).collect();
        let mut writer = ServerWriter {
            http: Vec::new(),
            zones: Vec::new(),
            hosts: TakenHosts::default(),
            pods,
            notes: &mut notes,
        };
        ingress::write(&ingresses, &policies, &mut writer);
        servers::write(&servers, &routes, &policies, &mut writer);
        let mut http = std::mem::take(&mut writer.http);
        if let Some(origin) = http.first().map(|it| it.origin.clone()) {
            // Requests to other hosts get 404.
            let is_default = |it: &Directive| {
                it.block
                    .iter()
                    .any(|inner| inner.arguments().iter().any(|it| it == "default_server"))
            };
            if !http.iter().any(is_default) {
                let answer = directive(&origin, &["return", "404"], Vec::new());
                let listen = directive(&origin, &["listen", "default_server"], Vec::new());
                http.push(directive(&origin, &["server"], vec![answer, listen]));
            }
        }
        nginx::import(&http, notes)
    }

    /// Reads an Ingress. Returns true if it has limits of this controller.
    fn ingress(&mut self, root: &ManifestNode<'_>) -> bool {
        let ingress = F5Ingress::read(root);
        if ingress.is_community {
            self.classes.add_community(ingress.class.as_deref());
        }
        let is_relevant = ingress.has_limits() && !ingress.is_community;
        if !ingress.is_community {
            self.ingresses.push(ingress);
        }
        is_relevant
    }
}

/// Remarks about snippets with limits in some fields.
fn snippets(node: &ManifestNode<'_>, names: &[&str], gaps: &mut Notes) {
    for name in names {
        let Some(field) = node.get(name) else { continue };
        if field.tree().text().is_some_and(|text| text.contains("limit_")) {
            gaps.add(field.origin(), *name, SNIPPET);
        }
    }
}

/// A boolean of a field, false without it.
fn is_set(node: &ManifestNode<'_>, path: &str) -> bool {
    flag(node, path) == Some(true)
}
