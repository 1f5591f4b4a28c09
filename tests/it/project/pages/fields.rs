//! The tables of response headers and access log fields.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::first_cells;
use diana_limiter::{Jitter, Outcome, Reason, Record, Refusal, Refused, Report, seconds};
use diana_policy::decision::Retry;
use diana_policy::headers::Headers;
use diana_policy::key::{Key, LoggedKey};
use diana_policy::time::SECOND;
use diana_policy::{FieldForm, LimitFields, Response, Scope};

/// A record with all fields.
fn record(outcome: Outcome, shadow: bool) -> Record {
    Record {
        rule: "r".into(),
        scope: Scope::Gateway,
        shadow,
        marks: false,
        shown: true,
        plan: Some("gold".into()),
        outcome,
        policy: (5, 1),
        caller: LoggedKey { key: Key { hash: 7, second_hash: 8 }, gateway: None },
    }
}

fn admitted(wait: u64) -> Outcome {
    Outcome::Admitted { wait, remaining: Some(0), renewal: Some(1) }
}

fn refused(reason: Reason, ticks: u64) -> Outcome {
    Outcome::Refused(Refused { reason, retry: Retry::After(ticks), remaining: Some(0) })
}

/// The headers of an admitted and of a refused request.
fn headers(fields: LimitFields) -> BTreeSet<String> {
    let refused = record(refused(Reason::Used, 1), false);
    let report = Report { records: vec![refused.clone()], fields, ..Report::default() };
    let response = Response {
        status: 503,
        body: Vec::new(),
        content_type: "text/plain".into(),
        headers: Vec::new(),
        is_problem: false,
        jitter: 0,
        fields,
        grpc_status: 8,
    };
    let refusal = Refusal {
        response: Rc::new(response),
        several: Vec::new(),
        by: refused,
        retry: Retry::After(1),
        jitter: Jitter::default(),
        wall: 0,
        is_logged: false,
        explained: Vec::new(),
    };
    let all = [report.headers(), refusal.headers()];
    all.iter().flat_map(Headers::iter).map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn table_of_headers_is_complete() {
    let forms = [FieldForm::Ietf, FieldForm::XRateLimit, FieldForm::Legacy];
    let of_both =
        forms.map(|form| LimitFields { form, is_unix: false }).into_iter().flat_map(headers);
    let mut sent: BTreeSet<String> = of_both.collect();
    // Only for gRPC.
    sent.extend(["grpc-status", "grpc-message", "grpc-retry-pushback-ms"].map(str::to_owned));
    let mut listed = BTreeSet::new();
    for row in first_cells("| header of a response | when |") {
        // The other names differ at the end.
        let begin = row[0].rfind('-').map_or("", |at| &row[0][..at]);
        listed.extend(row.into_iter().map(|name| match name.strip_prefix('-') {
            Some(_) => format!("{begin}{name}"),
            None => name.to_owned(),
        }));
    }
    assert_eq!(listed, sent);
}

#[test]
fn table_of_the_access_log_is_complete() {
    let outcomes = [
        admitted(0),
        admitted(1),
        refused(Reason::Used, 1),
        refused(Reason::Outstanding, 1),
        refused(Reason::Busy, 1),
        refused(Reason::Banned, 1),
        refused(Reason::Unavailable, 1),
    ];
    let both = |outcome: Outcome| {
        let marking = Record { marks: true, ..record(outcome, false) };
        [record(outcome, false), record(outcome, true), marking]
    };
    let (mut words, mut fields) = (BTreeSet::new(), BTreeSet::new());
    for record in outcomes.into_iter().flat_map(both) {
        let state = record.state();
        let mut parts = state.split(' ');
        words.insert(parts.next().unwrap().to_owned());
        fields.extend(parts.map(|part| part.split('=').next().unwrap().to_owned()));
    }
    let head = "| field | meaning |";
    let listed: BTreeSet<String> =
        first_cells(head).into_iter().flatten().map(str::to_owned).collect();
    assert_eq!(listed, fields);
    let (_, table) = super::PAGE.split_once(head).unwrap();
    let row = table.lines().find(|row| row.starts_with("| the first word |")).unwrap();
    let listed: BTreeSet<String> = row.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(listed, words);
}

/// In microseconds, with only the necessary digits.
#[test]
fn times_are_written_exactly() {
    for (ticks, text, json) in [
        (412_017, "0.412017", "0.412017"),
        (61 * SECOND + 30, "61.000030", "61.00003"),
        (2 * SECOND, "2.000000", "2"),
        (SECOND - 1, "0.999999", "0.999999"),
    ] {
        let mut record = record(refused(Reason::Used, ticks), false);
        record.caller.key = Key { hash: 0x5d0c_3a7b_e1f2_a864, second_hash: 0x0a11_90c4_d3b7_e852 };
        let state = record.state();
        assert!(state.contains(&format!(" wait={text}s ")), "{state}");
        assert!(state.ends_with(" key=5d0c3a7be1f2a8640a1190c4d3b7e852"), "{state}");
        assert_eq!(seconds(ticks).to_string(), json);
    }
}
