//! What a fleet of two gateways admits before, during and after an outage of Redis.

use diana_algorithm::{Algorithm, entry};
use diana_policy::Quota;
use diana_policy::time::{Now, SECOND, Unit};

use super::drawing::{Drawing, WIDTH};

const RPU: u64 = 100;
/// Requests that come to each gateway in a second.
const ARRIVE: [u64; 2] = [160, 30];
const SHOWN: u64 = 30;
/// The seconds without Redis.
const OUTAGE: std::ops::Range<u64> = 10..20;

fn x(second: u64) -> f64 {
    60.0 + (WIDTH - 100.0) * second as f64 / SHOWN as f64
}

fn y(requests: u64) -> f64 {
    250.0 - 160.0 * requests as f64 / 120.0
}

pub fn draw() -> Drawing {
    let mut drawing = Drawing::new(
        "Requests a second that two gateways admit together, before, during and after an outage of Redis",
        330.0,
    );
    drawing.text((24.0, 30.0), "label", "start", "rpu: 100, unit: second, scope: global, two gateways: one gets 160 requests a second, the other 30");
    let whole = (entry("W").unwrap().build)(&Quota::new(Unit::Second, RPU)).unwrap();
    let share = (entry("W").unwrap().build)(&Quota::new(Unit::Second, RPU).share(2)).unwrap();
    let mut curve = Vec::new();
    drawing.rect((x(OUTAGE.start), 64.0), (x(OUTAGE.end) - x(OUTAGE.start), 186.0), "box");
    drawing.text((x(15), 84.0), "label", "middle", "no Redis");
    for second in 0..SHOWN {
        let admitted = if OUTAGE.contains(&second) {
            let [first, other] = ARRIVE.map(|requests| admit(&*share, second, requests));
            first + other
        } else {
            admit(&*whole, second, ARRIVE.iter().sum())
        };
        curve.extend([(x(second), y(admitted)), (x(second + 1), y(admitted))]);
        let note = match second {
            4 => "the limit of the fleet",
            14 => "shares of 50: 50 and 30 admitted",
            24 => "the limit of the fleet",
            _ => continue,
        };
        drawing.text(
            (x(second + 1), y(admitted) + 22.0),
            "",
            "middle",
            &format!("{admitted} a second"),
        );
        drawing.text((x(second + 1), y(admitted) + 40.0), "dim", "middle", note);
    }
    drawing.line((x(0), y(RPU)), (x(SHOWN), y(RPU)), "limit");
    drawing.text((x(SHOWN), y(RPU) - 6.0), "no", "end", "limit: 100");
    drawing.line((x(0), y(0)), (x(SHOWN), y(0)), "line");
    drawing.curve(&curve, "curve");
    for second in [0, 10, 20, 30] {
        drawing.text((x(second), 272.0), "dim", "middle", &format!("{second} s"));
    }
    drawing.text((24.0, 310.0), "dim", "start", "No request fails, and the fleet never admits more than its limit. A busy gateway cannot use what a quiet one leaves.");
    drawing
}

/// The requests of a window that are admitted.
fn admit(algorithm: &dyn Algorithm, second: u64, requests: u64) -> u64 {
    let mut state = vec![0; algorithm.properties().words];
    let now = Now { mono: second * SECOND, wall: second * SECOND };
    let mut admitted = 0;
    for _ in 0..requests {
        let mut new = state.clone();
        if algorithm.step(&state, now, 0, 1, &mut new).is_admitted() {
            state = new;
            admitted += 1;
        }
    }
    admitted
}
