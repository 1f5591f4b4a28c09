//! The response to a request.

use std::collections::HashMap;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use hyper::{Method, Response, StatusCode};
use tokio::sync::watch;

use super::metrics::{Poll, Polls};
use super::rules::{Document, Served};

/// Everything that is served.
#[derive(Debug)]
pub struct Site {
    /// The modules by their path.
    pub modules: HashMap<String, Bytes>,
    /// The rules, which change.
    pub rules: watch::Receiver<Served>,
    /// The number of requests for the rules.
    pub polls: Polls,
}

impl Site {
    /// The response to a request for a path. The server itself drops the body for HEAD.
    pub fn answer(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Response<Full<Bytes>> {
        if ![Method::GET, Method::HEAD].contains(method) {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "allowed: GET, HEAD\n".into());
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        match path {
            "/live" => text(StatusCode::OK, "live\n".into()),
            "/ready" => self.ready(),
            "/rules.yaml" => self.rules(headers),
            "/metrics" => text(StatusCode::OK, self.polls.metrics(&self.rules.borrow())),
            "/rules.txt" if self.rules.borrow().document.is_none() => self.ready(),
            "/rules.txt" => text(StatusCode::OK, self.names()),
            _ => match self.modules.get(path) {
                Some(module) => response(StatusCode::OK, kind_of(path), module.clone()),
                None => text(StatusCode::NOT_FOUND, "not found\n".into()),
            },
        }
    }

    /// The rules, or that they are those that the client has.
    fn rules(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let Some(Document { text, version }) = self.rules.borrow().document.clone() else {
            self.polls.count(Poll::Unready);
            return self.ready();
        };
        let tag = format!("\"{version:016x}\"");
        let mut answer = if is_known(&tag, headers) {
            self.polls.count(Poll::Unchanged);
            let mut answer = Response::new(Full::default());
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            answer
        } else {
            self.polls.count(Poll::Document);
            response(StatusCode::OK, "application/yaml", text)
        };
        answer.headers_mut().extend(HeaderValue::from_str(&tag).ok().map(|tag| (ETAG, tag)));
        answer
    }

    /// The names of the rules, each on a line.
    fn names(&self) -> String {
        self.rules.borrow().rules.iter().map(|name| format!("{name}\n")).collect()
    }

    /// Whether there are rules, with the problems of the file.
    fn ready(&self) -> Response<Full<Bytes>> {
        let Served { document, problems, .. } = self.rules.borrow().clone();
        let problems = problems.unwrap_or_default();
        match document {
            Some(_) if problems.is_empty() => text(StatusCode::OK, "ready\n".into()),
            Some(_) => text(StatusCode::OK, format!("ready, with the last good rules\n{problems}")),
            None => text(StatusCode::SERVICE_UNAVAILABLE, format!("no rules to serve\n{problems}")),
        }
    }
}

/// Returns true if the client has the content with this tag. A proxy that compresses makes tags
/// weak, and HTTP compares both kinds alike here.
fn is_known(tag: &str, headers: &HeaderMap) -> bool {
    let lists = headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|list| list.to_str().ok());
    let mut tags = lists.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// The type of a module.
fn kind_of(path: &str) -> &'static str {
    if path.ends_with(".wasm") { "application/wasm" } else { "application/octet-stream" }
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", text.into())
}

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
