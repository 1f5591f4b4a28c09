//! Rules of one request that lie in several parts of Redis: accounts and devices, each with a rule of its own.

mod gateway;

use diana_core::time::{Micros, Now, SECOND};
use fastrand::Rng;
use kit::model::proxy::Proxy;
use kit::seed;

use gateway::{Done, Gateway, Who};

const MILLISECOND: Micros = SECOND / 1000;
const EPOCH: Micros = 1_700_000_000 * SECOND;

/// Gateways that have called by then know of each other.
const ACQUAINTED: Micros = 3 * SECOND;

/// What a call may take there or back; and what a request waits at most for what others hold.
const LATENCY: Micros = 6 * MILLISECOND;
const PATIENCE: Micros = 300 * MILLISECOND;

/// What a fleet is like.
#[derive(Debug, Clone)]
struct Plan {
    seed: u64,
    gateways: usize,
    parts: usize,
    /// Permits a day of the rule by account, and of that by device, a second of a leaky bucket; the algorithm of each.
    rpu: [u64; 2],
    algo: [&'static str; 2],
    accounts: usize,
    devices: usize,
    /// Of a thousand calls, those that get lost there or back; and of a thousand milliseconds, those in which a
    /// part goes away or comes back, and in which a client leaves.
    lost: u64,
    moves: u64,
    leaves: u64,
    /// A part that goes away then, and stays away.
    goes: Option<(usize, Micros)>,
}

impl Plan {
    fn configuration(&self) -> String {
        let rule = |actor: &str, place: usize| {
            let (rpu, algo) = (self.rpu[place], self.algo[place]);
            let unit = if algo == "LB" { "second" } else { "day" };
            format!("{{actor: {actor}, unit: {unit}, rpu: {rpu}, algo: {algo}, scope: global}}")
        };
        format!(
            "actors: {{account: [{{header: x-account-id}}], device: [{{header: x-device-id}}]}}\n\
             redis: {{cluster: redis, timeout: 30ms, proxied: true, parts: {}}}\n\
             limits: [{{Url: /, rules: [{}, {}]}}]\n",
            self.parts,
            rule("account", 0),
            rule("device", 1)
        )
    }
}

/// A call on its way there, or an answer on its way back.
struct Way {
    due: Micros,
    gateway: usize,
    token: u32,
    there: Option<Vec<u8>>,
    back: Option<Vec<u8>>,
}

struct World {
    plan: Plan,
    rng: Rng,
    proxy: Proxy,
    gateways: Vec<Gateway>,
    ways: Vec<Way>,
    done: Vec<Done>,
}

impl World {
    fn new(plan: Plan) -> World {
        let mut rng = Rng::with_seed(plan.seed);
        let configuration = plan.configuration();
        let clocks = |rng: &mut Rng| Now { mono: rng.u64(0..1 << 40), wall: EPOCH };
        let gateway = |_| Gateway::new(&configuration, clocks(&mut rng), rng.u64(1..));
        let gateways = (0..plan.gateways).map(gateway).collect();
        let (proxy, ways, done) = (Proxy::default(), Vec::new(), Vec::new());
        World { plan, rng, proxy, gateways, ways, done }
    }

    /// Lets requests come for so long, and all that follows from them happen.
    fn run(&mut self, lasts: Micros) {
        for now in (0..lasts + SECOND).step_by(MILLISECOND as usize) {
            if now > ACQUAINTED && now < lasts {
                self.happen(now);
            }
            for number in 0..self.gateways.len() {
                // Before that, each has a caller of its own every now and then.
                let early = now <= ACQUAINTED && now % (SECOND / 2) == 0;
                if early || now > ACQUAINTED && now < lasts && self.rng.u8(0..3) == 0 {
                    let who = match early {
                        true => (1000 + number, 1000 + now as usize + number),
                        false => self.anybody(),
                    };
                    let done = self.gateways[number].request(who, now);
                    self.done.extend(done);
                }
            }
            self.pass(now);
        }
        let waits: usize = self.gateways.iter().map(Gateway::waits).sum();
        assert_eq!(waits, 0, "requests are stranded");
    }

    fn anybody(&mut self) -> Who {
        (self.rng.usize(0..self.plan.accounts), self.rng.usize(0..self.plan.devices))
    }

    /// What goes wrong.
    fn happen(&mut self, now: Micros) {
        let Plan { moves, leaves, parts, goes, .. } = self.plan;
        let goes = goes.filter(|(_, at)| *at <= now);
        self.proxy.away.extend(goes.map(|(part, _)| part));
        if self.rng.u64(0..1000) < moves {
            let part = self.rng.usize(0..parts);
            if !self.proxy.away.remove(&part) {
                self.proxy.away.insert(part);
            }
        }
        if self.rng.u64(0..1000) < leaves {
            let number = self.rng.usize(0..self.gateways.len());
            self.gateways[number].leave(self.rng.usize(..), now);
        }
    }

