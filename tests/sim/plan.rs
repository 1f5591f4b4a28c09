//! The world that a seed selects: fleet, rules, traffic, faults.

use std::fmt::Write;
use std::iter;
use std::ops::Range;

use diana_policy::MAX_PERMITS;
use diana_policy::time::{Micros, SECOND};
use fastrand::Rng;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::rule::{Cost, DAY, Rule, Scope, Theme, ahead};

/// Time of Redis's clock at the start of a world.
pub const EPOCH: Micros = kit::rules::START;

pub const MILLISECOND: Micros = 1_000;

/// How long gateways wait for Redis.
pub const TIMEOUT: Micros = 20 * MILLISECOND;

/// Pause after the last request and the last fault, before the rules are probed.
pub const REST: Micros = 3 * SECOND;

#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub gateways: usize,
    pub workers: usize,
    pub listeners: usize,
    /// The rules of each entry of the document.
    pub entries: Vec<Vec<Rule>>,
    pub callers: u32,
    /// Shards of the keys in Redis.
    pub parts: u16,
    /// What rules do while Redis is unavailable.
    pub on_failure: &'static str,
    /// Requests a second.
    pub demand: u64,
    /// Per cent of requests that one worker gets.
    pub skew: u8,
    /// Requests come until then.
    pub ends: Micros,
    /// How long a call to Redis takes there and back, on average.
    pub latency: Micros,
    /// How long upstreams take on average.
    pub service: Micros,
    /// Per cent of clients that leave early.
    pub leaving: u8,
    /// Per cent of calls of the host in the middle of which another worker runs.
    pub interrupted: u8,
    pub faults: Vec<Fault>,
    /// The permits of the document and of responses for each permit of the plan: in worlds from [`LARGE`] on, as many as a
    /// document may have. The promises are the same for each scale.
    pub scale: u64,
    /// Present in worlds from [`WIDE`] on.
    pub wide: Option<Wide>,
}

/// Worlds from this seed on have more features, and both kinds of gateways have the same history in them.
pub const WIDE: u64 = 100_000;

/// Worlds from this seed on have one rule for the whole fleet, callers at their limit, and a Redis that is often away for
/// a moment.
pub const BLIPS: u64 = 1 << 41;

/// Worlds from this seed on have numbers of fifteen digits.
pub const LARGE: u64 = 1 << 43;

/// Features drawn by a generator of their own, so that the worlds of smaller seeds stay as they are.
#[derive(Debug, Clone)]
pub struct Wide {
    /// Whether responses of admitted requests report the limits, too.
    pub reports: bool,
    /// Per cent of responses that are redirects which the gateway follows itself.
    pub followed: u8,
    /// Resets by operators.
    pub resets: Vec<Reset>,
    /// When a configuration centre changes its document, which doubles the limits every other time.
    pub central: Option<Vec<Micros>>,
    /// When the local day ends; zero in UTC.
    pub midnight: Micros,
    /// The time of that on the local clock, in minutes since midnight.
    pub day_starts: u64,
}

/// An operator resets what a caller has used under a rule.
#[derive(Debug, Clone)]
pub struct Reset {
    pub at: Micros,
    pub worker: usize,
    pub entry: usize,
    pub rule: usize,
    pub caller: u32,
}

/// Variable with the operator's token, and the token.
pub const TOKEN: (&str, &str) = ("DIANA_TOKEN", "a token of an operator");

/// Cluster of the configuration centre.
pub const CENTRE: &str = "centre";

impl Wide {
    fn draw(rng: &mut Rng) -> Wide {
        let followed = if rng.bool() { 0 } else { rng.u8(1..40) };
        let (resets, central, midnight, day_starts) = (Vec::new(), None, 0, 0);
        Wide { reports: rng.bool(), followed, resets, central, midnight, day_starts }
    }

    /// Seconds that the local clock is ahead of UTC, so that a day begins at `midnight`.
    fn ahead(&self) -> i64 {
        let ahead = (ahead(self.midnight) + self.day_starts * 60).cast_signed();
        // At most 14 hours.
        if ahead > 14 * 3600 { ahead - 86_400 } else { ahead }
    }

