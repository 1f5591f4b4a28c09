//! Who takes what has come back from Redis.

use crate::limiter::Limiter;
use crate::pending::{PendingRequest, Resumed};
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_redis::client::Completion;
use diana_redis::pending::Pending;
use diana_redis::protocol::Reply;
use diana_redis::target::Target;

impl Resumed {
    /// An operator's order about which everything is known.
    fn told(ticket: u64, now: Now) -> Resumed {
        Resumed { ticket, since: now.mono, answer: None }
    }
}

impl Limiter {
    pub(crate) fn hand_out(&mut self, completed: Vec<Completion>, now: Now) -> Vec<Resumed> {
        if let Some(client) = &self.fleet.client {
            self.callers.reseed(client.seed());
        }
        let mut requests = Vec::new();
        for completion in completed {
            match completion {
                Completion::Request(ticket, answer) => {
                    requests.extend(match self.hear_inquiry(ticket, &answer, now) {
                        Some(told) => told.map(|ticket| Resumed::told(ticket, now)),
                        None => self.take_answer(ticket, answer, now),
                    });
                }
                Completion::Operation(target, caller, reply) => {
                    self.complete(target, caller, reply, now);
                }
            }
        }
        requests
    }

    /// Takes an answer. The request that goes on with it, unless its client left.
    fn take_answer(&mut self, ticket: u64, answer: Pending, now: Now) -> Option<Resumed> {
        match self.fleet.asked.get(&ticket) {
            Some(PendingRequest { gone: false, since, .. }) => {
                Some(Resumed { ticket, since: *since, answer: Some(answer) })
            }
            _ => {
                self.receive_for_nobody(ticket, &answer, now);
                None
            }
        }
    }

    /// Takes what became of an operation.
    fn complete(
        &mut self,
        target: Target,
        (key, plan): (Key, u32),
        reply: Option<(Reply, Now)>,
        now: Now,
    ) {
        match target {
            Target::Rule(rule) => {
                let reply = reply.and_then(|(reply, sent)| Some((*reply.rule()?, sent)));
                let judge = self.rules.get_mut(rule);
                if let Some(store) = judge.and_then(|it| it.in_redis(plan)) {
                    store.complete(key, reply, now);
                }
            }
            Target::Ban(rule) => {
                let bans = self.rules.get_mut(rule).and_then(|it| it.bans.as_mut());
                if let (Some(bans), Some((Reply::Ban(reply), _))) = (bans, reply) {
                    bans.hear(key, &reply, now.mono);
                }
            }
        }
    }
}
