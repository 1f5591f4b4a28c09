//! A process without any good document, whose environment chose that it admits.

use super::Thread;
use diana_policy::time::SECOND;
use kit::fake::FakeEnvironment;
use kit::host::FakeHost;

const BAD: &str = "limits: [{Url: /, rules: [{actor: all, unit: second, rpu: 1, burts: 2}]}]";
const GOOD: &str = "limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 1}]}]";
const GAUGE: &str = "diana.ns.without_document";

fn variable(value: &str) -> FakeEnvironment {
    FakeEnvironment([("DIANA_WITHOUT_DOCUMENT".into(), value.into())].into())
}

/// A worker of a process that admits without a document.
fn admitting() -> Thread {
    Thread::of(FakeHost { environment: variable("admit"), ..FakeHost::default() })
}

/// Another worker of the same process.
fn next_to(first: &Thread) -> Thread {
    let (data, counts) = (first.host.data.clone(), first.host.counts.clone());
    let now = first.host.now.clone();
    Thread::of(FakeHost {
        data,
        counts,
        now,
        environment: variable("admit"),
        ..FakeHost::default()
    })
}

/// The reports in the log since the last call.
fn reports(thread: &Thread) -> usize {
    let lines = thread.host.lines();
    let problems = lines.iter().filter(|line| line.contains("burts")).count();
    let reports = lines.iter().filter(|line| line.contains("had no good document")).count();
    assert_eq!(problems, reports, "each has the problems: {lines:?}");
    reports
}

#[test]
fn new_process_admits_and_mends_with_a_good_document() {
    let mut thread = admitting();
    assert!(thread.configure(1, BAD));
    assert!(thread.roots[&1].instance().is_none(), "so every request passes");
    assert_eq!(thread.host.count_of(GAUGE), 1);
    assert_eq!(thread.host.count_of("diana.ns.config.rejected"), 1);
    // Another mistake.
    assert!(thread.configure(1, "limits: 7"));
    assert_eq!(thread.host.count_of(GAUGE), 1);
    assert!(thread.configure(1, GOOD));
    assert_eq!(thread.host.count_of(GAUGE), 0);
    assert!(thread.request(1, 10, "ann") && !thread.request(1, 11, "ann"));
    assert!(!thread.configure(1, "limits: 8"), "it keeps the last good one");
    assert!(!thread.request(1, 12, "ann"));
    assert_eq!(thread.host.count_of(GAUGE), 0);
}

#[test]
fn problem_is_logged_once_a_minute_by_one_worker() {
    let mut first = admitting();
    let mut second = next_to(&first);
    assert!(first.configure(1, BAD) && second.configure(1, BAD));
    assert_eq!((reports(&first), reports(&second), first.host.count_of(GAUGE)), (1, 0, 2));
    for _ in 0..600 {
        let now = first.host.now.get().mono + SECOND;
        first.host.set(now);
        for thread in [&mut first, &mut second] {
            if thread.host.next().is_some_and(|(fires, _)| fires <= now) {
                thread.tick(1);
            }
        }
    }
    assert_eq!(reports(&first) + reports(&second), 10);
}

/// Envoy remembers that the module accepted this text: only the workers would refuse it.
#[test]
fn text_that_was_admitted_is_admitted_again() {
    let mut thread = admitting();
    assert!(thread.configure(1, BAD) && thread.configure(2, GOOD));
    let mut next = next_to(&thread);
    assert!(next.configure(3, BAD));
    assert_eq!(thread.host.count_of(GAUGE), 2);
    assert!(!next.configure(3, "limits: 8"));
    // Only so many are remembered.
    let mut thread = admitting();
    assert!((0..100).all(|number| thread.configure(1, &format!("limits: {number}"))));
    assert!(thread.configure(1, GOOD));
    let again = |number: &u32| thread.configure(1, &format!("limits: {number}"));
    assert_eq!((0..100).filter(again).count(), 64);
}

/// Its listener drains while the next one serves. Envoy may also use it again.
#[test]
fn root_reports_until_it_ends() {
    let mut thread = admitting();
    assert!(thread.configure(1, BAD) && thread.configure(2, GOOD));
    reports(&thread);
    thread.pass(200 * SECOND);
    assert_eq!((reports(&thread), thread.host.count_of(GAUGE)), (3, 1));
    thread.end(1);
    thread.pass(200 * SECOND);
    assert_eq!((reports(&thread), thread.host.count_of(GAUGE)), (0, 0));
}

#[test]
fn root_that_ends_leaves_the_gauge() {
    let mut thread = admitting();
    assert!(thread.configure(1, BAD));
    thread.end(1);
    assert_eq!(thread.host.count_of(GAUGE), 0);
}

/// A document of this root id was good, in any worker.
#[test]
fn process_with_a_good_document_refuses_a_bad_one() {
    let mut first = admitting();
    assert!(first.configure(1, GOOD));
    let mut second = next_to(&first);
    assert!(!second.configure(1, BAD));
    assert_eq!(second.host.count_of(GAUGE), 0);
    assert!(second.host.lines().iter().any(|line| line == "configuration rejected:"));
}

#[test]
fn each_root_id_is_judged_alone() {
    let mut thread = admitting();
    assert!(thread.configure(1, GOOD));
    thread.host.roots.borrow_mut().entry(2).or_default();
    thread.roots.entry(2).or_default();
    let accepted =
        thread.call(2, |it, worker, host| it.configure(BAD.as_bytes(), b"b", worker, host));
    assert!(accepted);
    assert_eq!(thread.host.count_of("diana.b.without_document"), 1);
    assert!(!thread.configure(3, BAD));
}

#[test]
fn without_the_variable_a_bad_document_is_refused() {
    let mut thread = Thread::new();
    assert!(!thread.configure(1, BAD));
    let environment = variable("yes");
    let mut thread = Thread::of(FakeHost { environment, ..FakeHost::default() });
    assert!(!thread.configure(1, BAD));
    let lines = thread.host.lines();
    assert!(lines.iter().any(|line| line.contains("`yes`, allowed: `admit`")), "{lines:?}");
    assert_eq!(thread.host.count_of(GAUGE), 0);
}
