//! Requests with a cost that is unknown on arrival.

mod estimates;
mod grpc;
mod outcomes;
mod permits;
mod sums;

use diana_policy::{NumberForm, Outcomes, ResponseCost, ResponseSource, Settling, Term};
use diana_request::settling::{UnknownUsage, UsageReader};
use kit::ending::FakeEnding;

const RESERVED: u64 = 5;
const MOST: u64 = 1000;
const MISSING: u64 = 77;
const ERROR: u64 = 33;

fn by(source: ResponseSource) -> UsageReader {
    by_terms(vec![Term { source, weight: Term::ONE }])
}

fn by_terms(terms: Vec<Term>) -> UsageReader {
    let response_cost = Some(ResponseCost { terms, most: MOST, missing: MISSING, error: ERROR });
    UsageReader::new(&Settling {
        reserve: RESERVED,
        response_cost,
        count: None,
        bans: false,
        is_slot: false,
    })
}

fn by_header() -> UsageReader {
    by(ResponseSource::Header("x-tokens-used".into()))
}

fn by_metadata(form: NumberForm) -> UsageReader {
    by(ResponseSource::Metadata { path: vec!["envoy.ai".into(), "tokens".into()], form })
}

/// The usage of a request with this end of its stream, after these response headers, if there were
/// any.
fn used(
    usage_reader: &UsageReader,
    came: Option<&FakeEnding>,
    ended: &FakeEnding,
) -> (u64, Option<UnknownUsage>) {
    let response = came.map(|came| usage_reader.read_headers(came)).unwrap_or_default();
    usage_reader.used(RESERVED, response, ended, 0)
}

#[test]
fn cost_is_read_from_a_header() {
    for (value, expected) in [
        ("0", Ok(0)),
        ("250", Ok(250)),
        (" 12 ", Ok(12)),
        ("1000", Ok(1000)),
        ("1001", Ok(1000)),
        ("9007199254740992", Ok(1000)),
        ("2.5", Ok(3)),
        ("9007199254740993", Err(UnknownUsage::Unusable)),
        ("1000000000000000000000000000000", Err(UnknownUsage::Unusable)),
        ("-5", Err(UnknownUsage::Unusable)),
        ("+5", Err(UnknownUsage::Unusable)),
        ("2.85e-05", Ok(1)),
        ("1E+2", Ok(100)),
        ("1e-400", Ok(1)),
        ("0e999999999", Ok(0)),
        ("1e999999999", Err(UnknownUsage::Unusable)),
        ("1e", Err(UnknownUsage::Unusable)),
        ("e5", Err(UnknownUsage::Unusable)),
        ("5, 6", Err(UnknownUsage::Unusable)),
        ("NaN", Err(UnknownUsage::Unusable)),
        ("", Err(UnknownUsage::Unusable)),
        ("five", Err(UnknownUsage::Unusable)),
    ] {
        let came = FakeEnding::answered(200).header("x-tokens-used", value);
        let ended = FakeEnding::answered(200);
        let expected = expected.map_or_else(|why| (MISSING, Some(why)), |used| (used, None));
        assert_eq!(used(&by_header(), Some(&came), &ended), expected, "`{value}`");
        // The usage in a header is valid for any end of the stream.
        assert_eq!(used(&by_header(), Some(&came), &FakeEnding::left(Some(200))), expected);
    }
    let twice = FakeEnding::answered(200).header("x-tokens-used", "5").header("x-tokens-used", "5");
    let ended = FakeEnding::answered(200);
    assert_eq!(used(&by_header(), Some(&twice), &ended), (MISSING, Some(UnknownUsage::Unusable)));
    assert_eq!(used(&by_header(), Some(&ended), &ended), (MISSING, Some(UnknownUsage::Absent)));
}

