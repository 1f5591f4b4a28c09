//! What a request and a fleet cost, from the tables of measurements.

use super::drawing::{Drawing, WIDTH};

const MEASURED: &str = include_str!("../../../../MEASURED.md");

/// Instructions that an empty dynamic module adds to a listener without a filter.
const EMPTY_MODULE: f64 = 4500.0;

/// A row of a chart: its name, and a number for each series.
type Row = (String, Vec<f64>);

/// Rules, as the tables of Diana and of `local_ratelimit` name them.
const RULES: [(&str, &str); 4] = [
    ("`all`", "one bucket for all"),
    ("by header", "by header"),
    ("`gateway`, by header, 10,000 callers in turn", "by header, 10,000 callers in turn"),
    ("by header, refused", "by header, refused"),
];

/// Instructions of a request, by rule and filter.
pub fn instructions() -> Drawing {
    let of = |head: &str, rule: &str| number(row(MEASURED, head, &[rule])[1]);
    let rows = RULES.map(|(rule, theirs)| {
        let wasm = of("rules (one, unless more are listed)", rule);
        let native = of("rules of the dynamic module", rule) + EMPTY_MODULE;
        (theirs.to_owned(), vec![wasm, native, of("`local_ratelimit` | instructions", theirs)])
    });
    bars(
        "Instructions of a request, beyond the 86,100 of Envoy without a filter",
        &["wasm", "dynamic module", "local_ratelimit"],
        &rows,
    )
}

/// Calls to Redis of fleets that share one limit.
pub fn calls() -> Drawing {
    let rows =
        [("W", "window"), ("SW", "sliding window"), ("TB", "token bucket")].map(|(short, name)| {
            let short = format!("`{short}`");
            let calls = ["1", "10", "100"]
                .map(|gateways| number(row(MEASURED, "algo", &[&short, "all alike", gateways])[4]));
            (name.to_owned(), calls.to_vec())
        });
    bars(
        "Calls to Redis a second: one limit of 10,000 a second, and 20,000 requests a second",
        &["1 gateway", "10 gateways", "100 gateways"],
        &rows,
    )
}

/// The cells of the first row that begins with `cells`, in the first table with this head.
fn row<'a>(page: &'a str, head: &str, cells: &[&str]) -> Vec<&'a str> {
    let (_, table) = page.split_once(&format!("\n| {head} |")).unwrap();
    let begin = format!("| {} |", cells.join(" | "));
    let row = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let row = row.into_iter().find(|line| line.starts_with(&begin)).unwrap();
    row.trim_matches('|').split('|').map(str::trim).collect()
}

fn number(text: &str) -> f64 {
    text.replace(',', "").parse().unwrap()
}

/// Bars of `series` for each row.
fn bars(title: &'static str, series: &[&str], rows: &[Row]) -> Drawing {
    let height = 70.0 + rows.len() as f64 * (18.0 * series.len() as f64 + 14.0);
    let mut drawing = Drawing::new(title, height);
    drawing.text((24.0, 30.0), "label", "start", title);
    let most = rows.iter().flat_map(|(_, numbers)| numbers).copied().fold(0.0, f64::max);
    let mut top = 54.0;
    for (name, numbers) in rows {
        drawing.text((24.0, top + 13.0), "label", "start", name);
        for (series, number) in series.iter().zip(numbers) {
            drawing.text((330.0, top + 13.0), "dim", "end", series);
            let width = (WIDTH - 430.0) * number / most;
            drawing.rect((340.0, top + 2.0), (width.max(1.0), 14.0), "yes");
            drawing.text((348.0 + width, top + 13.0), "", "start", &spelled(*number));
            top += 18.0;
        }
        top += 14.0;
    }
    drawing
}

/// A whole number with commas.
fn spelled(number: f64) -> String {
    let whole = number.round() as u64;
    if whole < 1000 { whole.to_string() } else { format!("{},{:03}", whole / 1000, whole % 1000) }
}
