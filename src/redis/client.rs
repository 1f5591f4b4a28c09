//! Sends the questions of requests and the operations of stores to Redis, and stores their results
//! (`results.rs`).
//!
//! While a batch is pending, further questions collect for the next one, so the batches of a busy
//! worker are large. A full batch, or one that has waited for a quarter of the timeout, is sent
//! while others are pending, at most four; more of them, and sooner, where Redis is far away. A call
//! without a reply is sent again once, within the same timeout. No request waits longer than the timeout: then the gateway enforces its share of the
//! limit, and the client sends only probes to that shard.

mod batch;
mod follow;
mod neighbours;
mod offset;
mod send;
mod split;

use std::collections::VecDeque;
use std::rc::Rc;

use super::health::{Health, KnownFleet};
use super::outbox::Outbox;
use super::protocol::{Ask, Decided, Failure, Login, Question, Script, ScriptAnswer, ScriptCall};
use super::shard::{Shard, Shards, Tags};
use batch::{Batch, Wait};
use diana_policy::key::Seed;
use diana_policy::port::{self, Callout, Destination, SharedData};
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::backend::{BackendCounts, Receiver};
use diana_store::replies::QuestionResult;
use follow::Answered;
use neighbours::Neighbours;
use offset::Offset;
use split::Ordinals;

/// Ticks after its timeout until a batch fails without a reply. The host usually reports the
/// timeout earlier, unless it was busy or the root of the call has ended.
const GRACE: Micros = SECOND / 250;

/// The shortest timeout that the host supports.
const SHORTEST: Micros = SECOND / 1000;

/// How slowly the estimate of a quick reply grows, and that of a slow one shrinks: a slow reply of a
/// busy worker does not make Redis far away, and neither do many of a busy Redis.
const SLOWLY: Micros = 64;

/// A reply that takes this many times as long as a quick one shows that Redis is busy.
const BUSY: Micros = 4;

/// The address of Redis, and the credentials.
#[derive(Clone)]
pub struct Endpoint {
    /// Where the host has it.
    pub destination: Destination,
    /// The timeout of a call in ticks.
    pub timeout: Micros,
    /// The credentials.
    pub login: Login,
    /// The number of shards.
    pub shards: Shards,
    /// How many gateways there are at least before the first reply.
    pub gateways: u64,
}

