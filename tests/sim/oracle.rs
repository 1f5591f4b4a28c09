//! The promises, checked against everything that happened in a world.
//!
//! A request is charged at some time between its arrival and its decision, which cannot be observed. Each oracle
//! assumes the time that is least suspicious.

use std::collections::BTreeMap;
use std::ops::Range;

use diana_policy::time::{Micros, Now, SECOND};

use super::plan::{EPOCH, Fault, MILLISECOND, Plan, TIMEOUT};
use super::record::{Account, Entry, Reach};
use super::rule::{Ban, Cost, Rule, Scope, ahead};

/// A fleet counts together again this long after the last fault.
const RECOVERY: Micros = 2 * SECOND;

/// Longest delay until a settlement is counted.
const SETTLING: Micros = SECOND;

/// After how many requests a worker, or a gateway from Redis, leases permits for a caller, the longest time in which they
/// come, and the longest for each of them: a worker counts requests in spans, of which one may be twice as long, so that
/// it takes a caller for busy for some time after a burst.
fn busy_within(rule: &Rule) -> (usize, Micros, Micros) {
    let window = match rule.algo {
        "W" => rule.unit,
        "SW" => rule.unit / 10,
        _ => SECOND,
    };
    match rule.scope {
        // Four requests in the longest time that a block is for.
        Scope::Global => (8, 6 * SECOND, window.min(400 * MILLISECOND) / 4),
        _ => (20, 300 * MILLISECOND, 15 * MILLISECOND),
    }
}

/// How long a lease lives, with the time until its rest is given back. A spent block of a slow caller is given back with
/// the next question, and a bucket counts it as unspent until then.
fn leased(rule: &Rule) -> Micros {
    match (rule.scope, rule.algo) {
        (Scope::Global, "TB") => TERMS,
        (Scope::Global, _) => 850 * MILLISECOND,
        _ => 75 * MILLISECOND,
    }
}

/// How long a lease counts that is not returned.
const TERMS: Micros = SECOND;

/// How long workers take to learn of bans of others.
const PROPAGATION: Micros = 200 * MILLISECOND;

/// Ticks by which a host's timers and the steps of a decision may be late.
const LATE: Micros = 15 * MILLISECOND;

/// How long a line may be in which requests are held.
const MAX_DELAY: Micros = SECOND;

/// A worker is called every millisecond while held requests are due, and resumes at most `GO_ON` of them in a call.
const TURN: Micros = MILLISECOND;
const GO_ON: u64 = 32;

/// How late a held request may leave.
const PUNCTUAL: Micros = 2 * MILLISECOND;

/// A worker reports twice a second that it is alive. A shorter stall never costs it its places.
const FORGETTABLE: Micros = 400 * MILLISECOND;

pub struct Oracle<'a> {
    pub plan: &'a Plan,
    pub entries: Vec<Entry>,
    /// The requests of operators.
    pub orders: Vec<Entry>,
    pub reaches: &'a BTreeMap<usize, Reach>,
    pub deaths: &'a BTreeMap<usize, Micros>,
    pub degradations: &'a [(usize, Micros)],
    /// By gateway, filled in by `check`.
    pub recoveries: BTreeMap<usize, Micros>,
    /// The extent of the checks, to notice worlds that are too tame.
    pub checked: CheckedCounts,
}

/// Numbers of requests that were checked.
#[derive(Debug, Default, Clone, Copy)]
pub struct CheckedCounts {
    pub admissions: usize,
    pub refusals: usize,
    /// Refusals that no fault could excuse.
    pub accountable: usize,
}

impl CheckedCounts {
    pub fn add(&mut self, other: CheckedCounts) {
        self.admissions += other.admissions;
        self.refusals += other.refusals;
        self.accountable += other.accountable;
    }
}

/// Admitted requests by the account that they are charged to.
type Counted<'a> = BTreeMap<Account, Vec<&'a Entry>>;

/// When a caller was refused, by one worker or by all of them.
type Refused = BTreeMap<(Option<usize>, Account), Vec<Micros>>;

