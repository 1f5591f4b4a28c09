//! Where rules stand: in a file, in a text within it, or in a text whose lines the file does not have.

use std::rc::Rc;

use diana_config::problem::Position;

/// A text that can be shown.
#[derive(Debug)]
pub struct View {
    /// The file, fit to be shown.
    pub file: String,
    /// The text.
    pub text: String,
    /// Where in the file it stands, if the file does not have its lines.
    pub within: Option<Position>,
}

/// Rules somewhere in a view.
#[derive(Debug, Clone)]
pub struct Part {
    /// The view.
    pub view: Rc<View>,
    /// Lines above it, and columns left of it.
    shift: (usize, usize),
}

impl Part {
    /// A whole file.
    pub fn file(file: String, text: String) -> Part {
        Part { view: Rc::new(View { file, text, within: None }), shift: (0, 0) }
    }

    /// A position in the part as one in its view.
    pub fn position(&self, (line, column): Position) -> Position {
        (line + self.shift.0, column + self.shift.1)
    }

    /// The line in the file, and the column, of a position in the part.
    pub fn in_file(&self, position: Position) -> Position {
        self.view.within.unwrap_or_else(|| self.position(position))
    }

    /// The part that a scalar is, which begins somewhere in this one.
    pub fn scalar(&self, begins: Position, text: &str) -> Part {
        let (line, column) = self.position(begins);
        match self.indent(line, column, text) {
            // Its first line is the one that it begins in.
            Some(indent) => Part { view: self.view.clone(), shift: (line - 1, indent) },
            None => {
                let (file, within) = (self.view.file.clone(), self.view.within);
                let within = Some(within.unwrap_or((line, column)));
                Part { view: Rc::new(View { file, text: text.into(), within }), shift: (0, 0) }
            }
        }
    }

    /// How far the lines of a literal block are indented; nothing if the view does not have the lines of `text`.
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
