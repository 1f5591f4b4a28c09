//! How many permits a worker wants Redis to lend a caller, against an oracle that remembers every request.

use diana_core::bloom::Shape;
use diana_core::decision::Decision;
use diana_core::policy::Quota;
use diana_core::store::CounterSpec;
use diana_core::time::{Micros, SECOND, Unit};
use fastrand::Rng;
use kit::seed;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

use super::desk::{Desk, refuses};
use super::office::MS;

/// Requests are counted in spans of this length, which follow each other as long as somebody comes in each.
const SPAN: Micros = SECOND / 10;

/// How far ahead permits are wanted even if they are most of what is left.
const SOON: Micros = SECOND / 50;

/// Most permits that a block is asked for with, unless one request takes more.
const MOST: u64 = 1 << 16;

/// All spans in which the caller came: when each began, and how often it came in it.
#[derive(Default)]
struct Oracle {
    spans: Vec<(Micros, u64)>,
    expected: u64,
}

impl Oracle {
    fn see(&mut self, at: Micros) {
        match self.spans.last_mut() {
            Some((begins, seen)) if at < *begins + SPAN => *seen += 1,
            Some(&mut (begins, _)) if at < begins + 2 * SPAN => self.spans.push((begins + SPAN, 1)),
            _ => self.spans.push((at, 1)),
        }
    }

    /// How often the caller came in the last two spans, and how long these have lasted.
    fn lately(&self, at: Micros) -> (u64, Micros) {
        let Some(&(begins, during)) = self.spans.last() else { return (0, at) };
        let before = self.spans.iter().find(|(earlier, _)| earlier + SPAN == begins);
        match before {
            Some((earlier, before)) => (before + during, at - earlier),
            None => (during, at - begins),
        }
    }

    /// What a request asks for beside itself: in all, and soon.
    fn wants(&mut self, cost: u64, at: Micros) -> (u64, u64) {
        let (seen, lasted) = self.lately(at);
        if seen < 20 && self.expected < 10 {
            return (0, 0);
        }
        let need = |ticks: Micros| seen * ticks / lasted.max(SPAN / 8) * cost;
        let soon = need(SOON);
        let expected = std::mem::take(&mut self.expected);
        let want = need(SPAN).max(cost).max(expected).min(MOST.max(cost));
        (want.max(soon), soon)
    }
}

/// Ticks until the next request: often none, and often until just when a span begins or nobody came in one.
fn gap(oracle: &Oracle, at: Micros, rng: &mut Rng) -> Micros {
    let begins = oracle.spans.last().map_or(at, |span| span.0);
    match rng.u8(..40) {
        0 => (begins + rng.u64(1..3) * SPAN + rng.u64(..3)).saturating_sub(at + 1),
        1 => rng.u64(..3 * SPAN),
        2..10 => rng.u64(..4 * MS),
        10 => rng.u64(..SPAN / 4),
        _ => 0,
    }
}

#[test]
fn what_is_asked_for_is_what_the_caller_needs_at_its_pace() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut wanting, mut content) = (0, 0);
    for _ in 0..100 {
        let mut desk = Desk::of(Rule::new("W", Quota::new(Unit::Second, 1_000_000)).spec(100));
        let mut oracle = Oracle::default();
        // Who came first is not counted: nothing is known of it yet.
        desk.store.question((key(1), 1), START, false, false);
        let mut after = 0;
        for _ in 0..rng.usize(..1_500) {
            after += gap(&oracle, START.mono + after, &mut rng);
            let at = START.mono + after;
            assert!(desk.check(after).asks());
            oracle.see(at);
            if rng.u8(..20) > 0 {
                continue;
            }
            if rng.u8(..4) == 0 {
                let expected = *rng.choice(&[0, 9, 10, 5000, MOST, MOST + 1, 2 * MOST]).unwrap();
                desk.store.hint_demand(key(1), expected);
                oracle.expected = expected.min(MOST);
            }
            let cost = *rng.choice(&[1, 1, 3, 1000, MOST + 5, 3 * MOST]).unwrap();
            unasked(&mut desk, after);
            let charge = desk.store.question((key(1), cost), START.later(after), false, false);
            assert_eq!((charge.want, charge.soon), oracle.wants(cost, at), "at {after}");
            *if charge.want > 0 { &mut wanting } else { &mut content } += 1;
        }
    }
    assert!(wanting > 500 && content > 100, "too tame: {wanting}, {content}");
}

