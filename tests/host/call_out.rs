//! HTTP calls that the module made, for the test to answer.

use super::pairs::Headers;

/// A call under way. It belongs to a root, even where a stream made it.
#[derive(Debug, Clone)]
pub struct CallOut {
    pub token: u32,
    pub root: u32,
    pub cluster: String,
    pub headers: Headers,
    pub body: Vec<u8>,
    /// Milliseconds; zero is none at all.
    pub timeout: u32,
}

/// What came back. A call that was reset has no headers, and no body either.
#[derive(Debug, Clone, Default)]
pub struct Response {
    pub headers: Headers,
    pub body: Vec<u8>,
}

#[derive(Default)]
pub struct CallOuts {
    pub open: Vec<CallOut>,
    pub last_token: u32,
    /// The response that is being delivered.
    pub response: Option<Response>,
}

impl Response {
    /// A response as an upstream sends it, and also as Envoy makes one up when it cannot connect
    /// (503) or runs out of time (504).
    pub fn new(status: u16, body: &str) -> Response {
        Response {
            headers: vec![(":status".into(), status.to_string().into_bytes())],
            body: body.into(),
        }
    }

    /// The upstream went away in mid-response.
    pub fn reset() -> Response {
        Response::default()
    }
}
