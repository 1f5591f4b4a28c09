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

    /// Whether a request's authority names this host; case, port and a closing dot are ignored.
    #[must_use]
    pub fn matches(&self, authority: &[u8]) -> bool {
        let host = without_port(authority);
        if self.name.first() == Some(&b'.') {
            let Some(start) = host.len().checked_sub(self.name.len()) else { return false };
            start > 0 && host.get(start..).is_some_and(|tail| tail.eq_ignore_ascii_case(&self.name))
        } else {
            host.eq_ignore_ascii_case(&self.name)
        }
    }
}

/// The host of `host:port`; an IPv6 host keeps its brackets.
fn without_port(authority: &[u8]) -> &[u8] {
    let colon = authority.iter().rposition(|&byte| byte == b':');
    let host = match colon.and_then(|colon| authority.split_at_checked(colon)) {
        Some((host, port)) if port.iter().skip(1).all(u8::is_ascii_digit) => host,
        _ => authority,
    };
    host.strip_suffix(b".").unwrap_or(host)
}
