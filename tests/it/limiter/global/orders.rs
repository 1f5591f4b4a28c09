//! Operators' orders about callers in Redis.

use std::collections::BTreeSet;
use std::rc::Rc;

use diana_limiter::{CallerQuery, Inquired, Order, OrderError, OrderResult, Ready, Seen};
use diana_policy::key::Seed;
use diana_policy::port::{Answer, Call, Clock, Destination};
use diana_policy::redis::OnFailure;
use diana_policy::time::SECOND;
use kit::fake::FakeSharedData;
use kit::model::proxy::{Proxy, split};
use kit::model::wire::{Asking, commands};
use kit::model::{READ_USAGE, RESET};

use super::{MILLISECOND, SEED, Worker, opinion, request};
use crate::support::allocator;
use crate::support::redis::{decides, other_seed};

const MINUTE: u64 = 60 * SECOND;

const ORDERS: [Order; 4] = [Order::Look, Order::Reset, Order::Ban(MINUTE), Order::Unban];

const RULE: &str = "actor: account, unit: day, rpu: 10, algo: W, scope: global, \
                    ban: {after: 3, within: 10s, for: 1m}";

/// A device has two sources, so its name may denote two callers.
const TWO_WAYS: &str = "
actors: {device: [{header: x-device-id}, {metadata: [device, id]}]}
redis: {cluster: redis, proxied: true, parts: 64}
limits: [{Url: /, rules: [{actor: device, unit: day, rpu: 9, algo: W, scope: global}]}]
";

/// The outcome of an order that waited for Redis.
type NumberSource = Result<Vec<Seen>, OrderError>;

impl Worker {
    fn inquire(&mut self, name: &str, order: Order) -> Result<Inquired, OrderError> {
        let callers = CallerQuery::Values(vec![name.into()]);
        let stream = self.orders.len() as u32;
        self.limiter.inquire(0, callers, order, stream, self.clock.now())
    }

    /// Gives an order that requires Redis. Returns its ticket.
    fn order(&mut self, name: &str, order: Order) -> u64 {
        match self.inquire(name, order) {
            Ok(Inquired::Pending(id)) => {
                self.orders.push(id);
                id
            }
            other => panic!("{other:?}"),
        }
    }

    /// Advances the clock by a millisecond, in which `redis` replies. Returns the completed orders.
    fn complete_orders(
        &mut self,
        redis: &mut dyn FnMut(&Call) -> Option<Vec<u8>>,
    ) -> Vec<(u64, OrderResult)> {
        let now = self.clock.0.get().later(MILLISECOND);
        self.clock.0.set(now);
        self.work(now);
        let fresh = self.callout.sent.borrow()[self.called..].to_vec();
        for call in fresh {
            let body = redis(&call);
            let fetch = || body.clone();
            let status = Some(if body.is_some() { 200 } else { 503 });
            let answer = Answer { status, size: 9, body: &fetch, header: &|_| None };
            self.take_reply(self.called as u32, &answer, now);
            self.called += 1;
        }
        let mut completed = Vec::new();
        while let Some(ready) = self.limiter.next_ready(now) {
            let Ready::Order { stream, result } = ready else { panic!("a request") };
            let stream = stream.expect("its client is there");
            completed.push((self.orders[stream as usize], result));
        }
        completed
    }

    /// The outcome of an order with these replies about the rule and the ban.
    fn result(&mut self, order: Order, rule: [i64; 10], ban: [i64; 10]) -> NumberSource {
        let id = self.order("ann", order);
        let reply = decides(&[&[0][..], &rule, &ban].concat());
        let mut completed = self.complete_orders(&mut |_| Some(reply.clone()));
        let Some((of, result)) = completed.pop() else { panic!("no reply") };
        assert_eq!((of, result.rule, result.order), (id, 0, order));
        assert!(completed.is_empty() && self.limiter.ready() == 0, "it is delivered once");
        result.seen
    }

    /// The number of questions to Redis for a request that it would admit.
    fn questions(&mut self) -> usize {
        let mut asked = 0;
        self.request(&request());
        self.steps(3, &mut |call, _| {
            let questions = questions(call);
            asked += questions.len();
            // If the ban is queried, too, Redis reports none.
            let rest = opinion(0, 0, 0).repeat(questions.len() - 1);
            Some(decides(&[&[0][..], &opinion(0, 9, 1), &rest].concat()))
        });
        asked
    }
}

/// The kind of each question, and the length of an ordered ban.
fn questions(call: &Call) -> Vec<(u64, u64)> {
    let words = commands(&call.body);
    let mut asking = Asking::read(&words[0]);
    let mut all = Vec::new();
    while let Some((questions, _)) = asking.ask() {
        all.extend((0..questions).map(|_| {
            let (_, asked, _) = asking.rule(0, 0);
            (asked.what, asked.receipt)
        }));
    }
    all
}

