//! Addresses in the notations of hosts.

use diana_policy::spelling::address as parse;

#[test]
fn address_is_read_with_and_without_port() {
    for (text, address) in [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:40000", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
    ] {
        assert_eq!(parse(text.as_bytes()), Some(address.parse().unwrap()), "{text}");
    }
    for text in ["", ":", "[", "[::1", "192.0.2", "192.0.2.1:99999", "192.0.2.256", "@/run/socket"]
    {
        assert_eq!(parse(text.as_bytes()), None, "{text}");
    }
    assert_eq!(parse(b"192.0.2.1\xff:80"), None);
}