    /// The local date that begins then.
    pub fn begins(&self) -> Date {
        let seconds = ((EPOCH + self.midnight) / SECOND).cast_signed() + self.ahead();
        let local = jiff::Timestamp::from_second(seconds).expect("a date").to_zoned(TimeZone::UTC);
        local.date()
    }

    /// The keys of the document that place the local midnight, and the starts of weeks and months.
    fn starts(&self) -> String {
        let standard = self.ahead() - 3600;
        let sign = if standard < 0 { '+' } else { '-' };
        let (hours, minutes, seconds) =
            (standard.abs() / 3600, standard.abs() / 60 % 60, standard.abs() % 60);
        let begins = self.begins();
        // An offset has no seconds unless clocks change.
        format!(
            "time_zone: AAA{sign}{hours}:{minutes:02}:{seconds:02}BBB,M3.5.0,M10.5.0\n\
             day_starts: \"{:02}:{:02}\"\nweek_starts: {}\nmonth_starts: {}\n",
            self.day_starts / 60,
            self.day_starts % 60,
            format!("{:?}", begins.weekday()).to_lowercase(),
            begins.day(),
        )
    }
}

/// A fault, or a change of the configuration.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Redis does not answer these gateways.
    Away { span: Range<Micros>, gateways: Range<usize>, how: Away },
    /// This share of the calls is lost, half of them on the way back.
    Loses { span: Range<Micros>, permille: u64 },
    /// A worker stands still.
    Still { span: Range<Micros>, worker: usize },
    /// A worker dies, and another one takes its place.
    Dies { at: Micros, worker: usize },
    /// A gateway restarts.
    Restarts { at: Micros, gateway: usize },
    /// Redis forgets everything.
    Emptied { at: Micros },
    /// A replica takes the place of Redis, as it was at the start of the span.
    Failover { span: Range<Micros> },
    /// Each call reaches one of two stores.
    Split { span: Range<Micros> },
    /// A listener of a gateway gets another document; streams of the old one are ended after `drain`.
    Update { at: Micros, gateway: usize, listener: usize, drain: Micros },
}

/// What becomes of a call while Redis is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Away {
    /// No answer before the timeout.
    Silent,
    /// Envoy answers 503 at once.
    Refused,
    /// The connection breaks off.
    Reset,
    /// Something else answers.
    Garbage,
}

impl Fault {
    /// From when to when something is wrong.
    pub fn span(&self) -> Range<Micros> {
        match self {
            Fault::Away { span, .. }
            | Fault::Loses { span, .. }
            | Fault::Still { span, .. }
            | Fault::Failover { span }
            | Fault::Split { span } => span.clone(),
            Fault::Dies { at, .. } | Fault::Restarts { at, .. } | Fault::Emptied { at } => *at..*at,
            Fault::Update { at, drain, .. } => *at..*at + drain,
        }
    }
}

fn leases_in_gateways(seed: u64) -> bool {
    !seed.is_multiple_of(2)
}