/// A reply about a caller that shares a state with others.
fn shared(is_shared: bool, mut opinion: [i64; 10]) -> [i64; 10] {
    opinion[9] = is_shared.into();
    opinion
}

#[test]
fn order_sends_only_its_own_questions() {
    for order in ORDERS {
        let mut worker = Worker::new(RULE);
        worker.order("ann", order);
        let mut asked = Vec::new();
        worker.complete_orders(&mut |call| {
            asked.extend(questions(call));
            None
        });
        let rule = if order == Order::Reset { (RESET, 0) } else { (READ_USAGE, 0) };
        let ban = match order {
            Order::Look | Order::Reset => (0, 0),
            Order::Ban(length) => (RESET, length),
            Order::Unban => (RESET, 0),
        };
        assert_eq!(asked, [rule, ban], "{order:?}");
    }
}

/// The first reply to a gateway contains the secret of the fleet, by which its callers have other
/// keys.
#[test]
fn order_is_repeated_under_the_secret_of_the_fleet() {
    for order in ORDERS {
        let mut worker = Worker::new(RULE);
        let id = worker.order("ann", order);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let completed = worker.complete_orders(&mut |call| {
            first.extend(questions(call));
            Some(other_seed(Seed { k0: 8, k1: 9 }))
        });
        assert_eq!((completed.len(), worker.limiter.ready()), (0, 0));
        let reply = decides(&[&[0][..], &opinion(0, 4, 1), &opinion(0, 0, 0)].concat());
        let mut completed = worker.complete_orders(&mut |call| {
            second.extend(questions(call));
            Some(reply.clone())
        });
        assert_eq!((&second, completed.len()), (&first, 1), "{order:?}");
        let Some((of, OrderResult { seen: Ok(seen), .. })) = completed.pop() else {
            panic!("no reply")
        };
        let again = worker.result(order, opinion(0, 4, 1), opinion(0, 0, 0)).unwrap();
        assert_eq!((of, &seen[0].caller), (id, &again[0].caller));
    }
}

/// A worker that has not asked Redis yet, since another worker of its gateway has learned the
/// secret of the fleet.
#[test]
fn first_order_of_a_worker_finds_the_callers_of_the_fleet() {
    for order in ORDERS {
        let data = Rc::<FakeSharedData>::default();
        let text = format!("redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{{{RULE}}}]}}]");
        let worker = || Worker::in_gateway(data.clone(), &text, OnFailure::Gateway, SEED);
        let (mut first, mut second) = (worker(), worker());
        first.order("ann", Order::Look);
        first.complete_orders(&mut |_| Some(other_seed(Seed { k0: 8, k1: 9 })));
        let reply = decides(&[&[0][..], &opinion(0, 4, 1), &opinion(0, 0, 0)].concat());
        assert_eq!(first.complete_orders(&mut |_| Some(reply.clone())).len(), 1);
        let [first, second] = [&mut first, &mut second].map(|worker| {
            let mut result = worker.result(order, opinion(0, 4, 1), opinion(0, 0, 0)).unwrap();
            result.pop().expect("one caller").caller
        });
        assert_eq!(first, second, "{order:?}");
    }
}

/// The replies to the question about the ban are taken, too.
#[test]
fn failed_order_leaves_no_reply_in_memory() {
    let mut worker = Worker::new(RULE);
    worker.callout.sent.borrow_mut().reserve(10_000);
    let mut orders = |range: std::ops::Range<u64>| {
        for number in range {
            worker.order("ann", ORDERS[number as usize % ORDERS.len()]);
            // The order is lost, and given again.
            worker.complete_orders(&mut |_| Some(other_seed(Seed { k0: number % 2, k1: 9 })));
            let reply = decides(&[&[0][..], &opinion(0, 4, 1), &opinion(0, 0, 0)].concat());
            assert_eq!(worker.complete_orders(&mut |_| Some(reply.clone())).len(), 1);
            let mut sent = worker.callout.sent.borrow_mut();
            sent.iter_mut().for_each(|call| (call.headers, call.body) = Default::default());
            sent.iter_mut().for_each(|call| call.destination = Destination::Cluster(String::new()));
        }
        allocator::bytes()
    };
    let before = orders(0..200);
    assert_eq!(orders(200..600) - before, 0);
}

