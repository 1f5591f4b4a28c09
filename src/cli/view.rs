//! The position of rules: in a file, in a text within it, or in a decoded text without lines of the
//! file.

use std::rc::Rc;

use diana_config::problem::Position;

/// A text for the output.
#[derive(Debug)]
pub struct View {
    /// The file name with control characters escaped.
    pub file: String,
    /// The text.
    pub text: String,
    /// The position of the text in the file, if the file does not contain its lines.
    pub within: Option<Position>,
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

    /// Converts a position in the part to one in the file.
    pub fn in_file(&self, position: Position) -> Position {
        self.view.within.unwrap_or_else(|| self.position(position))
    }

    /// The part of a scalar that begins at a position of this part.
    pub fn scalar(&self, begins: Position, text: &str) -> FilePart {
        let (line, column) = self.position(begins);
        match self.indent(line, column, text) {
            // The first line of the scalar is the line of its position.
            Some(indent) => FilePart { view: self.view.clone(), shift: (line - 1, indent) },
            None => {
                let (file, within) = (self.view.file.clone(), self.view.within);
                let within = Some(within.unwrap_or((line, column)));
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
