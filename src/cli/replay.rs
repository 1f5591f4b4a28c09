//! `diana replay`: what rules would have done with the requests of an access log.

mod counts;
mod decisions;
mod refused;
mod report;
mod series;
mod show;
mod side;

use std::io::{self, Write};
use std::mem::take;
use std::path::Path;
use std::rc::Rc;

use diana_player::Judged;
use hashbrown::HashMap;

use crate::arguments::{Replay, ReportFormat};
use crate::exit::Exit;
use crate::interrupt;
use crate::log::Log;
use crate::rules;
use crate::text::plain;
use decisions::Decisions;
use diana_log::{Entry, Mapping};
use report::{Differences, Report};
use side::Side;

/// Replays logs.
pub fn run(replay: &Replay, out: &mut dyn Write) -> io::Result<Exit> {
    match Replaying::new(replay) {
        Ok(replaying) => replaying.run(replay, out),
        Err((exit, why)) => {
            writeln!(io::stderr(), "diana: {why}")?;
            Ok(exit)
        }
    }
}

/// A log that is replayed.
struct Replaying {
    log: Log,
    side: Side,
    other: Option<Other>,
    decisions: Option<Decisions>,
    /// Requests that were decided, none between two requests.
    judged: Vec<Judged<Entry>>,
    /// When the first request came, and the last one.
    between: Option<(u64, u64)>,
}

/// The rules that others are compared with.
struct Other {
    side: Side,
    /// Whether each request was refused that only one side has decided about: whether it was this one, and what it decided.
    open: HashMap<u64, (bool, bool)>,
    differences: Differences,
}

impl Replaying {
    fn new(replay: &Replay) -> Result<Replaying, (Exit, String)> {
        let unusable = |why: String| (Exit::Unusable, why);
        let side = |path: &Path| {
            let source = rules::source(path)?;
            Side::new(&source, replay.gateways.into(), replay.workers.into()).map_err(unusable)
        };
        let own = side(&replay.file)?;
        let other = replay.against.as_deref().map(side).transpose()?;
        let decisions = replay.decisions.as_deref().map(Decisions::create).transpose();
        let mapping = Mapping::new(&replay.set).map_err(|why| unusable(plain(&why)))?;
        Ok(Replaying {
            log: Log::open(&replay.logs, mapping).map_err(unusable)?,
            side: own,
            other: other.map(|side| Other {
                side,
                open: HashMap::new(),
                differences: Differences::default(),
            }),
            decisions: decisions.map_err(unusable)?,
            judged: Vec::new(),
            between: None,
        })
    }

    fn run(mut self, replay: &Replay, out: &mut dyn Write) -> io::Result<Exit> {
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
            writeln!(io::stderr(), "diana: no line of the log tells of a request")?;
            return Ok(Exit::Unusable);
        };
        let other = other.as_ref().map(|other| (&other.side, &other.differences));
        let names = (&*replay.file, replay.against.as_deref());
        let file = |path: &Path| plain(&path.to_string_lossy());
        let report = Report {
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

    fn request(&mut self, entry: Rc<Entry>) -> io::Result<()> {
        self.between = Some((self.between.map_or(entry.at, |(first, _)| first), entry.at));
        self.each_side(|side, judged| side.request(&entry, judged))?;
        self.log.give_back(entry);
        Ok(())
    }

    /// The log has ended.
    fn finish(&mut self) -> io::Result<()> {
        self.each_side(Side::finish)?;
        self.decisions.iter_mut().try_for_each(Decisions::flush)
    }

    /// Has each side decide about requests.
    fn each_side(&mut self, decide: impl Fn(&mut Side, &mut Vec<Judged<Entry>>)) -> io::Result<()> {
        let mut judged = take(&mut self.judged);
        decide(&mut self.side, &mut judged);
        self.decided(&judged, true)?;
        if let Some(other) = &mut self.other {
            judged.clear();
            decide(&mut other.side, &mut judged);
            self.decided(&judged, false)?;
        }
        // Nothing is kept but the room for the next ones.
        judged.clear();
        self.judged = judged;
        Ok(())
    }

    /// Requests that one of both sides has decided about.
    fn decided(&mut self, judged: &[Judged<Entry>], is_own: bool) -> io::Result<()> {
        if let Some(decisions) = self.decisions.as_mut().filter(|_| is_own) {
            judged.iter().try_for_each(|judged| decisions.write(judged))?;
        }
        if let Some(other) = &mut self.other {
            judged.iter().for_each(|judged| other.compare(judged, is_own));
        }
        Ok(())
    }
}

impl Other {
    fn compare(&mut self, judged: &Judged<Entry>, is_own: bool) {
        let (number, is_refused) = (judged.arrival.number, judged.fate.is_refused());
        match self.open.remove(&number) {
            Some((_, before)) if is_own => self.differences.add(is_refused, before),
            Some((_, before)) => self.differences.add(before, is_refused),
            None => _ = self.open.insert(number, (is_own, is_refused)),
        }
    }
}
