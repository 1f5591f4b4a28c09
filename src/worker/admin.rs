//! The operator's path: what it is asked for, and what it answers.

mod told;

use diana_core::engine::inquiry::{Cannot, Inquired, Order, Seen};
use diana_core::json::object::JsonObject;
use diana_core::matching::path::Path;
use diana_core::port::{Pseudo, Request};
use diana_core::spelling::decoded;
use diana_core::store::usage::Unliftable;
use diana_core::time::{DURATIONS, Micros};

use super::host::{Host, Level};
use super::instance::Instance;

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminReply {
    /// Its status.
    pub status: u16,
    /// Its body, which is JSON.
    pub body: String,
}

impl AdminReply {
    pub(crate) fn problem(status: u16, why: &str) -> AdminReply {
        AdminReply { status, body: JsonObject::default().text("error", why).finish() }
    }

    /// What is told of what is not there, or of nobody's business.
    pub(crate) fn nothing() -> AdminReply {
        AdminReply::problem(404, "not found")
    }

    fn ok(body: String) -> AdminReply {
        AdminReply { status: 200, body }
    }
}

/// What becomes of a request on the operator's path.
pub(crate) enum Answered {
    /// This is the answer.
    Now(AdminReply),
    /// It waits for Redis, under this ticket.
    Later(u64),
}

/// What stands behind the path, and in the query, if a request is for the operator's path and spells it plainly.
pub(crate) fn is_for(request: &dyn Request, path: &str) -> Option<(String, Vec<u8>)> {
    let raw = request.pseudo(Pseudo::Path)?;
    let (spelled, query) = match raw.iter().position(|&byte| byte == b'?') {
        Some(mark) => (raw.get(..mark)?, raw.get(mark + 1..)?),
        None => (&*raw, &[][..]),
    };
    let rest = std::str::from_utf8(spelled.strip_prefix(path.as_bytes())?).ok()?;
    let is_below = rest.is_empty() || rest.starts_with('/');
    (is_below && Path::of(spelled).is_plain).then(|| (rest.into(), query.into()))
}

impl Instance {
    /// Does what an operator asks.
    pub(crate) fn operate(
        &self,
        (rest, query): (&str, &[u8]),
        request: &dyn Request,
        host: &dyn Host,
    ) -> Answered {
        let answered = self.understood(rest, query, request, host);
        answered.unwrap_or_else(Answered::Now)
    }

    fn understood(
        &self,
        rest: &str,
        query: &[u8],
        request: &dyn Request,
        host: &dyn Host,
    ) -> Result<Answered, AdminReply> {
        const LOOKS: [&str; 3] = ["/rules", "/usage", "/top"];
        const CHANGES: [&str; 3] = ["/reset", "/ban", "/unban"];
        let method = request.pseudo(Pseudo::Method).unwrap_or_default();
        let wanted = match rest {
            _ if LOOKS.contains(&rest) => "GET",
            _ if CHANGES.contains(&rest) => "POST",
            _ => return Err(AdminReply::nothing()),
        };
        if *method != *wanted.as_bytes() {
            return Err(AdminReply::problem(405, &format!("the method has to be {wanted}")));
        }
        let query = Query::read(query)?;
        match rest {
            "/rules" => {
                query.allow(&[], &[])?;
                Ok(Answered::Now(AdminReply::ok(self.told_rules(host))))
            }
            "/top" => {
                query.allow(&["rule"], &[])?;
                self.top(&query, host).map(Answered::Now)
            }
            _ => self.inquire(rest, &query, host),
        }
    }

    /// Has an order carried out about the callers that a query names.
    fn inquire(&self, rest: &str, query: &Query, host: &dyn Host) -> Result<Answered, AdminReply> {
        let (rule, actors) = self.rule(query, host)?;
        let names: Vec<String> = actors.iter().map(|actor| format!("actor.{actor}")).collect();
        query.allow(if rest == "/ban" { &["rule", "for"] } else { &["rule"] }, &names)?;
        let order = match rest {
            "/reset" => Order::Reset,
            "/ban" => Order::Ban(self.length(query, rule, host)?),
            "/unban" => Order::Unban,
            _ => Order::Look,
        };
        let values: Vec<Vec<u8>> = names
            .iter()
            .map(|name| query.require(name).map(Vec::from))
            .collect::<Result<_, _>>()?;
        let now = self.now(host);
        let done = self.with_engine(host, |engine| {
            let callers = engine.named(rule, &values);
            if callers.is_empty() {
                return None;
            }
            Some(engine.inquire(rule, callers, order, now))
        });
        match done.flatten() {
            None => Err(AdminReply::problem(400, "the rule counts nobody of that name")),
            Some(Ok(Inquired::Done(seen))) => {
                Ok(Answered::Now(self.done(rule, order, &Ok(seen), host)))
            }
            Some(Ok(Inquired::Asked(ticket))) => Ok(Answered::Later(ticket)),
            Some(Err(cannot)) => Err(refusal(cannot)),
        }
    }

    /// What became of an order that Redis was asked about, if it is one.
    pub(crate) fn told(&self, ticket: u64, host: &dyn Host) -> Option<AdminReply> {
        let told = self.with_engine(host, |engine| engine.told(ticket)).flatten();
        told.map(|(rule, order, seen)| self.done(rule, order, &seen, host))
    }

