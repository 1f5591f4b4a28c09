//! What a request turns out to use, which is known when its stream ends.

/// How what was reserved for a request is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settling {
    /// Permits that are reserved when the request comes; with none it is only checked that one is left.
    pub reserve: u64,
    /// Where the response says what was used. Without this it is what was reserved.
    pub told: Option<Answered>,
    /// The outcomes that count; a request that ends otherwise used nothing. Without this all of them count.
    pub count: Option<Outcomes>,
    /// Whether those lead to a ban, in place of refusals.
    pub bans: bool,
    /// Whether it is a place in flight, which comes back whatever the outcome.
    pub is_place: bool,
}

/// What a response says of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Where.
    pub place: ResponseSource,
    /// Most permits that a request uses, whatever is said.
    pub most: u64,
    /// What it used if nobody says so, at most as much.
    pub missing: u64,
}

/// Where it is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseSource {
    /// In a header of the response, by its name in lower case.
    Header(String),
    /// In metadata that another filter leaves: a namespace, then keys.
    Metadata {
        /// At least two names.
        path: Vec<String>,
        /// How the value is written.
        form: NumberForm,
    },
}

/// How a number in metadata is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberForm {
    /// As a number of a `Struct`.
    Number,
    /// As a whole number of a typed message.
    Typed,
    /// As text, in decimals.
    Text {
        /// Whether in a typed message.
        typed: bool,
    },
}

/// Ways in which requests end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcomes {
    /// First and last of some statuses.
    pub statuses: Vec<(u16, u16)>,
    /// What the host calls the reason, without what it adds in braces.
    pub details: Vec<String>,
    /// Whether no response was begun, or it was cut off.
    pub failed: bool,
}
