//! HTTP calls of the module, which tests answer.

use super::pairs::Headers;

/// A pending call. It belongs to a root, even if a stream made it.
#[derive(Debug, Clone)]
pub struct CallOut {
    pub token: u32,
    pub root: u32,
    pub cluster: String,
    pub headers: Headers,
    pub body: Vec<u8>,
    /// Milliseconds. Zero is no timeout.
    pub timeout: u32,
}

/// The response. A reset call has no headers and no body.
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
    /// A response of an upstream. Envoy also generates responses if it cannot connect (503) or
    /// after a timeout (504).
    pub fn new(status: u16, body: &str) -> Response {
        Response {
            headers: vec![(":status".into(), status.to_string().into_bytes())],
            body: body.into(),
        }
    }

    /// The upstream aborted the response.
    pub fn reset() -> Response {
        Response::default()
    }
}
