//! Replaces aliases by the events of their nodes.

use super::events::{Error, EventKind, Events, YamlEvent};

/// Reads a text event by event. An alias inside its own node expands endlessly, one level deeper
/// each time. The reader's limit on nesting stops it.
pub struct Expanded<'t> {
    events: Events<'t>,
    /// The events of all nodes with an anchor. Nested ones are stored once.
    stored: Vec<AliasStep<'t>>,
    /// The number of unclosed lists and mappings at the end of `stored`.
    open: usize,
    /// Each anchor, with the start of its node in `stored`. The parser numbers anchors across all
    /// documents, and resolves the scope of aliases.
    anchors: Vec<(usize, usize)>,
    replays: Vec<Replay>,
}

#[derive(Debug, Clone)]
enum AliasStep<'t> {
    Event(YamlEvent<'t>),
    /// The node that begins at this index of `stored`.
    Repeat(usize),
}

/// A node of `stored` that is being replayed.
#[derive(Debug)]
struct Replay {
    next: usize,
    open: usize,
}

impl<'t> Expanded<'t> {
    /// Begins at the start of `text`.
    pub fn new(text: &'t str) -> Expanded<'t> {
        Expanded {
            events: Events::new(text),
            stored: Vec::new(),
            open: 0,
            anchors: Vec::new(),
            replays: Vec::new(),
        }
    }

    /// The number of events stored for aliases.
    pub fn stored(&self) -> usize {
        self.stored.len()
    }

    /// The next event. After the last one, or an error, always `End`.
    pub fn next(&mut self) -> Result<YamlEvent<'t>, Error> {
        loop {
            let repeated = self.repeat();
            match repeated.map_or_else(|| self.read(), Ok)? {
                AliasStep::Event(event) => return Ok(event),
                AliasStep::Repeat(next) => self.replays.push(Replay { next, open: 0 }),
            }
        }
    }

    /// The next step of the innermost replay.
    fn repeat(&mut self) -> Option<AliasStep<'t>> {
        let replay = self.replays.last_mut()?;
        let step = self.stored.get(replay.next)?.clone();
        replay.next += 1;
        replay.open = after(replay.open, &step);
        if replay.open == 0 {
            self.replays.pop();
        }
        Some(step)
    }

    /// The start of an anchor's node.
    fn begins(&self, anchor: usize) -> Option<usize> {
        let at = self.anchors.binary_search_by_key(&anchor, |(anchor, _)| *anchor).ok()?;
        self.anchors.get(at).map(|(_, start)| *start)
    }

    /// The next step of the text.
    fn read(&mut self) -> Result<AliasStep<'t>, Error> {
        let mut event = self.events.next()?;
        let anchor = event.anchor.take();
        let step = match event.kind {
            EventKind::Alias(anchor) => match self.begins(anchor) {
                Some(start) => AliasStep::Repeat(start),
                None => {
                    let message = "unknown anchor".into();
                    return Err(Error { position: event.position, message });
                }
            },
            _ => AliasStep::Event(event),
        };
        if anchor.is_some() || self.open > 0 {
            self.anchors.extend(anchor.map(|anchor| (anchor, self.stored.len())));
            self.open = after(self.open, &step);
            self.stored.push(step.clone());
        }
        Ok(step)
    }
}

/// The number of open lists and mappings after a step.
fn after(open: usize, step: &AliasStep<'_>) -> usize {
    match step {
        AliasStep::Event(YamlEvent { kind: EventKind::List | EventKind::Map, .. }) => open + 1,
        AliasStep::Event(YamlEvent { kind: EventKind::Close, .. }) => open.saturating_sub(1),
        _ => open,
    }
}
