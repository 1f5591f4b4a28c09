//! What is outstanding is not used: a request that fits what its caller was given so far is admitted, by whichever workers
//! it and the others come. It may have to wait, but not for long.

use diana_core::engine::{Engine, Resumed};
use diana_core::policy::Quota;
use diana_core::port::{Call, Callout};
use diana_core::time::{SECOND, Unit};
use diana_core::verdict::Verdict;
use fastrand::Rng;
use kit::fake::{FakeClock, FakeSharedData};
use std::rc::Rc;

use super::{engine, from};
use kit::laws::bound::Admission;
use kit::seed;
use kit::store::gateway::{PACE, START};
use kit::store::rule::Rule;

const MS: u64 = 1000;

/// How long a request may wait, and how late a worker may be called.
const LONGEST: u64 = 200 * MS + MS;

/// How long a request waits at least that is refused although it fits.
const SHORTEST: u64 = 180 * MS;

/// Requests of a caller that may wait in a worker; how long none may do so after there were as many, of which the last may
/// have waited for a fifth of a second.
const MOST: usize = 64;
const CROWDED: u64 = SECOND + SECOND / 5;

/// A host without Redis.
pub struct Nobody;

impl Callout for Nobody {
    fn send(&self, _call: &Call) -> Result<u32, &'static str> {
        Err("nobody to call")
    }

    fn caller(&self) -> u32 {
        0
    }
}

struct Worker {
    engine: Engine,
    tidied: u64,
    /// The tickets of the requests that wait.
    waiting: Vec<u64>,
}

/// A gateway with one caller.
struct Gateway {
    rule: Rule,
    clock: FakeClock,
    workers: Vec<Worker>,
    past: Vec<Admission>,
    refused: usize,
    waited: usize,
    /// Whether more waited than may.
    /// When as many waited in a worker as may.
    crowded: Option<u64>,
    /// Refused although they fit, since others held the permits all the time.
    in_vain: usize,
}

impl Gateway {
    fn new(rule: Rule, workers: usize) -> Gateway {
        let Quota { unit, rpu, .. } = rule.quota;
        let text = format!(
            "limits: [{{Url: /, rules: [{{actor: account, unit: {}, rpu: {rpu}, algo: {}, scope: gateway}}]}}]",
            unit.name(),
            rule.short
        );
        let data = Rc::new(FakeSharedData::default());
        let worker = |_| {
            let engine = engine(&text, data.clone());
            Worker { engine, tidied: 0, waiting: Vec::new() }
        };
        let workers = (0..workers).map(worker).collect();
        let clock = FakeClock::default();
        clock.0.set(START);
        let (past, refused, waited, crowded, in_vain) = (Vec::new(), 0, 0, None, 0);
        Gateway { rule, clock, workers, past, refused, waited, crowded, in_vain }
    }

    fn request(&mut self, worker: usize) {
        let Worker { engine, .. } = &mut self.workers[worker];
        let request = from("ann");
        let verdict = engine.decide(&request, &self.clock);
        self.waited += usize::from(matches!(verdict, Verdict::Ask { .. }));
        self.conclude(worker, verdict, 0);
    }

    /// Takes a verdict on a request that has waited for so long.
    fn conclude(&mut self, worker: usize, verdict: Verdict, waited: u64) {
        let now = self.clock.0.get();
        match verdict {
            Verdict::Admit(..) => {
                self.past.push(Admission { at: now, leaves: now.mono, cost: self.rule.quota.cost });
            }
            Verdict::Ask { ticket } => {
                self.workers[worker].waiting.push(ticket);
                if self.workers[worker].waiting.len() >= MOST {
                    self.crowded = Some(now.mono);
                }
            }
            Verdict::Refuse(refusal) => {
                self.refused += 1;
                let left = self.rule.left(&self.past, now);
                let fits = left >= self.rule.quota.cost;
                let in_vain = waited >= SHORTEST;
                let is_crowded = self.crowded.is_some_and(|last| now.mono - last <= CROWDED);
                self.in_vain += usize::from(fits && in_vain);
                assert!(
                    !fits || in_vain || is_crowded,
                    "refused although {left} are left: {} {:?}",
                    refusal.by.state(),
                    self.rule.quota
                );
            }
            Verdict::Hold(_) => panic!("nothing holds here"),
        }
    }

    /// Lets a millisecond pass.
    fn pass(&mut self) {
        let now = self.clock.0.get().later(MS);
        self.clock.0.set(now);
        for worker in 0..self.workers.len() {
            let Worker { engine, tidied, .. } = &mut self.workers[worker];
            if now.mono >= *tidied + PACE {
                *tidied = now.mono;
                engine.tidy(now);
            }
            let due = engine.next(now.mono).is_some_and(|next| next <= now.mono);
            let resumed = if due { engine.work(now, &Nobody) } else { Vec::new() };
            resumed.iter().for_each(|resumed| self.resume(worker, resumed));
        }
    }

    fn resume(&mut self, worker: usize, resumed: &Resumed) {
        let now = self.clock.0.get();
        assert!(now.mono - resumed.since <= LONGEST, "{} ticks", now.mono - resumed.since);
        let Worker { engine, waiting, .. } = &mut self.workers[worker];
        waiting.retain(|ticket| *ticket != resumed.ticket);
        assert!(engine.resume(resumed, now).is_none(), "it has to be decided about anew");
        let verdict = engine.decide_again(resumed, &from("ann"), &self.clock);
        self.conclude(worker, verdict, now.mono - resumed.since);
    }

