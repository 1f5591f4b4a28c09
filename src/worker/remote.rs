//! Rules from a configuration centre: who asks it, and what becomes of the answer.
//!
//! One worker leads: it asks, judges the answer, and leaves a good document in shared data. The
//! others look there several times a second. A lease is short, so if the leader dies another worker
//! goes on; whoever comes too late with an answer finds that it no longer leads.

mod call;
mod document;
mod head;
mod judge;
mod lead;
use diana_policy::Policy;
use diana_policy::key::KeyHasher;
use diana_policy::port::{Answer, Call, Callout, Environment, SharedData};
use diana_policy::remote::{Own, Remote};
use diana_policy::time::{Micros, SECOND};
use head::Head;

/// How often shared data is looked at, in ticks.
pub const LOOK: Micros = SECOND / 4;

/// What a worker does about one configuration centre.
pub struct Poller {
    remote: Remote,
    own: Own,
    call: Call,
    /// Key of the [`Head`].
    head: String,
    /// Key of the last good document.
    document: String,
    settings: u64,
    /// Tells this worker from all others.
    id: u64,
    born: Micros,
    /// The document in force here; 0 is none.
    version: u64,
    /// A document that only other workers understand.
    not_understood: u64,
    waiting: Option<Waiting>,
    next: Micros,
    is_counted: bool,
}

/// A call under way.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    token: u32,
    sent: Micros,
}

/// What a poller works with at one instant.
pub struct Access<'h> {
    /// What all workers share.
    pub data: &'h dyn SharedData,
    /// The way to the centre.
    pub callout: &'h dyn Callout,
    /// Monotonic time.
    pub now: Micros,
}

/// What is to be done about what a poller found.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Rules to be put into force.
    pub policy: Option<Policy>,
    /// Whether this worker is the one that found them.
    pub is_first: bool,
    /// The metric of an answer: `fetched`, `failed` or `rejected`.
    pub count: Option<&'static str>,
    /// How many workers more go by a remote document.
    pub in_force: i64,
    /// Lines for the log that tell something good.
    pub news: Vec<String>,
    /// Lines for the log that tell something bad.
    pub troubles: Vec<String>,
}

impl Poller {
    /// A poller that has not looked yet. `id` tells it from all others of the gateway.
    ///
    /// # Errors
    /// A header whose value the environment lacks.
    pub fn new(
        remote: Remote,
        own: Own,
        namespace: &str,
        environment: &dyn Environment,
        (id, born): (u64, Micros),
    ) -> Result<Poller, String> {
        let call = call::of(&remote, environment)?;
        // What the document is known by; how it is asked for may change without losing it.
        let Remote { cluster, authority, path, body, value, .. } = &remote;
        let value = value.as_deref().unwrap_or_default();
        let texts = [cluster, authority, path, body, value].map(str::as_bytes);
        let source = digest(&[texts.as_slice(), &[&[u8::from(remote.base64)]]].concat());
        let key = |what| format!("diana/1/{namespace}/remote/{source:016x}/{what}");
        Ok(Poller {
            head: key("head"),
            document: key("document"),
            settings: call::settings(&remote, &call),
            remote,
            own,
            call,
            id,
            born,
            version: 0,
            not_understood: 0,
            waiting: None,
            next: 0,
            is_counted: false,
        })
    }

    /// When [`Poller::tick`] is due.
    #[must_use]
    pub fn next(&self) -> Micros {
        self.next
    }

    /// The rules of the last good document, for a worker that starts. Nothing is changed.
    pub fn last_good(&mut self, data: &dyn SharedData) -> Option<Policy> {
        let (head, _) = Head::read(data, &self.head);
        let text = self.text(head.version, data)?;
        let policy = diana_config::parse_remote(&text, &self.own).ok()?;
        self.version = head.version;
        Some(policy)
    }

    /// Takes over what others found, or else asks the centre if that is due and this worker's turn.
    pub fn tick(&mut self, access: &Access<'_>) -> Outcome {
        if access.now < self.next {
            return Outcome::default();
        }
        self.next = access.now + LOOK;
        let (mut head, number) = Head::read(access.data, &self.head);
        let mut outcome = if ![0, self.version, self.not_understood].contains(&head.version) {
            self.follow(head, number, access)
        } else if self.lead(&mut head, number, access) {
            self.ask(&head, access)
        } else {
            Outcome::default()
        };
        if self.version != 0 && !self.is_counted {
            self.is_counted = true;
            outcome.in_force = 1;
        }
        outcome
    }

    /// Takes the answer to a call of this worker.
    pub fn answer(&mut self, token: u32, answer: &Answer<'_>, access: &Access<'_>) -> Outcome {
        match self.waiting.take_if(|call| call.token == token) {
            Some(Waiting { sent, .. }) => {
                let document = document::read(&self.remote, answer);
                self.conclude(document, sent + self.remote.every, access)
            }
            None => Outcome::default(),
        }
    }

    /// How many workers less go by a remote document when this one ends: none or one.
    #[must_use]
    pub fn retire(&self) -> i64 {
        -i64::from(self.is_counted)
    }

    /// Puts the last good document into force.
    fn follow(&mut self, mut head: Head, number: Option<u32>, access: &Access<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let version = head.version;
        match self
            .text(version, access.data)
            .map(|text| diana_config::parse_remote(&text, &self.own))
        {
            Some(Ok(policy)) => {
                self.version = version;
                outcome.policy = Some(policy);
            }
            Some(Err(_)) => {
                self.not_understood = version;
                let what = format!("another worker took version {version:016x}");
                outcome.troubles.push(self.line(&what, "this one does not understand it"));
            }
            // So that the next good answer is written anew. A leader who is just about to name the
            // version finds that its number is outdated, and asks again.
            None => {
                head.version = 0;
                head.write(access.data, &self.head, number);
            }
        }
        outcome
    }

    /// The document of a version, if that is the one in shared data.
    fn text(&self, version: u64, data: &dyn SharedData) -> Option<Vec<u8>> {
        let (text, _) = if version == 0 { None } else { data.get(&self.document) }?;
        (version_of(&text) == version).then_some(text)
    }

    #[inline(never)]
    fn line(&self, what: &str, then: &str) -> String {
        format!("remote configuration of cluster `{}`: {what}; {then}", self.call.cluster)
    }
}

/// What a document is told apart by, which is never 0.
fn version_of(text: &[u8]) -> u64 {
    digest(&[text]).max(1)
}

fn digest(parts: &[&[u8]]) -> u64 {
    let mut hasher = KeyHasher::public();
    parts.iter().for_each(|part| hasher.part(0, part));
    hasher.finish().hash
}
