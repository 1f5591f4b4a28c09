//! The operator's endpoint: its requests and replies.

mod json;
mod query;

use self::query::AdminQuery;
use diana_limiter::{CallerQuery, Inquired, LocalReply, Order, OrderError, OrderResult};
use diana_policy::port::{Pseudo, Request};
use diana_policy::time::{DURATIONS, Micros, amount};

use super::host::{Host, Level};
use super::instance::Instance;
use super::reply;

/// The outcome of a request to the operator's endpoint.
pub(crate) enum AdminOutcome {
    /// The reply.
    Reply(LocalReply),
    /// The reply of Redis to this ticket is pending.
    Pending(u64),
}

impl Instance {
    /// Handles a request of an operator.
    pub(crate) fn operate(
        &self,
        (rest, query): (&str, &[u8]),
        (request, stream): (&dyn Request, u32),
        host: &dyn Host,
    ) -> AdminOutcome {
        let outcome = self.handle_order(rest, query, (request, stream), host);
        outcome.unwrap_or_else(AdminOutcome::Reply)
    }

    fn handle_order(
        &self,
        rest: &str,
        query: &[u8],
        (request, stream): (&dyn Request, u32),
        host: &dyn Host,
    ) -> Result<AdminOutcome, LocalReply> {
        const READS: [&str; 3] = ["/rules", "/usage", "/top"];
        const CHANGES: [&str; 3] = ["/reset", "/ban", "/unban"];
        let method = request.pseudo(Pseudo::Method).unwrap_or_default();
        let wanted = match rest {
            _ if READS.contains(&rest) => "GET",
            _ if CHANGES.contains(&rest) => "POST",
            _ => return Err(reply::not_found()),
        };
        if *method != *wanted.as_bytes() {
            return Err(reply::wrong_method(wanted));
        }
        let query = AdminQuery::read(query)?;
        match rest {
            "/rules" => {
                query.allow(&[], &[])?;
                Ok(AdminOutcome::Reply(reply::ok(self.rules_json(host))))
            }
            "/top" => {
                query.allow(&["rule"], &[])?;
                self.top(&query, host).map(AdminOutcome::Reply)
            }
            _ => self.execute(rest, &query, stream, host),
        }
    }

    /// Executes an order for the callers that a query names.
    fn execute(
        &self,
        rest: &str,
        query: &AdminQuery,
        stream: u32,
        host: &dyn Host,
    ) -> Result<AdminOutcome, LocalReply> {
        let (rule, actors) = self.rule(query, host)?;
        let names: Vec<String> = actors.iter().map(|actor| format!("actor.{actor}")).collect();
        let key = query.key()?;
        let more = if key.is_some() { &["key".to_owned()] } else { &*names };
        query.allow(if rest == "/ban" { &["rule", "for"] } else { &["rule"] }, more)?;
        let order = match rest {
            "/reset" => Order::Reset,
            "/ban" => Order::Ban(self.length(query, rule, host)?),
            "/unban" => Order::Unban,
            _ => Order::Look,
        };
        let callers = match key {
            Some(key) => CallerQuery::Key(key),
            None => {
                let values = names.iter().map(|name| query.require(name).map(Vec::from));
                CallerQuery::Values(values.collect::<Result<_, _>>()?)
            }
        };
        let now = self.now(host);
        let done =
            self.with_limiter(host, |limiter| limiter.inquire(rule, callers, order, stream, now));
        match done {
            None => Err(reply::problem(503, "another call is in progress; try again")),
            Some(Ok(Inquired::Done(seen))) if seen.is_empty() => {
                Err(reply::problem(400, "the query names no caller of this rule"))
            }
            Some(Ok(Inquired::Done(seen))) => {
                let result = OrderResult { rule, order, seen: Ok(seen) };
                Ok(AdminOutcome::Reply(self.order_reply(&result, host)))
            }
            Some(Ok(Inquired::Pending(id))) => Ok(AdminOutcome::Pending(id)),
            Some(Err(error)) => Err(refusal(error)),
        }
    }

    /// The reply to an order. Also logs a change.
    pub(crate) fn order_reply(&self, result: &OrderResult, host: &dyn Host) -> LocalReply {
        let OrderResult { rule, order, seen } = result;
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => return refusal(*error),
        };
        if let Some(line) = self.change_line(*rule, *order, seen, host) {
            host.log(Level::Warn, &line);
        }
        reply::ok(self.callers_json(*rule, seen, host))
    }

    /// The number of the rule in a query, and the names of its actors.
    fn rule(
        &self,
        query: &AdminQuery,
        host: &dyn Host,
    ) -> Result<(usize, Vec<String>), LocalReply> {
        let name = query.require("rule")?;
        let found = self.with_limiter(host, |limiter| {
            let rule = limiter.rules().position(|rule| rule.name.as_bytes() == name)?;
            Some((rule, limiter.actors(rule).map(String::from).collect()))
        });
        found.flatten().ok_or_else(|| reply::problem(404, "no rule has this name"))
    }

    /// The length of a ban in a query.
    fn length(
        &self,
        query: &AdminQuery,
        rule: usize,
        host: &dyn Host,
    ) -> Result<Micros, LocalReply> {
        let most = |rule: &diana_policy::Rule| rule.ban.map(|ban| ban.max);
        let most = self.with_limiter(host, |limiter| limiter.rules().nth(rule).and_then(most));
        let most = most.flatten().ok_or_else(|| refusal(OrderError::NoBans))?;
        let length = std::str::from_utf8(query.require("for")?).ok();
        let length = length.and_then(|text| amount(text, &DURATIONS));
        let fits = length.filter(|length| (1..=most).contains(length));
        fits.ok_or_else(|| {
            let most = diana_policy::time::spell(most);
            let why =
                format!("`for` must be a duration such as 5m, at most the rule's `max`, {most}");
            reply::problem(400, &why)
        })
    }

    fn top(&self, query: &AdminQuery, host: &dyn Host) -> Result<LocalReply, LocalReply> {
        let (rule, _) = self.rule(query, host)?;
        let now = self.now(host);
        let top = self.with_limiter(host, |limiter| limiter.top(rule, now.mono)).flatten();
        let top = top.ok_or_else(|| {
            reply::problem(
                409,
                "the rule has no `hot`, or scope `local`, where each worker has its own list",
            )
        })?;
        Ok(reply::ok(self.top_json(rule, &top, host)))
    }
}

fn refusal(error: OrderError) -> LocalReply {
    let (status, why) = match error {
        OrderError::NoBans => (409, "the rule has no `ban`"),
        OrderError::Foreign => (
            404,
            "no such caller in this gateway: another gateway made the key, or this one before it restarted, \
             or the rule counts for the whole fleet",
        ),
        OrderError::NoRoom => (503, "the table of bans is full"),
        OrderError::Unavailable => (503, "Redis is unavailable, so the command was not sent"),
        OrderError::Unanswered | OrderError::Lost => {
            (503, "Redis did not reply in time; the command may have been executed")
        }
        OrderError::Local => (
            409,
            "the rule has scope `local`: each worker counts separately and cannot read the others",
        ),
        OrderError::Shared => {
            (409, "the caller shares a bucket with others, since the table was full")
        }
        OrderError::InUse => {
            (409, "nothing to reset: the caller only has requests that are held or in flight")
        }
        OrderError::Quota => {
            (409, "a quota does not store callers separately, so it cannot reset one")
        }
        OrderError::Busy => {
            (503, "other workers changed the state during every attempt; try again")
        }
    };
    reply::problem(status, why)
}
