//! Parses instants.

use diana_policy::time::{Micros, Now};
use jiff::Timestamp;

const ALLOWED: &str = "an instant such as 2026-11-24T21:38:34Z, from 1970 on";

/// The instant in a text, or the current time.
///
/// # Errors
/// The text is not an instant.
pub fn now(at: Option<&str>) -> Result<Now, String> {
    let instant = at.map_or_else(|| Ok(Timestamp::now()), str::parse);
    let wall = instant.ok().and_then(|instant| Micros::try_from(instant.as_microsecond()).ok());
    let wrong =
        || format!("found `{}`, allowed: {ALLOWED}", crate::text::plain(at.unwrap_or_default()));
    let wall = wall.ok_or_else(wrong)?;
    Ok(Now { mono: wall, wall })
}
