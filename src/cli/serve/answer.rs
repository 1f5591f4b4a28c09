//! The response to a request.

use std::collections::HashMap;
use std::net::IpAddr;
#[cfg(feature = "policies")]
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::metrics::{Poll, Polls};
use super::order::{DocumentTag, Due, Had};
#[cfg(feature = "policies")]
use super::policies::Pollers;
use super::rules::{Behind, Document, Served};

/// Time for which a request waits until this server has listed the objects again.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Time for which the first poll with a text counts for later ones: thousands of policies take longer
/// to list than a poll waits.
const TEXT_TIME: Duration = Duration::from_secs(30);

/// Texts that are remembered. Any client may make them up.
const MOST_TEXTS: usize = 64;

/// The number of gateways of the one that polls.
const GATEWAYS: HeaderName = HeaderName::from_static("x-diana-gateways");

/// Everything that is served.
#[derive(Debug)]
pub struct Site {
    /// The modules by their path.
    pub modules: HashMap<String, Bytes>,
    /// The rules, which change.
    pub rules: watch::Receiver<Served>,
    /// Requests to list the objects of the API server again.
    pub behind: watch::Sender<Behind>,
    /// The number of requests for the rules.
    pub polls: Polls,
    /// The polls of gateways, if policies are served.
    #[cfg(feature = "policies")]
    pub pollers: Option<Arc<Pollers>>,
}

impl Site {
    /// The response to a request for a path. The server itself drops the body for HEAD.
    pub async fn answer(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Response<Full<Bytes>> {
        if ![Method::GET, Method::HEAD].contains(method) {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "allowed: GET, HEAD\n".into());
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        match path {
            "/live" => text(StatusCode::OK, "live\n".into()),
            "/ready" => self.ready(),
            "/rules.yaml" => {
                let gateways = self.take_poll(headers, peer);
                let mut answer = self.rules(headers).await;
                let gateways = gateways.map(|number| (GATEWAYS, number.into()));
                answer.headers_mut().extend(gateways);
                answer
            }
            #[cfg(feature = "policies")]
            "/polls.json" if let Some(pollers) = &self.pollers => {
                let text = serde_json::to_string(&pollers.processes()).unwrap_or_default();
                response(StatusCode::OK, "application/json", text.into())
            }
            "/metrics" => text(StatusCode::OK, self.polls.metrics(&self.rules.borrow())),
            "/rules.txt" if self.rules.borrow().document.is_none() => self.ready(),
            "/rules.txt" => text(StatusCode::OK, self.names()),
            _ => match self.modules.get(path) {
                Some(module) => response(StatusCode::OK, kind_of(path), module.clone()),
                None => text(StatusCode::NOT_FOUND, "not found\n".into()),
            },
        }
    }

    /// Takes a poll. Returns the number of gateways, if it is known.
    #[cfg(feature = "policies")]
    fn take_poll(&self, headers: &HeaderMap, peer: IpAddr) -> Option<usize> {
        self.pollers.as_ref()?.take_poll(headers, peer)
    }

    #[cfg(not(feature = "policies"))]
    fn take_poll(&self, _: &HeaderMap, _: IpAddr) -> Option<usize> {
        None
    }

    /// The rules, or that they are those that the client has.
    async fn rules(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let mut rules = self.rules.clone();
        let (mut is_late, mut is_confirmed) = (false, false);
        loop {
            let served = rules.borrow_and_update().clone();
            let Some(Document { text, tag }) = served.document else {
                self.polls.count(Poll::Unready);
                return self.ready();
            };
            let had = Had::read(headers, tag.version);
            let (tag, text) = match (Due::of(&tag, &served.seen, &had), had) {
                (Due::Document(tag), _) => (tag, Some(text)),
                (Due::Nothing(tag), _) => (tag, None),
                // It was there before this server listed the objects.
                (Due::Later, Had::Text(_)) if is_confirmed => (tag, Some(text)),
                (Due::Later, had) if !is_late => {
                    is_confirmed = self.is_confirmed(&mut rules, &had).await;
                    is_late = !is_confirmed;
                    continue;
                }
                // The API server does not answer: the gateway keeps its document.
                (Due::Later, Had::Tagged(tag)) => (tag, None),
                (Due::Later, _) => {
                    self.polls.count(Poll::Unready);
                    let why =
                        "the gateway may have newer rules, and the API server does not answer\n";
                    return self::text(StatusCode::SERVICE_UNAVAILABLE, why.into());
                }
            };
            return self.tagged(&tag, text);
        }
    }

    /// The answer with a document, or that the client has it.
    fn tagged(&self, tag: &DocumentTag, text: Option<Bytes>) -> Response<Full<Bytes>> {
        let mut answer = match text {
            Some(text) => {
                self.polls.count(Poll::Document);
                response(StatusCode::OK, "application/yaml", text)
            }
            None => {
                self.polls.count(Poll::Unchanged);
                let mut answer = Response::new(Full::default());
                *answer.status_mut() = StatusCode::NOT_MODIFIED;
                answer
            }
        };
        let tag = HeaderValue::from_str(&tag.to_string());
        answer.headers_mut().extend(tag.ok().map(|tag| (ETAG, tag)));
        answer
    }

    /// Waits until this server has read the API server after this call. Returns false if that takes
    /// too long.
    async fn is_confirmed(&self, rules: &mut watch::Receiver<Served>, had: &Had) -> bool {
        let mut number = 0;
        self.behind.send_if_modified(|behind| {
            let now = Instant::now();
            behind.texts.retain(|(.., since)| now.duration_since(*since) < TEXT_TIME);
            let known = behind.texts.iter().find(|it| *had == Had::Text(it.0));
            if let Some((_, known, _)) = known {
                number = *known;
                return false;
            }
            behind.number += 1;
            number = behind.number;
            match had {
                Had::Tagged(tag) => behind.order = behind.order.joined(&tag.order),
                Had::Text(version) => behind.texts.push_back((*version, number, now)),
                Had::Nothing | Had::Any => {}
            }
            if behind.texts.len() > MOST_TEXTS {
                behind.texts.pop_front();
            }
            true
        });
        let confirmed = rules.wait_for(|served| served.confirmed >= number);
        matches!(timeout(LONGEST_WAIT, confirmed).await, Ok(Ok(_)))
    }

    /// The names of the rules, each on a line.
    fn names(&self) -> String {
        self.rules.borrow().rules.iter().map(|name| format!("{name}\n")).collect()
    }

    /// Whether there are rules, with the problems of the file.
    fn ready(&self) -> Response<Full<Bytes>> {
        let Served { document, problems, waits, .. } = self.rules.borrow().clone();
        let problems = problems.or(waits).unwrap_or_default();
        match document {
            Some(_) if problems.is_empty() => text(StatusCode::OK, "ready\n".into()),
            Some(_) => text(StatusCode::OK, format!("ready, with the last good rules\n{problems}")),
            None => text(StatusCode::SERVICE_UNAVAILABLE, format!("no rules to serve\n{problems}")),
        }
    }
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
