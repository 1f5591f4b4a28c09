//! The configuration of settlements at the end of a stream.

/// The settlement of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settling {
    /// Permits that are reserved on arrival. With zero, the check only requires one remaining
    /// permit.
    pub reserve: u64,
    /// The source of the usage in the response. Without one, the usage is the reservation.
    pub response_cost: Option<ResponseCost>,
    /// The outcomes that count. Other outcomes have no usage. Without a list all outcomes count.
    pub count: Option<Outcomes>,
    /// Whether these outcomes lead to a ban instead of refusals.
    pub bans: bool,
    /// Whether the charge is an in-flight slot, which is released after any outcome.
    pub is_slot: bool,
}

/// The usage of a request, which is known at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseCost {
    /// The terms that are added up, at least one: headers of the response only, or trailers only, or neither.
    pub terms: Vec<Term>,
    /// Maximum usage of a request in permits.
    pub most: u64,
    /// The usage if the response does not contain it, at most `most`.
    pub missing: u64,
    /// The usage if the response does not contain it, and its status is 400 or above, at most
    /// `most`.
    pub error: u64,
}

/// A number with a weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The number.
    pub source: ResponseSource,
    /// Billionths of a permit for each, from −[`Term::HEAVIEST`] to [`Term::HEAVIEST`], and not 0.
    pub weight: i64,
}

impl Term {
    /// The weight of one permit.
    pub const ONE: i64 = 1_000_000_000;

    /// The largest weight.
    pub const HEAVIEST: i64 = 1_000 * Term::ONE;
}

/// A number that is known at the end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseSource {
    /// A response header, by its name in lower case.
    Header(String),
    /// A response trailer, by its name in lower case.
    Trailer(String),
    /// Metadata that another filter has set: a namespace, then keys.
    Metadata {
        /// At least two names.
        path: Vec<String>,
        /// The encoding of the value.
        form: NumberForm,
    },
    /// The bytes of the body of the request.
    RequestBytes,
    /// The bytes of the body of the response.
    ResponseBytes,
    /// The milliseconds from the decision about the request to the end of its stream.
    Duration,
}

impl ResponseSource {
    /// Returns true if the host counts it, so that it is known after any end.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        matches!(
            self,
            ResponseSource::RequestBytes | ResponseSource::ResponseBytes | ResponseSource::Duration
        )
    }
}

/// The encoding of a number in metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberForm {
    /// A number of a `Struct`.
    Number,
    /// A whole number of a typed message.
    Typed,
    /// Decimal text.
    Text {
        /// Whether in a typed message.
        typed: bool,
    },
}

/// Outcomes of requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcomes {
    /// Ranges of statuses, each with its first and last.
    pub statuses: Vec<(u16, u16)>,
    /// The host's reasons, without the part in braces.
    pub details: Vec<String>,
    /// Statuses of gRPC, from 0 to 16.
    pub grpc_statuses: Vec<u8>,
    /// Whether a missing or aborted response counts.
    pub failed: bool,
}