/// The connection of a limiter to Redis. Only the client makes calls.
pub struct Client {
    endpoint: Endpoint,
    tags: Tags,
    neighbours: Neighbours,
    ordinals: Ordinals,
    data: Rc<dyn SharedData>,
    /// The key of [`Health`] in shared data.
    key: String,
    /// The seed of the callers' hashes: the fleet's, once it is known.
    seed: Seed,
    gateway: u64,
    /// The number that identifies this client as the sender of calls and settlements.
    sender: u64,
    /// The number of the latest batch of requests and operations.
    number: u64,
    /// Asks of requests that have not left yet.
    waiting: VecDeque<Wait>,
    batches: Vec<Batch>,
    /// Batches to send again: with the text of the script, which Redis did not have, or since they
    /// were lost.
    resends: Vec<Batch>,
    /// About how long a quick reply takes. `None` before the first one, and after calls that were
    /// lost twice.
    round_trip: Option<Micros>,
    /// About how long a slow reply takes.
    slow_trip: Option<Micros>,
    /// Replies in a row that took so long since Redis is busy.
    busy_replies: u32,
    /// Replies in a row that took more than half of the timeout.
    far_replies: u32,
    /// How many gateways there are at least, as a configuration server reports.
    pub(crate) least_gateways: u64,
    /// Whether Redis has had the script.
    has_script: bool,
    /// The record of all workers, as last read.
    health: Health,
    /// Whether questions contain the arrears of their callers.
    knows_outage: bool,
    /// The offset of the clock of each shard.
    offsets: Vec<Offset>,
    /// Until when this worker sends no heartbeat, since one failed.
    silent_until: Micros,
    /// The kinds of logged lines about shards, and when each was last logged.
    log_times: Vec<(&'static str, Micros)>,
    /// Events since the counts were last taken.
    pub counts: BackendCounts,
    /// Lines for the log.
    pub log_lines: Vec<String>,
}

impl Client {
    /// A client of one limiter. `own` is the seed to propose to the fleet. `random` identifies the
    /// client, and the gateway if it has no number yet.
    pub fn new(
        endpoint: Endpoint,
        namespace: &str,
        data: Rc<dyn SharedData>,
        own: Seed,
        random: u64,
    ) -> Client {
        // A shard of another number of shards is another shard.
        let key = match endpoint.shards {
            Shards::ONE => format!("diana/2/{namespace}/fleet"),
            shards => format!("diana/2/{namespace}/fleet/{}", shards.number()),
        };
        let health = Health::update(&*data, &key, 0, |health| {
            let is_new = health.gateway == 0;
            if is_new {
                health.gateway = random.max(1);
            }
            is_new
        });
        Client {
            tags: Tags::new(namespace, endpoint.shards),
            neighbours: Neighbours::default(),
            ordinals: Ordinals::new(&key, &endpoint),
            offsets: vec![Offset::default(); usize::from(endpoint.shards.number())],
            silent_until: 0,
            log_times: Vec::new(),
            endpoint,
            data,
            key,
            seed: health.seed().unwrap_or(own),
            gateway: health.gateway,
            sender: random,
            number: 0,
            waiting: VecDeque::new(),
            batches: Vec::new(),
            resends: Vec::new(),
            round_trip: None,
            slow_trip: None,
            busy_replies: 0,
            far_replies: 0,
            least_gateways: 1,
            has_script: false,
            knows_outage: health.had_outage(),
            health,
            counts: BackendCounts::default(),
            log_lines: Vec::new(),
        }
    }

    /// The seed of the hashes of callers that Redis counts.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The number of shards.
    #[must_use]
    pub fn shards(&self) -> Shards {
        self.endpoint.shards
    }

    /// Takes questions of the request with this number, which waits since `since`. Other rules hold
    /// it for `delay`.
    pub fn ask(
        &mut self,
        id: u64,
        delay: Micros,
        questions: Vec<Question>,
        since: Micros,
        outbox: &mut Outbox,
    ) {
        outbox.in_use = true;
        let receiver = Some(Receiver::Request(id));
        let index = self.waiting.partition_point(|wait| wait.since <= since);
        for question in questions {
            let shard = self.endpoint.shards.of(question.caller());
            let later = self.waiting.iter_mut().skip(index);
            let mut own = later.take_while(|wait| wait.ask.receiver == receiver);
            match own.find(|wait| wait.shard == shard) {
                Some(wait) => wait.ask.questions.push(question),
                None => {
                    let ask = Ask { delay, questions: vec![question], receiver };
                    self.waiting.insert(index, Wait { since, shard, ask });
                    outbox.results.add_ask(id);
                }
            }
        }
    }

    /// The time of the next work.
    #[must_use]
    pub fn next(&self, now: Micros, outbox: &Outbox) -> Option<Micros> {
        let again = self.batches.iter().filter_map(|batch| batch.second_at);
        let batches = self.batches.iter().map(Batch::expires_at).chain(again);
        let operations = outbox.due(now).filter(|_| self.batches.is_empty());
        let leave = !self.waiting.is_empty() || !self.resends.is_empty();
        let leave = if leave { Some(now) } else { operations };
        let others = [leave, self.probe(now, outbox), self.beat(now, outbox)];
        batches.chain(others.into_iter().flatten()).min()
    }

