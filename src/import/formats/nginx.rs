//! `limit_req` and `limit_conn` of nginx's own configuration.
//!
//! A zone counts a key at all places that use it. So each use of a zone with the same numbers
//! becomes an entry with all of its hosts and paths; nginx charges the zones of a place together,
//! as Diana the entries of a request.

mod servers;

use std::rc::Rc;

use diana_policy::tree::Tree;
use hashbrown::HashMap;

use super::{FormatReader, ImportFormat};
use crate::key::KeySource;
use crate::manifest::ManifestObject;
use crate::nginx::keys::{Maps, ZoneKey};
use crate::nginx::model::{ConnectionLimit, KeyReader, PlaceModel, RequestLimit, RequestRate};
use crate::nginx::syntax::{self, Directive};
use crate::nginx::variables;
use crate::outcome::{
    Imported, ImportedEntry, ImportedObject, ImportedRule, Notes, RuleDifferences,
};
use crate::routes::Covered;
use crate::source::{Origin, SourceFiles, SourceText};
use servers::{Servers, ZoneUse};

/// `nginx` in the registry.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "nginx", reader: || Box::<NginxReader>::default() };

/// Maximum depth of included files, and the maximum number of them.
const MAX_DEPTH: usize = 8;
const MOST_FILES: usize = 2_000;

/// The longest wait that Diana imposes, in milliseconds.
const LONGEST_WAIT: u64 = 20_000;

/// The largest rate and burst of a rule.
const MOST: u64 = 1_000_000_000;

#[derive(Default)]
struct NginxReader {
    /// The directives of each file that no other file includes.
    files: Vec<(Rc<str>, Vec<Directive>)>,
    /// The files that were included.
    included: Vec<Rc<str>>,
    gaps: Notes,
}

impl FormatReader for NginxReader {
    fn object(&mut self, _: &ManifestObject) -> bool {
        false
    }

    fn text(&mut self, text: &SourceText, files: &dyn SourceFiles) -> bool {
        if !syntax::is_nginx(&text.text) {
            return false;
        }
        if !self.included.contains(&text.name) {
            let directives = self.parse(text, files, &mut vec![text.name.clone()]);
            self.files.push((text.name.clone(), directives));
        }
        true
    }

    fn finish(self: Box<Self>) -> Imported {
        let NginxReader { files, gaps, .. } = *self;
        let mut directives = Vec::new();
        for (_, own) in files {
            let (http, rest): (Vec<_>, Vec<_>) =
                own.into_iter().partition(|it| it.name() == "http");
            // A file without `http` is included in such a block elsewhere.
            directives.extend(rest);
            directives.extend(http.into_iter().flat_map(|http| http.block));
        }
        import(&directives, Imported { gaps, ..Imported::default() })
    }
}

impl NginxReader {
    /// The directives of a text, with those of the files that it includes. `stack` has the files
    /// that include it, the main one first.
    fn parse(
        &mut self,
        text: &SourceText,
        files: &dyn SourceFiles,
        stack: &mut Vec<Rc<str>>,
    ) -> Vec<Directive> {
        let (directives, fault) = syntax::parse(text);
        if let Some((origin, why)) = fault {
            self.gaps.add(origin, "the rest of this file", why);
        }
        self.expand(directives, files, stack)
    }

    fn expand(
        &mut self,
        directives: Vec<Directive>,
        files: &dyn SourceFiles,
        stack: &mut Vec<Rc<str>>,
    ) -> Vec<Directive> {
        let mut expanded = Vec::new();
        for mut directive in directives {
            if let ("include", [pattern]) = (directive.name(), directive.arguments()) {
                // Files of types have no limits.
                if !pattern.ends_with("mime.types") {
                    let main = stack.first().cloned().unwrap_or_else(|| "".into());
                    let found = files.included(pattern, &main);
                    expanded.extend(self.include(&directive, found, files, stack));
                }
                continue;
            }
            let block = std::mem::take(&mut directive.block);
            directive.block = self.expand(block, files, stack);
            expanded.push(directive);
        }
        expanded
    }

