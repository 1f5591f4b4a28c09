//! The usage of a request, determined when its stream ends.

use diana_policy::number::{Number, exact_float, integer, scientific};
use diana_policy::port::{Ending, Property, Values};
use diana_policy::time::{Micros, SECOND};
use diana_policy::{NumberForm, Outcomes, ResponseCost, ResponseSource, Settling, Term};

/// Larger values are not numbers of permits.
const LARGEST: u64 = 1 << 53;

/// Ticks of a millisecond.
const MILLISECOND: Micros = SECOND / 1_000;

/// Responses with this status or a higher one are errors.
const FIRST_ERROR: u16 = 400;

/// Determines the usage of requests.
#[derive(Debug)]
pub struct UsageReader {
    response_cost: Option<ResponseReader>,
    count: Option<Outcomes>,
    reserves_nothing: bool,
    bans: bool,
    is_slot: bool,
    reads_request_bytes: bool,
}

/// Reads the usage from the response.
#[derive(Debug)]
struct ResponseReader {
    source: UsageSource,
    most: u64,
    missing: u64,
    error: u64,
}

/// Numbers that are added up, each with its weight in billionths.
#[derive(Debug)]
enum UsageSource {
    /// Headers of the response.
    Headers(Vec<(String, i64)>),
    /// Its trailers.
    Trailers(Vec<(String, i64)>),
    /// Numbers that are known at the end.
    AtEnd { numbers: Vec<(EndNumber, i64)>, are_measured: bool },
}

/// A number that is known at the end of a stream.
#[derive(Debug)]
enum EndNumber {
    Metadata(Property, NumberForm),
    Bytes(Property),
    Duration,
}

/// The known parts of a response, while its stream is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownResponse {
    /// The result of reading headers and trailers.
    pub usage: HeaderUsage,
    /// The usage in permits, if it is [`HeaderUsage::Used`] or [`HeaderUsage::Partial`].
    pub used: u64,
    /// What its gRPC status means.
    pub grpc: GrpcOutcome,
}

/// The result of reading the response headers and trailers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeaderUsage {
    /// The upstream has not sent headers.
    #[default]
    Nothing,
    /// The upstream has sent headers, and the usage is not in a header, or not yet in a trailer.
    Begun,
    /// A header or a trailer contained the usage.
    Used,
    /// The same for a sum with a number that was missing.
    Partial,
    /// The configured header or trailer was missing or unusable.
    Unknown(UnknownUsage),
}

/// The meaning of a response's gRPC status for the outcomes that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GrpcOutcome {
    /// No status, or one that is not listed.
    #[default]
    Other,
    /// The trailers with the status have not come.
    Awaited,
    /// The status is listed.
    Listed,
}

/// Why the usage of a request is unknown, or an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownUsage {
    /// The client left before the upstream reported it.
    ClientLeft,
    /// The response was cut off.
    Cut,
    /// The stream ended before the upstream's headers, and not by the client.
    Unanswered,
    /// The response has an error status, of HTTP or in trailers of gRPC, and no usable number.
    Error,
    /// The header, trailer or metadata is missing.
    Absent,
    /// The value is not a single number of permits.
    Unusable,
    /// A number of a sum is missing in a response without an error status. It counts as 0.
    Partial,
}

impl UsageReader {
    /// A reader for this configuration.
    #[must_use]
    pub fn new(settling: &Settling) -> UsageReader {
        let is_request_bytes = |term: &Term| term.source == ResponseSource::RequestBytes;
        let terms = settling.response_cost.iter().flat_map(|it| &it.terms);
        let reads_request_bytes = { terms }.any(is_request_bytes);
        let response_cost = settling.response_cost.as_ref().map(|response_cost| {
            let ResponseCost { ref terms, most, missing, error } = *response_cost;
            ResponseReader { source: UsageSource::of(terms), most, missing, error }
        });
        let Settling { reserve, ref count, bans, is_slot, .. } = *settling;
        UsageReader {
            response_cost,
            count: count.clone(),
            reserves_nothing: reserve == 0,
            bans,
            is_slot,
            reads_request_bytes,
        }
    }

    /// Returns true if counted outcomes lead to a ban, instead of refusals.
    #[must_use]
    pub fn bans(&self) -> bool {
        self.bans
    }

    /// Returns true if the charges are in-flight slots.
    #[must_use]
    pub fn is_slot(&self) -> bool {
        self.is_slot
    }

