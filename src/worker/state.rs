//! The state of a stream after the decision about its request.

use std::rc::Rc;

use super::step::Effects;
use diana_limiter::{Explained, LocalReply, Record, Refusal, Report};
use diana_policy::SINGLE_FIELDS;
use diana_policy::headers::Headers;
use diana_policy::port::{Ending, Request};
use diana_store::permit::Permit;

/// The remaining work of a stream. The worker has it while the request waits, and otherwise the
/// stream. Very many streams may be open, so it is small.
#[derive(Default)]
pub(crate) struct StreamState {
    /// The charges to settle when the stream ends.
    pub(crate) permit: Permit,
    /// Its part in the response, if it has one.
    response: Option<Box<ResponseState>>,
}

#[derive(Default)]
struct ResponseState {
    /// Headers to add to the upstream's response.
    fields: Headers,
    /// The response header for an explanation, if an operator wants one.
    explanation_header: Option<Rc<str>>,
}

impl StreamState {
    /// Returns true if no work is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.permit.is_none() && self.response.is_none()
    }

    /// An operator wants an explanation in this header of the response.
    pub(crate) fn explain(&mut self, header: Rc<str>) {
        self.response.get_or_insert_default().explanation_header = Some(header);
    }

    /// The request is admitted, at once or after a wait. Returns the changes of its stream.
    pub(crate) fn admit(
        &mut self,
        permit: Permit,
        report: Option<&mut Report>,
    ) -> Option<Box<Effects>> {
        self.permit = permit;
        let report = report?;
        let mut fields = report.headers();
        if let Some(header) = self.take_explanation_header() {
            fields.push(&header, &Explained::all(&report.explained));
        }
        let response =
            (!fields.is_empty()).then_some(ResponseState { fields, explanation_header: None });
        self.response = response.map(Box::new);
        if report.by.is_none() && report.marks.is_empty() {
            return None;
        }
        let log = report.by.as_ref().map(Record::state);
        let marks = report.marks.drain(..).map(|(header, rules)| (header.as_ref().into(), rules));
        Some(Box::new(Effects { log, marks: marks.collect(), removed: None }))
    }

    /// The request is refused. Returns the response to it, with this entry for the access log.
    pub(crate) fn refuse(
        &mut self,
        refusal: &mut Refusal,
        log: String,
        request: &dyn Request,
    ) -> Box<LocalReply> {
        if refusal.jitter.needs_address() {
            refusal.jitter.spread(request.client());
        }
        let mut reply = refusal.reply(log, request);
        if let Some(header) = self.take_explanation_header() {
            reply.headers.push(&header, &Explained::all(&refusal.explained));
        }
        reply
    }

    /// The headers to add to the response, which has arrived. If it already has fields for one rule,
    /// of another filter in the chain or of the upstream, these stay alone: several of them would be
    /// about different limits, and a client reads one.
    pub(crate) fn take_fields(&mut self, ending: &dyn Ending) -> Headers {
        let Some(response) = self.response.take() else { return Headers::default() };
        let mut fields = response.fields;
        let is_present = |name: &&str| ending.has_header(name);
        for names in SINGLE_FIELDS {
            let is_limit = |(name, _): &(&str, &str)| names.contains(name);
            if fields.iter().any(|field| is_limit(&field)) && names.iter().any(is_present) {
                fields = fields.iter().filter(|field| !is_limit(field)).collect();
            }
        }
        fields
    }

    fn take_explanation_header(&mut self) -> Option<Rc<str>> {
        self.response.take()?.explanation_header
    }
}
