//! Operators with a token.
//!
//! A reset is one write of the caller's state, without messages to other workers: their leases and
//! cached refusals end within a second. Leased and reserved permits stay charged, so they can still
//! be returned. Orders to Redis are another kind of command.

use std::cell::Cell;
use std::rc::Rc;

use super::host::{Host, Level};
use super::worker::Worker;
use diana_policy::Policy;
use diana_policy::key::{GatewayId, Key, KeyHasher, Seed};
use diana_policy::path::Path;
use diana_policy::port::{Environment, Pseudo, Request, Values};
use diana_policy::time::{Micros, SECOND};

/// Minimum length of a token in bytes.
const SHORTEST: usize = 16;

/// Wrong tokens per second that are compared. Further ones are refused without comparison.
const ATTEMPTS: u32 = 10;

/// The digest of a token.
#[derive(Clone, Copy)]
pub(crate) struct Token(Option<Key>);

impl Token {
    /// The token in a variable. If it is absent or too short, no request is authenticated.
    fn of(variable: &str, environment: &dyn Environment, seed: &Seed) -> Token {
        let token = environment.variable(variable).filter(|token| token.len() >= SHORTEST);
        Token(token.map(|token| digest(token.as_bytes(), seed)))
    }
}

/// The keyed digest of a token. Comparing digests has no timing attack, since clients cannot
/// compute them.
fn digest(token: &[u8], seed: &Seed) -> Key {
    const TOKEN: usize = 0xffff;
    let mut hasher = KeyHasher::new(seed);
    hasher.part(TOKEN, token);
    hasher.finish()
}

/// Counts wrong tokens of one kind per second.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    second: Cell<Micros>,
    wrong: Cell<u32>,
}

impl Attempts {
    /// Returns true if `given` is the token, unless there were too many wrong ones in this second.
    fn is_right(&self, token: Token, given: &[u8], seed: &Seed, now: Micros) -> bool {
        if self.second.replace(now / SECOND) != now / SECOND {
            self.wrong.set(0);
        }
        let Token(Some(own)) = token else { return false };
        if self.wrong.get() >= ATTEMPTS {
            return false;
        }
        let is_right = own == digest(given, seed);
        if !is_right {
            self.wrong.set(self.wrong.get() + 1);
        }
        is_right
    }
}

/// The wish of an operator in a request.
pub(crate) enum OperatorRequest {
    /// There is none.
    None,
    /// An explanation of the decision, in this header of the response. The header of the request
    /// has a token, whether it is the right one or not, and is to be removed.
    Explanation { header: Rc<str>, is_right: bool },
    /// An order to the operator's endpoint: the path below the endpoint, and the query.
    Order { path: String, query: Vec<u8> },
    /// An order whose token is missing or wrong.
    Denied,
}

/// The access of operators to a configuration.
pub(crate) struct Operator {
    seed: Seed,
    explain: Option<(Rc<str>, Token)>,
    admin: Option<(String, Token)>,
}

impl Operator {
    /// `None` if the configuration has no access for operators.
    pub(crate) fn new(policy: &Policy, seed: Seed, host: &dyn Host) -> Option<Box<Operator>> {
        let token = |variable: &str| Token::of(variable, host.environment(), &seed);
        let explain = policy.explain.as_ref();
        let explain = explain.map(|it| (it.header.clone(), token(&it.token_env)));
        let admin = policy.admin.as_ref().map(|it| (it.path.clone(), token(&it.token_env)));
        let is_any = explain.is_some() || admin.is_some();
        is_any.then(|| Box::new(Operator { seed, explain, admin }))
    }

    /// Identifies this gateway in answers.
    pub(crate) fn gateway(&self) -> GatewayId {
        self.seed.gateway()
    }

    /// Reads what an operator wants.
    #[inline(never)]
    pub(crate) fn read(
        &self,
        request: &dyn Request,
        worker: &Worker,
        host: &dyn Host,
    ) -> OperatorRequest {
        if let Some(order) = self.order(request, &worker.admin_attempts, host) {
            return order;
        }
        let explanation = self.explanation(request, &worker.attempts, host);
        explanation.unwrap_or(OperatorRequest::None)
    }

    /// The order of a request to the operator's endpoint.
    fn order(
        &self,
        request: &dyn Request,
        attempts: &Attempts,
        host: &dyn Host,
    ) -> Option<OperatorRequest> {
        let (endpoint, token) = self.admin.as_ref()?;
        let (path, query) = split_path(request, endpoint)?;
        let given = match request.header("authorization") {
            Values::One(value) => value.strip_prefix(b"Bearer "),
            Values::None | Values::Many(_) => None,
        };
        let is_right = |given| attempts.is_right(*token, given, &self.seed, host.monotonic());
        Some(match given.is_some_and(is_right) {
            true => OperatorRequest::Order { path, query },
            false => OperatorRequest::Denied,
        })
    }

    /// The explanation that a request with a token for it wants.
    fn explanation(
        &self,
        request: &dyn Request,
        attempts: &Attempts,
        host: &dyn Host,
    ) -> Option<OperatorRequest> {
        let (header, token) = self.explain.as_ref()?;
        let is_right = match request.header(header) {
            Values::None => return None,
            Values::One(given) => attempts.is_right(*token, given, &self.seed, host.monotonic()),
            Values::Many(_) => false,
        };
        Some(OperatorRequest::Explanation { header: header.clone(), is_right })
    }
}

/// The rest of the path and the query, if a request is for the operator's endpoint in plain
/// spelling.
fn split_path(request: &dyn Request, endpoint: &str) -> Option<(String, Vec<u8>)> {
    let raw = request.pseudo(Pseudo::Path)?;
    let (spelled, query) = match raw.iter().position(|&byte| byte == b'?') {
        Some(mark) => (raw.get(..mark)?, raw.get(mark + 1..)?),
        None => (&*raw, &[][..]),
    };
    let rest = std::str::from_utf8(spelled.strip_prefix(endpoint.as_bytes())?).ok()?;
    let is_below = rest.is_empty() || rest.starts_with('/');
    (is_below && Path::of(spelled).is_plain).then(|| (rest.into(), query.into()))
}

/// Logs why operators cannot authenticate, if that is the case.
pub(crate) fn log_unusable_tokens(policy: &Policy, host: &dyn Host) {
    let explain = policy.explain.iter().map(|explain| ("explain", &explain.token_env));
    let admin = policy.admin.iter().map(|admin| ("admin", &admin.token_env));
    for (key, variable) in explain.chain(admin) {
        let why = match host.environment().variable(variable) {
            None => {
                "is not in the environment of the VM; see `environment_variables` of `vm_config`"
            }
            Some(token) if token.len() < SHORTEST => "is shorter than 16 bytes",
            Some(_) => continue,
        };
        host.log(
            Level::Error,
            &format!("{key}.token_env: `{variable}` {why}, so operators are refused"),
        );
    }
}
