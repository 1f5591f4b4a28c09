//! Parses YAML, which includes JSON, into trees. Their size is bounded, since a short text with
//! aliases can expand to a huge tree.

mod aliases;
mod characters;
mod events;
pub mod scalar;

use self::aliases::Expanded;
use self::events::{Error, EventKind, YamlEvent};
use self::scalar::Dialect;
use super::document::PLACES;
use super::hint;
use super::node_path::ConfigSource;
use super::problem::{NodeSpan, Position, Problem, Problems};
use diana_policy::tree::Tree;

/// Maximum size of all trees together. A node counts 1, and its text 1 per 32 bytes.
const MAX_SIZE: usize = 200_000;

/// Maximum number of events stored for aliases.
const MAX_ALIAS_EVENTS: usize = 100_000;

/// Maximum nesting.
const MAX_DEPTH: usize = 32;

impl ConfigSource {
    /// Parses YAML or JSON without interpreting it.
    ///
    /// # Errors
    /// The syntax error.
    pub fn read(bytes: &[u8]) -> Result<ConfigSource, Problems> {
        ConfigSource::read_as(bytes, Dialect::Diana)
    }

    /// Parses YAML or JSON as another program does. The nodes and their positions are the same, the
    /// values may differ.
    ///
    /// # Errors
    /// The syntax error.
    pub fn read_as(bytes: &[u8], dialect: Dialect) -> Result<ConfigSource, Problems> {
        let text = characters::check(bytes)?;
        let mut reader = YamlReader::new(text, dialect);
        match reader.documents() {
            Ok(documents) => Ok(ConfigSource { documents, spans: reader.spans }),
            Err(failure) => Err(failure.problems(text)),
        }
    }

    /// Parses manifests of any length as Kubernetes does, and passes each object to `visit`: each
    /// document, but the items of a list one by one, as the memory of a large list is not bounded.
    /// The list itself comes last, with an empty `items`.
    ///
    /// # Errors
    /// The syntax error. Earlier objects have been visited.
    pub fn each_object(text: &str, visit: &mut dyn FnMut(ConfigSource)) -> Result<(), Problems> {
        characters::printable(text)?;
        let mut reader = YamlReader::new(text, Dialect::Kubernetes);
        reader.objects(visit).map_err(|failure| failure.problems(text))
    }
}

fn problems(Error { position, message }: Error, text: &str) -> Problems {
    if let Some(tab) = tab(text, &message, position) {
        let message = "not valid YAML: found a tab at the beginning of a line, which YAML indents with spaces only; replace it by \
                       spaces";
        return Problems::one(Some(tab), message.into());
    }
    let message = format!("not valid YAML: {message}");
    let mut list = hint::missing_spaces(text, &PLACES);
    let position = Some(position);
    let after = list.partition_point(|earlier| earlier.position <= position);
    list.insert(after, Problem::of_text(position, message));
    Problems::new(list, 0)
}

/// The tab that indents the line of an error. The parser reports a tab in a plain scalar at the begin
/// of the scalar, which may be in an earlier line.
fn tab(text: &str, message: &str, (line, _): Position) -> Option<Position> {
    let count = if message.contains("found a tab") { usize::MAX } else { 1 };
    let mut lines = text.lines().enumerate().skip(line.saturating_sub(1)).take(count);
    lines.find_map(|(number, line)| {
        let indent = line.split(|letter| letter != ' ' && letter != '\t').next()?;
        Some((number + 1, indent.find('\t')? + 1))
    })
}

/// Why parsing failed.
enum YamlFailure {
    NoYaml(Error),
    Refused(Position, &'static str),
}

impl From<Error> for YamlFailure {
    fn from(error: Error) -> YamlFailure {
        YamlFailure::NoYaml(error)
    }
}

impl YamlFailure {
    fn problems(self, text: &str) -> Problems {
        match self {
            YamlFailure::Refused(position, message) => {
                Problems::one(Some(position), message.into())
            }
            YamlFailure::NoYaml(error) => problems(error, text),
        }
    }
}

struct YamlReader<'t> {
    events: Expanded<'t>,
    dialect: Dialect,
    /// The remaining size.
    left: usize,
    /// The end of the list or mapping that was closed last, if a bracket closes it.
    closed: Option<Position>,
    /// The spans of all nodes so far.
    spans: Vec<NodeSpan>,
}

