//! The format for people: tables.

use std::io::{self, Write};

use diana_policy::time::{Micros, spell};

use crate::replay::counts::DecisionCounts;
use crate::replay::refused::RefusedCallers;
use crate::replay::report::{Differences, ReplayReport, instant};
use crate::replay::side::Side;
use crate::table::{self, number, share};

/// The maximum number of listed callers.
const CALLERS: usize = 10;

/// Columns of a plot.
const COLUMNS: u64 = 60;

/// From low to high.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Writes the report.
pub fn write(report: &ReplayReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (gateways, workers) = report.fleet;
    let (first, last) = report.between;
    writeln!(
        out,
        "{} from {} to {}, on {} with {}",
        plural(requests(report.side.all()), "request"),
        instant(first),
        instant(last),
        plural(gateways.into(), "gateway"),
        plural(workers.into(), "worker")
    )?;
    side(report, report.side, &report.files.0, out)?;
    if let (Some((other, differences)), Some(file)) = (report.other, &report.files.1) {
        side(report, other, file, out)?;
        differ(report, differences, out)?;
    }
    let notes = report.notes();
    if !notes.is_empty() {
        writeln!(out)?;
    }
    notes.iter().try_for_each(|note| writeln!(out, "{note}"))
}

fn side(report: &ReplayReport<'_>, side: &Side, file: &str, out: &mut dyn Write) -> io::Result<()> {
    let all = side.all();
    let refused = all.refused + all.banned;
    writeln!(
        out,
        "\n{file}: {} admitted, {} of them after a delay; {} refused ({})",
        number(all.admitted),
        number(all.held),
        number(refused),
        share(refused, requests(all))
    )?;
    rules(side, out)?;
    waits(side, out)?;
    if refused > 0 {
        let count =
            |counts: &[DecisionCounts]| counts.first().map_or(0, |all| all.refused + all.banned);
        plot(report, side, "Refused", count, out)?;
        callers("Most refused", &side.refused, out)?;
    }
    if side.shadow_refused() > 0 {
        let count = |counts: &[DecisionCounts]| counts.iter().map(|it| it.shadow_refused).sum();
        plot(report, side, "Would be refused in shadow", count, out)?;
        callers("Most refused in shadow", &side.shadowed, out)?;
    }
    Ok(())
}

fn requests(all: DecisionCounts) -> u64 {
    all.admitted + all.refused + all.banned
}

/// A column: its head, and its count.
type Column = (&'static str, fn(&DecisionCounts) -> u64);

/// Columns that are always present, and optional ones for counts that are not all zero.
const ALWAYS: [Column; 3] = [
    ("checked", DecisionCounts::consulted),
    ("admitted", |it| it.admitted),
    ("refused", |it| it.refused),
];
const SOMETIMES: [Column; 8] = [
    ("held", |it| it.held),
    ("banned", |it| it.banned),
    ("bans", |it| it.bans),
    ("refused by others", |it| it.beside),
    ("would refuse", |it| it.shadow_refused),
    ("over", |it| it.over),
    ("would hold", |it| it.shadow_held),
    ("hot", |it| it.hot),
];

fn rules(side: &Side, out: &mut dyn Write) -> io::Result<()> {
    let used = |column: &&Column| side.by_rule().any(|(_, counts, _)| (column.1)(counts) > 0);
    let columns: Vec<&Column> = ALWAYS.iter().chain(SOMETIMES.iter().filter(used)).collect();
    let head: Vec<&str> = ["rule"].into_iter().chain(columns.iter().map(|it| it.0)).collect();
    let row = |(name, counts): (&str, &DecisionCounts)| {
        let cells = columns.iter().map(|column| number((column.1)(counts)));
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> =
        side.by_rule().map(|(name, counts, _)| row((name, counts))).collect();
    writeln!(out)?;
    table::write(&head, &rows, out)
}

fn waits(side: &Side, out: &mut dyn Write) -> io::Result<()> {
    let held = side.by_rule().filter(|(_, _, waits)| !waits.is_empty());
    let rows: Vec<Vec<String>> = held
        .map(|(name, _, waits)| {
            let at = |quantile: f64| wait(waits.value_at_quantile(quantile));
            vec![name.into(), number(waits.len()), at(0.5), at(0.95), at(0.99), wait(waits.max())]
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    table::write(
        &["held by", "requests", "50 % within", "95 % within", "99 % within", "longest"],
        &rows,
        out,
    )
}

/// A wait to the millisecond.
fn wait(ticks: Micros) -> String {
    let milliseconds = ticks.div_ceil(1000);
    format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}

fn callers(title: &str, refused: &RefusedCallers, out: &mut dyn Write) -> io::Result<()> {
    let most = refused.most(CALLERS);
    let rows: Vec<Vec<String>> = most
        .iter()
        .map(|it| {
            let between = [it.between.0, it.between.1].map(instant);
            let [first, last] = between;
            vec![it.caller.clone(), it.rule.to_string(), number(it.times), first, last]
        })
        .collect();
    writeln!(out, "\n{title}, of {}:", plural(refused.count() as u64, "caller"))?;
    table::write(&["caller", "rule", "refusals", "first", "last"], &rows, out)
}

/// Plots a count of each step over time.
fn plot(
    report: &ReplayReport<'_>,
    side: &Side,
    title: &str,
    count: fn(&[DecisionCounts]) -> u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (first, last) = report.between;
    let begin = first - first % side.series.length();
    // Each column consists of whole steps, as few as necessary to fit the line.
    let steps = (last - begin) / side.series.length() / COLUMNS + 1;
    let width = steps * side.series.length();
    let mut columns = vec![0; ((last - begin) / width + 1) as usize];
    for (at, counts) in side.series.steps() {
        let column = columns.get_mut((at.saturating_sub(begin) / width) as usize);
        column.into_iter().for_each(|sum| *sum += count(counts));
    }
    let most = columns.iter().copied().max().unwrap_or(0).max(1);
    let bar = |count: &u64| match count {
        0 => ' ',
        count => {
            BARS.get((count * 8).div_ceil(most).saturating_sub(1) as usize).copied().unwrap_or(' ')
        }
    };
    let line: String = columns.iter().map(bar).collect();
    writeln!(out, "\n{title} per {}, at most {}:", spell(width), number(most))?;
    writeln!(out, "{}", line.trim_end())
}

fn differ(
    report: &ReplayReport<'_>,
    differences: &Differences,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Differences { neither, both, own, other } = *differences;
    let (own_file, other_file) = (&report.files.0, report.files.1.as_deref().unwrap_or_default());
    let row = |text: String, count: u64| {
        vec![text, number(count), share(count, neither + both + own + other)]
    };
    let rows = [
        row("neither".into(), neither),
        row("both".into(), both),
        row(format!("{own_file} only"), own),
        row(format!("{other_file} only"), other),
    ];
    writeln!(out)?;
    table::write(&["refused by", "requests", ""], &rows, out)
}

fn plural(count: u64, one: &str) -> String {
    format!("{} {one}{}", number(count), if count == 1 { "" } else { "s" })
}