impl Oracle<'_> {
    /// # Panics
    /// If a promise is broken.
    pub fn check(mut self) -> CheckedCounts {
        self.operators_are_answered();
        self.find_recoveries();
        self.no_request_waits_too_long();
        self.degraded_mode_has_a_cause();
        self.fleets_recover();
        for (number, rules) in self.plan.entries.iter().enumerate() {
            for rule in rules {
                let of_rule = self.entries.iter().filter(|entry| entry.visit.entry == number);
                let mut counted = Counted::new();
                for entry in of_rule.filter(|entry| entry.admitted().is_some()) {
                    counted.entry(entry.counted_as(rule)).or_default().push(entry);
                }
                let mut admissions = 0;
                for admitted in counted.values_mut() {
                    admitted.sort_by_key(|entry| (entry.admitted(), entry.arrived));
                    admissions += admitted.len();
                    self.never_over(rule, admitted);
                }
                self.checked.admissions += admissions;
            }
            self.never_refused_in_error(number, rules);
            if let [rule] = &rules[..]
                && let Some(ban) = rule.ban
            {
                self.bans_hold(number, rule, ban);
            }
        }
        self.checked
    }

    /// Operators are answered in time, and at the end they find nothing in flight.
    fn operators_are_answered(&self) {
        for entry in self.orders.iter().filter(|entry| !entry.is_lost) {
            // Some leave before they are answered.
            let until = entry.decided.map(|(at, _)| at).or(entry.ended);
            let until = until.expect("an operator is answered");
            let stalled = self.stalled_for(entry.worker, entry.arrived..until);
            assert!(until - entry.arrived <= TIMEOUT + LATE + stalled, "too late: {entry:?}");
            let is_look = entry.decided.is_some()
                && entry.visit.order.as_ref().is_some_and(|order| !order.is_reset);
            let is_zero = entry.report.contains("\"in_flight\":0,");
            assert!(!is_look || is_zero, "requests in flight at the end: {entry:?}");
        }
    }

    /// The orders to reset an account.
    fn resets(&self, rule: &Rule, account: Account) -> impl Iterator<Item = &Entry> {
        let is_it = move |entry: &&Entry| {
            let order = entry.visit.order.as_ref();
            order.is_some_and(|order| order.rule == rule.name && order.is_reset)
                && entry.counted_as(rule) == account
        };
        self.orders.iter().filter(is_it)
    }

    /// When an order was certainly carried out: charges before that are forgotten, except leases. `None` if it may have
    /// failed.
    fn forgets(&self, rule: &Rule, order: &Entry) -> Option<Range<Micros>> {
        let carried_out = order.report.starts_with(":status: 200;");
        let is_lent = self.may_be_outstanding(rule, order, order.arrived);
        let lent = if is_lent { leased(rule) + TIMEOUT } else { 0 };
        carried_out.then(|| order.arrived.saturating_sub(lent)..reset_span(order).end)
    }

    /// A gateway counts alone only if a call failed.
    fn degraded_mode_has_a_cause(&self) {
        for (gateway, at) in self.degradations {
            let reach = self.reaches.get(gateway);
            let has_cause = reach.is_some_and(|reach| {
                reach.may_be_degraded(&(*at..*at), self.recovered_at(*gateway))
            });
            assert!(has_cause, "gateway {gateway} began to count alone at {at}; calls: {reach:?}");
        }
    }

    /// From this time on a gateway has to count together with the others. While it is idle it does not look for Redis.
    fn recovered_at(&self, gateway: usize) -> Micros {
        self.recoveries.get(&gateway).copied().unwrap_or(0)
    }

    fn find_recoveries(&mut self) {
        let ends = self.plan.faults.iter().map(|fault| fault.span().end).max().unwrap_or(0);
        for gateway in self.reaches.keys() {
            let of_gateway = self.entries.iter().filter(|entry| entry.gateway_life == *gateway);
            let asked = of_gateway.map(|entry| entry.arrived).find(|arrived| *arrived >= ends);
            self.recoveries.insert(*gateway, asked.unwrap_or(ends) + RECOVERY);
        }
    }

    /// No gateway counts alone longer than promised after the last fault.
    fn fleets_recover(&self) {
        // A worker that stood still may take Redis for away, or not.
        if self.plan.faults.iter().any(|fault| matches!(fault, Fault::Still { .. })) {
            return;
        }
        for (gateway, reach) in self.reaches {
            // A gateway that has ended or makes no more calls cannot find out.
            let recovery = self.recovered_at(*gateway);
            let is_late = |alone: &&Range<Micros>| alone.end > recovery && alone.end < Micros::MAX;
            // A heartbeat that fails where no request needs Redis is not repeated for a while, and no
            // worker counts alone.
            let counts_alone = |alone: &&Range<Micros>| {
                let began = |(of, at): &(usize, Micros)| of == gateway && alone.contains(at);
                self.degradations.iter().any(began)
            };
            let late = reach.alone.iter().filter(is_late).find(counts_alone);
            assert!(late.is_none(), "gateway {gateway} counted alone in {late:?}");
        }
    }

    /// No client waits longer than its rules and the timeout of Redis allow.
    fn no_request_waits_too_long(&self) {
        for entry in self.entries.iter().filter(|entry| !entry.is_lost) {
            let rules = &self.plan.entries[entry.visit.entry];
            let mut longest = LATE;
            for rule in rules {
                longest += if rule.holds() { MAX_DELAY } else { 0 };
                longest += if rule.scope == Scope::Global { TIMEOUT } else { 0 };
            }
            let until = entry.decided.map(|(at, _)| at).or(entry.ended);
            let Some(until) = until else {
                panic!("a request is undecided when all is over: {entry:?}")
            };
            let stalled = self.stalled_for(entry.worker, entry.arrived..until);
            let waited = until - entry.arrived;
            // After a stall many requests are resumed, some in each turn.
            if waited > longest + stalled {
                longest += self.simultaneous_waits(entry, until) * TURN / GO_ON;
            }
            assert!(waited <= longest + stalled, "waited {waited} of {longest}: {entry:?}");
        }
    }

    /// The requests that waited in the same worker at the same time.
    fn simultaneous_waits(&self, entry: &Entry, until: Micros) -> u64 {
        let waits = |other: &&Entry| {
            let left = other.decided.map(|(at, _)| at).or(other.ended);
            other.worker_life == entry.worker_life
                && other.arrived <= until
                && left.is_none_or(|left| left >= entry.arrived)
        };
        self.entries.iter().filter(waits).count() as u64
    }

    /// Ticks for which a worker stood still within a span.
    fn stalled_for(&self, worker: usize, within: Range<Micros>) -> Micros {
        let mut sum = 0;
        for fault in &self.plan.faults {
            if let Fault::Still { span, worker: stalled } = fault
                && *stalled == worker
            {
                let (start, end) = (span.start.max(within.start), span.end.min(within.end));
                sum += if start <= end { end - start + PROPAGATION } else { 0 };
            }
        }
        sum
    }

    /// At most the limit is admitted, plus the shares of gateways that could not reach Redis.
    fn never_over(&self, rule: &Rule, admitted: &[&Entry]) {
        if rule.algo == "P" {
            return self.never_too_many_at_a_time(rule, admitted);
        }
        // The time that a request was charged at lies between its arrival and its decision.
        let mut charges: Vec<(&Entry, Micros, bool)> = Vec::new();
        for entry in admitted {
            let at = entry.admitted().expect("it was admitted");
            charges.push((entry, at, self.may_be_degraded(rule, entry, &(entry.arrived..at))));
        }
        charges.sort_by_key(|(entry, ..)| entry.arrived);
        let settles = matches!(rule.cost, Cost::QuestionResult { .. });
        let is_exact = self.is_exact(rule);
        for (last, end, is_alone) in &charges {
            // A gateway that counts alone does not know the debts in Redis.
            let knows_debts = !settles || !*is_alone;
            if rule.holds() && self.is_still(last.worker, *end) || !knows_debts && !is_exact {
                continue;
            }
            let mut sum = Sum::default();
            // Sum of the charges between the arrival of each request and this decision.
            for (first, at, may_be_degraded) in charges.iter().rev().filter(|(_, at, _)| at <= end)
            {
                if rule.holds() && self.is_still(first.worker, *at) {
                    // Its turn was over before the worker continued.
                    break;
                }
                let begin = first.arrived;
                let length = end.saturating_sub(begin);
                let rate = |ticks: Micros| ceil(rule.most(), ticks, rule.unit);
                let allowed = match rule.algo {
                    "W" if window(rule, begin) != window(rule, *end) => break,
                    "SW" if length >= rule.unit => break,
                    "W" | "SW" => rule.most(),
                    "TB" => rule.most() + rate(length),
                    _ => {
                        let late = if rule.scope == Scope::Global { TIMEOUT } else { 0 };
                        rate(length + PUNCTUAL + late) + rule.cost.reserved(&first.visit)
                    }
                };
                let resets = self.resets(rule, last.counted_as(rule)).map(reset_span);
                let resets = resets.filter(|reset| overlaps(reset, &(begin..*end))).count() as u64;
                let emptied = self.times_emptied(rule, &(begin..*end)) + resets;
                if settles && emptied > 0 {
                    // Earlier debts are forgotten.
                    break;
                }
                let charge = self.certain_charge(rule, first, last);
                let is_unknown = settles && self.may_be_unknown(rule, first, last);
                let known = if is_unknown { 0 } else { charge };
                // Workers do not share the counts of daily quotas.
                let alone = if rule.is_filter { first.worker_life } else { first.gateway_life };
                sum.add(known, charge, alone, *may_be_degraded);
                let allowed = allowed * (1 + emptied);
                let most = match is_exact {
                    true => self.most_without_redis(rule, allowed, sum.alone.len()),
                    // A bucket of a gateway that counts alone is full at the start.
                    false if rule.algo == "TB" => allowed * (1 + 2 * sum.alone.len() as u64),
                    false => allowed * (1 + sum.alone.len() as u64),
                };
                // Settlements may cost more than the limit. A gateway that counts alone adds its share.
                let debts = sum.together.saturating_sub(allowed);
                assert!(
                    (!knows_debts || sum.together <= allowed)
                        && (settles && !is_exact || sum.all <= most + debts),
                    "{}: {sum:?} of {allowed} from {begin} to {end}, {at}; the first is {first:?}, \
                     the last {last:?}",
                    rule.text(1, 1),
                );
            }
        }
    }

    /// Whether the permits that gateways admit without Redis are charged in the end.
    fn is_exact(&self, rule: &Rule) -> bool {
        let counts = ["W", "SW", "TB"].contains(&rule.algo) && !rule.is_filter;
        let is_alone = self.plan.entries.iter().all(|rules| rules.len() == 1);
        counts && rule.gold.is_none() && is_alone && self.plan.is_exact()
    }

    /// The permits that a fleet admits at most in an interval with `allowed` permits, where this number of gateways may
    /// have been without Redis: also their shares, and one question and one block of each worker. A single gateway has no
    /// share besides the limit.
    fn most_without_redis(&self, rule: &Rule, allowed: u64, alone: usize) -> u64 {
        let Plan { gateways, workers, demand, .. } = self.plan;
        let shares = if *gateways == 1 { 0 } else { alone as u64 };
        let block = match rule.cost {
            // The demand of 20 ms, measured over two spans of which the first may be short, or eight requests.
            Cost::Plain(_) => demand.div_ceil(25).max(16 * rule.cost.max()),
            // Rules with settled costs grant no leases.
            Cost::QuestionResult { .. } => 0,
        };
        let question = rule.cost.max();
        let in_flight =
            if alone > 0 { (gateways * workers) as u64 * (question + block) } else { 0 };
        allowed + shares * allowed.div_ceil(*gateways as u64) + in_flight
    }

    /// Permits that a request was certainly charged when a later one arrived.
    fn certain_charge(&self, rule: &Rule, entry: &Entry, later: &Entry) -> u64 {
        let reserve = rule.cost.reserved(&entry.visit);
        let Some(used) = entry.used.filter(|_| !matches!(rule.cost, Cost::Plain(_))) else {
            return reserve;
        };
        // A debt counts when it becomes known; in a bucket it drains from then on.
        let ended = entry.ended.unwrap_or(Micros::MAX);
        let is_known = self.settled(rule, entry).is_some_and(|settled| settled < later.arrived);
        let is_within = rule.algo == "SW"
            || rule.algo == "W" && window(rule, ended) == window(rule, later.arrived);
        if is_known && is_within { used } else { used.min(reserve) }
    }

    /// Whether only Redis or only the gateway may know the cost of a request: it was open when a later one arrived, or when
    /// the gateway lost Redis, after which the share may be full.
    fn may_be_unknown(&self, rule: &Rule, entry: &Entry, later: &Entry) -> bool {
        let at = entry.admitted().unwrap_or(entry.arrived);
        let until = entry.ended.unwrap_or(Micros::MAX).min(later.arrived).max(at);
        let is_open = until == later.arrived;
        let was_alone = self.may_be_degraded(rule, entry, &(entry.arrived..at));
        let was_open = !was_alone && self.may_be_degraded(rule, entry, &(at..until));
        was_open || is_open && was_alone
    }

    /// How many limits are lost to faults near a span in which Redis forgets.
    fn times_emptied(&self, rule: &Rule, span: &Range<Micros>) -> u64 {
        let is_near = |fault: &&Fault| {
            let wrong = fault.span();
            matches!(fault, Fault::Emptied { .. } | Fault::Failover { .. })
                && rule.scope == Scope::Global
                && overlaps(&(wrong.start..wrong.end + RECOVERY), span)
        };
        // Of several parts only the first knows the secret that callers are hashed with, and it is asked once a second.
        let is_restart = |restart: &Fault, emptied: Micros| {
            let close = restart.span().start.abs_diff(emptied) <= SECOND + TIMEOUT;
            matches!(restart, Fault::Restarts { .. }) && close && self.plan.parts > 1
        };
        let limits = |fault: &Fault| match fault {
            Fault::Emptied { at } if self.plan.faults.iter().any(|it| is_restart(it, *at)) => 2,
            _ => 1,
        };
        self.plan.faults.iter().filter(is_near).map(limits).sum()
    }

    /// Whether the gateway of a request may have counted it alone.
    fn may_be_degraded(&self, rule: &Rule, entry: &Entry, span: &Range<Micros>) -> bool {
        let reach = self.reaches.get(&entry.gateway_life);
        rule.scope == Scope::Global
            && reach.is_some_and(|reach| {
                reach.may_be_degraded(span, self.recovered_at(entry.gateway_life))
            })
    }

    fn never_too_many_at_a_time(&self, rule: &Rule, admitted: &[&Entry]) {
        for entry in admitted {
            let at = entry.admitted().expect("it was admitted");
            let holds = |other: &&&Entry| {
                let since = other.admitted().expect("it was admitted");
                let is_known = !other.is_lost && !self.may_be_forgotten(rule, since..at);
                since <= at && other.ended.is_none_or(|ended| ended > at) && is_known
            };
            let count = admitted.iter().filter(holds).count() as u64;
            let is_alone = |other: &&&Entry| {
                let since = other.admitted().expect("it was admitted");
                self.may_be_degraded(rule, other, &(since..since))
            };
            let mut alone: Vec<usize> = admitted
                .iter()
                .filter(holds)
                .filter(is_alone)
                .map(|other| other.gateway_life)
                .collect();
            alone.sort_unstable();
            alone.dedup();
            let still = self.most_still_at_once(rule, admitted, at);
            let times = 1 + self.times_emptied(rule, &(at..at)) + alone.len() as u64 + still;
            let allowed = rule.most() * times;
            assert!(count <= allowed, "{} has {count} of {allowed} at {at}: {entry:?}", rule.name);
        }
    }

    /// The largest number of workers with requests that stood still at the same time, so that others took their places.
    fn most_still_at_once(&self, rule: &Rule, admitted: &[&Entry], at: Micros) -> u64 {
        let is_one = |worker: usize| admitted.iter().any(|entry| entry.worker == worker);
        let spans = self.plan.faults.iter().filter_map(|fault| match fault {
            Fault::Still { span, worker } if is_one(*worker) && span.start <= at => {
                (span.end - span.start >= FORGETTABLE).then(|| span.start..span.end + SECOND)
            }
            _ => None,
        });
        let spans: Vec<_> = spans.filter(|_| rule.scope != Scope::Local).collect();
        let at_once = |span: &Range<Micros>| {
            spans.iter().filter(|other| other.contains(&span.start)).count() as u64
        };
        spans.iter().map(at_once).max().unwrap_or(0)
    }

    /// Returns true if a request under way may have lost its place: its worker could not reach Redis, or Redis lost
    /// its data.
    fn may_be_forgotten(&self, rule: &Rule, span: Range<Micros>) -> bool {
        self.plan.faults.iter().any(|fault| {
            let wrong = fault.span();
            match fault {
                Fault::Away { .. }
                | Fault::Loses { .. }
                | Fault::Emptied { .. }
                | Fault::Failover { .. } => {
                    rule.scope == Scope::Global
                        && overlaps(&(wrong.start..wrong.end + RECOVERY), &span)
                }
                _ => false,
            }
        })
    }

    fn is_still(&self, worker: usize, at: Micros) -> bool {
        self.plan.faults.iter().any(|fault| match fault {
            Fault::Still { span, worker: stalled } => {
                *stalled == worker && (span.start..span.end + TIMEOUT).contains(&at)
            }
            _ => false,
        })
    }

    /// A request that fits under all its rules is not refused.
    fn never_refused_in_error(&mut self, number: usize, rules: &[Rule]) {
        // Full queues, and rules with several plans, are not checked.
        if rules.iter().any(|rule| rule.holds() || rule.gold.is_some()) {
            return;
        }
        let of_entry: Vec<&Entry> =
            self.entries.iter().filter(|entry| entry.visit.entry == number).collect();
        for refusal in &of_entry {
            let Some(decided) = refusal.refused() else { continue };
            self.checked.refusals += 1;
            let is_excused = rules.iter().any(|rule| {
                self.may_be_stingy(rule, refusal, decided)
                    || rule.ban.is_some_and(|ban| may_be_banned(rule, ban, refusal, &of_entry))
            });
            let may_be_out =
                rules.iter().any(|rule| self.may_be_outstanding(rule, refusal, decided));
            let is_global = rules.iter().any(|rule| rule.scope == Scope::Global);
            let may_be_charged =
                is_global && rules.len() > 1 && self.may_be_tentative(refusal, decided, &of_entry);
            if is_excused || may_be_out || may_be_charged {
                continue;
            }
            self.checked.accountable += 1;
            let fits = |rule: &Rule| {
                let own = refusal.counted_as(rule);
                let counted = self
                    .entries
                    .iter()
                    .filter(|entry| entry.visit.entry == number && entry.counted_as(rule) == own);
                self.fits(rule, refusal, decided, &counted.collect::<Vec<_>>())
            };
            assert!(!rules.iter().all(fits), "refused although it fits: {refusal:?}");
        }
    }

    /// Whether a worker or a gateway may have held a lease of the caller when a request was decided: the caller was busy there.
    fn may_be_outstanding(&self, rule: &Rule, entry: &Entry, decided: Micros) -> bool {
        let trip = match rule.scope {
            Scope::Local => return false,
            Scope::Gateway => 0,
            Scope::Global => 2 * TIMEOUT,
        };
        let own = entry.counted_as(rule);
        let lost = if self.may_be_lost(rule, &(entry.arrived..decided)) { TERMS } else { 0 };
        let (busy, within, each) = busy_within(rule);
        let recent = entry.arrived.saturating_sub(leased(rule) + trip + lost);
        let since = recent.saturating_sub(within);
        let mut arrivals: BTreeMap<usize, Vec<Micros>> = BTreeMap::new();
        for other in &self.entries {
            if (since..=decided).contains(&other.arrived)
                && other.visit.entry == entry.visit.entry
                && other.counted_as(rule) == own
            {
                let is_global = rule.scope == Scope::Global;
                let holder = if is_global { other.gateway_life } else { other.worker_life };
                arrivals.entry(holder).or_default().push(other.arrived);
            }
        }
        arrivals.values_mut().any(|times| {
            times.sort_unstable();
            // How late a request is, if those before it take the longest time.
            let late = |at: usize| times[at] as i64 - (at as Micros * each) as i64;
            let mut latest = i64::MIN;
            (busy..=times.len()).any(|end| {
                latest = latest.max(late(end - busy));
                // The last of them had the lease.
                times[end - 1] >= recent && late(end - 1) < latest.saturating_add(each as i64)
            })
        })
    }

    /// Whether a lease may count that its worker did not get or cannot return.
    fn may_be_lost(&self, rule: &Rule, span: &Range<Micros>) -> bool {
        let is_lost = |fault: &Fault| {
            let wrong = fault.span();
            let is_update = matches!(fault, Fault::Update { .. });
            let forgets = matches!(fault, Fault::Emptied { .. } | Fault::Failover { .. });
            !is_update && !forgets && overlaps(&(wrong.start..wrong.end + TERMS), span)
        };
        matches!(rule.cost, Cost::Plain(_)) && self.plan.faults.iter().any(is_lost)
    }

    /// Whether Redis may have charged another request that one of its rules refused, before the charge was taken back.
    fn may_be_tentative(&self, entry: &Entry, decided: Micros, of_entry: &[&Entry]) -> bool {
        of_entry.iter().any(|other| {
            let refused = other.refused().is_some_and(|at| at + 2 * TIMEOUT >= entry.arrived);
            refused && other.arrived <= decided && other != &entry
        })
    }

    /// A caller that reached the number of refusals in a worker is refused there until the ban ends.
    fn bans_hold(&self, number: usize, rule: &Rule, ban: Ban) {
        // By worker, and in all workers, since refusals in other workers may start the ban earlier.
        let mut refused = Refused::new();
        let mut of_entry: Vec<&Entry> = self
            .entries
            .iter()
            .filter(|entry| entry.visit.entry == number && entry.decided.is_some())
            .collect();
        of_entry.sort_by_key(|entry| entry.decided.map(|(at, _)| at));
        for entry in of_entry {
            let own = entry.counted_as(rule);
            if let Some(at) = entry.refused() {
                refused.entry((None, own)).or_default().push(at);
                // Refusals of a gateway that cannot reach Redis may not count.
                if !self.may_be_degraded(rule, entry, &(entry.arrived..at))
                    && !self.may_be_outstanding(rule, entry, at)
                {
                    refused.entry((Some(entry.worker_life), own)).or_default().push(at);
                }
                continue;
            }
            let ban_of = |worker| first_ban(ban, refused.get(&(worker, own))?);
            let (Some(here), Some(anywhere)) = (ban_of(Some(entry.worker_life)), ban_of(None))
            else {
                continue;
            };
            // With operators a gateway remembers bans of Redis for a second only.
            let has_admin = self.plan.wide.as_ref().is_some_and(|wide| !wide.resets.is_empty());
            let until = entry.admitted().unwrap_or(entry.arrived);
            if has_admin && self.may_be_degraded(rule, entry, &(entry.arrived..until)) {
                continue;
            }
            // Other workers learn of refusals and bans within 150 ms, other listeners of a worker within 50.
            let known =
                here + if rule.scope == Scope::Local { 50 * MILLISECOND } else { PROPAGATION };
            assert!(
                entry.arrived <= known || entry.arrived >= here.min(anywhere) + ban.lasts,
                "{}: let through though banned at {here}: {entry:?}",
                rule.text(1, 1)
            );
        }
    }

    /// Returns true if a recent fault may have left permits charged that no request uses.
    fn may_be_stingy(&self, rule: &Rule, refusal: &Entry, decided: Micros) -> bool {
        let span = refusal.arrived..decided;
        if self.may_be_degraded(rule, refusal, &span) {
            return true;
        }
        let is_settled = matches!(rule.cost, Cost::QuestionResult { .. });
        // Leases, and charges whose answer was lost, count until their window ends; places of dead workers count until
        // the workers are presumed dead.
        let after = match rule.algo {
            "P" => 10 * SECOND,
            _ => RECOVERY + rule.unit + rule.unit / 10,
        };
        let is_recent = |wrong: &Range<Micros>| overlaps(&(wrong.start..wrong.end + after), &span);
        let lost = self
            .reaches
            .values()
            .any(|reach| reach.taken.iter().chain(&reach.untaken).any(|at| is_recent(&(*at..*at))));
        if rule.scope == Scope::Global && lost && !is_settled {
            return true;
        }
        self.plan.faults.iter().any(|fault| {
            let is_meant = match fault {
                Fault::Update { .. } | Fault::Away { .. } | Fault::Loses { .. } => false,
                // A new counter, with no usage.
                Fault::Dies { .. } => rule.scope != Scope::Local && !is_settled,
                Fault::Restarts { .. } => rule.scope == Scope::Global && !is_settled,
                Fault::Still { worker, .. } => {
                    (rule.scope != Scope::Local && !is_settled) || *worker == refusal.worker
                }
                Fault::Emptied { .. } | Fault::Failover { .. } | Fault::Split { .. } => {
                    rule.scope == Scope::Global
                }
            };
            let wrong = fault.span();
            match fault {
                // Rules with settled costs grant no leases.
                Fault::Emptied { .. } if is_settled => {
                    is_meant && overlaps(&(wrong.start..wrong.end + RECOVERY), &span)
                }
                _ => is_meant && is_recent(&wrong),
            }
        })
    }

    /// When the settlement of a request is counted at the latest; `None` if its worker died before.
    fn settled(&self, rule: &Rule, entry: &Entry) -> Option<Micros> {
        let ended = entry.ended?;
        let settled = match self.reaches.get(&entry.gateway_life) {
            Some(reach) if rule.scope == Scope::Global => reach.connected_for(SETTLING, ended),
            _ => ended + SETTLING,
        };
        let death = self.deaths.get(&entry.worker_life);
        (death.is_none_or(|death| *death > settled)).then_some(settled)
    }

    /// Returns true if a refused request fits even if all requests that may have been charged were charged as late as
    /// possible.
    fn fits(&self, rule: &Rule, refusal: &Entry, decided: Micros, counted: &[&Entry]) -> bool {
        let at = refusal.arrived;
        let resets = self.resets(rule, refusal.counted_as(rule));
        let resets: Vec<_> = resets.filter_map(|order| self.forgets(rule, order)).collect();
        let mut charged: Vec<(Micros, u64)> = Vec::new();
        for entry in counted {
            if entry.arrived > decided {
                continue;
            }
            // Its gateway may have counted it alone after Redis had charged it.
            let is_alone = self.may_be_degraded(rule, entry, &(entry.arrived..decided));
            // Then Redis counts it twice, or although it was refused. In a bucket that is never full, this stays until the
            // caller pauses.
            let is_kept = is_alone && rule.algo == "TB";
            if entry.refused().is_some() && !is_kept {
                continue;
            }
            let times = if is_kept && entry.refused().is_none() { 2 } else { 1 };
            let settled = self.settled(rule, entry).unwrap_or(Micros::MAX);
            let is_over = settled < at;
            if rule.algo == "P" {
                charged.extend((!is_over).then_some((at, 1)));
                continue;
            }
            let amount = match (rule.cost, entry.used) {
                (Cost::Plain(cost), _) => times * cost,
                (_, Some(used)) if is_over && !is_alone => used,
                (cost, used) => {
                    // While it is decided, a request takes a permit even if it reserves none.
                    let is_same = entry.decided.is_some_and(|(other, _)| other == decided);
                    let reserved = cost.reserved(&entry.visit).max(is_same.into());
                    used.map_or(cost.max(), |used| used.max(reserved))
                }
            };
            let until = match rule.cost {
                // Settled permits count from the settlement on.
                Cost::QuestionResult { .. } => settled,
                Cost::Plain(_) => {
                    entry.decided.map(|(at, _)| at).or(entry.ended).unwrap_or(Micros::MAX)
                }
            };
            let is_reset = |reset: &Range<Micros>| until < reset.start && reset.end + SECOND < at;
            if !resets.iter().any(is_reset) {
                charged.push((until.min(at), amount));
            }
        }
        if rule.algo == "P" {
            return (charged.len() as u64) < rule.limit;
        }
        charged.sort_unstable();
        let counter = rule.counter();
        let mono = match rule.scope {
            Scope::Global => EPOCH,
            Scope::Local | Scope::Gateway => refusal.clocks.mono,
        };
        let when = |at: Micros| Now { mono: mono + at, wall: EPOCH + at };
        let mut state = vec![0; counter.properties().words];
        let mut new = state.clone();
        for (at, amount) in charged {
            for _ in 0..amount {
                if !counter.step(&state, when(at), 0, 1, &mut new).is_admitted() {
                    return false;
                }
                state.copy_from_slice(&new);
            }
        }
        let needs = rule.cost.reserved(&refusal.visit).max(1);
        counter.step(&state, when(at), 0, needs, &mut new).is_admitted()
    }
}

