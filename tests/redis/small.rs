//! Every short sequence of questions about one caller: the script answers each like the model, byte by byte.
//!
//! `DIANA_DEPTH` is one more than the number of questions, by default two.

mod calendars;
mod callers;

use diana_algorithm::{Capabilities, IN_FLIGHT};
use diana_policy::ban::WORDS;
use diana_policy::time::{Micros, SECOND, Unit};
use diana_policy::{Ban, Quota};
use diana_redis::protocol::{CallNumber, Charge, Effect, Login, Pipeline, Refusals, Reply, Script};
use diana_redis::protocol::{RuleReply, ScriptAnswer, SettlementBatch};
use diana_store::slots::arrears::Arrears;
use kit::choices::{Choices, Tried, try_all};
use kit::laws::case::Case;
use kit::model::redis::Redis;
use kit::model::{LONG, NOTHING, TERM};
use kit::rules::{Rule, START, ban_pipeline, by, pipeline};
use kit::server::{Server, spell};

use super::bans::count;
use super::expiry::time_left;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// A request of this cost, which other rules may refuse if this is true.
    Ask(u64, bool),
    /// One that also asks for a block, and only a block.
    Lease(u64),
    /// One that never counts, and one that is only checked.
    Shadow,
    Check,
    /// The cost or the block of the latest answer comes back.
    ReturnCost,
    ReturnBlock,
    /// The latest request used more than it reserved.
    Owe,
    /// The same in a batch of settlements, a report of a request that was decided before, and the latest batch in another call.
    Settle,
    Report,
    SettleAgain,
    /// A gateway has admitted three more without Redis.
    Arrears,
    /// It has others by now.
    NextArrears,
    /// A late question has those before.
    FormerArrears,
    Read,
    Reset,
    /// A worker confirms the latest request in flight, has one less, and has none to tell of.
    Hold,
    Free,
    Beat,
    /// The call arrives again, and after the sender's next one.
    Again,
    Late,
}

const ACTS: [Act; 20] = [
    Act::Ask(1, false),
    Act::Ask(2, false),
    Act::Ask(1, true),
    Act::Lease(0),
    Act::Lease(1),
    Act::Shadow,
    Act::Check,
    Act::ReturnCost,
    Act::ReturnBlock,
    Act::Owe,
    Act::Settle,
    Act::Report,
    Act::SettleAgain,
    Act::Arrears,
    Act::NextArrears,
    Act::FormerArrears,
    Act::Read,
    Act::Reset,
    Act::Again,
    Act::Late,
];

/// Questions about requests in flight: one begins, its worker confirms it, one has ended, and the worker lives.
const IN_FLIGHT_ACTS: [Act; 6] =
    [Act::Ask(1, false), Act::Hold, Act::Free, Act::Beat, Act::Again, Act::Late];

/// The time before a question: none, to another term, to another term of leases, and to another window or slice.
fn waits(quota: &Quota) -> [Micros; 4] {
    [0, TERM, LONG, SECOND / quota.slices.map_or(1, u64::from)]
}

/// Slices of a ban.
const SLICES: usize = 8;

/// The knowledge of a gateway, and the replies of Redis.
struct Sender<'r> {
    rule: &'r Rule,
    now: Micros,
    number: u64,
    latest: Option<(RuleReply, Charge)>,
    arrears: [Arrears; 2],
    /// The latest batch of settlements, and its number.
    settled: Option<(Charge, SettlementBatch)>,
    /// Requests in flight that were confirmed.
    held: u64,
}