impl Plan {
    pub fn draw(seed: u64) -> Plan {
        if seed >= LARGE {
            return Plan::large(seed);
        }
        if seed >= BLIPS {
            return Plan::blips(seed);
        }
        let mut rng = Rng::with_seed(seed);
        let theme = match rng.u8(..8) {
            0..2 => Theme::Settling,
            2..4 => Theme::Places,
            4..6 => Theme::Leases,
            _ => Theme::Any,
        };
        let few = [1, 2, 2, 3];
        let (gateways, workers) = (few[rng.usize(..4)], few[rng.usize(..4)]);
        // A subset, since a feature that is always present can hide a bug.
        let mut scopes = vec![Scope::Local, Scope::Gateway, Scope::Global];
        rng.shuffle(&mut scopes);
        scopes.truncate(rng.usize(1..=3));
        let several = usize::from(rng.u8(..3) == 0);
        let mut entries: Vec<Vec<Rule>> = Vec::new();
        for entry in 0..rng.usize(1..=2) {
            let draw = |number| Rule::draw(format!("e{entry}-r{number}"), theme, &scopes, &mut rng);
            entries.push((0..1 + several).map(draw).collect());
        }
        let (seconds, demand) = match theme {
            Theme::Leases => (3..=5, 160 << rng.u8(..3)),
            _ => (4..=8, 40 << rng.u8(..4)),
        };
        let shortest = if theme == Theme::Places { 7 } else { 0 };
        let mut plan = Plan {
            seed,
            gateways,
            workers,
            listeners: rng.usize(1..=2),
            entries,
            callers: 1 << rng.u8(..if theme == Theme::Leases { 2 } else { 4 }),
            parts: 1,
            on_failure: "gateway",
            demand,
            skew: if rng.bool() { 0 } else { 90 },
            ends: rng.u64(seconds) * SECOND,
            latency: 200 << rng.u8(..5),
            service: MILLISECOND << rng.u8(shortest..12),
            leaving: if rng.bool() { 0 } else { rng.u8(..30) },
            interrupted: if rng.bool() { 0 } else { rng.u8(..30) },
            faults: Vec::new(),
            scale: 1,
            wide: None,
        };
        if rng.u8(..4) > 0 {
            let usual: &[u8] = match theme {
                Theme::Settling => &[0, 1, 5, 6],
                Theme::Places => &[0, 2, 3, 6],
                Theme::Any | Theme::Leases => &[0, 1, 2, 3, 4, 5, 6],
            };
            let kinds: Vec<u8> =
                (0..rng.usize(1..=2)).map(|_| usual[rng.usize(..usual.len())]).collect();
            // Often all at the same time.
            let first = rng.u64(SECOND..plan.ends - SECOND);
            let last = if rng.bool() { plan.ends - SECOND } else { first + SECOND / 2 };
            for _ in 0..rng.usize(1..=6) {
                let kind = kinds[rng.usize(..kinds.len())];
                let fault = plan.fault(kind, rng.u64(first..=last), &mut rng);
                plan.faults.push(fault);
            }
        }
        plan.parts = [16, 1, 2, 4, 1, 1, 1, 1, 1][rng.usize(..9)];
        if seed >= WIDE {
            plan.widen(&mut Rng::with_seed(seed ^ 1 << 62));
            plan.refine(&mut Rng::with_seed(seed ^ 1 << 61));
        }
        plan
    }

    /// A world of [`BLIPS`].
    fn blips(seed: u64) -> Plan {
        let mut rng = Rng::with_seed(seed);
        let (gateways, workers) = ([1, 1, 2, 3][rng.usize(..4)], rng.usize(1..=3));
        let algo = ["W", "SW", "TB"][rng.usize(..3)];
        let demand = 80 << rng.u8(..4);
        let unit = [SECOND, 60 * SECOND][rng.usize(..2)];
        let limit = if unit == SECOND { rng.u64(demand / 8..demand) } else { rng.u64(20..demand) };
        let callers = 1 << rng.u8(..3);
        let limit = (limit / u64::from(callers)).max(1);
        let of_all = callers == 1 && rng.bool();
        let (cost, service) = Plan::settled(algo, limit, &mut Rng::with_seed(seed ^ 1 << 62));
        let rule = Rule { algo, unit, limit, of_all, cost, ..Rule::fleet("blips") };
        let mut plan = Plan {
            seed,
            gateways,
            workers,
            listeners: 1,
            entries: vec![vec![rule]],
            callers,
            parts: 1,
            on_failure: "gateway",
            demand,
            skew: if rng.bool() { 0 } else { 90 },
            ends: rng.u64(4..=7) * SECOND,
            latency: 200 << rng.u8(..4),
            service,
            leaving: 0,
            interrupted: if rng.bool() { 0 } else { rng.u8(..30) },
            faults: Vec::new(),
            scale: 1,
            wide: None,
        };
        let (pause, length) = (rng.u64(100..1000), rng.u64(1..200));
        let mut at = 1200 * MILLISECOND;
        while at < plan.ends - SECOND {
            let span = at..at + rng.u64(1..=length) * MILLISECOND;
            let how = [Away::Silent, Away::Refused, Away::Reset, Away::Garbage][rng.usize(..4)];
            at = span.end + rng.u64(pause / 2..=2 * pause) * MILLISECOND;
            let gateways = if rng.bool() { 0..gateways } else { 0..rng.usize(1..=gateways) };
            plan.faults.push(match rng.u8(..4) {
                0 => Fault::Loses { span, permille: rng.u64(1..1000) },
                _ => Fault::Away { span, gateways, how },
            });
        }
        plan
    }

