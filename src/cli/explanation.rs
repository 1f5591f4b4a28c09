//! The explanation of a decision as a table, with a row for each rule.

use std::io::{self, Write};

use diana_limiter::Why;
use diana_policy::time::{Micros, SECOND};
use serde_json::Value;

use crate::table::{self, Align};
use crate::text::plain;

#[cfg(test)]
mod tests;

/// Writes the table: the rules that decided first, then those that did not apply.
pub fn write(rules: &[Value], out: &mut dyn Write) -> io::Result<()> {
    let is_skipped = |rule: &&Value| !decided(rule);
    let rows = rules.iter().filter(|rule| decided(rule)).chain(rules.iter().filter(is_skipped));
    let rows: Vec<Vec<String>> = rows.map(row).collect();
    let head = ["rule", "decision", "remaining", "reason"];
    table::write_aligned(&head, &[Align::Left; 4], &rows, out)
}

fn decided(rule: &Value) -> bool {
    rule.get("remaining").is_some() || rule.get("limit").is_some()
}

fn row(rule: &Value) -> Vec<String> {
    if let Some(more) = rule.get("more").and_then(Value::as_u64) {
        return vec![format!("and {more} more"), String::new(), String::new(), String::new()];
    }
    let shadow = if text(rule, "mode") == "shadow" { ", in shadow" } else { "" };
    let limit = rule.get("limit").and_then(Value::as_u64);
    let left = rule.get("remaining").and_then(Value::as_u64);
    let left = left.map_or("?".into(), |left| left.to_string());
    vec![
        plain(text(rule, "rule")),
        format!("{}{shadow}", plain(text(rule, "decision"))),
        limit.map_or_else(String::new, |limit| format!("{left} of {limit}")),
        reason(rule),
    ]
}

fn text<'r>(rule: &'r Value, key: &str) -> &'r str {
    rule.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The reason of a rule's decision, or why it did not apply.
fn reason(rule: &Value) -> String {
    if !decided(rule) {
        let why = Why::text(text(rule, "why")).unwrap_or("another rule refuses");
        return why.replace("{by}", &plain(text(rule, "by")));
    }
    let wait = rule.get("wait");
    let ticks = wait.and_then(Value::as_f64).map(|seconds| (seconds * SECOND as f64).round());
    let again = match ticks {
        Some(ticks) => format!("retry after {}", duration(ticks as Micros)),
        None => "it can never be admitted".into(),
    };
    let decided = match text(rule, "decision") {
        "admitted" => None,
        "held" => Some(format!("for {}", duration(ticks.unwrap_or_default() as Micros))),
        "over" => Some("marks the request, since it exceeds the limit".into()),
        "banned" => Some(format!("for {} more", duration(ticks.unwrap_or_default() as Micros))),
        "unavailable" => Some(format!("Redis is unavailable, {again}")),
        _ => Some(again),
    };
    let counted = match text(rule, "scope") {
        "local" => "counted per worker",
        "gateway" => "counted per gateway",
        _ => "counted for the fleet",
    };
    let plan = rule.get("plan").and_then(Value::as_str);
    let plan = plan.map(|plan| format!("plan {}", plain(plan)));
    let parts: Vec<String> = decided.into_iter().chain(plan).chain([counted.into()]).collect();
    parts.join(", ")
}

/// A duration for people, rounded up: to a millisecond below a second, and then to a tenth of one.
pub fn duration(ticks: Micros) -> String {
    let unit = if ticks < SECOND { SECOND / 1_000 } else { SECOND / 10 };
    format!("{} s", ticks.div_ceil(unit) as f64 / (SECOND / unit) as f64)
}
