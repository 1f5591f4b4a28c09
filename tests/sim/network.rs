//! The way to Redis and back, and the real Redis at its end, by a clock that the world sets.

use diana_policy::time::Micros;
use fastrand::Rng;
use kit::model::proxy::Proxy;
use kit::server::Server;

use super::node::Call;
use super::plan::{Away, EPOCH, Fault, Plan};
use super::rule::{Rule, Scope};

/// The answer to a call.
#[derive(Debug, Clone)]
pub struct Response {
    pub token: u32,
    /// `None` if the connection was reset.
    pub status: Option<u16>,
    pub body: Vec<u8>,
    /// When the call was made, and when the host gives it up.
    pub sent: Micros,
    pub given_up: Micros,
    /// Whether Redis took the call, and whether this is its answer.
    pub was_taken: bool,
    pub is_whole: bool,
}

/// A call under way to Redis.
pub struct Way {
    call: Call,
    sent: Micros,
    /// When the host gives it up.
    given_up: Micros,
    /// Travel time of the answer; `None` if it is lost.
    back: Option<Micros>,
    /// Whether it reaches the second of two stores.
    is_elsewhere: bool,
}

/// The fate of a call that leaves a gateway.
pub enum Sent {
    /// It reaches Redis then.
    Arrives(Micros, Way),
    /// It never does; this comes back then.
    Fails(Micros, Response),
}

pub struct Network<'a> {
    server: &'a Server,
    /// The model, which has to give the same answers.
    model: Option<Proxy>,
    latency: Micros,
    plan: &'a Plan,
    faults: Vec<Fault>,
}

/// Returns true if the model knows all rules of an entry: it has no bans, no daily quotas in filters, no windows of a time
/// zone that is not a number of quarters of an hour away, and no places in flight beside other rules.
fn is_known(rules: &[Rule]) -> bool {
    let global: Vec<&Rule> = rules.iter().filter(|rule| rule.scope == Scope::Global).collect();
    let is_elsewhere = |rule: &Rule| rule.midnight > 0 && rule.algo == "W";
    global.iter().all(|rule| rule.ban.is_none() && !rule.is_filter && !is_elsewhere(rule))
        && (global.len() < 2 || global.iter().all(|rule| rule.algo != "P"))
}