    /// A world of [`LARGE`]. In half of them no request reserves what it uses: the debts of a caller may be more than a state
    /// has room for.
    fn large(seed: u64) -> Plan {
        let mut plan = Plan { seed, ..Plan::draw((seed - LARGE) % WIDE) };
        let runs_up_debts = seed % 4 < 2;
        if runs_up_debts {
            plan.service = SECOND;
        }
        for rule in plan.entries.iter_mut().flatten() {
            if ["TB", "LB"].contains(&rule.algo) {
                rule.algo = if seed.is_multiple_of(2) { "W" } else { "SW" };
            }
            if let Cost::QuestionResult { reserve, max, .. } = &mut rule.cost
                && runs_up_debts
            {
                (*reserve, *max) = (0, rule.limit);
            }
        }
        let counted = plan.entries.iter().flatten().filter(|rule| rule.algo != "P");
        plan.scale = MAX_PERMITS / counted.map(Rule::most).max().unwrap_or(1);
        plan
    }

    /// A world of two gateways with four workers each. Each entry has one rule. Updates happen, and Redis fails.
    ///
    /// In every other world the rules have all scopes, and no permits are leased in a gateway. In the others the gateways lease.
    pub fn of_two_modules(seed: u64) -> Plan {
        let mut rng = Rng::with_seed(seed);
        let leases = leases_in_gateways(seed);
        let kinds = match leases {
            true => vec![(Scope::Gateway, Theme::Leases); 4],
            false => [Scope::Gateway, Scope::Global]
                .into_iter()
                .flat_map(|scope| [Theme::Settling, Theme::Places].map(|theme| (scope, theme)))
                .chain([(Scope::Global, Theme::Leases), (Scope::Global, Theme::Any)])
                .chain([(Scope::Gateway, Theme::Any)])
                .collect(),
        };
        let of_worker = [Theme::Leases, Theme::Any].map(|theme| (Scope::Local, theme));
        let rule = |(number, (scope, theme))| {
            let name = format!("e{number}-r0");
            let draw = || Rule::draw(name.clone(), theme, &[scope], &mut rng);
            // Held requests continue at a timer, of which a worker with leases has more.
            let fits = |rule: &Rule| match leases {
                true => !rule.holds(),
                false => scope != Scope::Gateway || !rule.may_lease(),
            };
            let rule = iter::repeat_with(draw).find(fits).expect("some rules fit");
            // A refusal for a lease would count towards a ban in one module only.
            vec![Rule { ban: None, ..rule }]
        };
        let entries = kinds.into_iter().chain(of_worker).enumerate().map(rule).collect();
        let wide = Wide { reports: false, followed: 0, ..Wide::draw(&mut rng) };
        let mut plan = Plan {
            seed,
            gateways: 2,
            workers: 4,
            listeners: 2,
            entries,
            callers: 2,
            parts: 1,
            on_failure: "gateway",
            demand: if leases { 10_000 } else { 5_000 },
            skew: if rng.bool() { 0 } else { 40 },
            ends: if leases { 2 } else { 4 } * SECOND,
            latency: 200 << rng.u8(..5),
            service: MILLISECOND << rng.u8(..6),
            leaving: rng.u8(..10),
            interrupted: 0,
            faults: Vec::new(),
            scale: 1,
            wide: Some(wide),
        };
        // Redis is away, loses calls, and is emptied; listeners get other documents.
        for kind in [0, 1, 5, 6, 6] {
            let fault = plan.fault(kind, rng.u64(SECOND / 2..plan.ends - SECOND / 2), &mut rng);
            plan.faults.push(fault);
        }
        plan
    }

