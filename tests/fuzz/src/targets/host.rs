//! Host names: case, port, user and trailing dots do not change the host.

use diana_policy::HostPattern;

/// A pattern, followed by an authority.
pub fn run(input: &[u8]) {
    let mut lines = input.splitn(2, |byte| *byte == b'\n');
    let Ok(written) = str::from_utf8(lines.next().unwrap_or_default()) else { return };
    let authority = lines.next().unwrap_or_default();
    let Ok(host) = HostPattern::parse(written) else { return };
    let matches = host.matches(authority);
    assert_eq!(host.matches(&authority.to_ascii_uppercase()), matches);
    assert_eq!(host.matches(&[b"user@", authority].concat()), matches);
    let shouted =
        HostPattern::parse(&written.to_ascii_uppercase()).expect("it is a pattern as well");
    assert_eq!(shouted.matches(authority), matches);
    let is_special = |byte: &u8| b":@[],%".contains(byte) || byte.is_ascii_whitespace();
    if !authority.iter().any(is_special) {
        assert_eq!(host.matches(&[authority, b":8080"].concat()), matches);
        assert_eq!(host.matches(&[authority, b"."].concat()), matches);
        // Without user and port it can be compared as written.
        let plain = String::from_utf8_lossy(authority).trim_end_matches('.').to_ascii_lowercase();
        let lower = written.to_ascii_lowercase();
        let wanted = match lower.strip_prefix('*') {
            Some(below) => plain.len() > below.len() && plain.ends_with(below),
            None => plain == lower.trim_end_matches('.'),
        };
        // A host must be text.
        if authority.is_ascii() && !lower.ends_with('.') {
            assert_eq!(matches, wanted, "{written} and {plain}");
        }
    }
    if !written.starts_with('*') && !written.ends_with('.') {
        assert!(host.matches(written.as_bytes()));
    }
}
