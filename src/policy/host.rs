//! Host patterns.

use std::net::Ipv6Addr;

use super::HostPattern;
use crate::spelling::decoded;

impl HostPattern {
    /// Parses a pattern of the configuration: `example.com` or `*.example.com`.
    ///
    /// # Errors
    /// The allowed form, if the pattern has another one.
    pub fn parse(written: &str) -> Result<HostPattern, String> {
        let lower = written.to_ascii_lowercase();
        let name = lower.strip_prefix('*').unwrap_or(&lower);
        let wild = name.len() != lower.len();
        let bracketed = address(name.as_bytes()).is_some();
        let bad = name.is_empty()
            || wild != name.starts_with('.')
            || (!bracketed
                && !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)));
        if bad || name == "." {
            return Err("allowed: a host name without port, or `*.` and a host name".into());
        }
        Ok(HostPattern { name: name.as_bytes().into(), address: address(name.as_bytes()) })
    }

    /// Returns true if a request's authority names this host. Case, user, port, trailing dots and
    /// the notation of an address are ignored. If a proxy has joined several authorities with
    /// commas, one match is enough.
    #[must_use]
    pub fn matches(&self, authority: &[u8]) -> bool {
        authority.split(|&byte| byte == b',').any(|one| self.matches_authority(one))
    }

    fn matches_authority(&self, authority: &[u8]) -> bool {
        if authority.contains(&b'%') {
            let plain: Vec<u8> = decoded(authority).collect();
            return self.names(bare(&plain).trim_ascii());
        }
        self.names(bare(authority).trim_ascii())
    }

    /// Returns true if upstreams agree on the host of an authority: it has no user, escape or second
    /// host, and its port is a number.
    #[must_use]
    pub fn is_plain(authority: &[u8]) -> bool {
        let (_, port) = split(authority);
        !authority.iter().any(|byte| b"%,@".contains(byte)) && port.iter().all(u8::is_ascii_digit)
    }

    /// The host that an authority names: in lower case, without port and trailing dots, an IPv6
    /// address in its usual notation. `None` if upstreams disagree about it.
    #[must_use]
    pub fn only_host(authority: &[u8]) -> Option<Vec<u8>> {
        if !HostPattern::is_plain(authority) {
            return None;
        }
        let host = bare(authority).trim_ascii();
        let written = address(host).map(|address| format!("[{address}]").into_bytes());
        Some(written.unwrap_or_else(|| host.to_ascii_lowercase()))
    }

    fn names(&self, host: &[u8]) -> bool {
        if self.address.is_some() {
            return address(host) == self.address;
        }
        if self.name.first() == Some(&b'.') {
            let Some(start) = host.len().checked_sub(self.name.len()) else { return false };
            start > 0 && host.get(start..).is_some_and(|tail| tail.eq_ignore_ascii_case(&self.name))
        } else {
            host.eq_ignore_ascii_case(&self.name)
        }
    }
}

/// The IPv6 address in brackets.
fn address(host: &[u8]) -> Option<Ipv6Addr> {
    let inner = host.strip_prefix(b"[")?.strip_suffix(b"]")?;
    std::str::from_utf8(inner).ok()?.parse().ok()
}

/// Host and port of `user@host:port`. An IPv6 host keeps its brackets.
fn split(authority: &[u8]) -> (&[u8], &[u8]) {
    let host = authority.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
    let bracket = host.iter().position(|&byte| byte == b']').unwrap_or_default();
    let colon = host.iter().skip(bracket).position(|&byte| byte == b':');
    match colon.and_then(|colon| host.split_at_checked(bracket + colon)) {
        Some((name, port)) => (name, port.strip_prefix(b":").unwrap_or_default()),
        None => (host, b""),
    }
}

/// The host of an authority, without trailing dots.
fn bare(authority: &[u8]) -> &[u8] {
    let (mut host, _) = split(authority);
    while let Some(name) = host.strip_suffix(b".") {
        host = name;
    }
    host
}
