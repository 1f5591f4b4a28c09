//! Reservation, refund and debt of three requests on a line of time.

use diana_algorithm::{Algorithm, entry};
use diana_policy::Quota;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND, Unit};

use super::drawing::{Drawing, WIDTH};

const RPU: u64 = 1000;
const RESERVE: u64 = 300;
const SHOWN: u64 = 75;

/// What happens in a second: a request begins, or the request that began then ends and has used
/// these permits.
enum Event {
    Begins,
    Ends { began: u64, used: u64 },
}

const EVENTS: [(u64, Event, &str); 6] = [
    (5, Event::Begins, "begins: 300 reserved"),
    (15, Event::Ends { began: 5, used: 120 }, "ends: used 120, so 180 return"),
    (22, Event::Begins, "begins: 300 reserved"),
    (34, Event::Ends { began: 22, used: 950 }, "ends: used 950, so 650 are a debt"),
    (44, Event::Begins, "refused: the debt is above the limit"),
    (60, Event::Begins, "the next window: admitted"),
];

fn at(second: u64) -> Now {
    Now { mono: second * SECOND, wall: second * SECOND }
}

fn x(second: u64) -> f64 {
    40.0 + (WIDTH - 80.0) * second as f64 / SHOWN as f64
}

fn y(permits: u64) -> f64 {
    270.0 - 155.0 * permits as f64 / RPU as f64
}

pub fn draw() -> Drawing {
    let mut drawing =
        Drawing::new("Permits of a caller while requests reserve, return and owe", 350.0);
    drawing.text(
        (24.0, 30.0),
        "label",
        "start",
        "rpu: 1000, unit: minute, algo: window, cost: {response: …, reserve: 300}",
    );
    let algorithm = (entry("W").unwrap().build)(&Quota::new(Unit::Minute, RPU)).unwrap();
    let mut state = vec![0; algorithm.properties().words];
    let mut receipts = Vec::new();
    let mut curve = vec![(x(0), y(0))];
    let mut level = 0;
    for (number, (second, event, note)) in EVENTS.into_iter().enumerate() {
        let before = used(&*algorithm, &state, at(second));
        if before != level {
            // A window has ended.
            curve.extend([(x(second), y(level)), (x(second), y(before))]);
        }
        let mut new = state.clone();
        let mut class = "dim";
        match event {
            Event::Begins => {
                if algorithm.step(&state, at(second), 0, RESERVE, &mut new).is_admitted() {
                    receipts.push((second, algorithm.receipt(&new)));
                    state = new;
                } else {
                    class = "no";
                }
            }
            Event::Ends { began, used } => {
                let (_, receipt) = receipts.iter().find(|(second, _)| *second == began).unwrap();
                let settlement = Settlement {
                    receipt: *receipt,
                    since: at(began).mono,
                    reserved: RESERVE,
                    used,
                };
                algorithm.settle(&state, at(second), &settlement, &mut new);
                state = new;
            }
        }
        level = used(&*algorithm, &state, at(second));
        curve.extend([(x(second), y(before)), (x(second), y(level))]);
        let height = 52.0 + 15.0 * (number % 3) as f64;
        drawing.line((x(second), height + 4.0), (x(second), 270.0), "line");
        drawing.text((x(second), height), class, if number == 5 { "end" } else { "middle" }, note);
        drawing.text(
            (x(second), 290.0 + 16.0 * (number % 2) as f64),
            "dim",
            "middle",
            &format!("{level} used"),
        );
    }
    curve.push((x(SHOWN), y(level)));
    drawing.line((x(0), y(RPU)), (x(SHOWN), y(RPU)), "limit");
    drawing.text((x(SHOWN), y(RPU) - 6.0), "no", "end", "limit");
    drawing.line((x(0), y(0)), (x(SHOWN), y(0)), "line");
    drawing.curve(&curve, "curve");
    drawing.text((x(0), 335.0), "dim", "start", "0:00");
    drawing.text((x(60), 335.0), "dim", "middle", "1:00");
    drawing
}

fn used(algorithm: &dyn Algorithm, state: &[u64], now: Now) -> u64 {
    algorithm.balance(state, now).charged
}