    /// Returns true if the bytes of the request's body are read at the end.
    #[must_use]
    pub fn reads_request_bytes(&self) -> bool {
        self.reads_request_bytes
    }

    /// Returns true if requests are only checked on arrival, and charged at the end.
    #[must_use]
    pub fn reserves_nothing(&self) -> bool {
        self.reserves_nothing
    }

    /// Reads the response headers on their arrival.
    #[must_use]
    pub fn read_headers(&self, ending: &dyn Ending) -> KnownResponse {
        // Only a gRPC response without messages has its status in the headers: they are its trailers.
        let are_trailers = self.reads_grpc() && ending.ends_with_headers();
        let status = are_trailers.then(|| grpc_status(ending)).flatten();
        let grpc = match status {
            None if self.counts_grpc() && is_grpc(ending) => GrpcOutcome::Awaited,
            status => self.grpc_outcome(status),
        };
        if !ending.is_from_upstream() {
            return KnownResponse { grpc, ..KnownResponse::default() };
        }
        let begun = KnownResponse { usage: HeaderUsage::Begun, used: 0, grpc };
        match self.response_cost.as_ref().map(|response_cost| &response_cost.source) {
            Some(UsageSource::Headers(names)) => begun.with_numbers(names, ending),
            Some(UsageSource::Trailers(names)) if status.is_some() => {
                begun.with_trailers(names, status, ending)
            }
            _ => begun,
        }
    }

    /// Reads the response trailers on their arrival, after these headers.
    #[must_use]
    pub fn read_trailers(&self, response: KnownResponse, ending: &dyn Ending) -> KnownResponse {
        if !self.reads_grpc() {
            return response;
        }
        let status = grpc_status(ending);
        let response = KnownResponse { grpc: self.grpc_outcome(status), ..response };
        match &self.response_cost {
            Some(ResponseReader { source: UsageSource::Trailers(names), .. })
                if response.usage == HeaderUsage::Begun =>
            {
                response.with_trailers(names, status, ending)
            }
            _ => response,
        }
    }

    /// Returns true if it reads the status of gRPC, or other trailers.
    fn reads_grpc(&self) -> bool {
        let source = self.response_cost.as_ref().map(|response_cost| &response_cost.source);
        self.counts_grpc() || matches!(source, Some(UsageSource::Trailers(_)))
    }

    fn counts_grpc(&self) -> bool {
        self.count.as_ref().is_some_and(|count| !count.grpc_statuses.is_empty())
    }

    fn grpc_outcome(&self, status: Option<u8>) -> GrpcOutcome {
        let listed = self.count.as_ref().map(|count| count.grpc_statuses.as_slice());
        match status {
            Some(status) if listed.unwrap_or_default().contains(&status) => GrpcOutcome::Listed,
            _ => GrpcOutcome::Other,
        }
    }

    /// The usage in permits of a request with this reservation at the end of its stream, `elapsed` ticks after its
    /// decision, and the reason if it is an estimate. `response` is the result of reading its headers and trailers.
    #[must_use]
    pub fn used(
        &self,
        reserved: u64,
        response: KnownResponse,
        ending: &dyn Ending,
        elapsed: Micros,
    ) -> (u64, Option<UnknownUsage>) {
        if ending.is_followed() {
            // The request returns for the internal redirect.
            return (0, None);
        }
        let has_begun = response.usage != HeaderUsage::Nothing;
        if let Some(count) = &self.count
            && !counts(count, response, ending)
        {
            return (0, None);
        }
        let Some(ResponseReader { source, most, missing, error }) = &self.response_cost else {
            return (reserved, None);
        };
        let response_cost = match response.usage {
            _ if source.are_measured() => source.read(ending, elapsed),
            HeaderUsage::Nothing if ending.client_left() => Err(UnknownUsage::ClientLeft),
            HeaderUsage::Nothing => return (0, Some(UnknownUsage::Unanswered)),
            HeaderUsage::Begun => source.read(ending, elapsed),
            HeaderUsage::Used => Ok(Sum { permits: response.used, is_partial: false }),
            HeaderUsage::Partial => Ok(Sum { permits: response.used, is_partial: true }),
            HeaderUsage::Unknown(unknown) => Err(unknown),
        };
        match response_cost {
            Ok(Sum { permits, is_partial }) => {
                let is_told = is_partial && ending.status() < Some(FIRST_ERROR);
                (permits.min(*most), is_told.then_some(UnknownUsage::Partial))
            }
            Err(UnknownUsage::Error) => (*error, Some(UnknownUsage::Error)),
            Err(_) if has_begun && ending.status() >= Some(FIRST_ERROR) => {
                (*error, Some(UnknownUsage::Error))
            }
            Err(unknown) => (*missing, Some(unknown)),
        }
    }
}

