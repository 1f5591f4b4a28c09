//! HTTP streams: from request headers to the end.

use std::collections::BTreeMap;

use super::answer::{Answer, StreamOutcome};
use super::pairs::Headers;
use super::request::Request;
use super::trap::Trap;
use super::vm::Vm;

/// A local reply of the module.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u32,
    pub details: String,
    pub body: Vec<u8>,
    pub headers: Headers,
    pub grpc_status: Option<u32>,
}

pub struct Stream {
    pub root: u32,
    pub request: Request,
    /// Whether the module can read the request's headers now.
    pub is_readable: bool,
    /// The response's headers, while the module can read them.
    pub response: Option<Headers>,
    /// The response's trailers, while the module can read them.
    pub trailers: Option<Headers>,
    pub filter_state: BTreeMap<String, Vec<u8>>,
    pub outcome: StreamOutcome,
    /// When it passed to the upstream, on the monotonic clock.
    pub went_on: Option<u64>,
    /// A stream that ends after this one is resumed or answered.
    neighbour: Option<u32>,
    /// The response to the client.
    sent: (Headers, Vec<u8>, String),
}

impl Stream {
    fn new(root: u32, request: &Request) -> Stream {
        Stream {
            root,
            request: request.clone(),
            is_readable: false,
            response: None,
            trailers: None,
            filter_state: BTreeMap::new(),
            outcome: StreamOutcome::Held,
            went_on: None,
            neighbour: None,
            sent: (Headers::new(), Vec::new(), String::new()),
        }
    }
}

/// The module's result to continue.
const CONTINUE: u32 = 0;

impl Vm {
    /// Sends a request, and ends its stream.
    pub fn request(&mut self, request: &Request) -> Answer {
        self.try_request(request).unwrap_or_else(|trap| panic!("{request:?}\n{trap}"))
    }

    pub fn try_request(&mut self, request: &Request) -> Result<Answer, Trap> {
        self.start_counting();
        let stream = self.open(request)?;
        self.close(stream)
    }

    /// Begins a stream, and the module processes its headers. It stays open until it is closed.
    pub fn open(&mut self, request: &Request) -> Result<u32, Trap> {
        let id = self.begin(request)?;
        self.arrive(id)?;
        Ok(id)
    }

    /// Begins a stream with headers that a preceding filter still holds.
    pub fn begin(&mut self, request: &Request) -> Result<u32, Trap> {
        let (id, root) = (self.next_id(), self.root());
        self.guest().streams.insert(id, Stream::new(root, request));
        self.call::<_, ()>("proxy_on_context_create", id, (id, root))?;
        Ok(id)
    }

    /// Passes the headers of a stream on to the module.
    pub fn arrive(&mut self, id: u32) -> Result<(), Trap> {
        let stream = self.stream(id);
        stream.is_readable = true;
        let count = u32::try_from(stream.request.headers.len()).expect("few headers");
        let verdict = self.enter::<_, u32>("proxy_on_request_headers", id, (id, count, 1_u32))?;
        self.run_actions()?;
        if matches!(verdict, None | Some((CONTINUE, false))) {
            self.resume(id);
        }
        Ok(())
    }

    /// The outcome of a stream so far.
    pub fn answer(&mut self, id: u32) -> Answer {
        let (calls, fuel) = (self.guest().calls.clone(), self.guest().fuel);
        let stream = self.stream(id);
        let (headers, body, details) = stream.sent.clone();
        let filter_state = stream.filter_state.clone();
        let (outcome, went_on) = (stream.outcome, stream.went_on);
        Answer { outcome, went_on, headers, body, details, filter_state, calls, fuel }
    }

    /// Whether a stream is held, admitted or refused so far.
    pub fn outcome(&mut self, id: u32) -> StreamOutcome {
        self.stream(id).outcome
    }

    /// The streams that have not ended.
    pub fn streams(&mut self) -> Vec<u32> {
        self.guest().streams.keys().copied().collect()
    }

    /// The root of a stream.
    pub fn root_of(&mut self, id: u32) -> u32 {
        self.stream(id).root
    }

    /// Returns true if a stream has not ended.
    pub fn is_open(&mut self, id: u32) -> bool {
        self.guest().streams.contains_key(&id)
    }

    /// The current headers of the request. After it has passed, those for the upstream.
    pub fn upstream_headers(&mut self, id: u32) -> Headers {
        self.stream(id).request.headers.clone()
    }

    /// Ends a stream: after the upstream's response if the request was admitted, or because the
    /// client left if it is still held.
    pub fn close(&mut self, id: u32) -> Result<Answer, Trap> {
        if self.stream(id).outcome == StreamOutcome::Admitted {
            let response = vec![(":status".to_owned(), b"200".to_vec())];
            self.respond(id, (response, Vec::new(), "via_upstream".into()), true)?;
        }
        self.finish(id)?;
        let answer = self.answer(id);
        self.guest().end(id);
        Ok(answer)
    }

    /// Ends a stream of an admitted request. `response` has the headers and their reason, if there
    /// is a response. The last argument has the status, Envoy's response code details and its flags
    /// at the end.
    pub fn end(
        &mut self,
        id: u32,
        response: Option<(&[(&str, &str)], &str)>,
        end: (Option<u64>, &str, u64),
    ) -> Result<Answer, Trap> {
        self.end_after_trailers(id, response, None, end)
    }

