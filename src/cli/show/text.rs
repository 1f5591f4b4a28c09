//! Text for people: the lines of a finding with marks under them.

use std::env;
use std::io::{self, IsTerminal, Write};

use annotate_snippets::{AnnotationKind, Element, Group, Level as Title, Renderer, Snippet};
use clap::ColorChoice;

use crate::finding::{Finding, FindingLevel, Findings};
use crate::text::plain;

/// Number of rules in the output of one piece of advice.
const SHOWN: usize = 5;

/// Writes all findings and their number.
pub fn write(findings: &Findings, colour: ColorChoice, out: &mut dyn Write) -> io::Result<()> {
    let is_colourful = match colour {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none(),
    };
    let renderer = if is_colourful { Renderer::styled() } else { Renderer::plain() };
    for finding in &findings.list {
        writeln!(out, "{}\n", renderer.render(&[group(finding)]))?;
    }
    for (name, why) in &findings.unusable {
        writeln!(out, "{name}: {}\n", plain(why))?;
    }
    let count = |level| findings.count(level);
    let problems = count(FindingLevel::Problem);
    let advice = count(FindingLevel::Advice);
    let accepted = match findings.accepted {
        0 => String::new(),
        accepted => format!(" ({accepted} more accepted)"),
    };
    let advice = format!("{advice} {} of advice{accepted}", plural(advice, "piece"));
    let mistakes = match count(FindingLevel::Mistake) {
        0 => String::new(),
        mistakes => format!(", {mistakes} {}", plural(mistakes, "mistake")),
    };
    let rules = format!("{} {}", findings.rules, plural(findings.rules, "rule"));
    let hidden = if findings.more > 0 {
        format!(", {} of them not shown", findings.more)
    } else {
        String::new()
    };
    match (problems, findings.unusable.len()) {
        (0, 0) => {
            writeln!(out, "{rules} without problems{mistakes}, {advice}")
        }
        (0, unusable) => writeln!(
            out,
            "{rules} without problems{mistakes}, {unusable} {} cannot be used",
            plural(unusable, "file")
        ),
        _ => {
            writeln!(out, "{problems} {}{hidden}{mistakes}, {advice}", plural(problems, "problem"))
        }
    }
}

fn plural(count: usize, one: &str) -> String {
    if count == 1 { one.into() } else { format!("{one}s") }
}

fn group(finding: &Finding) -> Group<'_> {
    let level = match finding.level {
        FindingLevel::Problem => Title::ERROR,
        FindingLevel::Mistake => Title::ERROR.with_name("mistake"),
        FindingLevel::Advice => Title::WARNING.with_name("advice"),
    };
    let title = level.primary_title(finding.message.as_str()).id(finding.id);
    let view = &finding.part.view;
    let shown = finding.spans.iter().take(SHOWN).enumerate();
    let mut marks = Vec::new();
    for (number, (begin, end)) in shown {
        let end = end.map(|end| finding.part.position(end));
        let Some(span) = view.range(finding.part.position(*begin), end) else { continue };
        let kind = if number == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let label = finding.rules.get(number).unwrap_or(&finding.path);
        marks.push(kind.span(span).label(label.as_str()));
    }
    let path = match view.within {
        Some(((line, column), _)) => format!("{} (in the text at {line}:{column})", view.file),
        None => view.file.clone(),
    };
    if marks.is_empty() {
        let origin = annotate_snippets::Origin::path(path);
        return title.element(Element::from(origin));
    }
    let group = title.element(Snippet::source(view.text.as_str()).path(path).annotations(marks));
    let more = finding.rules.len().saturating_sub(SHOWN);
    if more == 0 {
        return group;
    }
    let names = finding.rules.get(SHOWN..).unwrap_or_default().join(", ");
    group.element(Title::NOTE.message(format!("and {more} more: {names}")))
}
