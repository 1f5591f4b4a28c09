//! Where a rule of each scope counts, and what two gateways of two workers admit together.

use super::drawing::Drawing;

const RPU: usize = 10;
const GATEWAYS: usize = 2;
const WORKERS: usize = 2;

/// A scope, where it counts, and how many counters the fleet has.
const SCOPES: [(&str, &str, usize); 3] = [
    ("local", "a counter in each worker", GATEWAYS * WORKERS),
    ("gateway", "a counter in each gateway", GATEWAYS),
    ("global", "a counter in Redis", 1),
];

pub fn draw() -> Drawing {
    let mut drawing =
        Drawing::new("Scopes: the counters of a rule in two gateways of two workers each", 330.0);
    for (number, (scope, place, counters)) in SCOPES.into_iter().enumerate() {
        let left = 24.0 + 276.0 * number as f64;
        drawing.text((left, 34.0), "label", "start", &format!("scope: {scope}"));
        drawing.text((left, 54.0), "dim", "start", place);
        for gateway in 0..GATEWAYS {
            let x = left + 132.0 * gateway as f64;
            let is_here = scope == "gateway";
            drawing.rect((x, 70.0), (120.0, 110.0), "box");
            drawing.text((x + 60.0, 90.0), "", "middle", "gateway");
            for worker in 0..WORKERS {
                let x = x + 8.0 + 54.0 * worker as f64;
                drawing.rect((x, 100.0), (50.0, 36.0), "page");
                drawing.text((x + 25.0, 114.0), "dim", "middle", "worker");
                if scope == "local" {
                    drawing.text((x + 25.0, 130.0), "yes", "middle", &RPU.to_string());
                }
            }
            if is_here {
                drawing.text((x + 60.0, 162.0), "yes", "middle", &format!("counts to {RPU}"));
            }
        }
        if scope == "global" {
            drawing.rect((left + 66.0, 214.0), (120.0, 44.0), "box");
            drawing.text((left + 126.0, 232.0), "", "middle", "Redis");
            drawing.text((left + 126.0, 250.0), "yes", "middle", &format!("counts to {RPU}"));
            for gateway in 0..GATEWAYS {
                let x = left + 60.0 + 132.0 * gateway as f64;
                drawing.line((x, 180.0), (left + 126.0, 214.0), "line");
            }
        }
        drawing.text(
            (left, 300.0),
            "label",
            "start",
            &format!("rpu: {RPU} admits {}", RPU * counters),
        );
    }
    drawing
}