impl Sender<'_> {
    fn charge(&mut self, act: Act) -> Charge {
        let none = self.rule.charge(1, 0, 0);
        let (reply, asked) = self.latest.clone().unwrap_or((NOTHING, none.clone()));
        let Capabilities { settles, holds, .. } =
            (self.rule.entry.capabilities)(&self.rule.case.quota);
        let [former, arrears] = &mut self.arrears;
        let effect = |effect| Charge { effect, ..none.clone() };
        match act {
            Act::Ask(cost, tentative) => Charge { cost, tentative, ..none },
            Act::Lease(cost) => Charge { cost, want: 3, ahead: SECOND / 50, ..none },
            Act::Shadow => Charge { cost: 2, shadow: true, ..none },
            Act::Check => Charge { cost: 2, checks: true, ..none },
            Act::ReturnCost => {
                let term = if asked.tentative { reply.term } else { 0 };
                let (receipt, permits) = (reply.receipt, asked.cost);
                effect(Effect::ReturnCost { receipt, term, permits })
            }
            Act::ReturnBlock => {
                let RuleReply { lease: receipt, term, block, .. } = reply;
                let left = block.saturating_sub(1);
                effect(Effect::ReturnBlock { receipt, term, block, left })
            }
            Act::Owe | Act::Settle if settles => {
                let effect = Effect::ChargeDebt { receipt: reply.receipt, permits: 1 };
                Charge { effect, counted: none.counted.map(|_| 2), ..none }
            }
            Act::Report if !holds => {
                effect(Effect::Report { rule: 0, plan: 0, term: 0, permits: 1 })
            }
            Act::Hold => {
                self.held += 1;
                effect(Effect::HoldSlots { term: reply.receipt, slots: self.held })
            }
            Act::Free => {
                self.held = self.held.saturating_sub(1);
                effect(Effect::FreeSlots { slots: self.held })
            }
            Act::Beat => effect(Effect::Heartbeat),
            // Positions in a queue are neither shown nor charged afterwards.
            Act::Read if !holds => effect(Effect::ReadUsage),
            Act::Reset if !holds => effect(Effect::Reset),
            Act::Settle | Act::Report | Act::SettleAgain => none,
            Act::Owe | Act::Again | Act::Late | Act::Read | Act::Reset => none,
            Act::Arrears | Act::NextArrears | Act::FormerArrears => {
                match act {
                    Act::NextArrears => {
                        let since = arrears.since + 5;
                        *former = std::mem::replace(arrears, Arrears { total: 1, since });
                    }
                    Act::Arrears => arrears.total += 3,
                    _ => {}
                }
                let arrears = Some(*if act == Act::FormerArrears { former } else { arrears });
                Charge {
                    cost: 1,
                    arrears: arrears.filter(|it| it.total > 0 && !holds),
                    overdraft: 2,
                    ..none
                }
            }
        }
    }

    /// A call with the next number.
    fn next(&mut self, charges: Vec<Charge>) -> Pipeline {
        self.number += 1;
        let number = Some(CallNumber { sender: 1, slot: 0, number: self.number });
        Pipeline { number, ..pipeline(Some(self.now), charges) }
    }

    fn pipeline(&mut self, act: Act, charge: Charge) -> Pipeline {
        let settles = match act {
            Act::Settle | Act::Report => {
                let batch = SettlementBatch { sender: 1, number: self.number + 1, asks: 1 };
                self.settled = Some((charge.clone(), batch));
                Some(batch)
            }
            Act::SettleAgain => self.settled.as_ref().map(|(_, batch)| *batch),
            _ => None,
        };
        let again = self.settled.as_ref().filter(|_| act == Act::SettleAgain);
        let charge = again.map_or(charge, |(charge, _)| charge.clone());
        let mut pipeline = self.next(vec![charge]);
        pipeline.calls[0].settles = settles;
        pipeline
    }
}

/// A sequence of questions in the model, and the calls with its answers.
fn play(
    rule: &Rule,
    all: &[Act],
    steps: usize,
    choices: &mut Choices,
) -> (Vec<u8>, Vec<u8>, Vec<Act>) {
    let quit = spell(&["QUIT"]);
    let (mut model, mut acts) = (Redis::default(), Vec::new());
    let arrears = [Arrears { total: 1, since: 1 }, Arrears { total: 0, since: 5 }];
    let (now, number, latest, settled, held) = (START, 0, None, None, 0);
    let mut sender = Sender { rule, now, number, latest, arrears, settled, held };
    let mut bytes = spell(&["FLUSHALL"]);
    let mut answers = b"+OK\r\n".to_vec();
    let mut last = None;
    for step in 0..steps {
        sender.now += if step == 0 { 0 } else { waits(&rule.case.quota)[choices.pick(4)] };
        let act = all[choices.pick(all.len())];
        acts.push(act);
        let mut calls = Vec::new();
        let pipeline = match (act, last.take()) {
            (Act::Again, Some(last)) => last,
            (Act::Late, Some(last)) => {
                calls.push(sender.next(Vec::new()));
                last
            }
            _ => {
                let charge = sender.charge(act);
                sender.latest = Some((NOTHING, charge.clone()));
                sender.pipeline(act, charge)
            }
        };
        calls.push(pipeline.clone());
        let login = Login::default();
        for call in &calls {
            let answer = model.answer(&by(Script::Text, call).encode(&login), sender.now);
            if let Some(Ok(ScriptAnswer::Decided(decided))) = call.answers(&login, &answer).pop()
                && let Some(Reply::Rule(reply)) =
                    decided.asks.first().and_then(|it| it.replies.first())
                && let Some((latest, _)) = &mut sender.latest
            {
                *latest = *reply;
            }
            let body = by(Script::Digest, call).encode(&login);
            bytes.extend(&body[..body.len() - quit.len()]);
            answers.extend(answer.strip_suffix(b"+OK\r\n").expect("an answer to QUIT"));
        }
        last = Some(pipeline);
    }
    bytes.extend(quit);
    answers.extend(b"+OK\r\n");
    (bytes, answers, acts)
}