impl Network<'_> {
    pub fn new<'a>(plan: &'a Plan, server: &'a Server) -> Network<'a> {
        server.reset();
        // The model is one store.
        let has_others =
            |fault: &Fault| matches!(fault, Fault::Failover { .. } | Fault::Split { .. });
        let is_known =
            !plan.faults.iter().any(has_others) && plan.entries.iter().all(|rules| is_known(rules));
        let model = is_known.then(Proxy::one);
        Network { server, model, latency: plan.latency, plan, faults: plan.faults.clone() }
    }

    /// A gateway makes a call.
    pub fn send(&mut self, gateway: usize, call: Call, now: Micros, rng: &mut Rng) -> Sent {
        let (there, back) = (now + self.way(rng), self.way(rng));
        let given_up = now + call.timeout;
        let answer = |status, body: &[u8]| Response {
            token: call.token,
            status,
            body: body.into(),
            sent: now,
            given_up,
            was_taken: false,
            is_whole: false,
        };
        let (mut away, mut lost, mut is_elsewhere) = (None, false, false);
        for fault in &self.faults {
            match fault {
                Fault::Away { span, gateways, how }
                    if span.contains(&there) && gateways.contains(&gateway) =>
                {
                    away = Some(*how);
                }
                Fault::Loses { span, permille } if span.contains(&now) => {
                    lost = rng.u64(..1000) < *permille;
                }
                Fault::Split { span } if span.contains(&now) => is_elsewhere = rng.bool(),
                _ => {}
            }
        }
        let soon = there.min(given_up);
        let fails = match away {
            Some(Away::Silent) => Some((given_up, answer(Some(504), b""))),
            Some(Away::Refused) => Some((now + 100, answer(Some(503), b"no healthy upstream"))),
            Some(Away::Reset) => Some((soon, answer(None, b""))),
            Some(Away::Garbage) => {
                Some((soon, answer(Some(200), b"220 smtp.example.com ESMTP\r\n")))
            }
            None if lost && rng.bool() || there >= given_up => {
                Some((given_up, answer(Some(504), b"")))
            }
            None => None,
        };
        match fails {
            Some((at, response)) => Sent::Fails(at, response),
            None => {
                let back = (!lost).then_some(back);
                Sent::Arrives(there, Way { call, sent: now, given_up, back, is_elsewhere })
            }
        }
    }

    /// A gateway calls the configuration centre. Returns when the answer comes, and the answer.
    pub fn read_document(&mut self, call: &Call, now: Micros, rng: &mut Rng) -> (Micros, Response) {
        let comes = now + self.way(rng) + self.way(rng);
        let response = Response {
            token: call.token,
            status: Some(200),
            body: self.plan.central(now).into(),
            sent: now,
            given_up: now + call.timeout,
            was_taken: true,
            is_whole: true,
        };
        (comes, response)
    }

    /// A call reaches Redis. When its answer comes, and which.
    pub fn arrive(&mut self, way: Way, now: Micros) -> (Micros, Response) {
        let Way { call, sent, given_up, back, is_elsewhere } = way;
        self.set_time(now);
        let change_store = || is_elsewhere.then(|| self.server.command(&["SWAPDB", "0", "1"]));
        change_store();
        let body = self.server.exchange(&call.body);
        change_store();
        if let Some(model) = &mut self.model {
            let expected = model.answer(&call.body, EPOCH + now);
            let [own, expected] = [&body, &expected].map(|bytes| String::from_utf8_lossy(bytes));
            assert_eq!(own, expected, "Redis does not answer like its model at {now}");
        }
        let whole = Response {
            token: call.token,
            status: Some(200),
            body,
            sent,
            given_up,
            was_taken: true,
            is_whole: true,
        };
        match back.map(|back| now + back).filter(|comes| *comes < given_up) {
            Some(comes) => (comes, whole),
            None => {
                let status = Some(504);
                (given_up, Response { status, body: Vec::new(), is_whole: false, ..whole })
            }
        }
    }

    /// Redis forgets everything.
    pub fn empty(&mut self, now: Micros) {
        self.set_time(now);
        self.model = self.model.take().map(|_| Proxy::one());
        self.server.command(&["FLUSHALL"]);
        self.server.command(&["SCRIPT", "FLUSH"]);
    }

    /// The replica has received all data so far.
    pub fn replicate(&mut self, now: Micros) {
        self.set_time(now);
        let copy = "redis.call('SELECT', 1) redis.call('FLUSHDB') redis.call('SELECT', 0)
            for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', 1) end";
        self.server.command(&["EVAL", copy, "0"]);
    }

    /// The replica takes over.
    pub fn fail_over(&mut self, now: Micros) {
        self.set_time(now);
        self.server.command(&["SWAPDB", "0", "1"]);
        self.server.command(&["SCRIPT", "FLUSH"]);
    }

    /// Keys that Redis would never forget, except for the secret and the clock of the fleet.
    pub fn leaks(&self) -> String {
        let find = "local found = {}
            for _, key in ipairs(redis.call('KEYS', '*')) do
                local is_kept = string.match(key, ':seed$') or string.match(key, ':clock$')
                if redis.call('PTTL', key) == -1 and not is_kept then found[#found + 1] = key end
            end
            return table.concat(found, ' ')";
        self.server.command(&["EVAL", find, "0"])
    }

    fn set_time(&self, now: Micros) {
        self.server.advance((EPOCH + now).saturating_sub(self.server.now()));
    }

    /// How long one way takes.
    fn way(&self, rng: &mut Rng) -> Micros {
        self.latency / 4 + rng.u64(0..=self.latency / 2)
    }
}
