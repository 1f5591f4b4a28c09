//! The usage of a request, determined when its stream ends.

use diana_policy::number::{decimal, float, integer};
use diana_policy::port::{Ending, Property, Values};
use diana_policy::{NumberForm, Outcomes, ResponseCost, ResponseSource, Settling};

/// Larger values are not numbers of permits.
const LARGEST: u64 = 1 << 53;

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
}

/// Reads the usage from the response.
#[derive(Debug)]
struct ResponseReader {
    source: UsageSource,
    most: u64,
    missing: u64,
    error: u64,
}

#[derive(Debug)]
enum UsageSource {
    Header(String),
    Metadata(Property, NumberForm),
}

/// The result of reading the response headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeaderUsage {
    /// The upstream has not sent headers.
    #[default]
    Nothing,
    /// The upstream has sent headers, and the usage is not in a header.
    Begun,
    /// A header contained the usage.
    Used,
    /// The configured header was missing or unusable.
    Unknown(UnknownUsage),
}

/// Why the usage of a request is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownUsage {
    /// The client left before the upstream reported it.
    ClientLeft,
    /// The response was cut off.
    Cut,
    /// The stream ended before the upstream's headers, and not by the client.
    Unanswered,
    /// The response has an error status and no usable number.
    Error,
    /// The header or metadata is missing.
    Absent,
    /// The value is not a single number of permits.
    Unusable,
}

impl UsageReader {
    /// A reader for this configuration.
    #[must_use]
    pub fn new(settling: &Settling) -> UsageReader {
        let response_cost = settling.response_cost.as_ref().map(|response_cost| {
            let ResponseCost { ref source, most, missing, error } = *response_cost;
            ResponseReader { source: UsageSource::of(source), most, missing, error }
        });
        let Settling { reserve, ref count, bans, is_slot, .. } = *settling;
        UsageReader {
            response_cost,
            count: count.clone(),
            reserves_nothing: reserve == 0,
            bans,
            is_slot,
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

    /// Returns true if requests are only checked on arrival, and charged at the end.
    #[must_use]
    pub fn reserves_nothing(&self) -> bool {
        self.reserves_nothing
    }

    /// Reads the response headers on their arrival. Returns their state, and the usage in permits
    /// if it is [`HeaderUsage::Used`].
    #[must_use]
    pub fn read_headers(&self, ending: &dyn Ending) -> (HeaderUsage, u64) {
        if !ending.is_from_upstream() {
            return (HeaderUsage::Nothing, 0);
        }
        let Some(ResponseReader { source: UsageSource::Header(name), .. }) = &self.response_cost
        else {
            return (HeaderUsage::Begun, 0);
        };
        let response_cost = match ending.header(name) {
            Values::None => Err(UnknownUsage::Absent),
            // HTTP/2 permits spaces around a value.
            Values::One(value) => usable(decimal(value.trim_ascii())),
            Values::Many(_) => Err(UnknownUsage::Unusable),
        };
        match response_cost {
            Ok(used) => (HeaderUsage::Used, used),
            Err(unknown) => (HeaderUsage::Unknown(unknown), 0),
        }
    }

    /// The usage in permits of a request with this reservation at the end of its stream, and the
    /// reason if it is an estimate. `header_usage` and `used` are the results of reading the
    /// response headers.
    #[must_use]
    pub fn used(
        &self,
        reserved: u64,
        (header_usage, used): (HeaderUsage, u64),
        ending: &dyn Ending,
    ) -> (u64, Option<UnknownUsage>) {
        if ending.is_followed() {
            // The request returns for the internal redirect.
            return (0, None);
        }
        let has_begun = header_usage != HeaderUsage::Nothing;
        if let Some(count) = &self.count
            && !counts(count, has_begun, ending)
        {
            return (0, None);
        }
        let Some(ResponseReader { source, most, missing, error }) = &self.response_cost else {
            return (reserved, None);
        };
        let response_cost = match header_usage {
            HeaderUsage::Nothing if ending.client_left() => Err(UnknownUsage::ClientLeft),
            HeaderUsage::Nothing => return (0, Some(UnknownUsage::Unanswered)),
            HeaderUsage::Begun => source.read(ending),
            HeaderUsage::Used => Ok(used),
            HeaderUsage::Unknown(unknown) => Err(unknown),
        };
        match response_cost {
            Ok(used) => (used.min(*most), None),
            Err(_) if has_begun && ending.status() >= Some(FIRST_ERROR) => {
                (*error, Some(UnknownUsage::Error))
            }
            Err(unknown) => (*missing, Some(unknown)),
        }
    }
}

/// Returns true if the outcome is listed. A client that leaves before the response counts too.
/// `has_begun` is true if the upstream has sent headers.
fn counts(count: &Outcomes, has_begun: bool, ending: &dyn Ending) -> bool {
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
    fn of(place: &ResponseSource) -> UsageSource {
        match place {
            ResponseSource::Header(name) => UsageSource::Header(name.clone()),
            ResponseSource::Metadata { path, form } => {
                let kind = match form {
                    NumberForm::Number | NumberForm::Text { typed: false } => "filter_metadata",
                    NumberForm::Typed | NumberForm::Text { typed: true } => "typed_filter_metadata",
                };
                let path = path.iter().map(String::as_str);
                let path: Vec<&str> = ["metadata", kind].into_iter().chain(path).collect();
                UsageSource::Metadata(Property::new(&path), *form)
            }
        }
    }

    /// Reads the usage at the end of a stream, after the headers of its response.
    fn read(&self, ending: &dyn Ending) -> Result<u64, UnknownUsage> {
        if !ending.is_complete() {
            return Err(if ending.client_left() {
                UnknownUsage::ClientLeft
            } else {
                UnknownUsage::Cut
            });
        }
        let UsageSource::Metadata(property, form) = self else { return Err(UnknownUsage::Absent) };
        let Some(value) = ending.property(property) else { return Err(UnknownUsage::Absent) };
        usable(match form {
            NumberForm::Number => float(&value),
            NumberForm::Typed => integer(&value),
            NumberForm::Text { .. } => decimal(&value),
        })
    }
}

fn usable(number: Option<u64>) -> Result<u64, UnknownUsage> {
    number.filter(|number| *number <= LARGEST).ok_or(UnknownUsage::Unusable)
}
