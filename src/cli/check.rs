//! `diana check`: reports problems in rules, and settings that are probably unintended.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ColorChoice;
use diana_config::difference::Difference;
use diana_config::problem::Problem;
use diana_config::resource::KIND;
use diana_config::{Advice, ConfigSource, Reader, outline};
use diana_policy::remote::Own;
use diana_policy::tree::Tree;
use diana_policy::{ModuleKind, Policy};

use crate::advice;
use crate::arguments::{CheckArguments, CheckedHost, Format};
use crate::exit::Exit;
use crate::finding::{Finding, FindingLevel, Findings};
use crate::input::{self, Input};
use crate::manifest;
use crate::manifest::attached::Objects;
use crate::show::{github, json, sarif, text};
use crate::view::FilePart;

/// Known facts about the gateways that read the rules.
#[derive(Clone, Copy)]
struct KnownGateways<'p> {
    /// The form of the module, if the user named it.
    host: Option<CheckedHost>,
    /// Whether a manifest has several replicas.
    has_replicas: bool,
    /// The document of the platform, for policies.
    platform: Option<&'p Tree>,
}

/// Checks the files and reports the findings.
pub fn run(check: &CheckArguments, colour: ColorChoice, out: &mut dyn Write) -> io::Result<Exit> {
    let mut findings = Findings::default();
    // Advice about rules may depend on objects in other files.
    let mut objects = Objects::default();
    let read = |path: &PathBuf| {
        let inputs: Vec<_> = input::read(path).into_iter().map(readable).collect();
        let before = objects.policies.len() + objects.routes.len();
        inputs.iter().flatten().for_each(|(file, _)| objects.collect(file));
        let has_objects = before < objects.policies.len() + objects.routes.len();
        (inputs, has_objects)
    };
    let inputs: Vec<_> = check.files.iter().map(read).collect();
    let platform = platform(inputs.iter().flat_map(|(inputs, _)| inputs).flatten());
    let context = KnownGateways {
        host: check.host,
        has_replicas: objects.has_replicas,
        platform: platform.as_ref(),
    };
    for (path, (inputs, has_objects)) in check.files.iter().zip(inputs) {
        let count = |findings: &Findings| (findings.places, findings.unusable.len());
        let before = count(&findings);
        for input in inputs {
            match input {
                Ok((file, is_found)) => check_file(&file, is_found, context, &mut findings),
                Err(unusable) => findings.unusable.push(unusable),
            }
        }
        if !has_objects && before == count(&findings) {
            let name = crate::text::plain(&path.to_string_lossy());
            let why = "no rules found; expected `limits`, or `Url` and `rules`, or a manifest that contains them";
            findings.unusable.push((name, why.into()));
        }
    }
    findings.list.extend(advice::overrides::of(&objects));
    findings.accept(&check.accept);
    match check.format {
        Format::Text => text::write(&findings, colour, out)?,
        Format::Json => json::write(&findings, out)?,
        Format::Sarif => sarif::write(&findings, out)?,
        Format::Github => github::write(&findings, out)?,
    }
    let fails = [FindingLevel::Problem, FindingLevel::Mistake];
    let fails = fails.into_iter().any(|level| findings.count(level) > 0);
    Ok(match (fails, findings.unusable.is_empty()) {
        (_, false) => Exit::Unusable,
        (true, true) => Exit::Problems,
        (false, true) => Exit::Fine,
    })
}

/// The first document in files with a LimitPolicy that is none itself.
fn platform<'f>(files: impl Iterator<Item = &'f (FilePart, bool)> + Clone) -> Option<Tree> {
    let text = |(file, _): &'f (FilePart, bool)| &file.view.text;
    if !files.clone().any(|file| text(file).contains(KIND)) {
        return None;
    }
    let mut found = files.flat_map(|file| manifest::find(&file.0, text(file), !file.1, None));
    found.find(|found| !found.is_policy)?.source.ok()?.documents().first().cloned()
}

/// A file, and whether it was found in a folder. Or its name, and why it is unusable.
fn readable(input: Input) -> Result<(FilePart, bool), (String, String)> {
    let Input { name, text, is_found } = input;
    match text {
        // The reader skips a byte order mark, so columns do not count it.
        Ok(text) => {
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            Ok((FilePart::file(name, text.into()), is_found))
        }
        Err(why) => Err((name, why)),
    }
}