    /// Tells what became of an order, and the log of what has changed.
    fn done(
        &self,
        rule: usize,
        order: Order,
        seen: &Result<Vec<Seen>, Cannot>,
        host: &dyn Host,
    ) -> AdminReply {
        let seen = match seen {
            Ok(seen) => seen,
            Err(cannot) => return refusal(*cannot),
        };
        if let Some(line) = self.told_change(rule, order, seen, host) {
            host.log(Level::Warn, &line);
        }
        AdminReply::ok(self.told_callers(rule, seen, host))
    }

    /// The number of the rule that a query names, and the names of its actors.
    fn rule(&self, query: &Query, host: &dyn Host) -> Result<(usize, Vec<String>), AdminReply> {
        let name = query.require("rule")?;
        let found = self.with_engine(host, |engine| {
            let rule = engine.rules().position(|rule| rule.name.as_bytes() == name)?;
            Some((rule, engine.actors(rule).map(String::from).collect()))
        });
        found.flatten().ok_or_else(|| AdminReply::problem(404, "there is no rule of that name"))
    }

    /// For how long a query has somebody banned.
    fn length(&self, query: &Query, rule: usize, host: &dyn Host) -> Result<Micros, AdminReply> {
        let most = |rule: &diana_core::policy::Rule| rule.ban.map(|ban| ban.max);
        let most = self.with_engine(host, |engine| engine.rules().nth(rule).and_then(most));
        let most = most.flatten().ok_or_else(|| refusal(Cannot::BansNobody))?;
        let length = std::str::from_utf8(query.require("for")?).ok().and_then(duration);
        let fits = length.filter(|length| (1..=most).contains(length));
        fits.ok_or_else(|| {
            let most = diana_core::time::spell(most);
            let why =
                format!("`for` has to be a duration such as 5m, at most the rule's `max`, {most}");
            AdminReply::problem(400, &why)
        })
    }

    fn top(&self, query: &Query, host: &dyn Host) -> Result<AdminReply, AdminReply> {
        let (rule, _) = self.rule(query, host)?;
        let now = self.now(host);
        let top = self.with_engine(host, |engine| engine.top(rule, now.mono)).flatten();
        let top = top.ok_or_else(|| {
            AdminReply::problem(409, "the rule has no `hot`, or each worker looks for its own")
        })?;
        Ok(AdminReply::ok(self.told_top(rule, &top, host)))
    }
}

fn refusal(cannot: Cannot) -> AdminReply {
    let (status, why) = match cannot {
        Cannot::BansNobody => (409, "the rule has no `ban`"),
        Cannot::NoRoom => (503, "there is no room for one more ban"),
        Cannot::Away => (503, "Redis does not answer"),
        Cannot::Lift(Unliftable::Local) => (
            409,
            "scope `local`: each worker counts for itself, and this one knows nothing of the others",
        ),
        Cannot::Lift(Unliftable::Shared) => (
            409,
            "the caller shares what it used with others, since there was no room for one more",
        ),
        Cannot::Lift(Unliftable::Line) => (
            409,
            "there is nothing to lift: all there is are requests that wait for their turn, or are in flight",
        ),
        Cannot::Lift(Unliftable::Quota) => {
            (409, "the counts of a quota belong to nobody alone, and cannot be lifted")
        }
        Cannot::Lift(Unliftable::Busy) => (503, "others were faster again and again"),
    };
    AdminReply::problem(status, why)
}

/// A duration as it is configured.
fn duration(text: &str) -> Option<Micros> {
    let split = |(name, length): &(&str, u64)| Some((text.strip_suffix(name)?, *length));
    let (number, length) = DURATIONS.iter().find_map(split)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(length)
}

/// The parameters of a query, decoded as those of a form.
struct Query(Vec<(Vec<u8>, Vec<u8>)>);

impl Query {
    /// Most parameters.
    const MOST: usize = 64;

    fn read(query: &[u8]) -> Result<Query, AdminReply> {
        let plain = |text: &[u8]| {
            let spaced: Vec<u8> =
                text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
            decoded(&spaced).collect::<Vec<u8>>()
        };
        let pairs = query.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty());
        let mut read: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for pair in pairs {
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let name = plain(halves.next().unwrap_or_default());
            let value = plain(halves.next().unwrap_or_default());
            if read.len() == Query::MOST || read.iter().any(|(other, _)| *other == name) {
                return Err(AdminReply::problem(
                    400,
                    "too many parameters, or one that comes twice",
                ));
            }
            read.push((name, value));
        }
        Ok(Query(read))
    }

    fn require(&self, name: &str) -> Result<&[u8], AdminReply> {
        let found = self.0.iter().find(|(own, _)| own == name.as_bytes());
        found
            .map(|(_, value)| value.as_slice())
            .ok_or_else(|| AdminReply::problem(400, &format!("the parameter `{name}` is missing")))
    }

    /// Refuses parameters that mean nothing.
    fn allow(&self, names: &[&str], more: &[String]) -> Result<(), AdminReply> {
        let names: Vec<&str> =
            names.iter().copied().chain(more.iter().map(String::as_str)).collect();
        let is_known = |name: &[u8]| names.iter().any(|known| known.as_bytes() == name);
        match self.0.iter().all(|(name, _)| is_known(name)) {
            true => Ok(()),
            false => {
                Err(AdminReply::problem(400, &format!("allowed parameters: {}", list_of(&names))))
            }
        }
    }
}

fn list_of(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
