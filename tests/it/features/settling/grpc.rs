//! Outcomes and usage of gRPC, which the trailers of a response contain, or its headers if it has no messages.

use diana_request::settling::{UnknownUsage, UsageReader};
use kit::ending::FakeEnding;

const RESERVED: u64 = 5;
const MOST: u64 = 300;
const MISSING: u64 = 77;
const ERROR: u64 = 33;

fn reader(keys: &str) -> UsageReader {
    let document = format!(
        "limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 500, algo: W, {keys}}}]}}]"
    );
    let policy = diana_config::Reader::default()
        .policy(document.as_bytes())
        .unwrap_or_else(|it| panic!("{it}"));
    UsageReader::new(policy.limits[0].rules[0].settling.as_ref().unwrap())
}

/// The usage after these headers, these trailers, and this end.
fn used(
    reader: &UsageReader,
    headers: Option<&FakeEnding>,
    trailers: Option<&FakeEnding>,
    end: &FakeEnding,
) -> (u64, Option<UnknownUsage>) {
    let response = headers.map(|headers| reader.read_headers(headers)).unwrap_or_default();
    let response = trailers.map_or(response, |it| reader.read_trailers(response, it));
    reader.used(RESERVED, response, end, 0)
}

fn answered() -> FakeEnding {
    FakeEnding::answered(200)
}

fn grpc() -> FakeEnding {
    answered().header("content-type", "application/grpc")
}

fn status(status: &str) -> FakeEnding {
    answered().header("grpc-status", status)
}

#[test]
fn listed_statuses_count_in_trailers_and_in_headers() {
    let by_one = reader("cost: 5, count: {grpc_status: [16]}");
    let by_two = reader("cost: 5, count: {grpc_status: [0, 7]}");
    for (text, counts) in [
        ("16", [true, false]),
        (" 16 ", [true, false]),
        ("0", [false, true]),
        ("7", [false, true]),
        ("2", [false, false]),
        ("160", [false, false]),
        ("999", [false, false]),
        ("-16", [false, false]),
        ("", [false, false]),
        ("UNAUTHENTICATED", [false, false]),
    ] {
        for (reader, counts) in [(&by_one, counts[0]), (&by_two, counts[1])] {
            let wanted = (if counts { RESERVED } else { 0 }, None);
            let trailers = status(text);
            // After messages, without them, and where the type of the response is unknown.
            for headers in
                [grpc(), answered().header("content-type", "application/grpc+proto"), answered()]
            {
                let after = used(reader, Some(&headers), Some(&trailers), &answered());
                assert_eq!(after, wanted, "{text} in trailers");
            }
            let only = grpc().header("grpc-status", text);
            assert_eq!(used(reader, Some(&only), None, &answered()), wanted, "{text} in headers");
            // A response of the proxy itself, or of another filter.
            let local = FakeEnding::denied(200, "ext_authz_denied").header("grpc-status", text);
            assert_eq!(used(reader, Some(&local), None, &local), wanted, "{text} of the proxy");
        }
    }
    // A status that is no number is unknown.
    let unknown = reader("cost: 5, count: {grpc_status: [2]}");
    let used = used(&unknown, Some(&grpc()), Some(&status("x")), &answered());
    assert_eq!(used, (RESERVED, None));
}

/// A client does not escape by leaving before the status. Other ends without a status count under `failed` only.
#[test]
fn end_without_status_counts_if_the_client_left() {
    let reader = reader("cost: 5, count: {grpc_status: [16]}");
    let left = FakeEnding::left(Some(200));
    for (headers, trailers, end, counts) in [
        (None, None, FakeEnding::left(None), true),
        (Some(grpc()), None, left.clone(), true),
        (Some(answered().header("content-type", "application/grpc;x=1")), None, left.clone(), true),
        // The status has come.
        (Some(grpc()), Some(status("0")), left.clone(), false),
        (Some(grpc()), Some(status("16")), left.clone(), true),
        (Some(grpc()), None, FakeEnding::cut(), false),
        (Some(grpc()), None, answered(), false),
        (Some(grpc()), Some(answered()), left.clone(), false),
        // A status before messages is none.
        (Some(status("16").with_body()), None, answered(), false),
        (Some(status("16").with_body()), Some(status("0")), answered(), false),
        (Some(status("0").with_body()), Some(status("16")), answered(), true),
        (Some(grpc().header("grpc-status", "0").with_body()), None, left.clone(), true),
        (Some(grpc().header("grpc-status", "16").with_body()), None, FakeEnding::cut(), false),
        (None, None, FakeEnding::unreachable(), false),
        // No gRPC.
        (Some(answered().header("content-type", "text/html")), None, left.clone(), false),
        (
            Some(answered().header("content-type", "application/grpc-web")),
            None,
            left.clone(),
            false,
        ),
        (Some(answered()), None, left, false),
    ] {
        let wanted = (if counts { RESERVED } else { 0 }, None);
        let used = used(&reader, headers.as_ref(), trailers.as_ref(), &end);
        assert_eq!(used, wanted, "{headers:?} {trailers:?} {end:?}");
    }
}

