//! Text of strangers, made fit for a terminal.

/// On one line and without control characters, among them those that have a terminal write somewhere else.
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