fn check_file(
    file: &FilePart,
    is_found: bool,
    context: KnownGateways<'_>,
    findings: &mut Findings,
) {
    let text = &file.view.text;
    let found = manifest::find(file, text, !is_found, context.platform);
    let advice = advice::of_size(text.len()).filter(|_| !found.is_empty());
    findings.list.extend(advice.map(|advice| Finding {
        id: advice.id,
        level: FindingLevel::Advice,
        part: file.clone(),
        spans: Vec::new(),
        path: String::new(),
        rules: advice.rules,
        message: advice.message,
    }));
    findings.list.extend(advice::roots::of(&found).into_iter().map(|(index, level, message)| {
        let found = found.get(index);
        let span = found.and_then(|found| found.source.as_ref().ok()?.span_of(&[0]));
        Finding {
            id: "shared-namespace",
            level,
            part: found.map_or_else(|| file.clone(), |found| found.part.clone()),
            spans: span.map(|(begin, _)| (begin, None)).into_iter().collect(),
            path: String::new(),
            rules: Vec::new(),
            message,
        }
    }));
    for found in found {
        findings.places += 1;
        findings.list.extend(found.differences.into_iter().map(|one| different(&found.part, one)));
        match found.source {
            Ok(source) => {
                let module = context.host.map_or(found.module, Into::into);
                let reader = |module| match found.is_remote {
                    true => Reader::remote(Own { module, ..Own::default() }),
                    false => Reader::new(module),
                };
                check_rules((&found.part, &source), module, &reader, context, findings);
            }
            Err(problems) => {
                findings.list.extend(problems.into_iter().map(|one| problem(&found.part, one)));
            }
        }
    }
}

fn check_rules(
    (part, source): (&FilePart, &ConfigSource),
    module: ModuleKind,
    reader: &dyn Fn(ModuleKind) -> Reader,
    KnownGateways { host, has_replicas, .. }: KnownGateways<'_>,
    findings: &mut Findings,
) {
    match reader(module).check(source) {
        Ok((policy, advice)) => {
            findings.rules += policy.limits.iter().map(|limit| limit.rules.len()).sum::<usize>();
            // A single gateway has no load balancer that tries another one.
            let concerns = |advice: &Advice| has_replicas || advice.id != "server-error";
            let advice = advice.into_iter().filter(concerns);
            let walks = outline::rules(source);
            let finding = |advice| advised(part, source, &policy, &walks, advice);
            findings.list.extend(advice.map(finding));
            if let (None, ModuleKind::Wasm, Err(problems)) =
                (host, module, reader(ModuleKind::Native).read(source))
            {
                let list = problems.list().iter().cloned();
                findings.list.extend(list.map(|one| only_native(part, one)));
            }
        }
        Err(problems) => {
            findings.more += problems.more();
            let list = problems.list().iter().cloned();
            findings.list.extend(list.map(|one| problem(part, one)));
        }
    }
}

/// A problem that only the native module has.
fn only_native(part: &FilePart, found: Problem) -> Finding {
    Finding { id: "native-module", level: FindingLevel::Advice, ..problem(part, found) }
}

fn problem(part: &FilePart, problem: Problem) -> Finding {
    Finding {
        id: problem.id,
        level: FindingLevel::Problem,
        part: part.clone(),
        spans: problem.position.map(|begin| (begin, problem.end)).into_iter().collect(),
        path: problem.path,
        rules: Vec::new(),
        message: problem.message,
    }
}

/// A key or a value that the reader of a manifest does not read as it is written.
fn different(part: &FilePart, difference: Difference) -> Finding {
    let Difference { span, path, written, read } = difference;
    Finding {
        id: "yaml-1.1",
        level: FindingLevel::Mistake,
        part: part.clone(),
        spans: span.map(|(begin, end)| (begin, Some(end))).into_iter().collect(),
        path,
        rules: Vec::new(),
        message: format!(
            "{written} reaches the filter as {read}, since manifests are read as YAML 1.1; write it in quotes for {written}, \
             or write {read}"
        ),
    }
}

/// Advice with the positions of its rules.
fn advised(
    part: &FilePart,
    source: &ConfigSource,
    policy: &Policy,
    walks: &[Vec<usize>],
    advice: Advice,
) -> Finding {
    let rules = policy.rules();
    let named = rules.zip(walks).filter(|(rule, _)| advice.rules.contains(&rule.name));
    let mut spans: Vec<_> =
        named.filter_map(|(rule, walk)| Some((&rule.name, source.span_of(walk)?))).collect();
    // In the order of the advice: the first rule is the likely one to change.
    spans.sort_by_key(|(name, _)| advice.rules.iter().position(|rule| rule == *name));
    Finding {
        id: advice.id,
        level: if advice.is_mistake { FindingLevel::Mistake } else { FindingLevel::Advice },
        part: part.clone(),
        spans: spans.into_iter().map(|(_, (begin, end))| (begin, Some(end))).collect(),
        path: String::new(),
        rules: advice.rules,
        message: advice.message,
    }
}
