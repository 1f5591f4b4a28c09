//! Servers and locations, and the limits that apply at each.

use std::rc::Rc;

use crate::nginx::syntax::Directive;
use crate::outcome::Notes;
use crate::paths;
use crate::routes::{HostPath, PathKind, Routes};
use crate::source::Origin;

/// A zone with the numbers of some places.
#[derive(Debug, Clone)]
pub(super) struct ZoneUse {
    pub(super) is_connections: bool,
    pub(super) zone: String,
    /// The burst, or the number of connections.
    pub(super) number: u64,
    /// The number of requests beyond the first that do not wait; none if no request waits.
    pub(super) undelayed: Option<u64>,
    pub(super) is_dry_run: bool,
    pub(super) status: u16,
    /// The first directive.
    pub(super) origin: Origin,
}

impl ZoneUse {
    pub(super) fn title(&self) -> String {
        let ZoneUse { zone, number, .. } = self;
        if self.is_connections {
            return format!("limit_conn {zone} {number}");
        }
        let delay = match self.undelayed {
            None => " nodelay".into(),
            Some(0) => String::new(),
            Some(undelayed) => format!(" delay={undelayed}"),
        };
        match number {
            0 => format!("limit_req zone={zone}"),
            _ => format!("limit_req zone={zone} burst={number}{delay}"),
        }
    }

    fn is_same(&self, other: &ZoneUse) -> bool {
        let numbers = |it: &ZoneUse| {
            (it.is_connections, it.zone.clone(), it.number, it.undelayed, it.is_dry_run, it.status)
        };
        numbers(self) == numbers(other)
    }
}

/// The limits that a level passes on to those within it.
#[derive(Debug, Clone)]
struct LimitLevel {
    /// Of requests and of connections: an own list replaces that of the level above.
    uses: [Rc<Vec<ZoneUse>>; 2],
    statuses: [u16; 2],
    dry_runs: [bool; 2],
}

/// All servers.
pub(super) struct Servers {
    pub(super) uses: Vec<ZoneUse>,
    /// The owners are the uses, by their numbers.
    pub(super) routes: Routes,
}

impl Servers {
    /// Reads the directives of `http`.
    pub(super) fn read(http: &[Directive], gaps: &mut Notes) -> Servers {
        let mut servers = Servers { uses: Vec::new(), routes: Routes::new("nginx") };
        let none = Rc::new(Vec::new());
        let outer =
            LimitLevel { uses: [none.clone(), none], statuses: [503; 2], dry_runs: [false; 2] };
        let outer = outer.within(http, gaps);
        let blocks: Vec<&Directive> = http.iter().filter(|it| it.name() == "server").collect();
        let listens = |server: &Directive| {
            let listen = server.block.iter().filter(|it| it.name() == "listen");
            listen.flat_map(|it| it.arguments()).any(|it| it == "default_server" || it == "default")
        };
        let default = blocks.iter().position(|server| listens(server)).unwrap_or(0);
        for (number, server) in blocks.iter().enumerate() {
            servers.server(server, number == default, &outer, gaps);
        }
        // A part of a configuration: limits, and locations of a server elsewhere.
        if blocks.is_empty() {
            servers.places(http, &[String::new()], &outer, gaps);
        }
        servers
    }

    fn server(
        &mut self,
        server: &Directive,
        is_default: bool,
        outer: &LimitLevel,
        gaps: &mut Notes,
    ) {
        let mut hosts = Vec::new();
        for name in server.block.iter().filter(|it| it.name() == "server_name") {
            for name in name.arguments() {
                let lower = name.to_ascii_lowercase();
                match lower.strip_prefix('.') {
                    Some(rest) => hosts.extend([rest.to_owned(), format!("*.{rest}")]),
                    None if is_default && (lower.starts_with('~') || lower.ends_with(".*")) => {}
                    None if lower.starts_with('~') || lower.ends_with(".*") => {
                        let reason = "no host of a rule has this form; requests to these hosts have no limit";
                        gaps.add(server.origin.clone(), format!("server_name {name}"), reason);
                    }
                    None if lower.is_empty() || lower == "_" || lower == "--" => {}
                    None => hosts.push(lower),
                }
            }
        }
        // It has its own names, too: a server of another port may have the same ones.
        if is_default {
            hosts.push(String::new());
        }
        if !hosts.is_empty() {
            let level = outer.within(&server.block, gaps);
            self.places(&server.block, &hosts, &level, gaps);
        }
    }

