//! The query of a request to the operator's endpoint.

use crate::reply;
use diana_limiter::LocalReply;
use diana_policy::key::LoggedKey;
use diana_policy::spelling::decoded;

/// The parameters of a query, decoded like a form.
pub(super) struct AdminQuery(Vec<(Vec<u8>, Vec<u8>)>);

impl AdminQuery {
    /// Maximum number of parameters.
    const MOST: usize = 64;

    pub(super) fn read(query: &[u8]) -> Result<AdminQuery, LocalReply> {
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
            if read.len() == AdminQuery::MOST || read.iter().any(|(other, _)| *other == name) {
                return Err(reply::problem(
                    400,
                    "found more than 64 parameters, or a parameter that occurs twice",
                ));
            }
            read.push((name, value));
        }
        Ok(AdminQuery(read))
    }

    pub(super) fn require(&self, name: &str) -> Result<&[u8], LocalReply> {
        let found = self.0.iter().find(|(own, _)| own == name.as_bytes());
        found
            .map(|(_, value)| value.as_slice())
            .ok_or_else(|| reply::problem(400, &format!("the parameter `{name}` is missing")))
    }

    /// The caller's key, if the query has one.
    pub(super) fn key(&self) -> Result<Option<LoggedKey>, LocalReply> {
        let Some((_, value)) = self.0.iter().find(|(name, _)| name == b"key") else {
            return Ok(None);
        };
        let why = "`key` must be as in the access log and in explanations";
        LoggedKey::read(value).map(Some).ok_or_else(|| reply::problem(400, why))
    }

    /// Refuses unknown parameters.
    pub(super) fn allow(&self, names: &[&str], more: &[String]) -> Result<(), LocalReply> {
        let names: Vec<&str> =
            names.iter().copied().chain(more.iter().map(String::as_str)).collect();
        let is_known = |name: &[u8]| names.iter().any(|known| known.as_bytes() == name);
        match self.0.iter().all(|(name, _)| is_known(name)) {
            true => Ok(()),
            false => Err(reply::problem(400, &format!("allowed parameters: {}", list_of(&names)))),
        }
    }
}

fn list_of(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
