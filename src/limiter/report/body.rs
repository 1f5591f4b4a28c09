//! The body of the response to a refused request: as configured, or problem details of RFC 9457
//! with the types of draft-ietf-httpapi-ratelimit-headers-11.

use std::sync::Arc;

use serde::Serialize;

use super::{Record, Refusal};
use diana_policy::BodyPiece;
use diana_policy::json;
use diana_policy::names;
use diana_store::refusal::Reason;

/// The media type of problem details.
const PROBLEM: &str = "application/problem+json";

/// The prefix of the problem types.
const TYPES: &str = "https://iana.org/assignments/http-problem-types#";

/// The body if no limit was exceeded, so that the configured one would be wrong.
const UNAVAILABLE: &str = "rate limiter unavailable";

/// The maximum length of a reported request id, in bytes.
const LONGEST_ID: usize = 128;

#[derive(Serialize)]
struct ProblemDetails<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(rename = "violated-policies", skip_serializing_if = "Vec::is_empty")]
    violated: Vec<&'a str>,
}

impl Refusal {
    /// Returns true if the body contains the request's id.
    #[must_use]
    pub fn contains_id(&self) -> bool {
        self.response.body.contains(&BodyPiece::Id)
    }

    /// The body for a request with this id. It contains only names, numbers, and ids of safe
    /// characters, so that clients cannot inject text.
    #[must_use]
    pub fn body(&self, id: &[u8]) -> Arc<str> {
        let detail = self.detail(id);
        if self.response.is_problem { self.problem(&detail).into() } else { detail }
    }

    /// The body's media type.
    #[must_use]
    pub fn content_type(&self) -> &str {
        match self.response.is_problem {
            true => PROBLEM,
            false if self.is_unavailable() => "text/plain",
            false => &self.response.content_type,
        }
    }

    /// The body in plain text.
    pub(super) fn detail(&self, id: &[u8]) -> Arc<str> {
        if self.is_unavailable() {
            return UNAVAILABLE.into();
        }
        // The common case.
        if let [BodyPiece::Text(text)] = self.response.body.as_slice() {
            return text.clone();
        }
        let mut body = String::new();
        for piece in &self.response.body {
            match piece {
                BodyPiece::Text(text) => body.push_str(text),
                BodyPiece::Rule if self.by.shown => {
                    body.push_str(names::for_clients(&self.by.rule))
                }
                BodyPiece::Rule => {}
                BodyPiece::RetryAfter => body.extend(self.retry_after().map(|it| it.to_string())),
                BodyPiece::Limit => body.push_str(&self.by.policy.0.to_string()),
                BodyPiece::Remaining => {
                    body.extend(self.by.outcome.remaining().map(|it| it.to_string()));
                }
                BodyPiece::Id if is_id(id) => body.push_str(str::from_utf8(id).unwrap_or_default()),
                BodyPiece::Id => {}
            }
        }
        body.into()
    }

    fn problem(&self, detail: &str) -> String {
        let (kind, title) = match (self.reason(), self.status()) {
            (Some(Reason::Banned), _) => ("abnormal-usage-detected", "Abnormal usage detected"),
            (_, 503) => ("temporary-reduced-capacity", "Temporarily reduced capacity"),
            _ => ("quota-exceeded", "Quota exceeded"),
        };
        let violated = |record: &&Record| record.shown && record.outcome.refused().is_some();
        let violated = self.records().iter().filter(violated);
        json::ascii(&ProblemDetails {
            kind: &[TYPES, kind].concat(),
            title,
            status: self.status(),
            detail,
            violated: violated.map(|record| names::for_clients(&record.rule)).collect(),
        })
    }
}

fn is_id(id: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    (1..=LONGEST_ID).contains(&id.len()) && id.iter().all(is_plain)
}
