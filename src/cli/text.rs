//! Untrusted text, made safe for a terminal.

use std::io;
use std::path::Path;

/// Escapes control characters, line breaks and characters that change the direction of text.
pub fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let is_hidden = letter.is_control()
                || ('\u{202a}'..='\u{202e}').contains(&letter)
                || ('\u{2066}'..='\u{2069}').contains(&letter);
            let (shown, escaped) =
                (Some(letter).filter(|_| !is_hidden), Some(letter).filter(|_| is_hidden));
            shown.into_iter().chain(escaped.into_iter().flat_map(char::escape_unicode))
        })
        .collect()
}

/// An error about a file or a folder, which it names.
pub fn error_at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", plain(&path.to_string_lossy())))
}