impl KnownResponse {
    /// With the sum of these headers or trailers, which have arrived.
    fn with_numbers(self, names: &[(String, i64)], ending: &dyn Ending) -> KnownResponse {
        let number = |name: &String| match ending.header(name) {
            Values::None => Err(UnknownUsage::Absent),
            // HTTP/2 permits spaces around a value.
            Values::One(value) => usable(scientific(value.trim_ascii())),
            Values::Many(_) => Err(UnknownUsage::Unusable),
        };
        match sum(names, number) {
            Ok(Sum { permits: used, is_partial }) => {
                let usage = if is_partial { HeaderUsage::Partial } else { HeaderUsage::Used };
                KnownResponse { usage, used, ..self }
            }
            Err(unknown) => KnownResponse { usage: HeaderUsage::Unknown(unknown), ..self },
        }
    }

    /// As [`KnownResponse::with_numbers`], for trailers with this status of gRPC.
    fn with_trailers(
        self,
        names: &[(String, i64)],
        status: Option<u8>,
        ending: &dyn Ending,
    ) -> KnownResponse {
        let response = self.with_numbers(names, ending);
        match response.usage {
            HeaderUsage::Unknown(_) if status.is_some_and(|status| status > 0) => {
                KnownResponse { usage: HeaderUsage::Unknown(UnknownUsage::Error), ..response }
            }
            _ => response,
        }
    }
}

/// The status of gRPC in the headers or trailers that have arrived. One that is no number is 2
/// (unknown), as clients read it.
fn grpc_status(ending: &dyn Ending) -> Option<u8> {
    const UNKNOWN: u8 = 2;
    let first = match ending.header("grpc-status") {
        Values::None => return None,
        Values::One(value) => Some(value),
        Values::Many(values) => values.first().copied(),
    };
    let number = first.and_then(|value| str::from_utf8(value.trim_ascii()).ok()?.parse().ok());
    Some(number.unwrap_or(UNKNOWN))
}

/// Returns true if the response is one of gRPC, whose status comes in its trailers.
fn is_grpc(ending: &dyn Ending) -> bool {
    let Values::One(kind) = ending.header("content-type") else { return false };
    let rest = kind.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// Returns true if the outcome is listed. A client that leaves before it counts too.
fn counts(count: &Outcomes, response: KnownResponse, ending: &dyn Ending) -> bool {
    let has_begun = response.usage != HeaderUsage::Nothing;
    match response.grpc {
        GrpcOutcome::Listed => return true,
        GrpcOutcome::Awaited if ending.client_left() => return true,
        _ => {}
    }
    if count.failed && !(has_begun && ending.is_complete()) {
        return true;
    }
    if !has_begun && ending.client_left() {
        return true;
    }
    let status = ending.status().unwrap_or_default();
    if count.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status)) {
        return true;
    }
    if count.details.is_empty() {
        return false;
    }
    let details = ending.details().unwrap_or_default();
    let reason = details.split(|byte| *byte == b'{').next().unwrap_or_default();
    count.details.iter().any(|listed| listed.as_bytes() == reason)
}

impl UsageSource {
    fn of(terms: &[Term]) -> UsageSource {
        let header = |term: &Term| match &term.source {
            ResponseSource::Header(name) => Some((name.clone(), term.weight)),
            _ => None,
        };
        let trailer = |term: &Term| match &term.source {
            ResponseSource::Trailer(name) => Some((name.clone(), term.weight)),
            _ => None,
        };
        let headers: Vec<_> = terms.iter().filter_map(header).collect();
        let trailers: Vec<_> = terms.iter().filter_map(trailer).collect();
        if !headers.is_empty() {
            return UsageSource::Headers(headers);
        }
        if !trailers.is_empty() {
            return UsageSource::Trailers(trailers);
        }
        let at_end = |term: &Term| Some((EndNumber::of(&term.source)?, term.weight));
        UsageSource::AtEnd {
            numbers: terms.iter().filter_map(at_end).collect(),
            are_measured: terms.iter().all(|term| term.source.is_measured()),
        }
    }

