//! The report of an import.

use std::io::{self, Write};

use diana_import::{
    Counting, ImportResult, ImportedEntry, ModelComparison, Note, Notes, Origin, RuleReplay,
};
use diana_replay::LogEntry;
use serde_json::{Value, json};

use crate::text::plain;

/// Number of remarks of a list in the text.
const SHOWN: usize = 100;

/// Writes the report for people.
pub fn text(result: &ImportResult, counting: Counting, out: &mut dyn Write) -> io::Result<()> {
    let rules: usize = result.entries.iter().map(|entry| entry.rules.len()).sum();
    let count = |number: usize, one: &str, many: &str| {
        format!("{number} {}", if number == 1 { one } else { many })
    };
    match result.formats.as_slice() {
        [] => writeln!(out, "No file has limits in a known format.")?,
        formats => writeln!(
            out,
            "Imported {} in {} from {}.",
            count(rules, "rule", "rules"),
            count(result.entries.len(), "entry", "entries"),
            formats.join(", ")
        )?,
    }
    if rules > 0 {
        let mut all = result.entries.iter().flat_map(|entry| &entry.rules);
        let are_global = all.all(|rule| rule.keys.iter().any(|(key, _)| *key == "scope"));
        match counting {
            Counting::PerGateway if are_global => writeln!(
                out,
                "All gateways count together, as all processes of the original: add `redis` to the document."
            )?,
            Counting::PerGateway => writeln!(
                out,
                "Each gateway counts apart, as each process of the original: N of them admit N times a limit. `--fleet N` writes rules that \
                 count in all gateways together, with the same total."
            )?,
            Counting::Fleet(processes) => writeln!(
                out,
                "All gateways count together, with the total that {} of the original admitted: add `redis` to the document. Of a caller whose \
                 requests all came to one of them, the original admitted the limit of one.",
                count(processes as usize, "process", "processes")
            )?,
        }
    }
    comparisons(result, counting, out)?;
    notes("Not in these rules", &result.gaps, out)?;
    notes("Never had an effect", &result.inert, out)
}

/// Number of rules and objects with examples in the text.
const SHOWN_EXAMPLES: usize = 10;

/// Writes how the rules compare with the original.
fn comparisons(result: &ImportResult, counting: Counting, out: &mut dyn Write) -> io::Result<()> {
    let rules = result.entries.iter().flat_map(|entry| &entry.rules);
    let rules = rules.filter_map(|rule| Some((&rule.name, rule.comparison.as_ref()?)));
    let objects = result.objects.iter().map(|it| (&it.title, &it.comparison));
    let all: Vec<_> = rules.chain(objects).collect();
    if all.is_empty() {
        return Ok(());
    }
    let is_equal =
        |it: &ModelComparison| it.stricter.is_none() && it.looser.is_none() && it.is_reached;
    let (equal, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, it)| is_equal(it));
    match counting {
        Counting::Fleet(processes @ 2..) => writeln!(
            out,
            "\nCompared with {processes} models of the original, which receive the requests of a caller in turn:"
        )?,
        _ => writeln!(out, "\nCompared with a model of the original:")?,
    }
    match equal.as_slice() {
        [] => {}
        [(name, comparison)] => writeln!(out, "{}: {}", plain(name), comparison.summary())?,
        equal => writeln!(out, "{} rules and objects are equal", equal.len())?,
    }
    for (name, comparison) in others.iter().take(SHOWN_EXAMPLES) {
        writeln!(out, "{}: {}", plain(name), comparison.summary())?;
        for example in comparison.examples() {
            writeln!(out, "    {example}")?;
        }
    }
    match others.len().saturating_sub(SHOWN_EXAMPLES) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more; `--format json` has all"),
    }
}

/// Writes how the rules compare with the original on the requests of a log.
pub fn replayed(rules: &[RuleReplay<LogEntry>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nCompared by the access log:")?;
    for rule in rules {
        writeln!(out, "{}: {}", plain(&rule.name), rule.summary())?;
        if let Some(first) = &rule.first {
            writeln!(out, "    the first in line {} of the log", first.number)?;
        }
    }
    Ok(())
}

fn notes(title: &str, notes: &Notes, out: &mut dyn Write) -> io::Result<()> {
    if notes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}:")?;
    for Note { origin, about, reason } in notes.list().iter().take(SHOWN) {
        writeln!(out, "{origin} {}\n    {}", plain(about), plain(reason))?;
    }
    match notes.list().len().saturating_sub(SHOWN) + notes.more() {
        0 => Ok(()),
        more => writeln!(out, "and {more} more; `--format json` has up to {}", Notes::MOST),
    }
}

/// Writes the document and the report for programs.
pub fn json(result: &ImportResult, out: &mut dyn Write) -> io::Result<()> {
    let note = |note: &Note| {
        let Note { origin, about, reason } = note;
        json!({"file": &*origin.file, "line": origin.line, "about": about, "reason": reason})
    };
    let list = |notes: &Notes| notes.list().iter().map(note).collect::<Vec<_>>();
    let value = json!({
        "formats": result.formats,
        "document": result.document,
        "entries": result.entries.iter().map(entry).collect::<Vec<_>>(),
        "gaps": list(&result.gaps),
        "gaps_more": result.gaps.more(),
        "inert": list(&result.inert),
        "inert_more": result.inert.more(),
        "objects": result.objects.iter().map(|object| {
            json!({"title": object.title, "comparison": comparison(&object.comparison)})
        }).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn entry(entry: &ImportedEntry) -> Value {
    let origin = |origin: &Origin| json!({"file": &*origin.file, "line": origin.line});
    let rules = entry.rules.iter().map(|rule| {
        let differences = &rule.differences;
        json!({
            "name": rule.name,
            "origin": origin(&rule.origin),
            "refused": differences.refused,
            "belongs": differences.belongs,
            "keyless": differences.keyless,
            "comparison": rule.comparison.as_ref().map(comparison),
        })
    });
    json!({"title": entry.title, "origin": origin(&entry.origin), "rules": rules.collect::<Vec<_>>()})
}

fn comparison(comparison: &ModelComparison) -> Value {
    let ModelComparison { requests, stricter, looser, is_rounding, is_reached } = comparison;
    json!({
        "requests": requests,
        "stricter": stricter.is_some(),
        "looser": looser.is_some(),
        "rounding": is_rounding,
        "reached": is_reached,
        "examples": comparison.examples(),
    })
}