#[test]
fn usage_is_read_from_trailers() {
    let keys = format!(
        "cost: {{response: {{trailer: X-Tokens}}, reserve: {RESERVED}, max: {MOST}, missing: {MISSING}, error: {ERROR}}}"
    );
    let reader = reader(&keys);
    let tokens = |end: FakeEnding, tokens: &str| end.header("x-tokens", tokens);
    let missing = |why| (MISSING, Some(why));
    let error = (ERROR, Some(UnknownUsage::Error));
    for (headers, trailers, end, wanted) in [
        (Some(grpc()), Some(tokens(status("0"), "40")), answered(), (40, None)),
        (Some(grpc()), Some(tokens(status("0"), "400")), answered(), (MOST, None)),
        (Some(grpc()), Some(tokens(status("8"), "40")), answered(), (40, None)),
        // Trailers without gRPC.
        (Some(answered()), Some(tokens(answered(), "40")), answered(), (40, None)),
        // The number has come.
        (Some(grpc()), Some(tokens(status("0"), "40")), FakeEnding::left(Some(200)), (40, None)),
        // Trailers only.
        (Some(tokens(status("0"), "40")), None, answered(), (40, None)),
        (Some(status("16")), None, answered(), error),
        // Headers of a response with messages.
        (
            Some(tokens(status("0"), "40").with_body()),
            None,
            answered(),
            missing(UnknownUsage::Absent),
        ),
        (
            Some(tokens(status("0"), "9").with_body()),
            Some(tokens(status("0"), "40")),
            answered(),
            (40, None),
        ),
        (Some(status("16").with_body()), None, FakeEnding::cut(), missing(UnknownUsage::Cut)),
        (Some(status("0")), None, answered(), missing(UnknownUsage::Absent)),
        // A header of a response whose trailers come later is another one.
        (Some(tokens(grpc(), "9")), Some(tokens(status("0"), "40")), answered(), (40, None)),
        (Some(tokens(grpc(), "9")), Some(status("0")), answered(), missing(UnknownUsage::Absent)),
        (Some(grpc()), Some(status("13")), answered(), error),
        (
            Some(grpc()),
            Some(tokens(status("0"), "-4")),
            answered(),
            missing(UnknownUsage::Unusable),
        ),
        (
            Some(grpc()),
            Some(tokens(tokens(status("0"), "4"), "4")),
            answered(),
            missing(UnknownUsage::Unusable),
        ),
        // The stream ended before its trailers.
        (Some(grpc()), None, FakeEnding::cut(), missing(UnknownUsage::Cut)),
        (Some(grpc()), None, FakeEnding::left(Some(200)), missing(UnknownUsage::ClientLeft)),
        (Some(grpc()), None, answered(), missing(UnknownUsage::Absent)),
        (None, None, FakeEnding::left(None), missing(UnknownUsage::ClientLeft)),
        (None, None, FakeEnding::unreachable(), (0, Some(UnknownUsage::Unanswered))),
        // The proxy's own response.
        (
            Some(tokens(FakeEnding::denied(200, "x"), "9").header("grpc-status", "0")),
            None,
            FakeEnding::denied(200, "x"),
            (0, Some(UnknownUsage::Unanswered)),
        ),
        (Some(answered()), None, FakeEnding::answered(500), error),
    ] {
        let used = used(&reader, headers.as_ref(), trailers.as_ref(), &end);
        assert_eq!(used, wanted, "{headers:?} {trailers:?} {end:?}");
    }
}

#[test]
fn trailers_add_up() {
    let reader =
        reader("cost: {response: {sum: [{trailer: in}, {trailer: out, times: 4}]}, max: 300}");
    for (trailers, wanted) in [
        (status("0").header("in", "10").header("out", "3"), (22, None)),
        (status("0").header("out", "3"), (12, Some(UnknownUsage::Partial))),
        (status("0"), (300, Some(UnknownUsage::Absent))),
    ] {
        assert_eq!(used(&reader, Some(&grpc()), Some(&trailers), &answered()), wanted);
    }
}

/// Rules without gRPC read only the headers.
#[test]
fn trailers_are_nothing_to_other_rules() {
    for keys in ["count: {status: [401]}", "cost: {response: {header: x-tokens}, max: 300}"] {
        let reader = reader(keys);
        let headers = grpc().header("x-tokens", "3");
        let response = reader.read_headers(&headers);
        assert_eq!(reader.read_trailers(response, &status("16").header("x-tokens", "9")), response);
    }
}
