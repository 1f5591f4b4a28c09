//! Lines of text: Envoy's own format, Istio's, the common log format, and combined.
//!
//! The line shows its format: it begins with the time or with an address, and its fifth column is a
//! number of bytes or a reason.
//!
//! Sources:
//! <https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage>,
//! <https://istio.io/latest/docs/tasks/observability/logs/access-log/>,
//! <https://httpd.apache.org/docs/current/logs.html>

use diana_policy::time::Micros;
use memchr::{memchr, memrchr};

use super::columns::Columns;
use super::entry::LogEntry;
use super::fields::{FieldMapping, FieldTarget, LogField};
use super::instant::{self, number};

/// The columns of a format.
struct Layout {
    time: usize,
    request: usize,
    status: usize,
    duration: Option<usize>,
    fields: &'static [(LogField, usize)],
}

const ENVOY: Layout = Layout {
    time: 0,
    request: 1,
    status: 2,
    duration: Some(6),
    fields: &[
        (LogField::Flags, 3),
        (LogField::ForwardedFor, 8),
        (LogField::UserAgent, 9),
        (LogField::RequestId, 10),
        (LogField::Host, 11),
    ],
};

const ISTIO: Layout = Layout {
    time: 0,
    request: 1,
    status: 2,
    duration: Some(9),
    fields: &[
        (LogField::Flags, 3),
        (LogField::Details, 4),
        (LogField::ForwardedFor, 11),
        (LogField::UserAgent, 12),
        (LogField::RequestId, 13),
        (LogField::Host, 14),
        (LogField::Address, 19),
        (LogField::Route, 21),
    ],
};

const COMMON: Layout = Layout {
    time: 3,
    request: 4,
    status: 5,
    duration: None,
    fields: &[(LogField::Address, 0), (LogField::Referer, 7), (LogField::UserAgent, 8)],
};

/// Reads a line.
///
/// # Errors
/// Why the line has no request.
pub fn read(
    line: &[u8],
    columns: &mut Columns,
    mapping: &FieldMapping,
    entry: &mut LogEntry,
) -> Result<(), &'static str> {
    columns.split(line);
    entry.store_line(line);
    let layout = layout(line, columns);
    let column = |number: usize| columns.of(line, number);
    let mut time = column(layout.time);
    let mut took = layout.duration.and_then(column);
    let mut status = column(layout.status);
    for (number, target, at) in mapping.columns() {
        let Some(text) = column(at) else { continue };
        match target {
            FieldTarget::Time => time = Some(text),
            FieldTarget::Duration => took = Some(text),
            FieldTarget::Status => status = Some(text),
            FieldTarget::Field(field) => entry.put(*field, text),
            FieldTarget::Header(_) | FieldTarget::Response(_) | FieldTarget::Property(_) => {
                entry.put_set(number, text)
            }
        }
    }
    entry.at = time.and_then(instant::parse).ok_or("it has no time")?;
    entry.took = took.and_then(milliseconds);
    entry.status = status.and_then(self::status).ok_or("it has no status")?;
    let (method, path) = column(layout.request).and_then(request).ok_or("it has no request")?;
    entry.put(LogField::Method, method);
    entry.put(LogField::Path, path);
    for (field, column) in layout.fields {
        columns.span(*column).into_iter().for_each(|span| entry.put_span(*field, span));
    }
    Ok(())
}

fn layout(line: &[u8], columns: &Columns) -> &'static Layout {
    match line.first() {
        Some(b'[') => {
            let fifth = columns.of(line, 4).and_then(<[u8]>::first);
            if fifth.is_some_and(u8::is_ascii_digit) { &ENVOY } else { &ISTIO }
        }
        _ => &COMMON,
    }
}

/// Method and path of `GET /path HTTP/1.1`.
fn request(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = memchr(b' ', text)?;
    let last = memrchr(b' ', text).filter(|last| *last > first).unwrap_or(text.len());
    Some((text.get(..first)?, text.get(first + 1..last)?)).filter(|(method, _)| !method.is_empty())
}

/// A duration in milliseconds, of which there may be fractions.
pub fn milliseconds(text: &[u8]) -> Option<Micros> {
    let whole = text.split(|byte| *byte == b'.').next()?;
    number(whole)?.checked_mul(1000)
}

/// The status of a response; zero if there was none.
pub fn status(text: &[u8]) -> Option<u16> {
    u16::try_from(number(text)?).ok().filter(|status| *status < 1000)
}
