//! The usage of a request, determined when its stream ends.

use diana_policy::number::{decimal, float, integer};
use diana_policy::port::{Ending, Property, Values};
use diana_policy::{NumberForm, Outcomes, ResponseCost, ResponseSource, Settling};

/// Larger values are not numbers of permits.
const LARGEST: u64 = 1 << 53;

/// Determines the usage of requests.
#[derive(Debug)]
pub struct Settler {
    told: Option<UsageReader>,
    count: Option<Outcomes>,
    reserves_nothing: bool,
    bans: bool,
    is_place: bool,
}

/// Reads the usage from the response.
#[derive(Debug)]
struct UsageReader {
    source: UsageSource,
    most: u64,
    missing: u64,
}

#[derive(Debug)]
enum UsageSource {
    Header(String),
    Metadata(Property, NumberForm),
}

/// The result of reading the response headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Heard {
    /// The upstream has not sent headers.
    #[default]
    Nothing,
    /// The upstream has sent headers, and the usage is not in a header.
    Begun,
    /// A header contained the usage.
    Used,
    /// The configured header was missing or unusable.
    Unknown(Untold),
}

/// Why the usage of a request is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untold {
    /// The client left before the upstream reported it.
    ClientLeft,
    /// The response was cut off, or did not come from the upstream.
    Cut,
    /// The header or metadata is missing.
    Absent,
    /// The value is not a single number of permits.
    Unusable,
}

impl Settler {
    /// A reader for this configuration.
    #[must_use]
    pub fn new(settling: &Settling) -> Settler {
        let told = settling.told.as_ref().map(|ResponseCost { place, most, missing }| {
            UsageReader { source: UsageSource::of(place), most: *most, missing: *missing }
        });
        let Settling { reserve, ref count, bans, is_place, .. } = *settling;
        Settler { told, count: count.clone(), reserves_nothing: reserve == 0, bans, is_place }
    }

    /// Returns true if counted outcomes lead to a ban, instead of refusals.
    #[must_use]
    pub fn bans(&self) -> bool {
        self.bans
    }

    /// Returns true if the charges are in-flight slots.
    #[must_use]
    pub fn is_place(&self) -> bool {
        self.is_place
    }

    /// Returns true if requests are only checked on arrival, and charged at the end.
    #[must_use]
    pub fn reserves_nothing(&self) -> bool {
        self.reserves_nothing
    }

    /// Reads the response headers on their arrival. Returns their state, and the usage in permits
    /// if it is [`Heard::Used`].
    #[must_use]
    pub fn hear(&self, ending: &dyn Ending) -> (Heard, u64) {
        if !ending.is_from_upstream() {
            return (Heard::Nothing, 0);
        }
        let Some(UsageReader { source: UsageSource::Header(name), .. }) = &self.told else {
            return (Heard::Begun, 0);
        };
        let told = match ending.header(name) {
            Values::None => Err(Untold::Absent),
            // HTTP/2 permits spaces around a value.
            Values::One(value) => usable(decimal(value.trim_ascii())),
            Values::Many(_) => Err(Untold::Unusable),
        };
        match told {
            Ok(used) => (Heard::Used, used),
            Err(untold) => (Heard::Unknown(untold), 0),
        }
    }

    /// The usage in permits of a request with this reservation at the end of its stream, and the
    /// reason if it is an estimate. `heard` and `used` are the results of reading the response
    /// headers.
    #[must_use]
    pub fn used(
        &self,
        reserved: u64,
        (heard, used): (Heard, u64),
        ending: &dyn Ending,
    ) -> (u64, Option<Untold>) {
        if ending.is_followed() {
            // The request returns for the internal redirect.
            return (0, None);
        }
        if let Some(count) = &self.count
            && !counts(count, heard, ending)
        {
            return (0, None);
        }
        let Some(UsageReader { source, most, missing }) = &self.told else {
            return (reserved, None);
        };
        let told = match heard {
            Heard::Nothing if ending.upstream_failed() => return (0, None),
            Heard::Nothing | Heard::Begun => source.read(heard, ending),
            Heard::Used => Ok(used),
            Heard::Unknown(untold) => Err(untold),
        };
        match told {
            Ok(used) => (used.min(*most), None),
            Err(untold) => (*missing, Some(untold)),
        }
    }
}

/// Returns true if the outcome is listed. A client that leaves before the response counts too.
fn counts(count: &Outcomes, heard: Heard, ending: &dyn Ending) -> bool {
    let Some(status) = ending.status() else { return true };
    if count.failed
        && (ending.upstream_failed() || heard != Heard::Nothing && !ending.is_from_upstream())
    {
        return true;
    }
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

    /// Reads the usage at the end of the stream.
    fn read(&self, heard: Heard, ending: &dyn Ending) -> Result<u64, Untold> {
        if !ending.is_from_upstream() || heard == Heard::Nothing {
            return Err(if ending.client_left() { Untold::ClientLeft } else { Untold::Cut });
        }
        let UsageSource::Metadata(property, form) = self else { return Err(Untold::Absent) };
        let Some(value) = ending.property(property) else { return Err(Untold::Absent) };
        usable(match form {
            NumberForm::Number => float(&value),
            NumberForm::Typed => integer(&value),
            NumberForm::Text { .. } => decimal(&value),
        })
    }
}

fn usable(number: Option<u64>) -> Result<u64, Untold> {
    number.filter(|number| *number <= LARGEST).ok_or(Untold::Unusable)
}