    /// A millisecond passes.
    fn pass(&mut self, now: Micros) {
        let (due, rest): (Vec<Way>, Vec<Way>) =
            std::mem::take(&mut self.ways).into_iter().partition(|way| way.due <= now);
        self.ways = rest;
        let mut answers = vec![Vec::new(); self.gateways.len()];
        for Way { gateway, token, there, back, .. } in due {
            let Some(body) = there else {
                answers[gateway].push((token, back));
                continue;
            };
            let back = self.proxy.answer(&body, EPOCH + now);
            let is_lost = self.rng.u64(0..1000) < self.plan.lost && now > ACQUAINTED;
            let takes = if is_lost { 30 * MILLISECOND } else { self.rng.u64(0..LATENCY) };
            let back = (!is_lost).then_some(back);
            self.ways.push(Way { due: now + takes, gateway, token, there: None, back });
        }
        for (number, gateway) in self.gateways.iter_mut().enumerate() {
            self.done.extend(gateway.work(&answers[number], now));
            for (token, call) in gateway.calls() {
                let is_lost = self.rng.u64(0..1000) < self.plan.lost && now > ACQUAINTED;
                let takes = if is_lost { 30 * MILLISECOND } else { self.rng.u64(0..LATENCY) };
                let there = (!is_lost).then_some(call.body);
                self.ways.push(Way { due: now + takes, gateway: number, token, there, back: None });
            }
        }
    }

    /// Requests that were let through by an instant, of an account (0) or of a device (1).
    fn used(&self, place: usize, whose: usize, by: Micros) -> u64 {
        let is_whose = |(account, device): Who| [account, device][place] == whose;
        let all = self.done.iter();
        all.filter(|done| done.admitted && is_whose(done.who) && done.at <= by).count() as u64
    }

    /// The most that anybody used of a rule.
    fn most(&self, place: usize) -> u64 {
        let callers = [self.plan.accounts, self.plan.devices][place];
        (0..callers).map(|whose| self.used(place, whose, Micros::MAX)).max().unwrap_or(0)
    }
}

/// A fleet, two of whose algorithms are chosen from these.
fn random(rng: &mut Rng, algorithms: &[&'static str]) -> Plan {
    let mut algo = || algorithms[rng.usize(0..algorithms.len())];
    let algo = [algo(), algo()];
    Plan {
        seed: rng.u64(..),
        gateways: rng.usize(1..=3),
        parts: 1 << rng.u8(1..=5),
        rpu: [rng.u64(3..60), rng.u64(3..60)],
        algo,
        accounts: rng.usize(1..8),
        devices: rng.usize(1..8),
        lost: 0,
        moves: 0,
        leaves: 0,
        goes: None,
    }
}

#[test]
fn nobody_gets_one_too_many_and_who_fits_is_not_refused() {
    let mut rng = Rng::with_seed(seed::fresh());
    let (mut refused, mut exhausted) = (0, 0);
    for _ in 0..40 {
        let mut world = World::new(random(&mut rng, &["W", "TB"]));
        world.run(ACQUAINTED + 2 * SECOND);
        let plan = world.plan.clone();
        for place in [0, 1] {
            assert!(world.most(place) <= plan.rpu[place], "{plan:?}: {}", world.most(place));
            exhausted += usize::from(world.most(place) == plan.rpu[place]);
        }
        for done in world.done.iter().filter(|done| !done.admitted) {
            let whose = [done.who.0, done.who.1];
            let is_used = |place: usize| {
                world.used(place, whose[place], done.at + LATENCY) >= plan.rpu[place]
            };
            assert!(is_used(0) || is_used(1), "{plan:?}: {done:?} was refused although it fitted");
            refused += 1;
        }
        let longest = world.done.iter().map(|done| done.at - done.came).max();
        assert!(longest <= Some(PATIENCE), "{plan:?}: {longest:?}");
        assert!(world.proxy.parts() > 1, "{plan:?}: there is nothing to be seen");
    }
    assert!(refused > 1000 && exhausted > 40, "too tame: {refused}, {exhausted}");
}

#[test]
fn whatever_fails_between_parts_nobody_gets_more_than_gateways_alone_may_give() {
    let mut rng = Rng::with_seed(seed::fresh());
    let mut beyond = 0;
    for _ in 0..40 {
        let plan = random(&mut rng, &["W", "TB", "LB"]);
        let (lost, moves, leaves) = (rng.u64(0..60), rng.u64(0..40), rng.u64(0..100));
        let mut world = World::new(Plan { lost, moves, leaves, ..plan });
        world.run(ACQUAINTED + 2 * SECOND);
        let plan = &world.plan;
        let gateways = plan.gateways as u64;
        // A leaky bucket gives new places all the time.
        for place in [0, 1].into_iter().filter(|place| plan.algo[*place] != "LB") {
            let rpu = plan.rpu[place];
            let (most, bound) = (world.most(place), rpu + gateways * rpu.div_ceil(gateways));
            assert!(most <= bound, "{plan:?}: {most} of {bound}");
            beyond += usize::from(most > rpu);
        }
    }
    assert!(beyond > 5, "too tame: {beyond}");
}

#[test]
fn with_a_part_away_only_its_callers_go_by_their_gateway() {
    let mut rng = Rng::with_seed(seed::fresh());
    let mut beyond = 0;
    for _ in 0..20 {
        let plan = Plan { accounts: 40, devices: 40, parts: 4, ..random(&mut rng, &["W", "TB"]) };
        let goes = Some((rng.usize(1..4), ACQUAINTED + rng.u64(0..SECOND)));
        let mut world = World::new(Plan { rpu: [12, 12], gateways: 2, goes, ..plan });
        world.run(ACQUAINTED + 2 * SECOND);
        for place in [0, 1] {
            let used: Vec<u64> =
                (0..40).map(|whose| world.used(place, whose, Micros::MAX)).collect();
            assert!(used.iter().all(|used| *used <= 24), "{used:?}");
            // One of four parts is away.
            let over = used.iter().filter(|used| **used > 12).count();
            assert!(over < 20, "{used:?}");
            beyond += over;
        }
    }
    assert!(beyond > 5, "too tame: {beyond}");
}
