//! `diana suggest`: suggests a limit from the real traffic in an access log.

mod peaks;
mod share;
mod show;

use std::io::{self, Write};

use diana_config::Reader;
use diana_policy::Policy;
use diana_policy::key::Seed;
use diana_policy::path::Path;
use diana_policy::port::{Pseudo, Request};
use diana_request::identity::caller::{Caller, Callers, CountScope};
use diana_request::identity::sources::Sources;
use diana_request::matching::PathIndex;

use crate::arguments::{LimitUnit, ReportFormat, Suggest};
use crate::exit::Exit;
use crate::interrupt;
use crate::log::{AccessLog, LogSummary};
use crate::text::plain;
use diana_replay::{FieldMapping, LogEntry};
use peaks::{Peaks, SPANS};
use share::RefusedShare;

/// A fixed seed, so that each run gives callers the same keys.
const SEED: Seed = Seed { k0: 0, k1: 0 };

/// The suggested rule, as YAML.
struct SuggestedRule<'s> {
    suggest: &'s Suggest,
    /// The header of an actor that is not a default one.
    header: Option<&'s str>,
}

/// The content of a report.
struct Observation<'s> {
    rule: SuggestedRule<'s>,
    share: RefusedShare,
    peaks: Peaks,
    /// Requests under the path, and those without the actor.
    requests: u64,
    absent: u64,
    seen: LogSummary,
    is_whole: bool,
}

/// Reads logs and suggests a rule.
pub fn run(suggest: &Suggest, out: &mut dyn Write) -> io::Result<Exit> {
    let observation = match read(suggest) {
        Ok(observation) => observation,
        Err(why) => {
            writeln!(io::stderr(), "diana: {why}")?;
            return Ok(Exit::Unusable);
        }
    };
    match suggest.format {
        ReportFormat::Text => show::text(&observation, out)?,
        ReportFormat::Json => show::json(&observation, out)?,
    }
    Ok(match (observation.is_whole, observation.seen.broken.is_empty()) {
        (false, _) => Exit::Interrupted,
        (true, false) => Exit::Unusable,
        (true, true) => Exit::Fine,
    })
}

fn read(suggest: &Suggest) -> Result<Observation<'_>, String> {
    let rule = SuggestedRule { suggest, header: suggest.actor.strip_prefix("header:") };
    let share = RefusedShare::parse(&suggest.refuse)?;
    let policy = rule.policy(1)?;
    let mut log = AccessLog::open(
        &suggest.logs,
        FieldMapping::new(&suggest.set).map_err(|why| plain(&why))?,
    )?;
    let mut counter = Counter::new(&policy)?;
    let is_interrupted = interrupt::watch();
    while !is_interrupted()
        && let Some(entry) = log.next()?
    {
        counter.count(&entry);
        log.recycle(entry);
    }
    log.clear();
    let Counter { peaks, requests, absent, .. } = counter;
    if peaks.count() == 0 {
        return Err(nothing(suggest, &log.seen, requests));
    }
    let is_whole = !is_interrupted();
    Ok(Observation { rule, share, peaks, requests, absent, seen: log.seen, is_whole })
}

fn nothing(suggest: &Suggest, seen: &LogSummary, requests: u64) -> String {
    if seen.lines == seen.bad {
        let first = seen.examples.first().map(|bad| format!("; {bad}")).unwrap_or_default();
        let broken = seen.broken.first().map(|(file, why)| format!("; {file}: {why}"));
        return format!("no line of the log is a request{first}{}", broken.unwrap_or_default());
    }
    let actor = crate::text::plain(&suggest.actor);
    match requests {
        0 => format!("the log has no request to {}", crate::text::plain(&suggest.url)),
        _ => format!(
            "no request of the log has a value for `{actor}`; name its field with `--set header:NAME=FIELD`"
        ),
    }
}

impl SuggestedRule<'_> {
    /// The rule with a limit, as YAML.
    fn yaml(&self, limit: u64) -> String {
        let (actor, actors) = match self.header {
            Some(header) => ("caller", format!("actors: {{caller: [{{header: {header:?}}}]}}\n")),
            None => (self.suggest.actor.as_str(), String::new()),
        };
        let (url, unit) = (&self.suggest.url, self.unit());
        format!(
            "{actors}limits:\n  - Url: {url:?}\n    rules:\n      - {{actor: {actor:?}, unit: {unit}, rpu: {limit}, algo: window}}\n"
        )
    }

    fn unit(&self) -> &'static str {
        SPANS.get(self.span()).map_or("minute", |(name, _)| name)
    }

    /// The index of the unit in `SPANS`.
    fn span(&self) -> usize {
        match self.suggest.unit {
            LimitUnit::Second => 1,
            LimitUnit::Minute => 2,
            LimitUnit::Hour => 3,
            LimitUnit::Day => 4,
        }
    }

    fn policy(&self, limit: u64) -> Result<Policy, String> {
        Reader::default()
            .policy(self.yaml(limit).as_bytes())
            .map_err(|problems| problems.to_string())
    }
}

/// Counts the requests of callers, distinguished as by the rules.
struct Counter {
    paths: PathIndex,
    callers: Callers,
    actor: Option<usize>,
    hits: Vec<usize>,
    peaks: Peaks,
    requests: u64,
    absent: u64,
}

impl Counter {
    fn new(policy: &Policy) -> Result<Counter, String> {
        let sources = policy.actors.iter().map(Sources::new).collect::<Result<Vec<_>, _>>();
        let sources = sources.map_err(|_| "no such source")?;
        let mut callers = Callers::new(sources, SEED, false);
        let rule = policy.limits.first().and_then(|limit| limit.rules.first());
        let actor = rule.and_then(|rule| callers.register(&rule.actor, CountScope::Here));
        Ok(Counter {
            paths: PathIndex::new(policy.limits.iter().map(|it| (it.urls.as_slice(), &it.matcher))),
            callers,
            actor,
            hits: Vec::new(),
            peaks: Peaks::default(),
            requests: 0,
            absent: 0,
        })
    }

    fn count(&mut self, entry: &LogEntry) {
        let path = entry.pseudo(Pseudo::Path);
        self.paths.covering(Path::of(path.as_deref().unwrap_or(b"/")), None, &mut self.hits);
        if self.hits.is_empty() {
            return;
        }
        self.requests += 1;
        self.callers.begin();
        match self.callers.of(self.actor, entry) {
            Caller::Known { key, .. } => self.peaks.add(key.hash, entry.at),
            Caller::Shared(_) | Caller::Absent => self.absent += 1,
        }
    }
}
