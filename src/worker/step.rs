//! What the host does with streams after a call: the worker returns it, so that no call of the host
//! is made within.

use std::borrow::Cow;

use diana_limiter::LocalReply;

/// What the host does with the stream of a request. It has no reference to the worker, whose thread
/// may be another one by then. Small, since most requests only continue.
#[must_use]
#[derive(Debug, Default)]
pub struct Step {
    /// Changes of the stream, to be made first. Usually there are none.
    pub effects: Option<Box<Effects>>,
    /// What happens to the request then.
    pub next: Next,
}

/// What happens to a request.
#[derive(Debug, Default)]
pub enum Next {
    /// It passes to the upstream.
    #[default]
    Continue,
    /// It waits for a later step.
    Wait,
    /// It gets this response.
    Reply(Box<LocalReply>),
}

/// Steps of waiting requests, at most 32, by the host's numbers of their streams. Each may end the
/// stream of a later one, whose step is then dropped.
pub type Steps = Vec<(u32, Step)>;

/// Changes of a stream, before the host selects the route.
#[derive(Debug, Default)]
pub struct Effects {
    /// A header to remove from the request.
    pub removed: Option<Box<str>>,
    /// Headers that mark the request.
    pub marks: Vec<(Box<str>, String)>,
    /// An entry for the access log.
    pub log: Option<String>,
}

/// The stream of the host's current call. Several filters of this module may be in one chain, for
/// example before and after the login. They may have different workers, so a later one knows an
/// earlier one only by the filter state, which no client can set.
pub trait HostStream {
    /// Removes a header from the request.
    fn remove_header(&mut self, name: &str);

    /// Adds a value to a header of the request.
    fn add_header(&mut self, name: &str, value: &str);

    /// An entry of the filter state.
    fn filter_state(&self, name: &str) -> Option<Cow<'_, [u8]>>;

    /// Sets an entry of the filter state.
    fn set_filter_state(&mut self, name: &str, value: &[u8]);
}

/// The filter state for the access log. A host of wasm begins all names with `wasm.`, and one format
/// of the access log fits every host.
const LOG: &str = "wasm.diana";

/// Between the entries of several filters in it.
const SEPARATOR: &[u8] = b"; ";

/// Adds an entry to those of earlier filters for the access log.
fn log(entry: &str, stream: &mut dyn HostStream) {
    let earlier = stream.filter_state(LOG).filter(|earlier| !earlier.is_empty());
    let all = earlier.map(|earlier| [&earlier, SEPARATOR, entry.as_bytes()].concat());
    stream.set_filter_state(LOG, all.as_deref().unwrap_or(entry.as_bytes()));
}

/// Returns true if an earlier filter has marked the request with this header.
pub fn is_marked(header: &str, stream: &dyn HostStream) -> bool {
    stream.filter_state(&state_of_mark(header)).is_some()
}

/// The filter state which shows that this header is a mark.
fn state_of_mark(header: &str) -> String {
    ["wasm.diana_mark.", header].concat()
}

impl Step {
    /// Makes the changes of the stream, and returns what happens to the request then. The mark and
    /// the entry of an earlier filter in the chain stay.
    pub fn apply(self, stream: &mut dyn HostStream) -> Next {
        if let Some(effects) = &self.effects {
            effects.apply(stream);
        }
        if let Next::Reply(reply) = &self.next
            && !reply.log.is_empty()
        {
            log(&reply.log, stream);
        }
        self.next
    }

    /// A step without changes.
    pub(crate) fn new(next: Next) -> Step {
        Step { effects: None, next }
    }

    /// A response.
    pub(crate) fn reply(reply: LocalReply) -> Step {
        Step::new(Next::Reply(Box::new(reply)))
    }
}

impl Effects {
    fn apply(&self, stream: &mut dyn HostStream) {
        if let Some(header) = &self.removed {
            stream.remove_header(header);
        }
        if let Some(entry) = &self.log {
            log(entry, stream);
        }
        for (header, rules) in &self.marks {
            stream.add_header(header, rules);
            stream.set_filter_state(&state_of_mark(header), b"1");
        }
    }
}