#[test]
fn metadata_is_read_in_its_configured_form() {
    let answered = || FakeEnding::answered(200);
    let untyped = ["metadata", "filter_metadata", "envoy.ai", "tokens"];
    let typed = ["metadata", "typed_filter_metadata", "envoy.ai", "tokens"];
    let unusable = (MISSING, Some(UnknownUsage::Unusable));
    for (form, path, value, expected) in [
        (NumberForm::Number, &untyped, 250.0_f64.to_le_bytes().to_vec(), (250, None)),
        (NumberForm::Number, &untyped, 2.5_f64.to_le_bytes().to_vec(), (3, None)),
        (NumberForm::Number, &untyped, 1e30_f64.to_le_bytes().to_vec(), unusable),
        (NumberForm::Number, &untyped, f64::NAN.to_le_bytes().to_vec(), unusable),
        (NumberForm::Number, &untyped, f64::INFINITY.to_le_bytes().to_vec(), unusable),
        (NumberForm::Number, &untyped, (-5.0_f64).to_le_bytes().to_vec(), unusable),
        (NumberForm::Number, &untyped, b"true".to_vec(), unusable),
        (NumberForm::Number, &untyped, Vec::new(), unusable),
        (NumberForm::Text { typed: false }, &untyped, b"250".to_vec(), (250, None)),
        // Looks like a number unless the configuration specifies text.
        (NumberForm::Text { typed: false }, &untyped, b"00000250".to_vec(), (250, None)),
        (NumberForm::Typed, &typed, 250_i64.to_le_bytes().to_vec(), (250, None)),
        (NumberForm::Typed, &typed, 5_000_i64.to_le_bytes().to_vec(), (MOST, None)),
        (NumberForm::Typed, &typed, (-5_i64).to_le_bytes().to_vec(), unusable),
        (NumberForm::Typed, &typed, i64::MAX.to_le_bytes().to_vec(), unusable),
        (NumberForm::Typed, &typed, vec![1], unusable),
        (NumberForm::Text { typed: true }, &typed, b"250".to_vec(), (250, None)),
    ] {
        let ended = answered().property(path, &value);
        let usage_reader = by_metadata(form);
        assert_eq!(used(&usage_reader, Some(&answered()), &ended), expected, "{form:?} {value:?}");
    }
    let usage_reader = by_metadata(NumberForm::Number);
    let absent = (MISSING, Some(UnknownUsage::Absent));
    assert_eq!(used(&usage_reader, Some(&answered()), &answered()), absent);
    // The events of an aborted stream are incomplete.
    let (value, gone) = (3.0_f64.to_le_bytes(), (MISSING, Some(UnknownUsage::ClientLeft)));
    let left = FakeEnding::left(Some(200)).property(&untyped, value);
    assert_eq!(used(&usage_reader, Some(&answered()), &left), gone);
    let cut = FakeEnding::cut().property(&untyped, value);
    let unknown = (MISSING, Some(UnknownUsage::Cut));
    assert_eq!(used(&usage_reader, Some(&answered()), &cut), unknown);
}

/// Before the headers of the upstream, only the client causes a cost. The proxy's reason has no
/// effect.
#[test]
fn unanswered_request_used_nothing_unless_its_client_left() {
    for usage_reader in
        [by_header(), by_metadata(NumberForm::Number), by_metadata(NumberForm::Typed)]
    {
        for local in [
            FakeEnding::unreachable(),
            FakeEnding::denied(504, "response_timeout"),
            FakeEnding::denied(403, "rbac_access_denied"),
            FakeEnding::denied(200, "direct_response"),
            FakeEnding::denied(413, "a_reason_of_tomorrow"),
        ] {
            // The filter also receives the headers of responses by the proxy itself.
            let local = local.header("x-tokens-used", "3");
            for came in [None, Some(&local)] {
                let unanswered = (0, Some(UnknownUsage::Unanswered));
                assert_eq!(used(&usage_reader, came, &local), unanswered, "{local:?}");
            }
            let mut left = local;
            left.client_left = true;
            let expected = (MISSING, Some(UnknownUsage::ClientLeft));
            assert_eq!(used(&usage_reader, None, &left), expected);
        }
        let left = FakeEnding::left(None);
        assert_eq!(used(&usage_reader, None, &left), (MISSING, Some(UnknownUsage::ClientLeft)));
        // The proxy ended the stream without a response.
        assert_eq!(
            used(&usage_reader, None, &FakeEnding::closed()),
            (0, Some(UnknownUsage::Unanswered))
        );
        // The proxy sends another request, which is also decided about.
        let followed = FakeEnding::denied(302, "internal_redirect");
        assert_eq!(used(&usage_reader, None, &followed), (0, None));
    }
}

/// Without a number, a status of 400 and above costs `error`, however the stream ends, and never
/// `missing`.
#[test]
fn error_without_a_number_has_its_own_cost() {
    let readers = [by_header(), by_metadata(NumberForm::Number), by_metadata(NumberForm::Typed)];
    for status in [100, 200, 204, 302, 399, 400, 401, 405, 429, 499, 500, 529, 599, 999] {
        let answered = || FakeEnding::answered(status);
        let mut cut = FakeEnding::cut();
        cut.status = Some(status);
        for ended in [answered(), cut, FakeEnding::left(Some(status))] {
            for reader in &readers {
                let (used, unknown) = used(reader, Some(&answered()), &ended);
                let is_error = unknown == Some(UnknownUsage::Error);
                let expected = if is_error { ERROR } else { MISSING };
                assert_eq!((is_error, used), (status >= 400, expected), "{reader:?} {ended:?}");
            }
            for unusable in ["-5", "lots"] {
                let came = answered().header("x-tokens-used", unusable);
                let expected = if status >= 400 { ERROR } else { MISSING };
                assert_eq!(used(&by_header(), Some(&came), &ended).0, expected, "{ended:?}");
            }
            let came = answered().header("x-tokens-used", "40");
            assert_eq!(used(&by_header(), Some(&came), &ended), (40, None), "{ended:?}");
        }
        let local = FakeEnding::denied(status, "local");
        let unanswered = (0, Some(UnknownUsage::Unanswered));
        assert_eq!(used(&by_header(), Some(&local), &local), unanswered);
    }
    // A number in metadata counts with any status, too.
    let path = ["metadata", "filter_metadata", "envoy.ai", "tokens"];
    let failed = FakeEnding::answered(500).property(&path, 250.0_f64.to_le_bytes());
    let reader = by_metadata(NumberForm::Number);
    assert_eq!(used(&reader, Some(&failed), &failed), (250, None));
}

