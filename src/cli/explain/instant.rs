//! Parses instants.

use diana_policy::time::Micros;
use jiff::Timestamp;

const ALLOWED: &str = "an instant such as 2026-11-24T21:38:34Z, from 1970 on";

/// The instant in a text, or the current time.
///
/// # Errors
/// The text is not an instant.
pub fn parse(at: Option<&str>) -> Result<Micros, String> {
    let instant = at.map_or_else(|| Ok(Timestamp::now()), str::parse);
    let wall = instant.ok().and_then(|instant| Micros::try_from(instant.as_microsecond()).ok());
    let wrong =
        || format!("found `{}`, allowed: {ALLOWED}", crate::text::plain(at.unwrap_or_default()));
    wall.ok_or_else(wrong)
}