    /// The places of a server.
    fn places(
        &mut self,
        block: &[Directive],
        hosts: &[String],
        level: &LimitLevel,
        gaps: &mut Notes,
    ) {
        let owners = self.owners(level);
        // nginx answers by `return` before it counts.
        let answers = |block: &[Directive]| block.iter().any(|it| it.name() == "return");
        let owners = if answers(block) { Vec::new() } else { owners };
        let is_root = |it: &&Directive| {
            it.name() == "location" && matches!(it.arguments(), [path] if path == "/")
        };
        if !block.iter().any(|it| is_root(&it)) {
            let origin = block.first().map(|it| it.origin.clone());
            if let Some(origin) = origin {
                self.add(hosts, "/", PathKind::Prefix, origin, &owners, gaps);
            }
        }
        if !answers(block) {
            self.locations(block, hosts, level, &owners, gaps);
        }
    }

    fn locations(
        &mut self,
        block: &[Directive],
        hosts: &[String],
        outer: &LimitLevel,
        outer_owners: &[usize],
        gaps: &mut Notes,
    ) {
        for location in block.iter().filter(|it| it.name() == "location") {
            let level = outer.within(&location.block, gaps);
            let is_internal = location.block.iter().any(|it| it.name() == "internal");
            let answers = location.block.iter().any(|it| it.name() == "return");
            let owners = if answers { Vec::new() } else { self.owners(&level) };
            let origin = location.origin.clone();
            let (path, kind) = match location.arguments() {
                [modifier, path] if modifier == "=" => (path, PathKind::Exact),
                [modifier, path] if modifier == "^~" => (path, PathKind::Text),
                [modifier, path] if modifier == "~" || modifier == "~*" => (path, PathKind::Regex),
                [path] if !path.starts_with('@') => (path, PathKind::Text),
                _ => {
                    if owners != outer_owners {
                        let reason = "only internal redirects lead to this location, so no rule has its limits";
                        gaps.add(origin, location.shown(), reason);
                    }
                    continue;
                }
            };
            if is_internal {
                continue;
            }
            if kind == PathKind::Regex && paths::of_regex(path) == ("/".into(), false) {
                if owners != outer_owners {
                    let reason = "no rule has paths of this form, so these requests have the limits of the other places";
                    gaps.add(origin, location.shown(), reason);
                }
            } else {
                self.add(hosts, path, kind, origin, &owners, gaps);
            }
            self.locations(&location.block, hosts, &level, &owners, gaps);
        }
    }

    fn add(
        &mut self,
        hosts: &[String],
        path: &str,
        kind: PathKind,
        origin: Origin,
        owners: &[usize],
        gaps: &mut Notes,
    ) {
        for host in hosts {
            let (host, path, origin) = (host.clone(), path.to_owned(), origin.clone());
            let place = HostPath { host, path, kind, origin };
            match self.routes.owners_of(&place) {
                None => self.routes.add(place, owners),
                Some(known) if known == owners => {}
                Some(_) => {
                    let about = format!("{}{}", place.host, place.path);
                    let reason = "another server has the same host and path with other limits, such as on another port; the first one is \
                                  taken";
                    gaps.add(place.origin, about, reason);
                }
            }
        }
    }

