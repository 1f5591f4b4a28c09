//! Host patterns.

/// A host name, or all names below one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Lower case; with a leading dot if it stands for all names below.
    name: Box<[u8]>,
}

impl Host {
    /// A pattern as written in a configuration: `example.com` or `*.example.com`.
    ///
    /// # Errors
    /// Says what is allowed when the pattern is anything else.
    pub fn parse(written: &str) -> Result<Host, String> {
        let lower = written.to_ascii_lowercase();
        let name = lower.strip_prefix('*').unwrap_or(&lower);
        let wild = name.len() != lower.len();
        let bracketed = name.starts_with('[') && name.ends_with(']');
        let bad = name.is_empty()
            || wild != name.starts_with('.')
            || (!bracketed
                && !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)));
        if bad || name == "." {
            return Err("allowed: a host name without port, or `*.` and a host name".into());
        }
        Ok(Host { name: name.as_bytes().into() })
    }

    /// Whether a request's authority names this host; case, user, port and closing dots are
    /// ignored.
    #[must_use]
    pub fn matches(&self, authority: &[u8]) -> bool {
        let host = bare(authority);
        if self.name.first() == Some(&b'.') {
            let Some(start) = host.len().checked_sub(self.name.len()) else { return false };
            start > 0 && host.get(start..).is_some_and(|tail| tail.eq_ignore_ascii_case(&self.name))
        } else {
            host.eq_ignore_ascii_case(&self.name)
        }
    }
}

/// The host of `user@host:port`; an IPv6 host keeps its brackets.
fn bare(authority: &[u8]) -> &[u8] {
    let mut host = authority.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
    let bracket = host.iter().position(|&byte| byte == b']').map_or(0, |bracket| bracket + 1);
    let port = host.iter().skip(bracket).position(|&byte| byte == b':');
    if let Some((name, _)) = port.and_then(|port| host.split_at_checked(bracket + port)) {
        host = name;
    }
    while let Some(name) = host.strip_suffix(b".") {
        host = name;
    }
    host
}