    /// Sends waiting asks, operations and probes, and fails calls and asks after their timeout.
    pub fn work(&mut self, now: Now, callout: &dyn Callout, outbox: &mut Outbox) {
        while let Some(late) = self.batches.iter().position(|it| it.expires_at() <= now.mono) {
            let batch = self.batches.swap_remove(late);
            self.fail_all(batch, &Failure::Timeout, now.mono, outbox);
        }
        self.refresh(outbox);
        // These asks have reached the timeout before they were sent. That is a failure of their
        // shard, even if the pending batches succeed.
        let is_late = |wait: &&Wait| now.mono.saturating_sub(wait.since) >= self.timeout();
        let late = self.waiting.iter().take_while(is_late);
        let late: Vec<_> = late.map(|wait| (wait.shard, Err(Failure::Timeout))).collect();
        self.record_results(&late, (now.mono, false), now.mono, outbox);
        if outbox.unavailable_shards() > 0 {
            self.drop_unavailable(outbox);
            self.send_probes(now, callout, outbox);
        }
        if outbox.had_outage && !std::mem::replace(&mut self.knows_outage, true) {
            self.ask_again(outbox);
        }
        for batch in std::mem::take(&mut self.resends) {
            self.send(batch, now, callout, outbox);
        }
        self.send_second(now, callout, outbox);
        self.send_all(now, callout, outbox);
        self.send_beat(now, callout, outbox);
    }

    /// Returns true if a reply after this time is no sign of a far Redis, but of a busy one.
    fn is_busy(&self, trip: Micros) -> bool {
        self.round_trip.is_some_and(|quick| trip > BUSY.saturating_mul(quick))
    }

    /// The maximum time from the arrival of an ask until it is sent.
    fn timeout(&self) -> Micros {
        self.endpoint.timeout + GRACE
    }

    /// Processes the reply to a batch. Returns false if another client sent it. Call
    /// [`Client::work`] afterwards, since further batches may be due.
    pub fn answer(
        &mut self,
        token: u32,
        answer: &port::Answer<'_>,
        now: Now,
        outbox: &mut Outbox,
    ) -> bool {
        let take = |(index, batch): (usize, &mut Batch)| Some((index, batch.take_attempt(token)?));
        let Some((index, attempt)) = self.batches.iter_mut().enumerate().find_map(take) else {
            return false;
        };
        let batch = self.batches.swap_remove(index);
        let answers = batch.read(&attempt, &self.endpoint.login, answer, now.mono);
        if !batch.attempts.is_empty()
            && let [Err(failure)] = answers.as_slice()
            && failure.is_lost()
        {
            if !batch.is_beat || outbox.in_use {
                self.counts.fail(failure.name());
            }
            self.batches.push(batch);
            return true;
        }
        if answers.iter().any(Result::is_ok) {
            let trip = now.mono.saturating_sub(attempt.sent);
            let is_busy = self.is_busy(trip) && trip > self.endpoint.timeout / 4;
            self.busy_replies = if is_busy { self.busy_replies.saturating_add(1) } else { 0 };
            let known = self.round_trip.unwrap_or(trip);
            self.round_trip = Some(known.min(trip) + trip.saturating_sub(known) / SLOWLY);
            let slow = self.slow_trip.unwrap_or(trip);
            let slow = slow.max(trip) - slow.saturating_sub(trip) / SLOWLY;
            self.slow_trip = Some(slow);
            outbox.trip = slow;
            outbox.has_replied = true;
            self.has_script = true;
            self.report_far(trip, slow.max(trip));
        }
        self.end(batch, answers, now.mono, outbox);
        true
    }