    /// The cost of a request in a world of [`BLIPS`], and how long upstreams take: the responses of some report the cost.
    fn settled(algo: &str, limit: u64, rng: &mut Rng) -> (Cost, Micros) {
        // Token buckets cannot settle.
        if algo == "TB" || rng.bool() {
            return (Cost::Plain(1), MILLISECOND);
        }
        let max = rng.u64(1..=limit.min(5));
        let reserve = if rng.bool() { max } else { rng.u64(0..=max) };
        let service = MILLISECOND << rng.u8(..8);
        let estimates = (reserve > 0 && rng.bool()).then(|| rng.u64(reserve..=max));
        (Cost::QuestionResult { reserve, max, estimates }, service)
    }

    /// Returns true if this world of [`Plan::of_two_modules`] has leases.
    pub fn leases_in_gateways(&self) -> bool {
        leases_in_gateways(self.seed)
    }

    /// Returns true if calls to Redis fail in this world, and nothing else does: then all permits that a gateway admits
    /// without Redis are charged in the end.
    pub fn is_exact(&self) -> bool {
        let is_call = |fault: &Fault| matches!(fault, Fault::Away { .. } | Fault::Loses { .. });
        self.faults.iter().all(is_call)
    }

    /// Returns true if calls reach a store that they have left for another one.
    pub fn has_several_stores(&self) -> bool {
        let mut failovers: Vec<Range<Micros>> = Vec::new();
        for fault in &self.faults {
            match fault {
                Fault::Split { .. } => return true,
                Fault::Failover { span } => failovers.push(span.clone()),
                _ => {}
            }
        }
        failovers.sort_by_key(|span| span.start);
        // A gateway notices a failover by its next ordinal. An older replica is then a former store.
        failovers.windows(2).any(|two| two[1].start < two[0].end + 2 * SECOND)
    }

    fn widen(&mut self, rng: &mut Rng) {
        self.wide = Some(Wide::draw(rng));
        if rng.bool() {
            for _ in 0..rng.usize(1..=2) {
                let at = rng.u64(SECOND..self.ends - SECOND);
                let lag = [rng.u64(..20 * MILLISECOND), rng.u64(..SECOND)][rng.usize(..2)];
                self.faults.push(Fault::Failover { span: at - lag..at });
            }
        }
        let last = self.ends - SECOND;
        if rng.u8(..3) == 0 {
            let wide = self.wide.as_mut().expect("the world is wide");
            wide.midnight = rng.u64(1..=last / SECOND) * SECOND;
            for rule in self.entries.iter_mut().flatten() {
                rule.midnight = wide.midnight;
                if rule.algo != "W" || rng.u8(..4) == 0 {
                    continue;
                }
                rule.unit = DAY;
                let fits = rule.cost == Cost::Plain(1) && !rule.of_all && rule.gold.is_none();
                rule.is_filter = fits && rule.scope != Scope::Gateway && rng.bool();
            }
        }
        if rng.u8(..3) == 0 {
            let changes = (0..rng.usize(1..=3)).map(|_| rng.u64(..last)).collect();
            self.wide.as_mut().expect("the world is wide").central = Some(changes);
            self.entries.iter_mut().flatten().for_each(|rule| rule.is_doubled = rng.bool());
        }
        if rng.bool() {
            for _ in 0..rng.usize(1..=4) {
                let entry = rng.usize(..self.entries.len());
                let reset = Reset {
                    at: rng.u64(SECOND..self.ends),
                    worker: rng.usize(..self.gateways * self.workers),
                    entry,
                    rule: rng.usize(..self.entries[entry].len()),
                    caller: rng.u32(..self.callers.min(2)),
                };
                if self.entries[entry][reset.rule].can_be_reset() {
                    self.wide.as_mut().expect("the world is wide").resets.push(reset);
                }
            }
        }
    }

