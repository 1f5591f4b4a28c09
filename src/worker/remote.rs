//! Rules from a configuration server: polling, and the processing of replies.
//!
//! One worker leads: it polls, validates the reply, and writes a valid document to shared data. The
//! others read shared data several times a second. The leader's lease is short, so if it dies
//! another worker takes over. A worker with a late reply finds that it no longer leads.

mod call;
mod document;
mod head;
mod in_force;
mod lead;
mod validate;
use diana_config::Reader;
use diana_policy::key::KeyHasher;
use diana_policy::port::{Answer, Call, Callout, Environment, SharedData};
use diana_policy::remote::{Own, Remote};
use diana_policy::time::{self, Micros, SECOND};
use diana_policy::{Metric, Policy};
use document::{Fetched, Unusable};
use head::Head;
use in_force::InForce;
pub use in_force::{SILENT, YOUNG};

/// Interval of reading shared data, in ticks.
pub const READ_INTERVAL: Micros = SECOND / 4;

/// The interval while a new gateway waits for its first document, in ticks.
pub const FIRST_READ_INTERVAL: Micros = SECOND / 40;

/// How long a gateway without a document polls more often, in ticks. A server that is down for
/// longer is asked by all gateways at once when it is back.
pub const FIRST: Micros = 30 * SECOND;

/// The longest interval of these polls, in ticks.
const FIRST_RETRY: Micros = SECOND / 4;

/// A worker's access to one configuration server.
pub struct Poller {
    remote: Remote,
    reader: Reader,
    call: Call,
    /// Key of the [`Head`].
    head: String,
    /// Key of the [`InForce`].
    in_force: String,
    /// Key of the last valid document.
    document: String,
    /// Key of the last document that a worker of this release received, after its version.
    received: String,
    settings: u64,
    /// Identifies this worker in the gateway.
    id: u64,
    configured_at: Micros,
    /// The version of the current document. 0 is none.
    version: u64,
    /// The version of the document whose rules decide about requests. 0 is none.
    applied: u64,
    /// The version of a document that this worker cannot parse, and another one could.
    unreadable: u64,
    /// The tag of the last document that this worker received and did not refuse.
    tag: Option<Tag>,
    pending: Option<PendingPoll>,
    next: Micros,
    is_counted: bool,
}

/// A pending call.
#[derive(Debug, Clone, Copy)]
struct PendingPoll {
    token: u32,
    sent: Micros,
    /// The version whose tag it has: the server answers 304 if that is still its document. 0 is
    /// none.
    tagged: u64,
}

/// The server's name for a document, the value of `etag`.
#[derive(Debug)]
struct Tag {
    /// The version of the document.
    version: u64,
    value: String,
}

/// The environment of a poller at one instant.
pub struct Access<'h> {
    /// The data that all workers share.
    pub data: &'h dyn SharedData,
    /// Makes the calls to the server.
    pub callout: &'h dyn Callout,
    /// Monotonic time.
    pub now: Micros,
}

/// The results of a poll.
#[derive(Debug, Default)]
pub struct PollOutcome {
    /// Rules to apply.
    pub policy: Option<Policy>,
    /// Whether this worker received them from the server.
    pub is_first: bool,
    /// The metric of a reply: `fetched`, `failed` or `rejected`.
    pub count: Option<Metric>,
    /// Change of the number of workers with a remote document.
    pub in_force: i64,
    /// The number of gateways that share the limits of the fleet. 0 if it is not known.
    pub gateways: u64,
    /// Log lines about successes.
    pub successes: Vec<String>,
    /// Log lines about failures.
    pub failures: Vec<String>,
}

impl Poller {
    /// A new poller. `id` identifies it in the gateway.
    ///
    /// # Errors
    /// A header whose variable is not in the environment.
    pub fn new(
        remote: Remote,
        own: Own,
        namespace: &str,
        environment: &dyn Environment,
        (id, configured_at): (u64, Micros),
    ) -> Result<Poller, String> {
        let call = call::of(&remote, environment)?;
        // Identifies the document. Other settings may change without losing it.
        let Remote { cluster, authority, path, body, value, .. } = &remote;
        let value = value.as_deref().unwrap_or_default();
        let texts = [cluster, authority, path, body, value].map(str::as_bytes);
        let source = digest(&[texts.as_slice(), &[&[u8::from(remote.base64)]]].concat());
        let key = |what| format!("diana/1/{namespace}/remote/{source:016x}/{what}");
        Ok(Poller {
            head: key("head"),
            in_force: key("in_force"),
            document: key("document"),
            received: key(concat!("received/", env!("CARGO_PKG_VERSION"))),
            settings: call::settings(&remote, &own, &call),
            remote,
            reader: Reader::remote(own),
            call,
            id,
            configured_at,
            version: 0,
            applied: 0,
            unreadable: 0,
            tag: None,
            pending: None,
            next: 0,
            is_counted: false,
        })
    }

    /// The time of the next [`Poller::tick`].
    #[must_use]
    pub fn next(&self) -> Micros {
        self.next
    }

    /// The rules of the last valid document, for a worker that starts. Does not modify shared data.
    ///
    /// After a rollback that document may be of a newer release, and this one refuses it. Then the
    /// rules are those of the last document that this release received, since without them the
    /// gateway would limit no request until the server has the former document.
    pub fn last_good(&mut self, data: &dyn SharedData) -> Option<Policy> {
        let (head, _) = Head::read(data, &self.head);
        let texts = [self.text(head.version, data)?, self.received(data).unwrap_or_default()];
        texts.iter().find_map(|text| {
            let policy = self.reader.policy(text).ok()?;
            self.version = version_of(text);
            Some(policy)
        })
    }

