//! Variables of nginx that are keys of zones, as sources of Diana's actors.

use diana_policy::port::Pseudo;

use crate::key::KeySource;

/// The source for a variable. `None` if Diana cannot count by it.
pub(crate) fn source(variable: &str) -> Option<KeySource> {
    Some(match variable {
        // nginx counts IPv6 by whole addresses.
        "binary_remote_addr" | "remote_addr" => KeySource::address(),
        "host" | "http_host" => KeySource::part(Pseudo::Authority),
        "request_method" => KeySource::part(Pseudo::Method),
        "uri" => KeySource::part(Pseudo::Path),
        _ => {
            let (kind, name) = variable.split_once('_').filter(|(_, name)| !name.is_empty())?;
            match kind {
                // nginx writes hyphens of headers as underscores.
                "http" => KeySource::header(&name.replace('_', "-")),
                "cookie" => KeySource::cookie(name),
                "arg" => KeySource::query(name),
                _ => return None,
            }
        }
    })
}

/// How far nginx's rounding moves a rate by the minute, as the end of a sentence, or nothing.
pub(crate) fn rounding(per_minute: u64) -> String {
    let kept = per_minute * 1000 / 60;
    let (exact, rounded) = (per_minute * 1000, kept * 60);
    if exact == rounded {
        return String::new();
    }
    let lost = (exact - rounded) as f64 / exact as f64 * 100.0;
    let rounded = rounded as f64 / 1000.0;
    format!(
        "; nginx rounds {per_minute} a minute to {rounded}, {lost:.2} % less, and Diana does not"
    )
}
