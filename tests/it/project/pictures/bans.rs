//! The length of a ban over relapses, and after quiet hours.

use diana_policy::ban::{Ban, WORDS};
use diana_policy::time::{DAY, SECOND};

use super::drawing::Drawing;

const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const BAN: Ban = Ban {
    after: 100,
    within: 10 * SECOND,
    period: 5 * MINUTE,
    max: DAY,
    halve_after: HOUR,
    is_shadow: false,
};
/// Relapses a minute after the end of a ban, then after three quiet hours, then a minute after.
const PAUSES: [u64; 14] = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 180, 1, 1];

pub fn draw() -> Drawing {
    let mut drawing = Drawing::new(
        "The length of a ban doubles with each relapse up to max, and halves in each quiet hour",
        320.0,
    );
    drawing.text(
        (24.0, 30.0),
        "label",
        "start",
        "ban: {after: 100, within: 10s, for: 5m, max: 24h, halve_after: 1h}",
    );
    drawing.text(
        (24.0, 50.0),
        "dim",
        "start",
        "The client begins again a minute after each ban, but once after three quiet hours. The scale is logarithmic",
    );
    let mut state = vec![0; WORDS];
    let mut now = HOUR;
    for (number, pause) in PAUSES.into_iter().enumerate() {
        now += pause * MINUTE;
        assert!(BAN.count(&mut state, now, BAN.after));
        let length = BAN.left(Ban::until(&state), now);
        // A logarithmic scale: 5 minutes to a day.
        let height = 20.0 + 22.0 * (length as f64 / BAN.period as f64).log2();
        let left = 40.0 + 57.0 * number as f64;
        if pause > 1 {
            drawing.text((left - 6.0, 292.0), "dim", "middle", "3 h quiet");
        }
        let said = match length {
            ..HOUR => format!("{} min", length / MINUTE),
            _ => format!("{:.1} h", length as f64 / HOUR as f64).replace(".0 ", " "),
        };
        drawing.rect((left, 270.0 - height), (36.0, height), "no");
        drawing.text((left + 18.0, 264.0 - height), "", "middle", &said);
        now += length;
    }
    drawing.line((24.0, 270.0), (836.0, 270.0), "line");
    drawing.text(
        (24.0, 310.0),
        "dim",
        "start",
        "each bar is twice as long as the one before; the height is its logarithm",
    );
    drawing
}