#[test]
fn only_listed_outcomes_count() {
    let statuses = Outcomes { statuses: vec![(401, 401), (500, 599)], ..Outcomes::default() };
    let failed = Outcomes { failed: true, ..Outcomes::default() };
    let details = vec!["ext_authz_denied".into(), "upstream_reset_after_response_started".into()];
    let details = Outcomes { details, ..Outcomes::default() };
    let denied = FakeEnding::denied(403, "ext_authz_denied");
    let answered = FakeEnding::answered;
    for (came, ended, [by_status, by_failure, by_details]) in [
        (Some(answered(200)), answered(200), [false, false, false]),
        (Some(answered(401)), answered(401), [true, false, false]),
        (Some(answered(403)), answered(403), [false, false, false]),
        (Some(answered(599)), answered(599), [true, false, false]),
        (Some(denied.clone()), denied, [false, true, true]),
        (None, FakeEnding::denied(503, "overflow"), [true, true, false]),
        (None, FakeEnding::denied(404, "route_not_found"), [false, true, false]),
        (None, FakeEnding::closed(), [false, true, false]),
        // The client left, and a filter held the response back.
        (None, FakeEnding::left(Some(200)), [true, true, true]),
        (Some(answered(200)), FakeEnding::cut(), [false, true, true]),
        (None, FakeEnding::unreachable(), [true, true, false]),
        (Some(FakeEnding::unreachable()), FakeEnding::unreachable(), [true, true, false]),
        // A client does not escape by leaving before there is an outcome.
        (None, FakeEnding::left(None), [true, true, true]),
        (Some(answered(200)), FakeEnding::left(Some(200)), [false, true, false]),
        (Some(answered(401)), FakeEnding::left(Some(401)), [true, true, false]),
    ] {
        for (count, counts) in
            [(&statuses, by_status), (&failed, by_failure), (&details, by_details)]
        {
            let count = Some(count.clone());
            let usage_reader = UsageReader::new(&Settling {
                reserve: RESERVED,
                response_cost: None,
                count,
                bans: false,
                is_slot: false,
            });
            let expected = (if counts { RESERVED } else { 0 }, None);
            assert_eq!(
                used(&usage_reader, came.as_ref(), &ended),
                expected,
                "{usage_reader:?}: {ended:?}"
            );
        }
    }
}

/// As the page on settled costs describes it.
#[test]
fn count_precedes_the_cost() {
    let rule = |keys: &str| {
        let document = format!(
            "limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 500, algo: W, {keys}}}]}}]"
        );
        let policy = diana_config::Reader::default().policy(document.as_bytes()).unwrap();
        let rule = &policy.limits[0].rules[0];
        (UsageReader::new(rule.settling.as_ref().unwrap()), rule.quota.cost)
    };
    let ends = [
        FakeEnding::answered(200).header("x-used", "40"),
        FakeEnding::answered(200),
        FakeEnding::answered(500),
        FakeEnding::unreachable(),
    ];
    let cost = "cost: {response: {header: x-used}, max: 300";
    for (keys, costs) in [
        (format!("{cost}}}"), [40, 300, 0, 0]),
        (format!("{cost}, error: 10}}"), [40, 300, 10, 0]),
        (format!("{cost}, error: 10}}, count: {{status: [2xx]}}"), [40, 300, 0, 0]),
        (format!("{cost}, error: 10}}, count: {{status: [5xx]}}"), [0, 0, 10, 0]),
        ("cost: 3, count: {status: [5xx]}".into(), [0, 0, 3, 3]),
    ] {
        let (usage_reader, reserved) = rule(&keys);
        let used = ends
            .each_ref()
            .map(|end| usage_reader.used(reserved, usage_reader.read_headers(end), end, 0).0);
        assert_eq!(used, costs, "{keys}");
    }
}

#[test]
fn counted_outcome_may_report_its_cost() {
    let source = ResponseSource::Header("x-tokens-used".into());
    let terms = vec![Term { source, weight: Term::ONE }];
    let response_cost = Some(ResponseCost { terms, most: MOST, missing: MISSING, error: ERROR });
    let count = Some(Outcomes { statuses: vec![(200, 299)], ..Outcomes::default() });
    let usage_reader = UsageReader::new(&Settling {
        reserve: RESERVED,
        response_cost,
        count,
        bans: false,
        is_slot: false,
    });
    for (status, expected) in [(200, 40), (204, 40), (404, 0)] {
        let came = FakeEnding::answered(status).header("x-tokens-used", "40");
        let ended = FakeEnding::answered(status);
        assert_eq!(used(&usage_reader, Some(&came), &ended), (expected, None));
    }
    // Without a number, an outcome that does not count has no cost, either.
    for (status, expected) in [(200, (MISSING, Some(UnknownUsage::Absent))), (500, (0, None))] {
        let ended = FakeEnding::answered(status);
        assert_eq!(used(&usage_reader, Some(&ended), &ended), expected);
    }
}