/// Callers that share a state can be looked up. Their usage is not reset and they are not banned,
/// since that would affect others.
#[test]
fn order_fails_only_for_a_shared_state() {
    for order in ORDERS {
        for (rule, ban) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut worker = Worker::new(RULE);
            let left = MINUTE.cast_signed();
            let result = worker.result(
                order,
                shared(rule, opinion(0, 4, 1)),
                shared(ban, opinion(0, left, 0)),
            );
            match (order, result) {
                (Order::Reset, Err(why)) if rule => {
                    assert_eq!(why, OrderError::Shared);
                }
                (Order::Ban(_), Err(why)) if ban => assert_eq!(why, OrderError::NoRoom),
                (_, Ok(seen)) if order != Order::Reset || !rule => {
                    let [seen] = &seen[..] else { panic!("{seen:?}") };
                    assert_eq!((seen.usage.is_shared, seen.usage.ban), (rule, Some(MINUTE)));
                    assert_eq!((seen.usage.remaining, seen.usage.leased), (4, 1));
                    assert!(!matches!(order, Order::Ban(_)) || !ban, "nobody has room for it");
                }
                (_, other) => panic!("{order:?}, {rule} {ban}: {other:?}"),
            }
        }
    }
}

/// The ban is known in this gateway at once, without a query.
#[test]
fn ordered_ban_holds_in_the_gateway_at_once() {
    let (banned, free) = (opinion(0, MINUTE.cast_signed(), 0), opinion(0, 0, 0));
    for (orders, is_banned) in [
        (vec![(Order::Ban(MINUTE), banned)], true),
        (vec![(Order::Ban(MINUTE), banned), (Order::Unban, free)], false),
        (vec![(Order::Ban(MINUTE), banned), (Order::Reset, banned)], true),
        (vec![(Order::Look, banned)], false),
        (vec![(Order::Reset, free)], false),
    ] {
        let mut worker = Worker::new(RULE);
        for (order, ban) in &orders {
            let [seen] = &worker.result(*order, opinion(0, 9, 0), *ban).unwrap()[..] else {
                panic!()
            };
            assert_eq!(seen.usage.ban, Some(ban[2].cast_unsigned()));
        }
        let asked = worker.questions();
        assert_eq!((worker.verdicts == [false], asked == 0), (is_banned, is_banned), "{orders:?}");
    }
}

/// Concurrent orders each complete under their own ticket after the reply of Redis.
#[test]
fn concurrent_orders_complete_separately() {
    let mut worker = Worker::new(RULE);
    let orders = [("ann", Order::Look, 5), ("bob", Order::Reset, 3), ("cid", Order::Unban, 4)];
    let tickets = orders.map(|(name, order, _)| worker.order(name, order));
    assert_eq!(worker.limiter.ready(), 0, "nobody has answered");
    let reply = |left| [&[0][..], &opinion(0, left, 0), &opinion(0, 0, 0)].concat();
    let reply = orders.map(|(_, _, left)| reply(left)).concat();
    let completed = worker.complete_orders(&mut |_| Some(decides(&reply)));
    let seen = completed.into_iter().map(|(id, OrderResult { order, seen, .. })| {
        (id, order, seen.unwrap()[0].usage.remaining.cast_signed())
    });
    let expected = tickets.into_iter().zip(orders).map(|(id, (_, order, left))| (id, order, left));
    assert_eq!(seen.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// An order about several callers, of which one is in an unavailable shard. It is not reported as
/// done, even if the other one was changed, and no further queries are sent.
#[test]
fn order_with_an_unavailable_shard_is_not_done() {
    for number in 0..20 {
        let name = format!("phone-{number}");
        let mut parts = BTreeSet::new();
        let mut proxy = Proxy::default();
        // The index of the failing shard, if any.
        for fails in [None, Some(0), Some(1)] {
            proxy.away = fails.and_then(|it| parts.iter().nth(it)).copied().into_iter().collect();
            let is_away = !proxy.away.is_empty();
            let mut worker = Worker::of(TWO_WAYS, OnFailure::Gateway);
            let ticket = worker.order(&name, Order::Reset);
            let mut known = Vec::new();
            for _ in 0..400 {
                let time = worker.clock.now().wall;
                known.extend(worker.complete_orders(&mut |call| {
                    let asked = split(&call.body).into_iter().map(|(part, _)| part);
                    parts.extend(asked.filter(|part| *part > 0));
                    Some(proxy.answer(&call.body, time))
                }));
            }
            let Some((id, result)) = known.pop() else { panic!("no reply") };
            assert!(id == ticket && known.is_empty(), "{name}, {fails:?}");
            match result.seen {
                Ok(seen) => assert!(!is_away && seen.len() == 2, "{seen:?}"),
                Err(why) => assert!(is_away && why == OrderError::Unanswered, "{why:?}"),
            }
            match worker.inquire(&name, Order::Reset) {
                Ok(_) => assert!(!is_away),
                Err(why) => assert!(is_away && why == OrderError::Unavailable, "{why:?}"),
            }
        }
    }
}