/// From an order to reset until all workers know of it.
fn reset_span(order: &Entry) -> Range<Micros> {
    let answered = order.decided.map(|(at, _)| at).or(order.ended);
    order.arrived..answered.unwrap_or(Micros::MAX - SECOND) + SECOND
}

/// How long refusals may count, and a ban last that they lead to.
fn memory(ban: Ban) -> Micros {
    Ban::WITHIN + Ban::WITHIN / 7 + ban.lasts + RECOVERY
}

/// When the first refusals after a long pause led to a ban. Later refusals may be due to the ban itself.
fn first_ban(ban: Ban, refused: &[Micros]) -> Option<Micros> {
    let peace = refused.windows(2).rposition(|two| two[1] - two[0] > memory(ban));
    let first = peace.map_or(0, |place| place + 1);
    let counted = refused.get(first..first + ban.after)?;
    let (begin, end) = (*counted.first()?, *counted.last()?);
    (end - begin < Ban::WITHIN).then_some(end)
}

/// Returns true if the refusals of a caller may have led to a ban.
fn may_be_banned(rule: &Rule, ban: Ban, refusal: &Entry, of_entry: &[&Entry]) -> bool {
    let (at, own) = (refusal.arrived, refusal.counted_as(rule));
    let recent = of_entry.iter().filter(|entry| {
        let refused = entry.refused().filter(|refused| *refused + memory(ban) > at);
        refused.is_some_and(|refused| refused <= at) && entry.counted_as(rule) == own
    });
    recent.count() >= ban.after
}

/// Permits of admitted requests.
#[derive(Debug, Default)]
struct Sum {
    all: u64,
    /// Of those that no gateway can have counted alone.
    together: u64,
    /// The gateways that may have, or the workers.
    alone: Vec<usize>,
}

impl Sum {
    /// Adds a charge, of which Redis and the gateway both know `known`.
    fn add(&mut self, known: u64, charge: u64, alone: usize, may_be_degraded: bool) {
        self.all += known;
        if !may_be_degraded {
            self.together += charge;
        } else if !self.alone.contains(&alone) {
            self.alone.push(alone);
        }
    }
}

/// `limit` permits per `unit` in `ticks`, rounded up.
fn ceil(limit: u64, ticks: Micros, unit: Micros) -> u64 {
    (u128::from(limit) * u128::from(ticks)).div_ceil(u128::from(unit)) as u64
}

/// The window that an instant lies in.
fn window(rule: &Rule, at: Micros) -> Micros {
    (EPOCH + at + ahead(rule.midnight) * SECOND) / rule.unit
}

fn overlaps(one: &Range<Micros>, other: &Range<Micros>) -> bool {
    one.start <= other.end && other.start <= one.end
}
