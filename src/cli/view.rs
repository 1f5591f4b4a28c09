//! The position of rules: in a file, in a text within it, or in a decoded text without lines of the
//! file.

use std::ops::Range;
use std::rc::Rc;

use diana_config::problem::{NodeSpan, Position};

/// A text for the output.
#[derive(Debug)]
pub struct View {
    /// The file name with control characters escaped.
    pub file: String,
    /// The text.
    pub text: String,
    /// The span of the text in the file, if the file does not contain its lines.
    pub within: Option<NodeSpan>,
}

impl View {
    /// The bytes of a node in its first line. Without an end there, the word at its begin.
    pub fn range(&self, (line, column): Position, end: Option<Position>) -> Option<Range<usize>> {
        let mut start = 0;
        let mut lines = self.text.split_inclusive('\n');
        for _ in 1..line {
            start += lines.next()?.len();
        }
        let whole = lines.next().unwrap_or_default().trim_end_matches(['\n', '\r']);
        let bytes =
            |column: usize| whole.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
        let skipped: usize = bytes(column);
        let word = whole.get(skipped..)?;
        let length = match end {
            Some((last, end)) if last == line && end > column => bytes(end) - skipped,
            _ => word_length(word),
        };
        Some(start + skipped..start + skipped + length)
    }
}

/// The bytes of the first word of a line.
fn word_length(line: &str) -> usize {
    let is_end = |letter: char| letter.is_whitespace() || ",:]}".contains(letter);
    match line.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            line.get(1..).and_then(|rest| rest.find(quote)).map_or(line.len(), |end| end + 2)
        }
        // A rule in braces, or a list, up to the end of the line.
        Some('{' | '[') => line.len(),
        _ => line.find(is_end).unwrap_or(line.len()),
    }
}

/// Rules in a view.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// The view.
    pub view: Rc<View>,
    /// The number of lines above them, and of columns left of them.
    shift: (usize, usize),
}

impl FilePart {
    /// A whole file.
    pub fn file(file: String, text: String) -> FilePart {
        FilePart { view: Rc::new(View { file, text, within: None }), shift: (0, 0) }
    }

    /// Converts a position in the part to one in its view.
    pub fn position(&self, (line, column): Position) -> Position {
        (line + self.shift.0, column + self.shift.1)
    }

    /// The span of a node in the file. Without an end, that of its first word.
    pub fn in_file(&self, begin: Position, end: Option<Position>) -> NodeSpan {
        self.view.within.unwrap_or_else(|| {
            let begin = self.position(begin);
            let word = || {
                let word = self.view.text.get(self.view.range(begin, None)?)?;
                Some((begin.0, begin.1 + word.chars().count()))
            };
            (begin, end.map(|end| self.position(end)).or_else(word).unwrap_or(begin))
        })
    }

    /// The part of a scalar with a span of this part.
    pub fn scalar(&self, (begin, end): NodeSpan, text: &str) -> FilePart {
        let (line, column) = self.position(begin);
        match self.indent(line, column, text) {
            // The first line of the scalar is the line of its position.
            Some(indent) => FilePart { view: self.view.clone(), shift: (line - 1, indent) },
            None => {
                let (file, within) = (self.view.file.clone(), self.view.within);
                let within = Some(within.unwrap_or(((line, column), self.position(end))));
                FilePart { view: Rc::new(View { file, text: text.into(), within }), shift: (0, 0) }
            }
        }
    }

    /// The indentation of a literal block. `None` if the view does not contain the lines of `text`.
    fn indent(&self, line: usize, column: usize, text: &str) -> Option<usize> {
        let (above, indent) = (line.checked_sub(1)?, column.checked_sub(1)?);
        let lines = self.view.text.lines();
        lines.clone().nth(above.checked_sub(1)?).filter(|head| head.contains('|'))?;
        let shown = lines.skip(above);
        let is_same = |(shown, meant): (&str, &str)| {
            shown.get(indent..).map_or(meant.is_empty(), |shown| shown == meant)
        };
        let is_whole = shown.clone().zip(text.lines()).all(is_same);
        (is_whole && shown.count() >= text.lines().count()).then_some(indent)
    }
}
