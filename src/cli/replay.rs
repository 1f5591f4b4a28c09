//! `diana replay`: what rules would have done with the requests of an access log.

mod counts;
mod decisions;
mod refused;
mod report;
mod series;
mod show;
mod side;

use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

use diana_replay::{FieldMapping, LogEntry};

use crate::arguments::{ReplayArguments, ReportFormat};
use crate::exit::Exit;
use crate::interrupt;
use crate::log::AccessLog;
use crate::rules;
use crate::text::plain;
use decisions::Decisions;
use report::{Differences, ReplayReport};
use side::Side;

/// Replays logs.
pub fn run(replay: &ReplayArguments, out: &mut dyn Write) -> io::Result<Exit> {
    match Replaying::new(replay) {
        Ok(replaying) => replaying.run(replay, out),
        Err((exit, why)) => {
            writeln!(io::stderr(), "diana: {why}")?;
            Ok(exit)
        }
    }
}

/// A log in replay.
struct Replaying {
    log: AccessLog,
    side: Side,
    /// The rules that are compared with these, and the differences.
    other: Option<(Side, Differences)>,
    decisions: Option<Decisions>,
    /// The times of the first and the latest request.
    between: Option<(u64, u64)>,
}

impl Replaying {
    fn new(replay: &ReplayArguments) -> Result<Replaying, (Exit, String)> {
        let unusable = |why: String| (Exit::Unusable, why);
        let side = |path: &Path| {
            let policy = rules::policy(path)?;
            Side::new(&policy, replay.gateways.into(), replay.workers.into()).map_err(unusable)
        };
        let own = side(&replay.file)?;
        let other = replay.against.as_deref().map(side).transpose()?;
        let decisions = replay.decisions.as_deref().map(Decisions::create).transpose();
        let mapping = FieldMapping::new(&replay.set).map_err(|why| unusable(plain(&why)))?;
        Ok(Replaying {
            log: AccessLog::open(&replay.logs, mapping).map_err(unusable)?,
            side: own,
            other: other.map(|side| (side, Differences::default())),
            decisions: decisions.map_err(unusable)?,
            between: None,
        })
    }

    fn run(mut self, replay: &ReplayArguments, out: &mut dyn Write) -> io::Result<Exit> {
        let is_interrupted = interrupt::watch();
        let ended = loop {
            if is_interrupted() {
                break Ok(());
            }
            match self.log.next() {
                Ok(Some(entry)) => self.request(entry)?,
                Ok(None) => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        self.log.clear();
        self.finish()?;
        if let Err(why) = ended {
            writeln!(io::stderr(), "diana: {why}")?;
            return Ok(Exit::Unusable);
        }
        let is_whole = !is_interrupted();
        let Replaying { log, side, other, between, .. } = self;
        let Some(between) = between else {
            log.seen.examples.iter().try_for_each(|bad| writeln!(io::stderr(), "diana: {bad}"))?;
            let mut broken = log.seen.broken.iter();
            broken.try_for_each(|(file, why)| writeln!(io::stderr(), "diana: {file}: {why}"))?;
            writeln!(io::stderr(), "diana: no line of the log is a request")?;
            return Ok(Exit::Unusable);
        };
        let other = other.as_ref().map(|(side, differences)| (side, differences));
        let names = (&*replay.file, replay.against.as_deref());
        let file = |path: &Path| plain(&path.to_string_lossy());
        let report = ReplayReport {
            files: (file(names.0), names.1.map(file)),
            side: &side,
            other,
            seen: &log.seen,
            between,
            fleet: (replay.gateways, replay.workers),
            is_whole,
        };
        match replay.format {
            ReportFormat::Text => show::text::write(&report, out)?,
            ReportFormat::Json => show::json::write(&report, out)?,
        }
        if let Some(path) = &replay.html
            && let Err(error) = std::fs::write(path, show::html::page(&report)?)
        {
            writeln!(io::stderr(), "diana: {}: {error}", file(path))?;
            return Ok(Exit::Unusable);
        }
        Ok(match (is_whole, log.seen.broken.is_empty()) {
            (false, _) => Exit::Interrupted,
            (true, false) => Exit::Unusable,
            (true, true) => Exit::Fine,
        })
    }

    fn request(&mut self, entry: Rc<LogEntry>) -> io::Result<()> {
        self.between = Some((self.between.map_or(entry.at, |(first, _)| first), entry.at));
        let decision = self.side.request(&entry);
        if let Some(decisions) = &mut self.decisions {
            decisions.write(&entry, &decision)?;
        }
        if let Some((other, differences)) = &mut self.other {
            differences.add(decision.is_refused(), other.request(&entry).is_refused());
        }
        self.log.recycle(entry);
        Ok(())
    }

    /// Handles the end of the log.
    fn finish(&mut self) -> io::Result<()> {
        self.side.flush();
        if let Some((other, _)) = &mut self.other {
            other.flush();
        }
        self.decisions.as_mut().map_or(Ok(()), Decisions::flush)
    }
}
