//! The same request in every format.

use std::net::{IpAddr, Ipv4Addr};

use diana_policy::port::{Ending, Pseudo, Request, Values};
use diana_policy::time::SECOND;

use super::LogReader;
use crate::{FieldMapping, LogEntry};

/// Lines of one request.
const LINES: [(&str, &str); 6] = [
    (
        "envoy",
        r#"[2026-11-24T06:00:00.250Z] "GET /a/b?c=d HTTP/2" 404 - 0 12 7 3 "203.0.113.9, 10.0.0.1" "curl/8.5.0 (x "y")" "cc21" "example.com" "10.0.2.1:80""#,
    ),
    (
        "istio",
        r#"[2026-11-24T06:00:00.250Z] "GET /a/b?c=d HTTP/1.1" 404 - via_upstream - "-" 0 12 7 3 "-" "curl/8.5.0 (x "y")" "cc21" "example.com" "10.0.2.1:80" outbound|80||x [fd00::1]:5555 [fd00::1]:443 10.0.0.1:4242 - default"#,
    ),
    (
        "istio as JSON",
        r#"{"start_time": "2026-11-24T06:00:00.250Z", "method": "GET", "path": "/a/b?c=d", "response_code": 404, "duration": 7, "response_flags": "-", "downstream_remote_address": "10.0.0.1:42", "user_agent": "curl/8.5.0 (x \"y\")", "authority": "example.com", "upstream_transport_failure_reason": null}"#,
    ),
    (
        "envoy gateway",
        r#"{"start_time": "2026-11-24T06:00:00.250Z", "method": "GET", "x-envoy-origin-path": "/a/b?c=d", "response_code": 404, "duration": 7, "user-agent": "curl/8.5.0 (x \"y\")", "x-forwarded-for": "192.0.2.1,10.0.0.1", ":authority": "example.com"}"#,
    ),
    ("common", r#"10.0.0.1 - - [24/Nov/2026:00:30:00 -0530] "GET /a/b?c=d HTTP/1.0" 404 12"#),
    (
        "combined",
        r#"10.0.0.1 - - [24/Nov/2026:00:30:00 -0530] "GET /a/b?c=d HTTP/1.0" 404 12 "https://example.com/" "curl/8.5.0 (x "y")""#,
    ),
];

#[test]
fn every_format_has_the_same_request() {
    let mut reader = LogReader::new(FieldMapping::default());
    for (format, line) in LINES {
        let mut entry = LogEntry::default();
        reader.read(line.as_bytes(), 1, &mut entry).unwrap();
        assert_eq!(entry.pseudo(Pseudo::Path).unwrap(), &b"/a/b?c=d"[..], "{format}");
        assert_eq!(entry.pseudo(Pseudo::Method).unwrap(), &b"GET"[..], "{format}");
        assert_eq!(entry.status, 404, "{format}");
        let address = IpAddr::from(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(entry.client(), Some(address), "{format}");
        // The formats of web servers have whole seconds, and neither durations nor hosts.
        let is_short = ["common", "combined"].contains(&format);
        let host = entry.pseudo(Pseudo::Authority);
        assert_eq!(host.as_deref(), (!is_short).then_some(&b"example.com"[..]), "{format}");
        assert_eq!(entry.took, (!is_short).then_some(SECOND / 1000 * 7), "{format}");
        let fraction = if is_short { 0 } else { SECOND / 4 };
        assert_eq!(entry.at, 1_795_500_000 * SECOND + fraction, "{format}");
        let agent = match format {
            "common" => Values::None,
            _ => Values::One(br#"curl/8.5.0 (x "y")"#),
        };
        assert_eq!(Request::header(&entry, "user-agent"), agent, "{format}");
    }
}

#[test]
fn line_without_a_request_has_a_reason() {
    let deep = format!("{{\"start_time\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let mut reader = LogReader::new(FieldMapping::default());
    let mut read = |line: &str| reader.read(line.as_bytes(), 1, &mut LogEntry::default());
    for (line, why) in [
        ("nonsense", "it has no time"),
        ("[2026-13-01T00:00:00Z] \"GET / H\" 200", "it has no time"),
        ("[2026-11-24T06:00:00Z] \"GET / H\"", "it has no status"),
        ("[2026-11-24T06:00:00Z] \"GET\" 200", "it has no request"),
        ("{\"a\": 1}", "it has no time"),
        ("{\"time\": \"2026-11-24T06:00:00Z\"}", "it has no path"),
        ("{", "it is not a JSON object"),
        // Of a value that is not needed the depth does not matter.
        (&deep, "it has no time"),
    ] {
        assert_eq!(read(line), Err(why), "{:.60}", line);
    }
}

/// The flags of a stream are read only for its client: other ends differ by their details and
/// status.
#[test]
fn end_of_a_stream_is_read_from_a_line() {
    let mut reader = LogReader::new(FieldMapping::default());
    for (status, details, flags, [is_from_upstream, is_complete, client_left]) in [
        (200, "via_upstream", "-", [true, true, false]),
        (503, "via_upstream", "URX", [true, true, false]),
        (200, "-", "-", [true, true, false]),
        (200, "upstream_reset_after_response_started{x}", "UPE", [true, false, false]),
        (200, "websocket_handshake_unsuccessful", "-", [true, false, false]),
        (200, "downstream_remote_disconnect", "DC", [true, false, true]),
        (200, "-", "DC", [true, false, true]),
        (503, "no_healthy_upstream", "UH", [false, false, false]),
        (504, "max_duration_timeout", "-", [false, false, false]),
        (503, "-", "UO", [false, false, false]),
        (403, "rbac_access_denied", "-", [false, false, false]),
        (400, "http1.codec_error", "DPE", [false, false, true]),
        (0, "downstream_remote_disconnect", "DC", [false, false, true]),
        (0, "http2.remote_reset", "DR", [false, false, true]),
        (0, "-", "-", [false, false, true]),
    ] {
        let line = format!(
            r#"{{"start_time": "2026-11-24T06:00:00.250Z", "method": "GET", "path": "/", "response_code": {status}, "response_code_details": "{details}", "response_flags": "{flags}"}}"#
        );
        let mut entry = LogEntry::default();
        reader.read(line.as_bytes(), 1, &mut entry).unwrap();
        let read = [entry.is_from_upstream(), entry.is_complete(), entry.client_left()];
        assert_eq!(read, [is_from_upstream, is_complete, client_left], "{line}");
    }
}
