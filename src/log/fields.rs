//! What a log may say of a request, and under which names it says that.

use diana_policy::port::Property;

/// What is read of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Its method.
    Method,
    /// Its path, with its query.
    Path,
    /// Its host.
    Host,
    /// The address of its client.
    Address,
    /// The `x-forwarded-for` header, to which Envoy has added the address of its client.
    ForwardedFor,
    /// The `user-agent` header.
    UserAgent,
    /// The `x-request-id` header.
    RequestId,
    /// The `referer` header.
    Referer,
    /// Envoy's flags of the response.
    Flags,
    /// What Envoy calls the reason for the response.
    Details,
}

/// How many of those there are.
pub const FIELDS: usize = Field::Details as usize + 1;

/// What a column of a line, or a field of an object, is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// When the request came.
    Time,
    /// The status of the response.
    Status,
    /// Milliseconds from the first byte of the request to the last one of the response.
    Duration,
    /// One of the fields that every request may have.
    Field(Field),
    /// A header of the request, in lower case.
    Header(Box<str>),
    /// A header of the response, in lower case.
    Response(Box<str>),
    /// Metadata that another filter has left.
    Property(Property),
}

/// The names that are understood after `--set`, but for those with a name of their own behind a colon.
const NAMES: [(&str, Target); 8] = [
    ("time", Target::Time),
    ("status", Target::Status),
    ("duration", Target::Duration),
    ("method", Target::Field(Field::Method)),
    ("path", Target::Field(Field::Path)),
    ("host", Target::Field(Field::Host)),
    ("address", Target::Field(Field::Address)),
    ("details", Target::Field(Field::Details)),
];

/// Where a log has what it says elsewhere than usual.
#[derive(Debug, Default)]
pub struct Mapping {
    /// What stands there, and the name of its field; in lines of text the number of its column.
    pub set: Vec<(Target, String)>,
    /// Whether any name is one of a field within another one.
    pub is_deep: bool,
}

impl Mapping {
    /// Reads what was given as `--set`.
    ///
    /// # Errors
    /// What of it cannot be understood.
    pub fn new(given: &[String]) -> Result<Mapping, String> {
        let set = given.iter().map(|one| pair(one)).collect::<Result<Vec<_>, _>>()?;
        let is_deep = set.iter().any(|(_, name)| name.contains('.'));
        Ok(Mapping { set, is_deep })
    }

    /// The columns that are named, counted from zero.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &Target, usize)> {
        self.set.iter().enumerate().filter_map(|(number, (target, name))| {
            Some((number, target, name.parse::<usize>().ok()?.checked_sub(1)?))
        })
    }
}

fn pair(given: &str) -> Result<(Target, String), String> {
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

fn named(what: &str) -> Option<Target> {
    let (kind, name) = what.split_once(':').filter(|(_, name)| !name.is_empty())?;
    match kind {
        "header" => Some(header(&name.to_ascii_lowercase())),
        "response" => Some(Target::Response(name.to_ascii_lowercase().into())),
        "metadata" => {
            let path = ["metadata", "filter_metadata"].into_iter().chain(name.split('/'));
            let path: Vec<&str> = path.collect();
            (path.len() >= 4).then(|| Target::Property(Property::new(&path)))
        }
        _ => None,
    }
}

/// A header of the request, by its name in lower case.
fn header(name: &str) -> Target {
    match standard(name) {
        Some(field) => Target::Field(field),
        None => Target::Header(name.into()),
    }
}

/// The headers that every request may have.
pub const STANDARD: [(&str, Field); 4] = [
    ("x-forwarded-for", Field::ForwardedFor),
    ("user-agent", Field::UserAgent),
    ("x-request-id", Field::RequestId),
    ("referer", Field::Referer),
];

/// The header that every request may have under this name.
pub fn standard(name: &str) -> Option<Field> {
    STANDARD.iter().find(|(own, _)| *own == name).map(|(_, field)| *field)
}

/// What a field of an object usually is: in Istio's format, in that of Envoy Gateway, and as many call it themselves.
pub fn usual(name: &str) -> Option<Target> {
    let field = match name {
        "start_time" | "time" | "timestamp" | "@timestamp" => return Some(Target::Time),
        "response_code" | "status" => return Some(Target::Status),
        "duration" => return Some(Target::Duration),
        "method" | ":method" => Field::Method,
        "path" | ":path" | "x-envoy-original-path" | "x-envoy-origin-path" => Field::Path,
        "authority" | ":authority" | "host" => Field::Host,
        "downstream_remote_address" | "remote_addr" | "client_ip" => Field::Address,
        "response_flags" => Field::Flags,
        "response_code_details" => Field::Details,
        "x_forwarded_for" => Field::ForwardedFor,
        "user_agent" => Field::UserAgent,
        "request_id" => Field::RequestId,
        _ => return standard(name).map(Target::Field),
    };
    Some(Target::Field(field))
}