    /// The numbers of the uses of a level, new ones included.
    fn owners(&mut self, level: &LimitLevel) -> Vec<usize> {
        let mut owners = Vec::new();
        for (kind, list) in level.uses.iter().enumerate() {
            let (status, dry_run) = (level.statuses.get(kind), level.dry_runs.get(kind));
            for spec in list.iter() {
                let used = ZoneUse {
                    status: status.copied().unwrap_or(503),
                    is_dry_run: dry_run == Some(&true),
                    ..spec.clone()
                };
                let known = self.uses.iter().position(|it| it.is_same(&used));
                owners.push(known.unwrap_or_else(|| {
                    let number = self.routes.add_owner(used.title(), used.origin.clone());
                    self.uses.push(used);
                    number
                }));
            }
        }
        owners
    }
}

impl LimitLevel {
    /// The limits of a block within this level.
    fn within(&self, block: &[Directive], gaps: &mut Notes) -> LimitLevel {
        let mut level = self.clone();
        let mut own: [Vec<ZoneUse>; 2] = [Vec::new(), Vec::new()];
        for directive in block {
            let is_connections = directive.name().starts_with("limit_conn");
            let kind = usize::from(is_connections);
            let value = directive.arguments().first().map_or("", String::as_str);
            match directive.name() {
                "limit_req" | "limit_conn" => match read_use(directive, is_connections) {
                    Some(used) => {
                        let Some(own) = own.get_mut(kind) else { continue };
                        if own.iter().any(|other| other.zone == used.zone) {
                            let reason = "the place has the zone already, so nginx refuses the configuration";
                            gaps.add(directive.origin.clone(), directive.shown(), reason);
                            continue;
                        }
                        own.push(used);
                    }
                    None => gaps.add(
                        directive.origin.clone(),
                        directive.shown(),
                        "nginx refuses this, so the limit is not imported",
                    ),
                },
                "limit_req_status" | "limit_conn_status" => {
                    let status = value.parse().ok().filter(|it| (400..=599).contains(it));
                    if let (Some(status), Some(field)) = (status, level.statuses.get_mut(kind)) {
                        *field = status;
                    }
                }
                "limit_req_dry_run" | "limit_conn_dry_run" => {
                    if let Some(field) = level.dry_runs.get_mut(kind) {
                        *field = value == "on";
                    }
                }
                "limit_rate" | "limit_rate_after" if value != "0" => gaps.add(
                    directive.origin.clone(),
                    directive.shown(),
                    "slows down the bytes of each response, and limits no requests; Diana has no substitute",
                ),
                "if" if directive.block.iter().any(|it| it.name() == "limit_rate") => gaps.add(
                    directive.origin.clone(),
                    directive.shown(),
                    "slows down the bytes of some responses; Diana has no substitute",
                ),
                name if name.contains("_by_lua")
                    && directive.words.iter().any(|it| it.contains("resty.limit")) =>
                {
                    gaps.add(directive.origin.clone(), name, "limits in Lua are not imported");
                }
                _ => {}
            }
        }
        for (field, own) in level.uses.iter_mut().zip(own) {
            if !own.is_empty() {
                *field = Rc::new(own);
            }
        }
        level
    }
}

fn read_use(directive: &Directive, is_connections: bool) -> Option<ZoneUse> {
    let arguments = directive.arguments();
    let origin = directive.origin.clone();
    let used = |zone: &str, number: u64, undelayed: Option<u64>| ZoneUse {
        is_connections,
        zone: zone.into(),
        number,
        undelayed,
        is_dry_run: false,
        status: 503,
        origin: origin.clone(),
    };
    if is_connections {
        let [zone, number] = arguments else { return None };
        let number = number.parse().ok().filter(|number| (1..=65_535).contains(number))?;
        return Some(used(zone, number, None));
    }
    let value =
        |name: &str| arguments.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str| match value(name) {
        None => Some(0),
        Some(text) => text.parse::<u64>().ok(),
    };
    let burst = number("burst")?;
    let undelayed = match arguments.iter().any(|it| it == "nodelay") {
        true => None,
        false => Some(number("delay")?),
    };
    Some(used(value("zone")?, burst, undelayed.filter(|_| burst > 0)))
}