    fn settle(&mut self) {
        (0..300).for_each(|_| self.pass());
        assert!(self.workers.iter().all(|worker| worker.waiting.is_empty()));
    }
}

/// Rules whose permits are used up by some hundred requests a second, or at once.
fn rule(rng: &mut Rng) -> Rule {
    let short = ["W", "SW", "TB"][rng.usize(0..3)];
    let unit = [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day][rng.usize(0..4)];
    let most = [20, 200, 3000][rng.usize(0..3)];
    Rule::new(short, Quota::new(unit, rng.u64(1..most)))
}

#[test]
fn nobody_is_refused_whose_request_fits() {
    let seed = seed::next();
    let (mut waited, mut refused, mut in_vain) = (0, 0, 0);
    for number in 0..300 {
        let seed = seed.wrapping_add(number);
        let mut rng = Rng::with_seed(seed);
        let mut gateway = Gateway::new(rule(&mut rng), rng.usize(1..5));
        println!("seed {seed}: {} {:?}", gateway.rule.short, gateway.rule.quota);
        let often = rng.u64(1..6);
        for _ in 0..rng.u64(1..8) {
            let (only, most) = (rng.usize(0..gateway.workers.len()), rng.usize(0..1 << often));
            for _ in 0..rng.u64(1..300) {
                for _ in 0..rng.usize(0..=most) {
                    let worker =
                        if rng.bool() { only } else { rng.usize(0..gateway.workers.len()) };
                    gateway.request(worker);
                }
                gateway.pass();
            }
            gateway.settle();
        }
        gateway.rule.judge(&gateway.past);
        (waited, refused) = (waited + gateway.waited, refused + gateway.refused);
        in_vain += gateway.in_vain;
    }
    println!("{waited} waited, {in_vain} in vain, {refused} were refused");
    assert!(waited > 100 && refused > 1000 && in_vain * 20 < waited);
}

#[test]
fn whoever_uses_exactly_its_limit_gets_all_of_it_and_not_one_more() {
    for short in ["W", "SW", "TB"] {
        for unit in [Unit::Hour, Unit::Day] {
            for rpu in [3, 10, 200, 1000] {
                for gap in [0, 1, 3, 40] {
                    let mut gateway = Gateway::new(Rule::new(short, Quota::new(unit, rpu)), 4);
                    for request in 0..rpu {
                        gateway.request(request as usize % 4);
                        (0..gap).for_each(|_| gateway.pass());
                        if request % 16 == 15 {
                            gateway.pass();
                        }
                    }
                    gateway.settle();
                    assert_eq!(
                        gateway.past.len(),
                        rpu as usize,
                        "{short} {unit:?}, every {gap} ms"
                    );
                    gateway.request(0);
                    gateway.settle();
                    // What has come back of a bucket since.
                    let elapsed = gateway.clock.0.get().mono - START.mono;
                    let more = if short == "TB" { rpu * elapsed / unit.micros() } else { 0 };
                    assert!(gateway.past.len() as u64 <= rpu + more);
                }
            }
        }
    }
}

/// A bucket does not fill up while its permits are outstanding, also those of them that were used by then.
#[test]
fn what_a_bucket_missed_while_permits_were_lent_is_waited_for() {
    let mut gateway = Gateway::new(Rule::new("TB", Quota::new(Unit::Second, 1000)), 2);
    for _ in 0..3 {
        (0..20).for_each(|_| gateway.request(0));
        gateway.pass();
    }
    (0..40).for_each(|_| gateway.pass());
    while gateway.waited + gateway.refused == 0 {
        (0..5).for_each(|_| gateway.request(1));
        gateway.pass();
    }
    gateway.settle();
    assert!(gateway.waited > 0 && gateway.refused == 0);
}

/// What other rules say is one thing: a request waits for permits if nothing but these refuses it.
#[test]
fn who_waits_for_permits_does_so_beside_other_rules() {
    const SHORT: &str =
        "{name: short, actor: account, unit: hour, rpu: 1000, algo: W, scope: gateway}";
    let beside = |rpu, shadow| {
        format!(
            "{{name: beside, actor: all, unit: day, rpu: {rpu}, algo: W, scope: local, shadow: {shadow}}}"
        )
    };
    for (rules, waits) in [
        (SHORT.into(), true),
        (format!("{SHORT}, {}", beside(2_000, false)), true),
        (format!("{}, {SHORT}", beside(2_000, false)), true),
        (format!("{SHORT}, {}", beside(0, true)), true),
        (format!("{}, {SHORT}", beside(0, true)), true),
        (format!("{SHORT}, {}", beside(0, false)), false),
    ] {
        let data = Rc::new(FakeSharedData::default());
        let mut engines = [SHORT.to_owned(), rules.clone()]
            .map(|rules| engine(&format!("limits: [{{Url: /, rules: [{rules}]}}]"), data.clone()));
        let clock = FakeClock::default();
        clock.0.set(START);
        let mut given = 0;
        // One worker is given some permits for later, and the other one finds the rest.
        let holder = &mut engines[0];
        while given < 300 {
            assert!(matches!(holder.decide(&from("ann"), &clock), Verdict::Admit(..)));
            clock.0.set(clock.0.get().later(MS));
            given += 1;
        }
        let mut last = None;
        for _ in 0..1000 {
            match engines[1].decide(&from("ann"), &clock) {
                Verdict::Admit(..) => given += 1,
                other => {
                    last = Some(other);
                    break;
                }
            }
        }
        assert!(given < 1000, "nothing is out");
        assert_eq!(matches!(last, Some(Verdict::Ask { .. })), waits, "{rules}: {last:?}");
    }
}
