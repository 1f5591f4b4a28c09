//! The fields of a request in a log, and their names.

use diana_policy::port::Property;

#[cfg(test)]
mod tests;

/// The fields that are read of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogField {
    /// Its method.
    Method,
    /// Its path, with its query.
    Path,
    /// Its host.
    Host,
    /// The address of its client.
    Address,
    /// The `x-forwarded-for` header, at the end of which Envoy has added the address of the client.
    ForwardedFor,
    /// The `user-agent` header.
    UserAgent,
    /// The `x-request-id` header.
    RequestId,
    /// The `referer` header.
    Referer,
    /// The name of its route.
    Route,
    /// Envoy's flags of the response.
    Flags,
    /// Envoy's reason for the response, `%RESPONSE_CODE_DETAILS%`.
    Details,
}

/// The number of those fields.
pub const FIELDS: usize = LogField::Details as usize + 1;

/// The meaning of a column of a line, or of a field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldTarget {
    /// When the request arrived.
    Time,
    /// The status of the response.
    Status,
    /// Milliseconds from the first byte of the request to the last one of the response.
    Duration,
    /// One of the fields that every request may have.
    Field(LogField),
    /// A header of the request, in lower case.
    Header(Box<str>),
    /// A header of the response, in lower case.
    Response(Box<str>),
    /// Metadata of another filter.
    Property(Property),
}

/// The names that `--set` takes, without those with a colon and a further name.
const NAMES: [(&str, FieldTarget); 9] = [
    ("time", FieldTarget::Time),
    ("status", FieldTarget::Status),
    ("duration", FieldTarget::Duration),
    ("method", FieldTarget::Field(LogField::Method)),
    ("path", FieldTarget::Field(LogField::Path)),
    ("host", FieldTarget::Field(LogField::Host)),
    ("address", FieldTarget::Field(LogField::Address)),
    ("route", FieldTarget::Field(LogField::Route)),
    ("details", FieldTarget::Field(LogField::Details)),
];

/// Fields that a log has under other names than usual.
#[derive(Debug, Default)]
pub struct FieldMapping {
    /// The meaning of each field and its name; in lines of text the number of its column.
    pub set: Vec<(FieldTarget, String)>,
    /// Whether any name is that of a field within another one.
    pub is_deep: bool,
}

impl FieldMapping {
    /// Reads the values of `--set`.
    ///
    /// # Errors
    /// If a value is wrong.
    pub fn new(given: &[String]) -> Result<FieldMapping, String> {
        let set = given.iter().map(|one| pair(one)).collect::<Result<Vec<_>, _>>()?;
        let is_deep = set.iter().any(|(_, name)| name.contains('.'));
        Ok(FieldMapping { set, is_deep })
    }

    /// The columns that are named, counted from zero.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &FieldTarget, usize)> {
        self.set.iter().enumerate().filter_map(|(number, (target, name))| {
            Some((number, target, name.parse::<usize>().ok()?.checked_sub(1)?))
        })
    }
}

fn pair(given: &str) -> Result<(FieldTarget, String), String> {
    let wrong = || {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        format!(
            "found `--set {}`, allowed: WHAT=FIELD, where WHAT is {}, header:NAME, response:NAME or \
             metadata:NAMESPACE/KEY",
            given,
            names.join(", ")
        )
    };
    let (what, field) =
        given.split_once('=').filter(|(_, field)| !field.is_empty()).ok_or_else(wrong)?;
    let known = NAMES.iter().find(|(name, _)| *name == what).map(|(_, target)| target.clone());
    let target = known.or_else(|| named(what)).ok_or_else(wrong)?;
    Ok((target, field.into()))
}

fn named(what: &str) -> Option<FieldTarget> {
    let (kind, name) = what.split_once(':').filter(|(_, name)| !name.is_empty())?;
    match kind {
        "header" => Some(header(&name.to_ascii_lowercase())),
        "response" => Some(FieldTarget::Response(name.to_ascii_lowercase().into())),
        "metadata" => {
            let path = ["metadata", "filter_metadata"].into_iter().chain(name.split('/'));
            let path: Vec<&str> = path.collect();
            (path.len() >= 4).then(|| FieldTarget::Property(Property::new(&path)))
        }
        _ => None,
    }
}

/// A header of the request, by its name in lower case.
fn header(name: &str) -> FieldTarget {
    match standard(name) {
        Some(field) => FieldTarget::Field(field),
        None => FieldTarget::Header(name.into()),
    }
}

/// The headers that every request may have.
pub const STANDARD: [(&str, LogField); 4] = [
    ("x-forwarded-for", LogField::ForwardedFor),
    ("user-agent", LogField::UserAgent),
    ("x-request-id", LogField::RequestId),
    ("referer", LogField::Referer),
];

/// The header that every request may have under this name.
pub fn standard(name: &str) -> Option<LogField> {
    STANDARD.iter().find(|(own, _)| *own == name).map(|(_, field)| *field)
}

/// The usual meaning of a field of an object: in the format of Istio, in that of Envoy Gateway, and
/// by common names.
pub fn usual(name: &str) -> Option<FieldTarget> {
    let field = match name {
        "start_time" | "time" | "timestamp" | "@timestamp" => return Some(FieldTarget::Time),
        "response_code" | "status" => return Some(FieldTarget::Status),
        "duration" => return Some(FieldTarget::Duration),
        "method" | ":method" => LogField::Method,
        "path" | ":path" | "x-envoy-original-path" | "x-envoy-origin-path" => LogField::Path,
        "authority" | ":authority" | "host" => LogField::Host,
        "downstream_remote_address" | "remote_addr" | "client_ip" => LogField::Address,
        "route_name" => LogField::Route,
        "response_flags" => LogField::Flags,
        "response_code_details" => LogField::Details,
        "x_forwarded_for" => LogField::ForwardedFor,
        "user_agent" => LogField::UserAgent,
        "request_id" => LogField::RequestId,
        _ => return standard(name).map(FieldTarget::Field),
    };
    Some(FieldTarget::Field(field))
}
