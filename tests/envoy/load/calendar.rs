//! Days and weeks in which clocks change, and the ends of months, by a clock that the test sets.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

use crate::harness::{Clock, Envoy, Gateway, eventually};

const ZONE: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
const PERMITS: usize = 2;
const SECOND: i64 = 1_000_000;

/// How long before the end of a window the clock is set, in seconds: a worker looks at it once a second.
const BEFORE: i64 = 5;

/// How late a busy machine may be, in seconds.
const LATE: i64 = 60;

/// How far the clocks of Envoy and of this process may differ, in microseconds.
const APART: i64 = 5_000;

struct Caller {
    envoy: Envoy,
    clock: Clock,
    /// Microseconds that Envoy's clock is ahead.
    ahead: i64,
}

impl Caller {
    fn start(unit: &str, more: &str) -> Caller {
        let envoy = Gateway::with(&format!(
            "{{limits: [{{Url: /, rules: [{{actor: account, unit: {unit}, rpu: {PERMITS}, algo: W, {more}}}]}}],
              time_zone: '{ZONE}'}}"
        ));
        Caller { envoy: envoy.workers(1).start(), clock: Clock::new(), ahead: 0 }
    }

    fn now(&self) -> i64 {
        self.clock.now().cast_signed() + self.ahead
    }

    /// How long a request has to wait, in seconds; nothing if it is admitted.
    fn ask(&self) -> Option<i64> {
        let answer = self.envoy.get("/", &[("x-account-id", "ann")]);
        let wait = answer.header("retry-after").map(|wait| wait.parse().expect("a number"));
        assert_eq!(answer.status, if wait.is_some() { 503 } else { 200 }, "{answer:?}");
        wait
    }

    /// Passes from one window into the next one, which has so many seconds.
    fn pass(&mut self, boundary: i64, length: i64) {
        self.ahead += (boundary - BEFORE) * SECOND - self.now();
        self.envoy.set_clock_ahead(self.ahead);
        let last = 1..=BEFORE;
        eventually("the end of a window", || self.ask().filter(|wait| last.contains(wait)));
        eventually("the next window", || self.ask().is_none().then_some(()));
        assert!(self.now() + APART >= boundary * SECOND, "{} is before {boundary}", self.now());
        let wait = (1..PERMITS).find_map(|_| self.ask()).or_else(|| self.ask());
        let left = boundary + length - self.now() / SECOND;
        println!("{wait:?} of {length} seconds");
        let wait = wait.expect("no more than it may");
        assert!((left - LATE..=left + 1).contains(&wait), "{wait} of {length}, {left} are left");
    }
}

fn begins(day: Date, zone: &TimeZone) -> i64 {
    let noon = day.at(12, 0, 0, 0).to_zoned(zone.clone()).unwrap();
    noon.start_of_day().unwrap().timestamp().as_second()
}

/// The days of the next two changes of the clocks.
fn changes(zone: &TimeZone) -> Vec<Date> {
    let changes = zone.following(Timestamp::now());
    changes.take(2).map(|change| change.timestamp().to_zoned(zone.clone()).date()).collect()
}

/// Passes into the window that begins on a day, and into the one after it.
fn pass_two(caller: &mut Caller, first: Date, span: Span, zone: &TimeZone) {
    let days = [first, first + span, first + span + span];
    let [first, second, third] = days.map(|day| begins(day, zone));
    caller.pass(first, second - first);
    caller.pass(second, third - second);
}

#[test]
fn days_in_which_clocks_change_are_as_long_as_they_are() {
    let zone = TimeZone::posix(ZONE).unwrap();
    for more in ["scope: gateway", "scope: local, quota: {accounts: 1000}"] {
        let mut caller = Caller::start("day", more);
        for day in changes(&zone) {
            pass_two(&mut caller, day, 1.day(), &zone);
        }
        caller.envoy.assert_unharmed();
    }
}

#[test]
fn so_are_weeks_and_months() {
    let zone = TimeZone::posix(ZONE).unwrap();
    let mut caller = Caller::start("week", "scope: gateway");
    for day in changes(&zone) {
        // Clocks change on Sundays.
        pass_two(&mut caller, day - 6.days(), 7.days(), &zone);
    }
    let mut caller = Caller::start("month", "scope: local");
    for day in changes(&zone) {
        pass_two(&mut caller, day.first_of_month(), 1.month(), &zone);
    }
    caller.envoy.assert_unharmed();
}