/// No answer comes to what was asked.
fn unasked(desk: &mut Desk, after: Micros) {
    desk.store.complete(key(1), None, START.later(after), &mut desk.handle);
}

/// While others hold what there is.
#[test]
fn what_is_asked_for_of_what_is_lent_is_what_waits() {
    for waiting in [0, 1, 7_u64] {
        for cost in [1, 3] {
            let mut desk = Desk::of(Rule::new("W", Quota::new(Unit::Second, 1000)).spec(100));
            desk.ask(40, 0);
            desk.hear(&refuses(1, 1), 0, 0);
            desk.store.wait(key(1), waiting as usize);
            let charge = desk.store.question((key(1), cost), START.later(MS), false, false);
            assert_eq!((charge.want, charge.soon), (waiting * cost, waiting * cost));
            // It is over when a tenth of a second has gone by.
            unasked(&mut desk, SPAN - 1);
            let charge = desk.store.question((key(1), cost), START.later(SPAN - 1), false, false);
            assert_eq!(charge.want, waiting * cost);
            unasked(&mut desk, SPAN);
            let charge = desk.store.question((key(1), cost), START.later(SPAN), false, false);
            assert!(charge.want >= 40 * cost, "{charge:?}");
        }
    }
}

/// Nobody asks for nothing: without a request to do it for, that is worth no question.
#[test]
fn a_question_that_nobody_waits_for_asks_for_something() {
    for (waiting, renewals) in [(0, 0), (1, 1), (2, 1)] {
        let mut desk = Desk::of(Rule::new("W", Quota::new(Unit::Second, 1000)).spec(100));
        desk.ask(40, 0);
        desk.hear(&refuses(1, 1), 0, 0);
        desk.store.wait(key(1), waiting);
        let told = desk.check(MS);
        assert!(told.loan() > 0, "it waits for what others hold");
        assert_eq!(desk.store.remaining(&told), Some(0));
        assert_eq!(desk.renewals(), renewals, "{waiting} wait");
    }
}

/// A place in a line, an account's permit by the day or one that is settled cannot be spent by anybody else.
#[test]
fn what_is_not_lent_is_not_asked_for_however_often_its_caller_comes() {
    let rule = |short| Rule::new(short, Quota::new(Unit::Second, 1000)).spec(100);
    let by_day = Rule::new("W", Quota::new(Unit::Day, 1000)).spec(100);
    for (spec, lends) in [
        (rule("W"), true),
        (rule("LB"), false),
        (CounterSpec { settles: true, ..rule("W") }, false),
        (CounterSpec { daily: Some(Shape::new(1000, 10_000, 1000)), ..by_day }, false),
    ] {
        let mut desk = Desk::of(spec);
        assert_eq!(desk.ask(40, 0).want, 0, "nothing is known of it yet");
        unasked(&mut desk, 0);
        assert_eq!(desk.ask(1, MS).want > 0, lends);
        assert!(!desk.handle.has_operations());
    }
}

/// It is the time in which as many permits come back as a request takes.
#[test]
fn a_crowd_is_told_to_come_back_when_a_request_has_been_refilled() {
    for (cost, retry) in [(1, 33_334), (3, 100_000)] {
        let rule = Rule::new("TB", Quota { cost, ..Quota::new(Unit::Second, 30) });
        let mut desk = Desk::of(rule.spec(100));
        desk.ask(25, 0);
        desk.hear(&refuses(MS, 0), 0, 0);
        desk.store.crowd(key(1), START);
        assert_eq!(desk.check(12 * MS).decision(), Decision::retry(retry));
    }
}