impl<'t> YamlReader<'t> {
    fn new(text: &'t str, dialect: Dialect) -> YamlReader<'t> {
        let (events, spans) = (Expanded::new(text), Vec::new());
        YamlReader { events, dialect, left: MAX_SIZE, closed: None, spans }
    }

    fn objects(&mut self, visit: &mut dyn FnMut(ConfigSource)) -> Result<(), YamlFailure> {
        loop {
            let event = self.events.next()?;
            let tree = match event.kind {
                EventKind::End => return Ok(()),
                EventKind::Map => self.object((event.position, event.end), visit)?,
                _ => self.tree(event, 0)?,
            };
            visit(self.take_source(tree));
        }
    }

    /// The mapping of an object that begins at `span`.
    fn object(
        &mut self,
        span: NodeSpan,
        visit: &mut dyn FnMut(ConfigSource),
    ) -> Result<Tree, YamlFailure> {
        self.count(span, "")?;
        let mut pairs = Vec::new();
        while let Some((key, value)) = self.pair()? {
            if key != "items" || !matches!(value.kind, EventKind::List) {
                pairs.push((key, self.tree(value, 1)?));
                continue;
            }
            self.count((value.position, value.end), "")?;
            let (spans, left) = (std::mem::take(&mut self.spans), self.left);
            while let Some(item) = self.inner()? {
                self.left = MAX_SIZE;
                let tree = self.tree(item, 2)?;
                visit(self.take_source(tree));
            }
            (self.spans, self.left) = (spans, left);
            pairs.push((key, Tree::List(Vec::new())));
        }
        Ok(Tree::Map(pairs))
    }

    /// A document with the spans so far. The size of the next one is counted from zero.
    fn take_source(&mut self, tree: Tree) -> ConfigSource {
        self.left = MAX_SIZE;
        ConfigSource { documents: vec![tree], spans: std::mem::take(&mut self.spans) }
    }

    fn documents(&mut self) -> Result<Vec<Tree>, YamlFailure> {
        let mut documents = Vec::new();
        loop {
            let event = self.events.next()?;
            match event.kind {
                // A text without a document is equivalent to an empty one.
                EventKind::End if documents.is_empty() => {
                    self.spans.push((event.position, event.position));
                    return Ok(vec![Tree::Null]);
                }
                EventKind::End => return Ok(documents),
                _ => documents.push(self.tree(event, 0)?),
            }
        }
    }

    /// The tree of the node that begins with `event`, at nesting `depth`.
    fn tree(&mut self, event: YamlEvent<'t>, depth: usize) -> Result<Tree, YamlFailure> {
        let YamlEvent { position, end, tag, kind, .. } = event;
        let refused = |message| YamlFailure::Refused(position, message);
        if tag.as_ref().is_some_and(|tag| tag.starts_with('!')) {
            return Err(refused("tags such as `!name` are not supported; remove them"));
        }
        if let EventKind::Scalar { text, plain } = kind {
            self.count((position, end), &text)?;
            return scalar::read(text.into_owned(), plain, tag.as_deref(), self.dialect)
                .ok_or_else(|| refused("the value does not match its tag; remove the tag"));
        }
        if depth == MAX_DEPTH {
            return Err(refused("nested too deeply: more than 32 levels"));
        }
        let index = self.spans.len();
        self.count((position, end), "")?;
        let tree = match kind {
            EventKind::List => Tree::List(self.list(depth + 1)?),
            _ => Tree::Map(self.map(depth + 1)?),
        };
        let last = self.spans.last().map(|(_, end)| *end);
        if let (Some(span), Some(last)) = (self.spans.get_mut(index), last) {
            span.1 = self.closed.take().unwrap_or(last);
        }
        Ok(tree)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Tree>, YamlFailure> {
        let mut items = Vec::new();
        while let Some(event) = self.inner()? {
            items.push(self.tree(event, depth)?);
        }
        Ok(items)
    }

    /// Reads a mapping.
    fn map(&mut self, depth: usize) -> Result<Vec<(String, Tree)>, YamlFailure> {
        let mut pairs = Vec::new();
        while let Some((key, value)) = self.pair()? {
            pairs.push((key, self.tree(value, depth)?));
        }
        Ok(pairs)
    }

    /// The next key of the innermost mapping, and the first event of its value. `None` at its end.
    fn pair(&mut self) -> Result<Option<(String, YamlEvent<'t>)>, YamlFailure> {
        let Some(YamlEvent { position, end, kind, .. }) = self.inner()? else { return Ok(None) };
        let EventKind::Scalar { text: key, plain } = kind else {
            let message = "found a list or a mapping as a key, allowed: text";
            return Err(YamlFailure::Refused(position, message));
        };
        self.count((position, end), &key)?;
        let key = scalar::key(key.into_owned(), plain, self.dialect);
        Ok(self.inner()?.map(|value| (key, value)))
    }

    /// The next event of the innermost list or mapping. `None` at its end.
    fn inner(&mut self) -> Result<Option<YamlEvent<'t>>, YamlFailure> {
        let event = self.events.next()?;
        if !matches!(event.kind, EventKind::Close | EventKind::End) {
            return Ok(Some(event));
        }
        // A bracket has a length.
        self.closed = Some(event.end).filter(|end| *end > event.position);
        Ok(None)
    }

    /// Records the span of a node, unless there are too many.
    fn count(&mut self, span: NodeSpan, text: &str) -> Result<(), YamlFailure> {
        let (position, _) = span;
        let Some(left) = self.left.checked_sub(1 + text.len() / 32) else {
            let message = "too large: more than 200000 nodes, aliases counted each time";
            return Err(YamlFailure::Refused(position, message));
        };
        if self.events.stored() > MAX_ALIAS_EVENTS {
            let message = "too large: anchors contain more than 100000 nodes; remove anchors";
            return Err(YamlFailure::Refused(position, message));
        }
        self.left = left;
        self.spans.push(span);
        Ok(())
    }
}
