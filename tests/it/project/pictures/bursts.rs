//! One burst under the four algorithms.

use diana_algorithm::entry;
use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_policy::time::{Now, SECOND, Unit};

use super::drawing::{Drawing, WIDTH};

const LEFT: f64 = 250.0;
/// Seconds that the picture shows.
const SHOWN: u64 = 160;
/// The seconds in which a request comes: one in each.
const BURST: std::ops::Range<u64> = 40..140;

const ROWS: [(&str, &str, &str); 4] = [
    ("W", "window", "ten in each minute of the clock"),
    ("SW", "sliding window", "ten in any minute"),
    ("TB", "token bucket", "ten at once, then one every 6 s"),
    ("LB", "leaky bucket", "one every 6 s, held for up to 20 s"),
];

fn x(second: u64) -> f64 {
    LEFT + (WIDTH - LEFT - 60.0) * second as f64 / SHOWN as f64
}

pub fn draw() -> Drawing {
    let mut drawing = Drawing::new(
        "A client sends a request each second for 100 seconds. Which of them ten a minute admit, by algorithm",
        330.0,
    );
    drawing.text(
        (24.0, 30.0),
        "label",
        "start",
        "rpu: 10, unit: minute. A client sends a request each second, from 0:40 to 2:19",
    );
    for minute in 0..=2 {
        drawing.line((x(minute * 60), 46.0), (x(minute * 60), 290.0), "line");
        drawing.text((x(minute * 60), 310.0), "dim", "middle", &format!("{minute}:00"));
    }
    for (number, (short, name, meaning)) in ROWS.into_iter().enumerate() {
        let base = 96.0 + 60.0 * number as f64;
        drawing.text((24.0, base - 18.0), "label", "start", name);
        drawing.text((24.0, base), "dim", "start", meaning);
        let mut quota = Quota::new(Unit::Minute, 10);
        // Early requests wait, so that slots 6 s apart are used.
        quota.max_delay = (short == "LB").then_some(20 * SECOND);
        let algorithm = (entry(short).unwrap().build)(&quota).unwrap();
        let mut state = vec![0; algorithm.properties().words];
        let mut admitted = 0;
        for second in BURST {
            let now = Now { mono: second * SECOND, wall: second * SECOND };
            let mut new = state.clone();
            match algorithm.step(&state, now, 0, 1, &mut new) {
                Decision::Admit { wait } => {
                    admitted += 1;
                    state = new;
                    let leaves = (now.mono + wait).div_ceil(SECOND);
                    drawing.rect((x(leaves) - 1.5, base - 32.0), (3.0, 32.0), "yes");
                }
                Decision::Refuse { .. } => {
                    drawing.rect((x(second) - 1.0, base - 6.0), (2.0, 6.0), "no");
                }
            }
        }
        drawing.text((WIDTH - 24.0, base - 18.0), "dim", "end", &admitted.to_string());
    }
    drawing
}
