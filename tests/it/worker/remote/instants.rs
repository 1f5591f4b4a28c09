//! The shared state of polling at exact instants.

use std::rc::Rc;

use diana_policy::port::SharedData;
use diana_worker::remote::{FIRST, FIRST_READ_INTERVAL, READ_INTERVAL};
use kit::fake::{CountingData, FakeSharedData};

use super::{EVERY, LOCAL, SECOND, TIMEOUT, Worker, document};

const START: u64 = 1_000 * SECOND;

/// The indices of words in the shared state.
const LEADER: usize = 0;
const UNTIL: usize = 3;
const DUE: usize = 4;

fn head(data: &FakeSharedData) -> (String, Vec<u64>) {
    let key = data.keys().into_iter().find(|key| key.ends_with("/head")).unwrap();
    let bytes = data.get(&key).unwrap().0;
    (key, bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

fn word(data: &FakeSharedData, place: usize) -> u64 {
    head(data).1[place]
}

fn set(data: &FakeSharedData, place: usize, value: u64) {
    let (key, mut words) = head(data);
    words[place] = value;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    data.set(&key, &bytes);
}

/// A worker that leads and has made a call, and another one, as of `START`.
fn two(data: &FakeSharedData, other: &str, born: u64) -> [Worker; 2] {
    let mut leader = Worker::new(LOCAL, 1, START, data);
    leader.tick(START, data);
    assert_eq!((leader.sent.len(), word(data, LEADER)), (1, 1));
    [leader, Worker::new(other, 2, born, data)]
}

#[test]
fn leader_lease_lasts_a_second_after_poll_or_reply() {
    let data = FakeSharedData::default();
    let [mut leader, _] = two(&data, LOCAL, START);
    assert_eq!(word(&data, UNTIL), START + SECOND);
    leader.answer(Some(200), &document("a"), START + 7, &data);
    assert_eq!((word(&data, UNTIL), word(&data, DUE)), (START + 7 + SECOND, START + 1));
}

/// Gateways that start together do not poll together, whether the server answers or not.
#[test]
fn gateways_poll_in_turns() {
    let turns = [Some(200), Some(500), None].map(|status| {
        let due = (0..10).map(|number| {
            let data = FakeSharedData::default();
            let mut leader = Worker::new(LOCAL, 3 * EVERY + number * SECOND, START, &data);
            leader.tick(START, &data);
            leader.answer(Some(200), &document("a"), START + 7, &data);
            let due = word(&data, DUE);
            leader.tick(due, &data);
            leader.answer(status, &document("a"), due + 7, &data);
            assert_eq!(word(&data, DUE), due + EVERY);
            due
        });
        let mut due: Vec<u64> = due.collect();
        due.sort_unstable();
        due
    });
    let wanted: Vec<u64> = (1..=10).map(|second| START + second * SECOND).collect();
    assert_eq!(turns, [(); 3].map(|()| wanted.clone()));
}

/// The instants at which a gateway without a document polls for 55 s, since `START`. All calls end
/// so, at once.
fn polls(id: u64, status: Option<u16>, body: &str, is_callable: bool) -> Vec<u64> {
    let data = FakeSharedData::default();
    let mut leader = Worker::new(LOCAL, id, START, &data);
    leader.callout.refusal.set((!is_callable).then_some("no cluster"));
    let (mut now, mut failed) = (START, Vec::new());
    while now < START + 55 * SECOND {
        let before = leader.count("failed");
        leader.tick(now, &data);
        if leader.count("failed") > before {
            failed.push(now - START);
        }
        if leader.sent.len() > leader.answered {
            leader.answer(status, body, now, &data);
        }
        now = leader.poller.next();
    }
    if is_callable { leader.sent.iter().map(|sent| sent - START).collect() } else { failed }
}

/// The cluster of a new gateway may not be ready. Gateways of one push take turns here, too.
#[test]
fn new_gateway_polls_soon_until_it_reaches_its_server() {
    const SOON: u64 = SECOND / 4;
    for id in [1, 100_000, SOON - 1, SOON + 100_000] {
        let own = id % SOON;
        let soon = (0..=FIRST / SOON).map(|number| own + number * SOON);
        // It reads shared data first.
        let soon = soon.map(|at| at.max(FIRST_READ_INTERVAL));
        let last = own + FIRST;
        let in_turns = (3..6).map(|number| number * EVERY + id).filter(|at| *at > last);
        let wanted: Vec<u64> = [0].into_iter().chain(soon).chain(in_turns).collect();
        let late = |at: &u64| *at < 55 * SECOND;
        let wanted: Vec<u64> = wanted.into_iter().filter(late).collect();
        for status in [Some(503), Some(504), Some(404), None] {
            assert_eq!(polls(id, status, "", true), wanted, "{id} {status:?}");
        }
        let unsent = polls(id, None, "", false);
        let number = (FIRST / SOON) as usize;
        assert_eq!(unsent[..number], wanted[..number], "{id}");
        // After an answer with a document, good or bad, its turn comes once in each interval.
        let in_turns =
            [0].into_iter().chain((0..6).map(|it| (id + it * EVERY).max(FIRST_READ_INTERVAL)));
        let in_turns: Vec<u64> = in_turns.filter(late).collect();
        for body in ["limits: 7", &document("a")] {
            assert_eq!(polls(id, Some(200), body, true), in_turns, "{id} {body}");
        }
    }
}

/// A lease twice as long as possible is damaged.
#[test]
fn expired_or_damaged_lease_is_no_lead() {
    for (until, leads) in [
        (START - 1, false),
        (START, true),
        (START + SECOND, true),
        (START + 2 * SECOND - 1, true),
        (START + 2 * SECOND, false),
    ] {
        let data = FakeSharedData::default();
        let [_, mut other] = two(&data, LOCAL, START);
        set(&data, UNTIL, until);
        other.tick(START, &data);
        assert_eq!(word(&data, LEADER) == 1, leads, "until {until}");
    }
}

/// Two workers configured at once would take the lead from each other, and poll each time.
#[test]
fn only_a_later_configuration_takes_the_lead() {
    let other = LOCAL.replace('}', ", every: 5s}");
    for (born, takes_over) in [(START - 1, false), (START, false), (START + 1, true)] {
        let data = FakeSharedData::default();
        let [_, mut other] = two(&data, &other, born);
        other.tick(START, &data);
        assert_eq!(word(&data, LEADER) == 2, takes_over, "{born}");
    }
}

/// A time beyond the next poll is damaged.
#[test]
fn server_is_polled_when_due() {
    for (due, asks) in [
        (START - 1, true),
        (START, true),
        (START + 1, false),
        (START + EVERY, false),
        (START + EVERY + 1, true),
    ] {
        let data = FakeSharedData::default();
        let [_, mut other] = two(&data, LOCAL, START);
        set(&data, UNTIL, 0);
        set(&data, DUE, due);
        other.tick(START, &data);
        assert_eq!(other.sent.len() == 1, asks, "due {due}");
        let next = if due == START + 1 { due } else { START + FIRST_READ_INTERVAL };
        assert_eq!(other.poller.next(), next);
    }
}

#[test]
fn response_is_dropped_a_second_after_its_timeout() {
    let end = START + TIMEOUT + SECOND;
    for (now, failed) in [(end - 1, 0), (end, 0), (end + 1, 1), (end + READ_INTERVAL, 1)] {
        let data = FakeSharedData::default();
        let [mut leader, _] = two(&data, LOCAL, START);
        leader.tick(now, &data);
        assert_eq!(leader.count("failed"), failed, "at {now}");
    }
}

/// A tick at another time is for other work.
#[test]
fn worker_reads_shared_state_when_due() {
    let data = Rc::<CountingData>::default();
    let fresh = FakeSharedData::default();
    let mut worker = Worker::new(LOCAL, 1, START, &fresh);
    let mut looks = |now: u64| {
        let before = data.reads.get();
        let access = diana_worker::remote::Access { data: &*data, callout: &worker.callout, now };
        worker.poller.tick(&access);
        data.reads.get() - before
    };
    // The head, and the documents in force.
    assert_eq!(looks(START), 2);
    assert_eq!(looks(START + FIRST_READ_INTERVAL - 1), 0);
    assert_eq!(looks(START + FIRST_READ_INTERVAL), 2);
    // Less often, if there is no document for long. The lost call ends by a second look.
    let late = START + FIRST;
    assert_eq!(looks(late), 3);
    assert_eq!(looks(late + READ_INTERVAL - 1), 0);
    assert_eq!(looks(late + READ_INTERVAL), 2);
    assert_eq!(looks(late + 3 * READ_INTERVAL), 2);
    assert_eq!(worker.poller.next(), late + 4 * READ_INTERVAL);
}

/// Only workers with remote rules are subtracted from the gauge.
#[test]
fn gauge_subtracts_only_counted_workers() {
    let data = FakeSharedData::default();
    let [mut leader, other] = two(&data, LOCAL, START);
    assert_eq!(leader.poller.retire(&data), 0);
    leader.answer(Some(200), &document("a"), START + 7, &data);
    leader.tick(START + READ_INTERVAL, &data);
    assert_eq!((leader.poller.retire(&data), other.poller.retire(&data)), (-1, 0));
}
