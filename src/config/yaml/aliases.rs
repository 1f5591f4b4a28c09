//! Events without aliases: the node that one stands for comes in its place, once more.

use super::events::{Error, Event, Events, Kind};

/// Reads a text piece by piece. An alias in the very node that it stands for never ends, but goes
/// deeper each time.
pub struct Expanded<'t> {
    events: Events<'t>,
    /// All nodes with an anchor, those within others once.
    kept: Vec<Step<'t>>,
    /// How many lists and mappings at the end of `kept` are not closed yet.
    open: usize,
    /// Each anchor, and where in `kept` its node begins. The parser counts anchors through all documents, and
    /// knows which of them an alias may mean.
    anchors: Vec<(usize, usize)>,
    replays: Vec<Replay>,
}

#[derive(Debug, Clone)]
enum Step<'t> {
    Event(Event<'t>),
    /// The node that begins here in `kept`.
    Repeat(usize),
}

/// A node of `kept` that is told once more.
#[derive(Debug)]
struct Replay {
    next: usize,
    open: usize,
}

impl<'t> Expanded<'t> {
    /// From the beginning of `text`.
    pub fn new(text: &'t str) -> Expanded<'t> {
        Expanded {
            events: Events::new(text),
            kept: Vec::new(),
            open: 0,
            anchors: Vec::new(),
            replays: Vec::new(),
        }
    }

    /// How many pieces are kept for aliases.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// The next piece; after the last one, or an error, only `End`.
    pub fn next(&mut self) -> Result<Event<'t>, Error> {
        loop {
            let repeated = self.repeat();
            match repeated.map_or_else(|| self.read(), Ok)? {
                Step::Event(event) => return Ok(event),
                Step::Repeat(next) => self.replays.push(Replay { next, open: 0 }),
            }
        }
    }

    /// The next step of the innermost replay.
    fn repeat(&mut self) -> Option<Step<'t>> {
        let replay = self.replays.last_mut()?;
        let step = self.kept.get(replay.next)?.clone();
        replay.next += 1;
        replay.open = after(replay.open, &step);
        if replay.open == 0 {
            self.replays.pop();
        }
        Some(step)
    }

    /// Where the node of an anchor begins.
    fn begins(&self, anchor: usize) -> Option<usize> {
        let at = self.anchors.binary_search_by_key(&anchor, |(anchor, _)| *anchor).ok()?;
        self.anchors.get(at).map(|(_, start)| *start)
    }

    /// The next step of the text.
    fn read(&mut self) -> Result<Step<'t>, Error> {
        let mut event = self.events.next()?;
        let anchor = event.anchor.take();
        let step = match event.kind {
            Kind::Alias(anchor) => match self.begins(anchor) {
                Some(start) => Step::Repeat(start),
                None => {
                    let message = "unknown anchor".into();
                    return Err(Error { position: event.position, message });
                }
            },
            _ => Step::Event(event),
        };
        if anchor.is_some() || self.open > 0 {
            self.anchors.extend(anchor.map(|anchor| (anchor, self.kept.len())));
            self.open = after(self.open, &step);
            self.kept.push(step.clone());
        }
        Ok(step)
    }
}

/// How many lists and mappings are open after a step.
fn after(open: usize, step: &Step<'_>) -> usize {
    match step {
        Step::Event(Event { kind: Kind::List | Kind::Map, .. }) => open + 1,
        Step::Event(Event { kind: Kind::Close, .. }) => open.saturating_sub(1),
        _ => open,
    }
}