    /// The number of gateways that the server has reported. 0 if it is not known.
    #[must_use]
    pub fn gateways(&self, data: &dyn SharedData) -> u64 {
        InForce::read(data, &self.in_force).gateways.known
    }

    /// Applies a new document of another worker, or else polls the server if that is due and this
    /// worker leads.
    pub fn tick(&mut self, access: &Access<'_>) -> PollOutcome {
        if access.now < self.next {
            return PollOutcome::default();
        }
        let interval = if self.is_new(access.now) { FIRST_READ_INTERVAL } else { READ_INTERVAL };
        self.next = access.now + interval;
        let (mut head, number) = Head::read(access.data, &self.head);
        let in_force = InForce::update(access.data, &self.in_force, &|record| {
            record.set(self.id, self.applied, head.version, access.now);
        });
        let mut outcome = if ![0, self.version, self.unreadable].contains(&head.version) {
            self.apply_document(head, number, access)
        } else if self.lead(&mut head, number, access) {
            self.poll(&head, &in_force, access)
        } else {
            PollOutcome::default()
        };
        if self.version != 0 && !self.is_counted {
            self.is_counted = true;
            outcome.in_force = 1;
        }
        outcome.gateways = in_force.gateways.known;
        outcome
    }

    /// The rules of the latest outcome decide about requests from now on.
    pub fn apply(&mut self) {
        self.applied = self.version;
    }

    /// Processes the reply to a call of this worker.
    pub fn on_reply(
        &mut self,
        token: u32,
        answer: &Answer<'_>,
        access: &Access<'_>,
    ) -> PollOutcome {
        match self.pending.take_if(|call| call.token == token) {
            Some(PendingPoll { sent, tagged, .. }) => {
                let reply = document::read(&self.remote, answer, tagged);
                let gateways = self.count_gateways(&reply, answer, access);
                let due = self.due(sent, reply.as_ref().err(), access.now);
                PollOutcome { gateways, ..self.conclude(reply, due, access) }
            }
            None => PollOutcome::default(),
        }
    }

    /// Takes the number of gateways in a reply. Returns the known one.
    fn count_gateways(
        &self,
        reply: &Result<Fetched, Unusable>,
        answer: &Answer<'_>,
        access: &Access<'_>,
    ) -> u64 {
        let reported = document::gateways(answer);
        let record =
            InForce::update(access.data, &self.in_force, &|record| match (reply, reported) {
                (Err(Unusable::Failed(_)), _) => record.gateways.miss(),
                (_, Some(gateways)) => record.gateways.count(gateways, 1, access.now),
                _ => {}
            });
        record.gateways.known
    }

    /// When the poll after the one of `sent` is due: gateways that start together take turns. Soon,
    /// if a new gateway could not reach its server: its cluster may not be ready yet.
    fn due(&self, sent: Micros, problem: Option<&Unusable>, now: Micros) -> Micros {
        match problem {
            Some(Unusable::Failed(_)) if self.is_new(now) => time::turn(now, FIRST_RETRY, self.id),
            _ => time::turn(sent, self.remote.every, self.id),
        }
    }

    /// Returns true in the first seconds of a configuration that has no document.
    fn is_new(&self, now: Micros) -> bool {
        self.version == 0 && now < self.configured_at.saturating_add(FIRST)
    }

    /// Ends the poller. Returns the change of the number of workers with a remote document: 0 or −1.
    #[must_use]
    pub fn retire(&self, data: &dyn SharedData) -> i64 {
        InForce::update(data, &self.in_force, &|record| record.remove(self.id));
        -i64::from(self.is_counted)
    }

    /// Applies the last valid document.
    fn apply_document(
        &mut self,
        mut head: Head,
        number: Option<u32>,
        access: &Access<'_>,
    ) -> PollOutcome {
        let mut outcome = PollOutcome::default();
        let version = head.version;
        match self.text(version, access.data).map(|text| self.reader.policy(&text)) {
            Some(Ok(policy)) => {
                self.version = version;
                outcome.policy = Some(policy);
            }
            Some(Err(_)) => {
                self.unreadable = version;
                let what = format!("another worker applied version {version:016x}");
                outcome.failures.push(self.line(&what, "this worker cannot parse it"));
            }
            // Forces the next valid reply to be written again. If a leader is about to write the
            // version, its write fails, and it polls again.
            None => {
                head.version = 0;
                head.write(access.data, &self.head, number);
            }
        }
        outcome
    }

    /// The document of a version, if it is the one in shared data.
    fn text(&self, version: u64, data: &dyn SharedData) -> Option<Vec<u8>> {
        let (text, _) = if version == 0 { None } else { data.get(&self.document) }?;
        (version_of(&text) == version).then_some(text)
    }

    /// The last document that a worker of this release received.
    fn received(&self, data: &dyn SharedData) -> Option<Vec<u8>> {
        let (value, _) = data.get(&self.received)?;
        let (version, text) = value.split_first_chunk()?;
        (u64::from_le_bytes(*version) == version_of(text)).then(|| text.to_vec())
    }

    #[inline(never)]
    fn line(&self, what: &str, then: &str) -> String {
        format!("remote configuration of {}: {what}; {then}", self.call.destination)
    }
}

/// Identifies the text of a document, as log lines name it. Never 0.
#[must_use]
pub fn version_of(text: &[u8]) -> u64 {
    digest(&[text]).max(1)
}

fn digest(parts: &[&[u8]]) -> u64 {
    let mut hasher = KeyHasher::public();
    parts.iter().for_each(|part| hasher.part(0, part));
    hasher.finish().hash
}
