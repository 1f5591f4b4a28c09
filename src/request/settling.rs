//! What a request turned out to use, by how its stream ended.

use diana_policy::number::{decimal, float, integer};
use diana_policy::port::{Ending, Property, Values};
use diana_policy::{Answered, NumberForm, Outcomes, ResponseSource, Settling};

/// Whatever is more is no number of permits.
const LARGEST: u64 = 1 << 53;

/// Says what requests used.
#[derive(Debug)]
pub struct Settler {
    told: Option<Reader>,
    count: Option<Outcomes>,
    reserves_nothing: bool,
    bans: bool,
    is_place: bool,
}

/// Reads what the response says.
#[derive(Debug)]
struct Reader {
    source: Source,
    most: u64,
    missing: u64,
}

#[derive(Debug)]
enum Source {
    Header(String),
    Metadata(Property, NumberForm),
}

/// What is known of a response since its headers came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Heard {
    /// The upstream has not begun to answer.
    #[default]
    Nothing,
    /// It has, and nobody listened to more.
    Begun,
    /// A header said what was used.
    Used,
    /// One was to, and said nothing that is of use.
    Unknown(Untold),
}

/// Why nobody knows what a request used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untold {
    /// The client left before it was told.
    ClientLeft,
    /// The response was cut off, or came from elsewhere.
    Cut,
    /// The header or the metadata is not there.
    Absent,
    /// What is there is not one number of permits.
    Unusable,
}

impl Settler {
    /// Settles as it says.
    #[must_use]
    pub fn new(settling: &Settling) -> Settler {
        let told = settling.told.as_ref().map(|Answered { place, most, missing }| Reader {
            source: Source::of(place),
            most: *most,
            missing: *missing,
        });
        let Settling { reserve, ref count, bans, is_place, .. } = *settling;
        Settler { told, count: count.clone(), reserves_nothing: reserve == 0, bans, is_place }
    }

    /// Whether requests that count lead to a ban, in place of those that are refused.
    #[must_use]
    pub fn bans(&self) -> bool {
        self.bans
    }

    /// Whether what is charged are places in flight.
    #[must_use]
    pub fn is_place(&self) -> bool {
        self.is_place
    }

    /// Whether requests are only checked when they come.
    #[must_use]
    pub fn reserves_nothing(&self) -> bool {
        self.reserves_nothing
    }

    /// What the headers of the response say, which have just come, and how many permits were used if they say so.
    #[must_use]
    pub fn hear(&self, ending: &dyn Ending) -> (Heard, u64) {
        if !ending.is_from_upstream() {
            return (Heard::Nothing, 0);
        }
        let Some(Reader { source: Source::Header(name), .. }) = &self.told else {
            return (Heard::Begun, 0);
        };
        let told = match ending.header(name) {
            Values::None => Err(Untold::Absent),
            // Over HTTP/2 spaces come through.
            Values::One(value) => usable(decimal(value.trim_ascii())),
            Values::Many(_) => Err(Untold::Unusable),
        };
        match told {
            Ok(used) => (Heard::Used, used),
            Err(untold) => (Heard::Unknown(untold), 0),
        }
    }

    /// Permits that a request used for which so many were reserved, now that its stream has ended; and why that is
    /// a guess, if it is. `heard` is what the headers of the response said.
    #[must_use]
    pub fn used(
        &self,
        reserved: u64,
        (heard, used): (Heard, u64),
        ending: &dyn Ending,
    ) -> (u64, Option<Untold>) {
        if ending.is_followed() {
            // The request comes once more.
            return (0, None);
        }
        if let Some(count) = &self.count
            && !counts(count, heard, ending)
        {
            return (0, None);
        }
        let Some(Reader { source, most, missing }) = &self.told else { return (reserved, None) };
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

/// Whether an outcome is one of those. A client that left before there was one does not escape.
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

impl Source {
    fn of(place: &ResponseSource) -> Source {
        match place {
            ResponseSource::Header(name) => Source::Header(name.clone()),
            ResponseSource::Metadata { path, form } => {
                let kind = match form {
                    NumberForm::Number | NumberForm::Text { typed: false } => "filter_metadata",
                    NumberForm::Typed | NumberForm::Text { typed: true } => "typed_filter_metadata",
                };
                let path = path.iter().map(String::as_str);
                let path: Vec<&str> = ["metadata", kind].into_iter().chain(path).collect();
                Source::Metadata(Property::new(&path), *form)
            }
        }
    }

    /// What is said at the end of the stream.
    fn read(&self, heard: Heard, ending: &dyn Ending) -> Result<u64, Untold> {
        if !ending.is_from_upstream() || heard == Heard::Nothing {
            return Err(if ending.client_left() { Untold::ClientLeft } else { Untold::Cut });
        }
        let Source::Metadata(property, form) = self else { return Err(Untold::Absent) };
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