    /// As [`Vm::end`], with these trailers after the response.
    pub fn end_after_trailers(
        &mut self,
        id: u32,
        response: Option<(&[(&str, &str)], &str)>,
        trailers: Option<&[(&str, &str)]>,
        (status, details, flags): (Option<u64>, &str, u64),
    ) -> Result<Answer, Trap> {
        let tell = |vm: &mut Vm, name: &str, value: Vec<u8>| {
            let path = format!("response\0{name}").into_bytes();
            vm.stream(id).request.properties.insert(path, value);
        };
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        if let Some((headers, reason)) = response {
            tell(self, "code_details", reason.into());
            let headers = headers.iter().map(text).collect();
            self.respond(id, (headers, Vec::new(), reason.into()), trailers.is_none())?;
        }
        if let Some(trailers) = trailers {
            self.stream(id).trailers = Some(trailers.iter().map(text).collect());
            let count = u32::try_from(trailers.len()).expect("few trailers");
            self.call::<_, u32>("proxy_on_response_trailers", id, (id, count))?;
            self.stream(id).trailers = None;
        }
        status.into_iter().for_each(|code| tell(self, "code", code.to_le_bytes().into()));
        tell(self, "code_details", details.into());
        tell(self, "flags", flags.to_le_bytes().into());
        self.finish(id)?;
        let answer = self.answer(id);
        self.guest().end(id);
        Ok(answer)
    }

    /// Lets the client of `other` leave once the stream is resumed or answered after a call of the module, as when Envoy closes
    /// the connection of both.
    pub fn end_together(&mut self, id: u32, other: u32) {
        self.stream(id).neighbour = Some(other);
    }

    /// Ends the stream that ends after this one.
    pub(crate) fn end_neighbour(&mut self, id: u32) -> Result<(), Trap> {
        let neighbour = self.guest().streams.get_mut(&id).and_then(|it| it.neighbour.take());
        neighbour.map_or(Ok(()), |other| self.close(other).map(|_| ()))
    }

    /// Notifies the module of the end of a stream.
    pub(crate) fn finish(&mut self, id: u32) -> Result<(), Trap> {
        let has_left = self.stream(id).outcome == StreamOutcome::Held;
        self.stream(id).is_readable = !has_left;
        self.call::<_, ()>("proxy_on_log", id, id)?;
        self.stream(id).is_readable = false;
        self.call::<_, u32>("proxy_on_done", id, id)?;
        self.call::<_, ()>("proxy_on_delete", id, id)?;
        Ok(())
    }

    pub(crate) fn stream(&mut self, id: u32) -> &mut Stream {
        self.guest().streams.get_mut(&id).expect("the stream is open")
    }

    /// Resumes a held request. Does nothing if its stream has ended.
    pub(crate) fn resume(&mut self, id: u32) {
        let now = self.guest().outside.clock.monotonic();
        let stream = self
            .guest()
            .streams
            .get_mut(&id)
            .filter(|stream| stream.outcome == StreamOutcome::Held);
        if let Some(stream) = stream {
            stream.is_readable = false;
            stream.went_on = Some(now);
            stream.outcome = StreamOutcome::Admitted;
        }
    }

    /// Sends a local reply. The filter also sees its headers, as those of any response.
    pub(crate) fn reply(&mut self, id: u32, reply: Reply) -> Result<(), Trap> {
        let stream = self
            .guest()
            .streams
            .get_mut(&id)
            .filter(|stream| stream.outcome == StreamOutcome::Held);
        let Some(stream) = stream else { return Ok(()) };
        stream.outcome = StreamOutcome::Refused;
        let is_grpc = stream.request.is_grpc();
        let sent = local_reply(reply, is_grpc);
        let are_last = sent.1.is_empty();
        self.respond(id, sent, are_last)
    }

    /// `are_last` is true if the headers end the response.
    fn respond(
        &mut self,
        id: u32,
        sent: (Headers, Vec<u8>, String),
        are_last: bool,
    ) -> Result<(), Trap> {
        let (headers, body, details) = sent;
        let count = u32::try_from(headers.len()).expect("few headers");
        self.stream(id).response = Some(headers);
        self.call::<_, u32>("proxy_on_response_headers", id, (id, count, u32::from(are_last)))?;
        let stream = self.stream(id);
        stream.sent = (stream.response.take().unwrap_or_default(), body, details);
        Ok(())
    }
}

/// Envoy's conversion of a reply: gRPC clients get 200 with the status and the body in headers,
/// unless the reply already has these headers.
fn local_reply(reply: Reply, is_grpc: bool) -> (Headers, Vec<u8>, String) {
    let text = |name: &str, value: String| (name.to_owned(), value.into_bytes());
    let added = reply.headers.into_iter().filter(|(name, _)| name != "content-length");
    let mut headers = Headers::new();
    if is_grpc {
        let status = reply.grpc_status.unwrap_or(grpc_status(reply.status));
        headers.push(text(":status", "200".into()));
        headers.extend(added.filter(|(name, _)| name != "content-type"));
        headers.push(text("content-type", "application/grpc".into()));
        if !headers.iter().any(|(name, _)| name == "grpc-status") {
            headers.push(text("grpc-status", status.to_string()));
        }
        if !reply.body.is_empty() {
            headers.push(("grpc-message".into(), reply.body));
        }
        return (headers, Vec::new(), reply.details);
    }
    headers.push(text(":status", reply.status.to_string()));
    headers.extend(added.filter(|(name, _)| name != "content-type" || !reply.body.is_empty()));
    if !reply.body.is_empty() {
        headers.push(text("content-length", reply.body.len().to_string()));
        if !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(text("content-type", "text/plain".into()));
        }
    }
    (headers, reply.body, reply.details)
}

/// Envoy's gRPC status for an HTTP status, if the module sets none.
fn grpc_status(status: u32) -> u32 {
    match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    }
}