pub fn depth() -> usize {
    std::env::var("DIANA_DEPTH").map_or(3, |depth| depth.parse().expect("a number"))
}

fn hold(short: &str, quota: Quota, counts: bool) {
    compare(&Rule { counts, ..Rule::new(short, quota) }, &ACTS);
}

fn compare(rule: &Rule, all: &[Act]) {
    let server = Server::start();
    // Redis has the script from here on.
    server.decide(&pipeline(Some(START), vec![]));
    let Tried { worlds, .. } = try_all(1..=depth() - 1, |steps, choices| {
        let (bytes, expected, acts) = play(rule, all, steps, choices);
        let answers = server.exchange(&bytes);
        let [own, model] = [&answers, &expected].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!(own, model, "the script and the model differ in {acts:?}");
    });
    println!("tried: {worlds} questions, {}", rule.entry.short);
}

#[test]
fn of_a_window() {
    hold("W", Quota::new(Unit::Second, 4), false);
}

#[test]
fn of_a_window_with_reservations() {
    hold("W", Quota::new(Unit::Second, 4), true);
}

#[test]
fn of_a_sliding_window() {
    hold("SW", Quota { slices: Some(2), ..Quota::new(Unit::Second, 4) }, false);
}

#[test]
fn of_a_sliding_window_with_reservations() {
    hold("SW", Quota { slices: Some(2), ..Quota::new(Unit::Second, 4) }, true);
}

#[test]
fn of_a_bucket() {
    hold("TB", Quota { burst: Some(4), ..Quota::new(Unit::Second, 2) }, false);
}

#[test]
fn of_a_queue() {
    hold("LB", Quota::new(Unit::Second, 4), false);
}

#[test]
fn of_requests_in_flight() {
    let quota = Quota::new(Unit::Second, 2);
    let algorithm = (IN_FLIGHT.build)(&quota).expect("a limit");
    let rule = Rule::of(IN_FLIGHT, Case { quota, algorithm }).expect("Redis counts them");
    compare(&Rule { numbers: rule.numbers.held_by(5), ..rule }, &IN_FLIGHT_ACTS);
}

/// Refusals of a caller, orders of an operator, and the time between them in slices: the script bans like the step in Rust.
#[test]
fn of_bans() {
    let ban = Ban {
        after: 3,
        within: 7 * SECOND,
        period: 3 * SECOND,
        max: 6 * SECOND,
        halve_after: 6 * SECOND,
        is_shadow: false,
    };
    let server = Server::start();
    let Tried { worlds, .. } = try_all(1..=depth() - 1, |steps, choices| {
        server.command(&["FLUSHALL"]);
        let (mut state, mut now, mut acts) = ([0; WORDS], START, Vec::new());
        for _ in 0..steps {
            now += choices.pick(2 * SLICES) as u64 * ban.slice();
            // Up to a ban at once, then an order that ends one, and one that begins it.
            let (refusals, sets) = match choices.pick(6) as u64 {
                refusals @ 0..4 => (refusals, None),
                4 => (0, Some(0)),
                _ => (0, Some(2 * SECOND)),
            };
            acts.push((now - START, refusals, sets));
            let asked = Refusals { sets, ..count(&ban, 0, refusals) };
            let decided = server.decide(&ban_pipeline(Some(now), asked));
            match sets {
                Some(0) => Ban::reset(&mut state, now),
                Some(length) => Ban::begin(&mut state, now + length),
                None => {}
            }
            let begins = refusals > 0 && ban.count(&mut state, now, refusals);
            let left = ban.left(Ban::until(&state), now);
            let reply = decided.bans[0][0];
            assert_eq!((reply.begins, reply.left), (begins, left), "{acts:?}");
        }
        // A key that has expired was of no more use.
        let [key] = &server.callers()[..] else { return };
        let expired = now + time_left(&server, key);
        for refusals in 1..=ban.after {
            let [own, new] = [state, [0; WORDS]].map(|mut state| {
                let begins = ban.count(&mut state, expired, refusals);
                (begins, ban.left(Ban::until(&state), expired))
            });
            assert_eq!(own, new, "{acts:?}");
        }
    });
    println!("tried: {worlds} questions, bans");
}
