use diana_policy::time::SECOND;

use super::parse;

#[test]
fn instant_of_every_format_is_parsed() {
    for text in [
        "2026-11-24T06:00:00.250Z",
        "2026-11-24T06:00:00,25Z",
        "2026-11-24T06:00:00.250000999",
        "2026-11-24T11:30:00.25+05:30",
        "2026-11-24T01:00:00.25-0500",
        "1795500000.25",
    ] {
        assert_eq!(parse(text.as_bytes()), Some(1_795_500_000 * SECOND + SECOND / 4), "{text}");
    }
    for text in ["24/Nov/2026:00:30:00 -0530", "1795500000", "2026-11-24T05:59:60Z"] {
        assert_eq!(parse(text.as_bytes()), Some(1_795_500_000 * SECOND), "{text}");
    }
}

#[test]
fn text_without_an_instant_is_refused() {
    for text in [
        "",
        "-",
        "nonsense",
        "2026-13-01T00:00:00Z",
        "2026-11-31T00:00:00Z",
        "2026-11-24T24:00:00Z",
        "2026-11-24T06:00:00 CET",
        "1969-12-31T23:59:59Z",
        "24/Nov/2026:25:00:00 +0000",
        "24/Now/2026:00:00:00 +0000",
        "123456789012",
        "1795500000.x",
    ] {
        assert_eq!(parse(text.as_bytes()), None, "{text}");
    }
}