    /// Returns true if the usage is known after any end.
    fn are_measured(&self) -> bool {
        matches!(self, UsageSource::AtEnd { are_measured: true, .. })
    }

    /// Reads the usage at the end of a stream, after the headers of its response.
    fn read(&self, ending: &dyn Ending, elapsed: Micros) -> Result<Sum, UnknownUsage> {
        if !self.are_measured() && !ending.is_complete() {
            return Err(if ending.client_left() {
                UnknownUsage::ClientLeft
            } else {
                UnknownUsage::Cut
            });
        }
        let UsageSource::AtEnd { numbers, .. } = self else { return Err(UnknownUsage::Absent) };
        sum(numbers, |number| number.read(ending, elapsed))
    }
}

impl EndNumber {
    /// `None` for a header or a trailer, which is read when it comes.
    fn of(source: &ResponseSource) -> Option<EndNumber> {
        Some(match source {
            ResponseSource::Header(_) | ResponseSource::Trailer(_) => return None,
            ResponseSource::Metadata { path, form } => {
                let kind = match form {
                    NumberForm::Number | NumberForm::Text { typed: false } => "filter_metadata",
                    NumberForm::Typed | NumberForm::Text { typed: true } => "typed_filter_metadata",
                };
                let path = path.iter().map(String::as_str);
                let path: Vec<&str> = ["metadata", kind].into_iter().chain(path).collect();
                EndNumber::Metadata(Property::new(&path), *form)
            }
            // Without the headers, which the host no longer has at the end.
            ResponseSource::RequestBytes => {
                EndNumber::Bytes(Property::new(&["request", "total_size"]))
            }
            ResponseSource::ResponseBytes => {
                EndNumber::Bytes(Property::new(&["response", "total_size"]))
            }
            ResponseSource::Duration => EndNumber::Duration,
        })
    }

    fn read(&self, ending: &dyn Ending, elapsed: Micros) -> Result<Number, UnknownUsage> {
        let (property, form) = match self {
            EndNumber::Metadata(property, form) => (property, *form),
            EndNumber::Bytes(property) => (property, NumberForm::Typed),
            EndNumber::Duration => return usable(Some(elapsed.div_ceil(MILLISECOND).into())),
        };
        let Some(value) = ending.property(property) else { return Err(UnknownUsage::Absent) };
        usable(match form {
            NumberForm::Number => exact_float(&value),
            NumberForm::Typed => integer(&value).map(Number::from),
            NumberForm::Text { .. } => scientific(&value),
        })
    }
}

/// The usage that numbers add up to.
struct Sum {
    permits: u64,
    /// Whether a number was missing.
    is_partial: bool,
}

/// The weighted sum of numbers in permits, rounded up once, and at least 0. Missing numbers count as 0, unless all are
/// missing.
fn sum<N>(
    terms: &[(N, i64)],
    read: impl Fn(&N) -> Result<Number, UnknownUsage>,
) -> Result<Sum, UnknownUsage> {
    // A single number of permits needs no wide arithmetic.
    if let [(number, Term::ONE)] = terms {
        return Ok(Sum { permits: read(number)?.rounded_up(), is_partial: false });
    }
    let (mut billionths, mut is_found, mut is_partial) = (0, false, false);
    // Of the fractions: billionths of billionths.
    let mut smaller = 0;
    for (number, weight) in terms {
        match read(number) {
            Ok(number) => {
                is_found = true;
                billionths += i128::from(number.whole) * i128::from(*weight);
                if number.billionths > 0 {
                    smaller += i128::from(number.billionths) * i128::from(*weight);
                }
            }
            Err(UnknownUsage::Absent) => is_partial = true,
            Err(unusable) => return Err(unusable),
        }
    }
    if smaller != 0 {
        // Rounded up.
        billionths -= (-smaller).div_euclid(Term::ONE.into());
    }
    let one = Term::ONE.unsigned_abs();
    // Most sums fit 64 bits, where a division is fast.
    let permits = match u64::try_from(billionths.max(0)) {
        Ok(few) => few.div_ceil(one),
        Err(_) => (billionths.unsigned_abs().div_ceil(one.into())).try_into().unwrap_or(u64::MAX),
    };
    is_found.then_some(Sum { permits, is_partial }).ok_or(UnknownUsage::Absent)
}

fn usable(number: Option<Number>) -> Result<Number, UnknownUsage> {
    number.filter(|number| number.rounded_up() <= LARGEST).ok_or(UnknownUsage::Unusable)
}
