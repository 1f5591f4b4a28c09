//! The outcomes of streams that end without other activity: they are reported and settled.

use super::{FakeHost, SECOND, Thread};
use diana_worker::Stream;
use kit::ending::FakeEnding;
use kit::fake::FakeRequest;

const LOCAL: &str = "limits: [{Url: /, rules: [
  {name: places, actor: account, in_flight: 5, scope: local},
  {name: costs, actor: account, unit: day, rpu: 100, algo: W, scope: local,
   cost: {response: {header: x-used}, reserve: 5, max: 9}}]}]";

/// The slots and usage of all ended streams are reported exactly once.
fn assert_reported(thread: &Thread, ended: i64) {
    for (what, count) in
        [("places.in_flight", 0), ("costs.settled", ended), ("costs.debt", 4 * ended)]
    {
        assert_eq!(thread.host.count_of(&format!("diana.ns.rule.{what}")), count, "{what}");
    }
}

/// A response may take so long that maintenance has stopped in the meantime.
#[test]
fn late_end_of_a_stream_is_reported() {
    let mut thread = Thread::with(LOCAL);
    assert!(thread.request(1, 10, "ann"));
    thread.pass(10 * SECOND);
    assert_eq!(thread.host.next(), None, "it rests");
    assert_eq!(thread.host.count_of("diana.ns.rule.places.in_flight"), 1);
    thread.leave(1, 10);
    thread.pass(2 * SECOND);
    assert_reported(&thread, 1);
    assert_eq!(thread.host.next(), None, "it rests again");
}

/// A replaced instance closes when it is quiet, and its streams may be longer than that.
#[test]
fn end_of_a_stream_after_its_instance_is_reported() {
    for others in [1, 2] {
        let mut thread = Thread::with(LOCAL);
        assert!(thread.request(1, 10, "ann"));
        assert!(thread.configure(others, &format!("{LOCAL}\n# later")));
        thread.pass(10 * SECOND);
        if others != 1 {
            thread.end(1);
        }
        thread.pass(10 * SECOND);
        thread.leave(others, 10);
        thread.pass(10 * SECOND);
        assert_reported(&thread, 1);
    }
}

const LOGINS: &str = "limits: [{Url: /, rules: [{name: login, actor: account, unit: second, rpu: 9, algo: W, \
                      count: {status: [401]}, ban: {by: counted, after: 4, within: 1m, for: 1h}}]}]";

/// A request of a caller with a response after this time, which counts or does not.
fn answered(thread: &mut Thread, after: u64, status: u16) {
    let request = FakeRequest::get("/").header("x-account-id", "ann");
    let ending = FakeEnding::answered(status);
    let mut stream = Stream::new(thread.roots[&1].instance().cloned().unwrap(), 10);
    thread.host.begin(1);
    let step = stream.request(&request, &thread.worker, &thread.host);
    assert!(thread.host.take(10, step));
    thread.pass(after);
    stream.response(&ending, &thread.worker, &thread.host);
    stream.end(&ending, &thread.worker, &thread.host);
}

fn workers() -> Vec<Thread> {
    let first = Thread::with(LOGINS);
    let of = |random| FakeHost { data: first.host.data.clone(), random, ..FakeHost::default() };
    let mut others: Vec<Thread> = (2..5).map(|random| Thread::of(of(random))).collect();
    others.iter_mut().for_each(|other| assert!(other.configure(1, LOGINS)));
    others.push(first);
    others
}

/// Each worker has one outcome after a long time, and no further request.
#[test]
fn late_outcomes_lead_to_a_ban_in_all_workers() {
    let mut workers = workers();
    workers.iter_mut().for_each(|worker| answered(worker, 10 * SECOND, 401));
    workers.iter_mut().for_each(|worker| worker.pass(SECOND));
    let first = &mut workers[0];
    assert!(!first.request(1, 20, "ann"), "the ban was found together");
    assert_eq!(first.host.count_of("diana.ns.rule.login.banned"), 0, "not counted yet");
    first.pass(SECOND);
    assert_eq!(first.host.count_of("diana.ns.rule.login.banned"), 1);
}

/// So does one that ends soon after others that did not count, just after the maintenance of bans.
#[test]
fn outcomes_soon_after_others_lead_to_a_ban_in_all_workers() {
    for milliseconds in (0..200).step_by(5) {
        let mut workers = workers();
        for worker in &mut workers {
            answered(worker, SECOND / 1000, 200);
            worker.pass(milliseconds * SECOND / 1000);
            answered(worker, SECOND / 1000, 401);
        }
        workers.iter_mut().for_each(|worker| worker.pass(SECOND));
        assert!(!workers[0].request(1, 20, "ann"), "after {milliseconds} ms");
    }
}
