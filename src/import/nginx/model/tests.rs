use super::{ConnectionLimit, KeyReader, PlaceModel, RequestLimit, RequestRate};
use crate::model::{LimiterModel, ModelDecision};
use crate::nginx::variables;
use diana_replay::PlainRequest;

const NOW: u64 = 1_795_500_000_000;

/// A request at milliseconds from now, from an address that ends with a number, which takes a
/// number of milliseconds.
fn request(at: u64, address: u8, took: u64) -> PlainRequest {
    PlainRequest {
        at: (NOW + at) * 1000,
        took: took * 1000,
        status: 200,
        address: Some([192, 0, 2, address].into()),
        host: None,
        method: "GET".into(),
        path: "/".into(),
        headers: Vec::new(),
        route: None,
    }
}

fn key(exempt: &[String]) -> KeyReader {
    KeyReader::new(variables::source("binary_remote_addr").into_iter().collect(), exempt)
}

fn limit(requests: u64, seconds: u64, burst: u64, undelayed: Option<u64>) -> RequestLimit {
    let rate = RequestRate { requests, seconds, is_rounded: true };
    RequestLimit::new(key(&[]), rate, burst, undelayed)
}

/// The decisions about requests, each at a time from an address: the wait, or `None`.
fn decided(limits: Vec<RequestLimit>, requests: &[(u64, u8)]) -> Vec<Option<u64>> {
    let mut model = PlaceModel::default();
    limits.into_iter().for_each(|limit| model.add_requests(limit));
    let mut decide = |(at, address): &(u64, u8)| match model.decide(&request(*at, *address, 0)) {
        ModelDecision::Passes => Some(0),
        ModelDecision::Waits(ms) => Some(ms),
        ModelDecision::Refused => None,
    };
    requests.iter().map(&mut decide).collect()
}

#[test]
fn burst_passes_beyond_the_first_request() {
    let requests = [(0, 1), (0, 1), (0, 1), (0, 2), (249, 1), (250, 1), (250, 1)];
    let expected = [Some(0), Some(0), None, Some(0), None, Some(0), None];
    assert_eq!(decided(vec![limit(4, 1, 1, None)], &requests), expected);
}

#[test]
fn excess_waits_for_its_turn() {
    let requests = [(0, 1), (0, 1), (0, 1), (0, 1), (100, 1)];
    let expected = [Some(0), Some(250), Some(500), None, None];
    assert_eq!(decided(vec![limit(4, 1, 2, Some(0))], &requests), expected);
    let expected = [Some(0), Some(0), Some(250), None, None];
    assert_eq!(decided(vec![limit(4, 1, 2, Some(1))], &requests), expected);
}

#[test]
fn rate_by_the_minute_is_rounded_down() {
    // 16 thousandths a second: one in 62.5 s.
    let requests = [(0, 1), (60_000, 1), (62_499, 1), (62_500, 1)];
    assert_eq!(decided(vec![limit(1, 60, 0, None)], &requests), [Some(0), None, None, Some(0)]);
}

#[test]
fn new_key_drops_idle_ones() {
    // Without the second address the first one would wait for 62.5 s.
    let requests = [(0, 1), (60_000, 2), (60_000, 1)];
    assert_eq!(decided(vec![limit(1, 60, 0, None)], &requests), [Some(0), Some(0), Some(0)]);
}

#[test]
fn refused_request_is_charged_to_no_zone() {
    let limits = vec![limit(1, 1, 1, None), limit(1, 1, 0, None)];
    // The second zone refuses; then the first one would be empty if it had been charged.
    let requests = [(0, 1), (1, 1), (1000, 1), (2000, 1)];
    assert_eq!(decided(limits, &requests), [Some(0), None, Some(0), Some(0)]);
}

#[test]
fn connections_refuse_after_requests_are_charged() {
    let mut model = PlaceModel::default();
    model.add_requests(limit(1, 1, 1, None));
    model.add_connections(ConnectionLimit::new(key(&["192.0.2.9".into()]), 1));
    let mut decide = |at, took| model.decide(&request(at, 1, took)) != ModelDecision::Refused;
    assert_eq!([decide(0, 500), decide(1, 500), decide(500, 1)], [true, false, false]);
    let exempt = (0..3).map(|_| model.decide(&request(501, 9, 500)));
    assert_eq!(exempt.filter(|it| *it == ModelDecision::Refused).count(), 1);
}
