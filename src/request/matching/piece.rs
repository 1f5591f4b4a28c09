//! A path, cut at everything that a reader may treat as a slash, and the possible meanings of each
//! piece.

use diana_policy::spelling::decoded;

/// The text between two slashes, true or possible.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'p> {
    text: &'p [u8],
    /// Start of its possible path parameters: `;` or `%3B`.
    cut: Option<usize>,
    /// Whether the piece ends at a possible slash, which only some readers treat as one: `\`, `%5C`
    /// or `%2F`.
    pub is_loose: bool,
    /// Whether both its ends are true slashes or ends of the path.
    is_sure: bool,
}

/// The effect of a segment on the current directory of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep<'p> {
    /// No effect.
    Stay,
    /// Leads to the parent directory.
    Up,
    /// Leads to a name, as spelled. No configured path has an empty name.
    Down(&'p [u8]),
    /// Leads to a name that is not empty, and that no configured path spells out.
    Below,
}

impl<'p> Piece<'p> {
    /// Its text up to the parameters.
    fn head(&self) -> &'p [u8] {
        self.cut.and_then(|cut| self.text.get(..cut)).unwrap_or(self.text)
    }

    /// The number of dots, if its name consists of one or two dots.
    fn dots(&self) -> Option<usize> {
        let head = self.head();
        match head {
            b"." => return Some(1),
            b".." => return Some(2),
            _ if !self.may_be_dots() || !head.contains(&b'%') => return None,
            _ => {}
        }
        let mut bytes = decoded(head);
        match [bytes.next(), bytes.next(), bytes.next()] {
            [Some(b'.'), None, _] => Some(1),
            [Some(b'.'), Some(b'.'), None] => Some(2),
            _ => None,
        }
    }

    /// Returns true if its first character is a dot, as in every dot segment.
    pub fn may_be_dots(&self) -> bool {
        starts_with_dot(self.text)
    }

    /// Returns true if it has parameters that some readers extend to the next true slash.
    pub fn may_continue(&self) -> bool {
        self.is_loose && self.cut.is_some()
    }

    /// The possible effects of the segment that ends with this piece. A reader that does not
    /// resolve dot segments (`resolves` is false) treats them as names. A configured name covers
    /// the same name with parameters.
    pub fn steps(&self, resolves: bool) -> (PathStep<'p>, Option<PathStep<'p>>) {
        let head = self.head();
        if head.is_empty() {
            // With its parameters it is a name.
            let name = if self.text.is_empty() { PathStep::Down(head) } else { PathStep::Below };
            return (PathStep::Stay, Some(name));
        }
        let dots = match self.dots() {
            None => return (PathStep::Down(head), None),
            Some(1) => PathStep::Stay,
            Some(_) => PathStep::Up,
        };
        let is_sure = self.is_sure && self.cut.is_none() && !head.contains(&b'%');
        match (resolves, is_sure) {
            (false, _) => (PathStep::Below, None),
            (true, true) => (dots, None),
            (true, false) => (dots, Some(PathStep::Below)),
        }
    }
}

/// An upper bound of the number of pieces that begin with a dot, without cutting the path.
pub fn most_dots(path: &[u8]) -> usize {
    let may_start = |at: &usize| {
        // The last characters of all spellings of a slash.
        let before = at.checked_sub(1).and_then(|before| path.get(before));
        matches!(before, None | Some(b'/' | b'\\' | b'f' | b'F' | b'c' | b'C'))
            && starts_with_dot(path.get(*at..).unwrap_or_default())
    };
    let signs = path.iter().enumerate().filter(|(_, byte)| matches!(byte, b'.' | b'%'));
    signs.map(|(at, _)| at).filter(may_start).count()
}

fn starts_with_dot(text: &[u8]) -> bool {
    matches!(text, [b'.', ..] | [b'%', b'2', b'e' | b'E', ..])
}

/// Iterates over the pieces of a path.
#[derive(Debug, Clone)]
pub struct Pieces<'p> {
    rest: Option<&'p [u8]>,
    /// Whether the previous piece ended at a possible slash.
    was_loose: bool,
    /// Whether adjacent slashes count as one.
    pub merges: bool,
}

impl<'p> Pieces<'p> {
    /// The pieces of a path without its query.
    pub fn of(path: &'p [u8]) -> Pieces<'p> {
        Pieces {
            rest: Some(path.strip_prefix(b"/").unwrap_or(path)),
            was_loose: false,
            merges: false,
        }
    }
}

impl<'p> Iterator for Pieces<'p> {
    type Item = Piece<'p>;

    fn next(&mut self) -> Option<Piece<'p>> {
        let mut path = self.rest?;
        while self.merges
            && !self.was_loose
            && let Some(rest) = path.strip_prefix(b"/")
        {
            path = rest;
        }
        let mut cut = None;
        let mut end = 0;
        let width = loop {
            match path.get(end) {
                None => break 0,
                Some(b'/' | b'\\') => break 1,
                Some(b';') => cut = cut.or(Some(end)),
                Some(b'%') => match path.get(end + 1..end + 3) {
                    Some(b"2f" | b"2F" | b"5c" | b"5C") => break 3,
                    Some(b"3b" | b"3B") => cut = cut.or(Some(end)),
                    _ => {}
                },
                Some(_) => {}
            }
            end += 1;
        };
        let (text, rest) = path.split_at_checked(end)?;
        let is_loose = width > 0 && rest.first() != Some(&b'/');
        self.rest = if width > 0 { rest.get(width..) } else { None };
        let is_sure = !self.was_loose && !is_loose;
        self.was_loose = is_loose;
        Some(Piece { text, cut, is_loose, is_sure })
    }
}
