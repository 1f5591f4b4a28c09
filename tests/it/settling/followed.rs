//! Requests that come once more since the host follows a redirect itself: charged once, whatever others do meanwhile.

mod edges;

use std::rc::Rc;

use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::permit::Permit;
use diana_core::time::SECOND;
use diana_core::verdict::Verdict;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::seed;
use kit::store::gateway::START;

use crate::engine::permit_queue::Nobody;
use crate::in_flight::reports::Sums;

const LIMIT: usize = 4;
const CONNECTION: [&str; 2] = ["connection", "id"];

/// Workers of a gateway, of which each admits some requests in all, and some of those that go elsewhere.
struct World {
    workers: Vec<Engine>,
    clock: FakeClock,
}

/// A request that was let through.
struct Open {
    worker: usize,
    connection: u8,
    permit: Permit,
}

/// A request of the account, by a connection.
fn by(path: &str, connection: u8) -> FakeRequest {
    FakeRequest::get(path).header("x-account-id", "ann").property(&CONNECTION, [connection; 8])
}

impl World {
    fn new(all: &str) -> World {
        World::with(all, "actor: account, unit: day, rpu: 40, algo: W")
    }

    /// One in which rules count all, and those that go elsewhere.
    fn with(all: &str, elsewhere: &str) -> World {
        World::of(&format!(
            "limits: [{{Url: /, rules: [{{name: all, actor: account, {all}}}]}},
              {{Url: /else, rules: [{{name: else, {elsewhere}}}]}}]"
        ))
    }

    fn of(document: &str) -> World {
        let data = Rc::new(FakeSharedData::default());
        let worker = |_| {
            let policy = diana_config::parse(document.as_bytes())
                .unwrap_or_else(|problems| panic!("{problems}"));
            Engine::alone(policy, Seed { k0: 1, k1: 2 }, data.clone()).unwrap()
        };
        let clock = FakeClock::default();
        clock.0.set(START);
        World { workers: (0..2).map(worker).collect(), clock }
    }

    fn request(&mut self, worker: usize, path: &str, connection: u8) -> Option<Open> {
        match self.workers[worker].decide(&by(path, connection), &self.clock) {
            Verdict::Admit(permit, _) => Some(Open { worker, connection, permit }),
            Verdict::Refuse(_) => None,
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, open: Open, ending: &FakeEnding) {
        let Open { worker, mut permit, .. } = open;
        let engine = &mut self.workers[worker];
        if ending.details == "via_upstream" {
            engine.hear_response(&mut permit, ending);
        }
        engine.settle(permit, ending, self.clock.0.get());
    }

    fn redirect(&mut self, open: Open) {
        let connection = [open.connection; 8];
        let followed = FakeEnding::denied(302, "internal_redirect");
        self.end(open, &followed.property(&CONNECTION, connection));
    }
}

const RULES: [&str; 3] = [
    "in_flight: 4",
    "unit: day, rpu: 4, algo: W, count: {status: [401]}",
    "unit: day, rpu: 40, algo: SW, cost: {response: {header: x-used}, reserve: 10, max: 10}, \
     count: {status: [401]}",
];

/// Whoever takes what was reserved in between would have been let in for nothing, or the request refused half-way.
#[test]
fn nobody_comes_between() {
    for rule in RULES {
        let mut world = World::new(rule);
        let mut open: Vec<Open> =
            (0..4).map(|it| world.request(0, "/", it).expect("it fits")).collect();
        for path in ["/else", "/", "/else"] {
            let first = open.remove(0);
            let connection = first.connection;
            world.redirect(first);
            assert!(world.request(1, "/", 9).is_none(), "its permits are taken over, {rule}");
            let again = world.request(0, path, connection).expect("it was let through before");
            open.push(again);
            assert!(world.request(1, "/", 9).is_none(), "it is charged once, {rule}");
        }
        let answered = FakeEnding::answered(200).header("x-used", "0");
        open.into_iter().for_each(|it| world.end(it, &answered));
        let free: Vec<Open> = (0..5).filter_map(|it| world.request(1, "/", it)).collect();
        assert_eq!(free.len(), LIMIT, "nothing is left of them, {rule}");
    }
}

/// It is not judged anew: meanwhile a window may have begun that others have used up.
#[test]
fn whoever_was_let_through_goes_on() {
    let spent = "cost: {response: {header: x-used}, reserve: 1, max: 1}";
    for scope in ["local", "gateway"] {
        let mut world =
            World::new(&format!("unit: second, rpu: 4, algo: W, scope: {scope}, {spent}"));
        let first = world.request(0, "/", 1).expect("it fits");
        world.clock.0.set(START.later(SECOND));
        let others: Vec<Open> = (0..4).filter_map(|_| world.request(0, "/", 2)).collect();
        assert_eq!(others.len(), LIMIT);
        world.redirect(first);
        assert!(world.request(0, "/else", 1).is_some(), "{scope}");
        assert!(world.request(0, "/else", 1).is_none(), "once, {scope}");
    }
}