    fn include(
        &mut self,
        directive: &Directive,
        found: Result<Vec<SourceText>, String>,
        files: &dyn SourceFiles,
        stack: &mut Vec<Rc<str>>,
    ) -> Vec<Directive> {
        let texts = match found {
            Ok(texts) => texts,
            Err(why) => {
                self.gaps.add(directive.origin.clone(), directive.shown(), why);
                return Vec::new();
            }
        };
        let mut directives = Vec::new();
        for text in texts {
            let is_loop = stack.contains(&text.name);
            if is_loop || stack.len() > MAX_DEPTH || self.included.len() >= MOST_FILES {
                let why = if is_loop { "includes itself" } else { "is one of too many files" };
                let reason = format!("{} {why}", text.name);
                self.gaps.add(directive.origin.clone(), directive.shown(), reason);
                continue;
            }
            self.files.retain(|(name, _)| *name != text.name);
            self.included.push(text.name.clone());
            stack.push(text.name.clone());
            directives.extend(self.parse(&text, files, stack));
            stack.pop();
        }
        directives
    }
}

/// A zone.
#[derive(Debug)]
struct NginxZone {
    key: Result<ZoneKey, String>,
    /// Requests in a unit; none for connections.
    rate: Option<(u64, &'static str)>,
    origin: Origin,
    is_used: bool,
}

/// The limits of the directives of `http`, with these remarks.
pub(super) fn import(directives: &[Directive], notes: Imported) -> Imported {
    let mut imported = notes;
    let mut maps = Maps::default();
    directives.iter().filter(|it| matches!(it.name(), "map" | "geo")).for_each(|it| maps.add(it));
    let mut zones = zones(directives, &maps, &mut imported.gaps);
    let servers = Servers::read(directives, &mut imported.gaps);
    for (number, used) in servers.uses.iter().enumerate() {
        let Some(zone) = zones.get_mut(&(used.is_connections, used.zone.clone())) else {
            let reason = "no zone has this name, so nginx refuses the configuration";
            imported.gaps.add(used.origin.clone(), used.title(), reason);
            continue;
        };
        let is_shared = std::mem::replace(&mut zone.is_used, true);
        let key = match &zone.key {
            Ok(key) => key.clone(),
            Err(why) => {
                imported.gaps.add(used.origin.clone(), used.title(), why.as_str());
                continue;
            }
        };
        let Some(covered) = servers.routes.of(number, &mut imported.gaps) else { continue };
        if is_shared {
            let reason = "other places use the zone with other numbers; nginx counts all of them together, the rules count apart";
            imported.gaps.add(used.origin.clone(), used.title(), reason);
        }
        let rule = rule(used, zone, &key, &mut imported.gaps);
        let (origin, title) = (used.origin.clone(), used.title());
        let keys = entry_keys(&covered, &key);
        imported.entries.push(ImportedEntry { origin, title, keys, rules: vec![rule] });
    }
    if !imported.entries.is_empty() {
        other_settings(directives, &mut imported.gaps);
    }
    for owners in servers.routes.shared() {
        imported.objects.extend(object(owners, &servers, &zones));
    }
    let mut unused: Vec<_> = zones.iter().filter(|(_, zone)| !zone.is_used).collect();
    unused.sort_by(|(_, one), (_, other)| one.origin.cmp(&other.origin));
    for ((_, name), zone) in unused {
        let reason = "no limit uses this zone";
        imported.inert.add(zone.origin.clone(), format!("the zone {name}"), reason);
    }
    imported
}

/// Remarks about settings that change which requests a limit counts, or under which address.
fn other_settings(directives: &[Directive], gaps: &mut Notes) {
    for directive in directives {
        let reason = match directive.name() {
            "real_ip_header" => {
                "nginx takes the client's address from a proxy in front; Envoy needs the same, by xff_num_trusted_hops or the PROXY protocol, \
                 or all clients of that proxy are one caller"
            }
            "rewrite" if leads_elsewhere(directive) => {
                "nginx counts these requests under the limits of the location for the new path, the rules under those of the old one"
            }
            _ => {
                other_settings(&directive.block, gaps);
                continue;
            }
        };
        gaps.add(directive.origin.clone(), directive.shown(), reason);
    }
}

/// Returns true if nginx chooses a location again after a `rewrite`.
fn leads_elsewhere(rewrite: &Directive) -> bool {
    let [_, target, flags @ ..] = rewrite.arguments() else { return false };
    let is_last = flags.first().is_none_or(|flag| flag == "last");
    let is_redirect = ["http://", "https://", "$scheme"].iter().any(|it| target.starts_with(it));
    is_last && !is_redirect
}

/// All limits of a place together, if all of them are imported.
fn object(
    owners: &[usize],
    servers: &Servers,
    zones: &HashMap<(bool, String), NginxZone>,
) -> Option<ImportedObject> {
    let (mut titles, mut rules) = (Vec::new(), Vec::new());
    let (mut model, mut unrounded) = (PlaceModel::default(), PlaceModel::default());
    for number in owners {
        let used = servers.uses.get(*number)?;
        let zone = zones.get(&(used.is_connections, used.zone.clone()))?;
        let key = zone.key.as_ref().ok()?;
        add_limit(&mut model, used, zone, key, true);
        add_limit(&mut unrounded, used, zone, key, false);
        titles.push(used.title());
        rules.push(used.origin.clone());
    }
    Some(ImportedObject {
        title: titles.join("; "),
        rules,
        model: Box::new(model),
        unrounded: Some(Box::new(unrounded)),
    })
}

/// Adds a limit to the model of a place.
fn add_limit(
    model: &mut PlaceModel,
    used: &ZoneUse,
    zone: &NginxZone,
    key: &ZoneKey,
    is_rounded: bool,
) {
    let key = KeyReader::new(key.sources.clone(), &key.exempt).with_text(key.has_text);
    match zone.rate {
        None => model.add_connections(ConnectionLimit::new(key, used.number)),
        Some((requests, unit)) => {
            let seconds = if unit == "second" { 1 } else { 60 };
            let rate = RequestRate { requests, seconds, is_rounded };
            model.add_requests(RequestLimit::new(key, rate, used.number, used.undelayed));
        }
    }
}

/// The model of one limit, with nginx's rounding or without it.
fn model(used: &ZoneUse, zone: &NginxZone, key: &ZoneKey, is_rounded: bool) -> Box<PlaceModel> {
    let mut model = PlaceModel::default();
    add_limit(&mut model, used, zone, key, is_rounded);
    Box::new(model)
}

/// The zones, by their kinds and names.
fn zones(
    directives: &[Directive],
    maps: &Maps,
    gaps: &mut Notes,
) -> HashMap<(bool, String), NginxZone> {
    let mut zones = HashMap::new();
    for directive in directives {
        let is_connections = match directive.name() {
            "limit_req_zone" => false,
            "limit_conn_zone" => true,
            _ => continue,
        };
        let mut fault = |why: &str| gaps.add(directive.origin.clone(), directive.shown(), why);
        let argument = |name: &str| {
            directive.arguments().iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
        };
        let name = argument("zone").and_then(|zone| zone.split(':').next());
        let (Some(key), Some(name)) = (directive.arguments().first(), name) else {
            fault("found no key or no `zone=`");
            continue;
        };
        let rate = argument("rate").and_then(rate);
        if rate.is_none() && !is_connections {
            fault("found no `rate=` such as 10r/s or 10r/m");
            continue;
        }
        let (key, origin) = (maps.key(key), directive.origin.clone());
        zones.insert(
            (is_connections, name.to_owned()),
            NginxZone { key, rate, origin, is_used: false },
        );
    }
    zones
}

fn rate(text: &str) -> Option<(u64, &'static str)> {
    let (number, unit) = match text.strip_suffix("r/s") {
        Some(number) => (number, "second"),
        None => (text.strip_suffix("r/m")?, "minute"),
    };
    number.parse().ok().filter(|rate| (1..=MOST).contains(rate)).map(|rate| (rate, unit))
}

/// The keys of the entry for a use of a zone.
fn entry_keys(covered: &Covered, key: &ZoneKey) -> Vec<(&'static str, Tree)> {
    let map = |pairs: Vec<(String, Tree)>| Tree::Map(pairs);
    let mut keys = covered.url_keys();
    let hosts = covered.host_pair();
    let mut blocks: Vec<Tree> = Vec::new();
    for condition in &key.matching {
        let pairs = hosts.iter().filter(|(name, _)| *name != condition.0);
        blocks.push(map(pairs.chain([condition]).cloned().collect()));
    }
    if blocks.is_empty() && hosts.is_some() {
        blocks.push(map(hosts.into_iter().collect()));
    }
    if !blocks.is_empty() {
        keys.push(("match", Tree::List(blocks)));
    }
    let other = covered.other_host_pair().into_iter();
    let unless: Vec<Tree> =
        other.chain(key.unless.iter().cloned()).map(|pair| map(vec![pair])).collect();
    if !unless.is_empty() {
        keys.push(("unless", Tree::List(unless)));
    }
    keys.extend(covered.except(&key.exempt));
    keys
}

/// The rule for a use of a zone.
fn rule(used: &ZoneUse, zone: &NginxZone, key: &ZoneKey, gaps: &mut Notes) -> ImportedRule {
    let whole = |number: u64| Tree::Int(i128::from(number));
    let mut keys = Vec::new();
    let mut refused = "do not count, in both".to_owned();
    match zone.rate {
        None => {
            keys.push(("in_flight", whole(used.number.clamp(1, 1_000_000))));
            refused = "take no slot, in both, but nginx counts them under `limit_req` of the same place, and Diana does not".into();
        }
        Some((rate, unit)) => {
            let burst = used.number.min(MOST - 1);
            keys.extend([("unit", Tree::from(unit)), ("rpu", whole(rate))]);
            let delayed = burst.saturating_sub(used.undelayed.unwrap_or(burst));
            let seconds = if unit == "second" { 1 } else { 60 };
            let wait = delayed.saturating_mul(seconds * 1000).div_ceil(rate);
            if wait > LONGEST_WAIT {
                let reason = format!(
                    "nginx lets requests wait for up to {} s, Diana for at most 20 s; it refuses the others",
                    wait.div_ceil(1000)
                );
                gaps.add(used.origin.clone(), used.title(), reason);
            }
            let undelayed = burst - delayed;
            let can_wait = delayed > 0 && seconds * 1000 / rate < LONGEST_WAIT;
            if undelayed > 0 || !can_wait {
                keys.push(("algo", "token bucket".into()));
                keys.push(("burst", whole(undelayed + 1)));
            } else {
                keys.push(("algo", "leaky bucket".into()));
            }
            if can_wait {
                // As many wait at a time as in nginx.
                let wait = wait.clamp(1, LONGEST_WAIT);
                keys.push(("max_delay", Tree::Text(format!("{wait}ms"))));
                keys.push(("max_queue", whole(delayed)));
            }
            if unit == "minute" {
                refused.push_str(&variables::rounding(rate));
            }
        }
    }
    if used.is_dry_run {
        keys.push(("shadow", Tree::Bool(true)));
    }
    let counts: Vec<&str> = key.sources.iter().map(|source| &*source.counts).collect();
    let counts = if counts.is_empty() { "all requests".into() } else { counts.join(" and ") };
    let keyless = match key.sources.as_slice() {
        [] => "all requests share one count".into(),
        sources if key.has_text && !sources.iter().all(KeySource::is_always) => {
            "nginx counts all of them together, Diana does not limit".into()
        }
        [source] => source.without(!key.exempt.is_empty()),
        _ => "nginx counts by the values that there are, Diana does not limit".into(),
    };
    ImportedRule {
        origin: used.origin.clone(),
        name: used.zone.clone(),
        actors: key.sources.iter().map(KeySource::actor).collect(),
        keys,
        status: used.status,
        differences: RuleDifferences {
            refused,
            belongs: format!(
                "all places with this zone together, in each nginx; here of this entry, in each gateway; by {counts}"
            ),
            keyless,
        },
        comparison: None,
        exempt: key.exempt.clone(),
        is_partial: false,
        processes: 1,
        model: Some(model(used, zone, key, true)),
        unrounded: Some(model(used, zone, key, false)),
    }
}