    /// Draws estimates, and the starts of periods that end within the world.
    fn refine(&mut self, rng: &mut Rng) {
        for rule in self.entries.iter_mut().flatten() {
            if let Cost::QuestionResult { reserve: reserve @ 1.., max, estimates } = &mut rule.cost
            {
                *estimates = rng.bool().then(|| rng.u64(*reserve..=*max));
            }
        }
        let wide = self.wide.as_mut().expect("the world is wide");
        if wide.midnight == 0 {
            return;
        }
        wide.day_starts = if rng.bool() { 0 } else { rng.u64(..24 * 60) };
        for rule in self.entries.iter_mut().flatten().filter(|rule| rule.unit == DAY) {
            if !rule.is_filter {
                rule.period = ["day", "week", "month"][rng.usize(..3)];
                rule.has_month_in_data = rule.period == "month" && rng.bool();
            }
        }
    }

    fn fault(&self, kind: u8, at: Micros, rng: &mut Rng) -> Fault {
        let all = self.gateways * self.workers;
        // The first one gets most requests in some worlds.
        let is_first = rng.bool();
        let one_of = |count, rng: &mut Rng| if is_first { 0 } else { rng.usize(..count) };
        let span = |rng: &mut Rng| {
            let lasts = [1..50, 1..500, 1000..3000][rng.usize(..3)].clone();
            at..at + rng.u64(lasts) * MILLISECOND
        };
        match kind {
            0 => {
                let how = [Away::Silent, Away::Refused, Away::Reset, Away::Garbage][rng.usize(..4)];
                Fault::Away { span: span(rng), gateways: 0..rng.usize(1..=self.gateways), how }
            }
            1 => Fault::Loses { span: span(rng), permille: rng.u64(1..300) },
            2 => Fault::Still { span: span(rng), worker: one_of(all, rng) },
            3 => Fault::Dies { at, worker: one_of(all, rng) },
            4 => Fault::Restarts { at, gateway: one_of(self.gateways, rng) },
            5 => Fault::Emptied { at },
            _ => {
                let longest = if rng.bool() { 2 * MILLISECOND } else { SECOND };
                let (gateway, listener) = (one_of(self.gateways, rng), rng.usize(..self.listeners));
                Fault::Update { at, gateway, listener, drain: rng.u64(..longest) }
            }
        }
    }

    /// The document of a listener after this number of changes, which never touch the limits.
    pub fn document(&self, listener: usize, changes: usize) -> String {
        let mut text = format!(
            "namespace: sim\nkeys: 10000\nresponse: {{status: {}}}\n\
             redis: {{cluster: redis, timeout: {}ms, on_failure: {}{}}}\n",
            400 + (listener + 2 * changes) % 200,
            TIMEOUT / MILLISECOND,
            self.on_failure,
            if self.parts > 1 {
                format!(", proxied: true, parts: {}", self.parts)
            } else {
                String::new()
            },
        );
        if let Some(wide) = &self.wide {
            if wide.reports {
                text.push_str("accepted: {headers: true, filter_state: true}\n");
            }
            if !wide.resets.is_empty() {
                _ = writeln!(text, "admin: {{path: /.diana, token_env: {}}}", TOKEN.0);
            }
            if wide.central.is_some() {
                _ = writeln!(text, "remote: {{cluster: {CENTRE}, path: /, every: 1s}}");
            }
        }
        text + &self.limits(1)
    }

    /// The document of the configuration centre.
    pub fn central(&self, now: Micros) -> String {
        let changes = self.wide.as_ref().and_then(|wide| wide.central.as_deref());
        let past = changes.unwrap_or_default().iter().filter(|at| **at <= now).count();
        self.limits(1 + past as u64 % 2)
    }

    fn limits(&self, times: u64) -> String {
        let mut text = String::new();
        if let Some(wide) = self.wide.as_ref().filter(|wide| wide.midnight > 0) {
            text.push_str(&wide.starts());
        }
        text.push_str("limits:\n");
        for (number, rules) in self.entries.iter().enumerate() {
            let times = |rule: &Rule| if rule.is_doubled { times } else { 1 };
            let spelled = |rule: &Rule| rule.text(times(rule), self.scale);
            let rules: Vec<String> = rules.iter().map(spelled).collect();
            _ = writeln!(text, "- {{Url: /e{number}, rules: [{}]}}", rules.join(", "));
        }
        text
    }
}