/// Each request is taken for what it is, by an oracle that knows what is open and what was used: whoever comes by another
/// connection, is refused elsewhere or never comes leaves nothing behind.
#[test]
fn each_is_charged_once() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut taken_over, mut refused_elsewhere, mut lost) = (0, 0, 0);
    for round in 0..300 {
        let rule = RULES[round % 3];
        let mut world = World::new(rule);
        let (mut open, mut used, mut elsewhere): (Vec<Open>, usize, usize) = (Vec::new(), 0, 0);
        for _ in 0..120 {
            let now = world.clock.0.get().later(rng.u64(..SECOND / 50));
            world.clock.0.set(now);
            world.workers.iter_mut().for_each(|it| _ = it.tidy(now));
            if open.is_empty() || rng.bool() {
                let fits = open.len() + used < LIMIT;
                let request = world.request(rng.usize(..2), "/", rng.u8(..));
                assert_eq!(request.is_some(), fits, "{} and {used}, {rule}", open.len());
                open.extend(request);
                continue;
            }
            let first = open.swap_remove(rng.usize(..open.len()));
            let (worker, connection) = (first.worker, first.connection);
            let what = rng.u8(..6);
            match what {
                0..4 => {
                    world.redirect(first);
                    let fits = elsewhere < 40;
                    let again = world.request(worker, "/else", connection);
                    assert_eq!(again.is_some(), fits, "{elsewhere} went elsewhere, {rule}");
                    (taken_over, refused_elsewhere) =
                        (taken_over + u32::from(fits), refused_elsewhere + u32::from(!fits));
                    elsewhere += usize::from(fits);
                    open.extend(again);
                }
                4 => {
                    world.redirect(first);
                    if rng.bool() {
                        // By another connection: it is judged as any other.
                        let other = world.request(worker, "/", connection.wrapping_add(1));
                        open.push(other.expect("one has ended"));
                    }
                    lost += 1;
                }
                _ => {
                    let counts = rng.u8(..4) == 0 && rule != RULES[0];
                    let (status, cost) = if counts { (401, "10") } else { (200, "0") };
                    world.end(first, &FakeEnding::answered(status).header("x-used", cost));
                    used += usize::from(counts);
                }
            }
        }
    }
    let all = (taken_over, refused_elsewhere, lost);
    assert!(taken_over > 1000 && refused_elsewhere > 100 && lost > 500, "too tame: {all:?}");
}

/// How it goes on with a request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The permits that it waits for come back.
    Admitted,
    /// They do not.
    Refused,
    /// Its client leaves.
    Left,
}

/// Two workers, of which the second one has permits on lease of those who go elsewhere.
struct Lent {
    world: World,
}

impl Lent {
    /// One in which no permits are left but those on lease, and the request that was let through before.
    fn new(rule: &str) -> (Lent, Open) {
        let mut world = World::with(rule, "actor: all, unit: hour, rpu: 1000, algo: W");
        let stranger = FakeRequest::get("/else");
        for _ in 0..300 {
            let verdict = world.workers[1].decide(&stranger, &world.clock);
            assert!(matches!(verdict, Verdict::Admit(..)));
            world.clock.0.set(world.clock.0.get().later(SECOND / 1000));
        }
        let first = world.request(0, "/", 1).expect("it fits");
        loop {
            match world.workers[0].decide(&stranger, &world.clock) {
                Verdict::Admit(..) => {}
                Verdict::Ask { ticket } => {
                    world.workers[0].forget(ticket);
                    return (Lent { world }, first);
                }
                other => panic!("nothing is on lease: {other:?}"),
            }
        }
    }

    /// What is reserved for the one that waits, if it is let through in the end: the other worker gives back what it has on
    /// lease, or is gone.
    fn wait(&mut self, connection: u8, comes_back: bool) -> Option<Permit> {
        let World { workers, clock } = &mut self.world;
        for _ in 0..250 {
            let now = clock.0.get().later(SECOND / 1000);
            clock.0.set(now);
            if comes_back {
                workers[1].tidy(now);
            }
            for resumed in workers[0].work(now, &Nobody) {
                assert!(workers[0].resume(&resumed, now).is_none());
                match workers[0].decide_again(&resumed, &by("/else", connection), clock) {
                    Verdict::Admit(permit, _) => return Some(permit),
                    Verdict::Refuse(_) => return None,
                    verdict => assert!(matches!(verdict, Verdict::Ask { .. }), "{verdict:?}"),
                }
            }
        }
        panic!("it waits for ever")
    }

    /// How many more are let through.
    fn fit(&mut self) -> Vec<Open> {
        (0..=LIMIT).filter_map(|_| self.world.request(0, "/", 9)).collect()
    }
}

/// What was reserved for it is nobody else's, for as long as it waits for permits which another worker has. It goes back if it
/// is refused in the end, or its client leaves.
#[test]
fn nobody_comes_between_while_it_waits_for_permits() {
    for rule in RULES {
        for then in [Then::Admitted, Then::Refused, Then::Left] {
            let (mut lent, first) = Lent::new(rule);
            lent.world.redirect(first);
            let request = by("/else", 1);
            let verdict = lent.world.workers[0].decide(&request, &lent.world.clock);
            let Verdict::Ask { ticket } = verdict else { panic!("it waits, {rule}: {verdict:?}") };
            let others = lent.fit();
            assert_eq!(others.len(), LIMIT - 1, "its permits are its own, {rule}");
            if then == Then::Left {
                lent.world.workers[0].forget(ticket);
            } else {
                let permit = lent.wait(1, then == Then::Admitted);
                assert_eq!(permit.is_some(), then == Then::Admitted, "{rule}");
                let free = usize::from(then == Then::Refused);
                assert_eq!(lent.fit().len(), free, "it is charged once, {rule}");
            }
            drop(others);
            assert_eq!(lent.fit().len(), LIMIT, "nothing is left of it, {then:?}, {rule}");
            // It is told once as one that used nothing, unless it goes on.
            let (sums, is_told) = (Sums::default(), then != Then::Admitted && rule != RULES[0]);
            lent.world.workers[0].flush("n", &sums);
            assert_eq!(sums.of("diana.n.rule.all.settled"), i64::from(is_told), "{then:?}, {rule}");
        }
    }
}