    /// Processes the results of a batch's calls. Calls that Redis cannot have executed, and calls
    /// that were lost for the first time, are sent again.
    fn end(
        &mut self,
        mut batch: Batch,
        answers: Vec<Result<ScriptAnswer, Failure>>,
        now: Micros,
        outbox: &mut Outbox,
    ) {
        if answers.iter().any(Result::is_err) {
            // Another worker may have found the shard unavailable.
            self.refresh(outbox);
        }
        // No request needs Redis here, where it may be unreachable: another worker is next.
        let is_silent = batch.is_beat && !outbox.in_use;
        let (mut with_text, mut second, mut answered) = (batch.again(), batch.again(), Vec::new());
        second.is_second = true;
        for (call, answer) in batch.take().into_iter().zip(answers) {
            match &answer {
                Err(Failure::NoScript) if call.script == Script::Digest => {
                    with_text.add(ScriptCall { script: Script::Text, ..call });
                    continue;
                }
                Err(failure) if failure.is_lost() && !outbox.is_unavailable(call.shard) => {
                    if batch.can_repeat(now) {
                        if !is_silent {
                            self.counts.fail(failure.name());
                        }
                        // To the text of a client without its password, Redis closes the
                        // connection, perhaps before Envoy has read why.
                        second.add(ScriptCall { script: Script::Digest, ..call });
                        continue;
                    }
                    (self.round_trip, self.slow_trip) = (None, None);
                }
                _ => {}
            }
            if is_silent && answer.is_err() {
                self.miss_beat(now, outbox);
                continue;
            }
            send::on_batch_end(&call, answer.is_ok(), outbox);
            answered.push((call.shard, call.asks, answer));
        }
        self.take(&batch, answered, now, outbox);
        let again = [with_text, second].into_iter().filter(|batch| batch.has_calls());
        self.resends.extend(again);
    }

    /// Processes the results of a batch's calls.
    fn take(
        &mut self,
        batch: &Batch,
        mut answers: Vec<(Shard, Vec<Ask>, Result<ScriptAnswer, Failure>)>,
        now: Micros,
        outbox: &mut Outbox,
    ) {
        let mut outcomes = Vec::new();
        for (shard, asks, answer) in &mut answers {
            let outcome = match answer {
                Ok(ScriptAnswer::Decided(Decided {
                    gateways,
                    is_apart,
                    is_mixed,
                    latest_ordinal,
                    asks: decided,
                    ..
                })) => {
                    is_mixed.iter().for_each(|is_mixed| self.meet(*is_mixed, now));
                    if let (Some(ordinal), Some(latest)) = (batch.pipeline.ordinal, latest_ordinal)
                    {
                        self.find_split(ordinal, batch.confirmed, *latest, now);
                    }
                    self.counts.apart += u64::from(*is_apart);
                    let fleet = KnownFleet { gateways: *gateways, is_apart: *is_apart };
                    Ok(Answered { fleet: Some(fleet), decided: !decided.is_empty() })
                }
                Ok(ScriptAnswer::Seed(seed)) => {
                    outbox.results.add_all(std::mem::take(asks), QuestionResult::Repeat);
                    self.reseed(*seed, outbox);
                    Ok(Answered { fleet: None, decided: false })
                }
                Err(failure) => Err(failure.clone()),
            };
            outcomes.push((*shard, outcome));
        }
        self.record_results(&outcomes, (batch.sent.mono, batch.probing), now, outbox);
        for (shard, asks, answer) in answers {
            match answer {
                Ok(ScriptAnswer::Decided(decided)) => {
                    self.counts.corrupt += decided.corrupt;
                    let offset = self.offsets.get_mut(usize::from(shard.number()));
                    let instant = |it: &mut Offset| it.instant(decided.now, batch.sent.mono, now);
                    let at = offset.map_or(now, instant);
                    outbox.results.add_replies(asks, decided.asks, batch.sent, (at, decided.now));
                }
                Ok(ScriptAnswer::Seed(_)) => {}
                Err(_) => outbox.results.add_all(asks, QuestionResult::Degraded),
            }
        }
    }

    /// Takes over the settlements of a client that has ended. Returns false if it used another
    /// database, seed or number of shards.
    pub fn inherit(&self, outbox: &mut Outbox, other: &Client, left: &mut Outbox) -> bool {
        let way = |it: &Client| (it.endpoint.destination.clone(), it.endpoint.login.db);
        let is_alike =
            way(self) == way(other) && self.seed == other.seed && self.tags == other.tags;
        if is_alike {
            outbox.ledgers.inherit(&mut left.ledgers);
        }
        is_alike
    }

    /// Fails all calls of a batch.
    fn fail_all(&mut self, batch: Batch, failure: &Failure, now: Micros, outbox: &mut Outbox) {
        let answers = batch.pipeline.all(failure);
        self.end(batch, answers, now, outbox);
    }
}
