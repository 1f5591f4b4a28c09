//! Switches of operators in the host. They change a document without an update of it.

use super::Thread;
use diana_policy::Switches;
use diana_policy::time::SECOND;
use kit::host::FakeHost;

const RULES: &str =
    "limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 2, algo: W}]}]";

fn switch(thread: &mut Thread, switches: Switches, text: &str) {
    thread.host.switches.set(switches);
    assert!(thread.configure(1, text));
}

/// The accounts with a refused request, of three each.
fn limited(enforce: u8, rule: &str) -> Vec<u32> {
    let text = format!("limits: [{{Url: /, rules: [{{unit: day, rpu: 2, algo: W, {rule}}}]}}]");
    let host = FakeHost::default();
    host.switches.set(Switches { enforce, ..Switches::default() });
    let mut thread = Thread::of(host);
    assert!(thread.configure(1, &text));
    let mut is_limited = |account: u32| {
        let before = thread.host.refused().len();
        let name = format!("account-{account}");
        (0..3).for_each(|number| _ = thread.request(1, account * 3 + number, &name));
        thread.host.refused().len() > before
    };
    (1..=300).filter(|account| is_limited(*account)).collect()
}

#[test]
fn disabled_switch_acts_as_the_document_that_is_disabled() {
    let mut thread = Thread::with(RULES);
    let mut stream = 10;
    let mut send = |thread: &mut Thread| {
        stream += 1;
        thread.request(1, stream, "ann");
        thread.host.refused().len()
    };
    assert_eq!([send(&mut thread), send(&mut thread), send(&mut thread)], [0, 0, 1]);
    switch(&mut thread, Switches { disabled: true, ..Switches::default() }, RULES);
    assert_eq!([send(&mut thread), send(&mut thread)], [1, 1]);
    assert_eq!(thread.host.count_of("diana.ns.disabled"), 1);
    thread.pass(SECOND);
    switch(&mut thread, Switches::default(), RULES);
    assert_eq!(send(&mut thread), 2, "the usage stays");
    assert_eq!(thread.host.count_of("diana.ns.disabled"), 0);
    // The document has the last word if it is disabled itself.
    switch(&mut thread, Switches::default(), &format!("disabled: true\n{RULES}"));
    assert_eq!(send(&mut thread), 2);
}

#[test]
fn enforce_switch_includes_ever_more_callers_and_lowers_only() {
    let by_account = "actor: account";
    assert_eq!(limited(0, by_account), [0; 0]);
    assert_eq!(limited(100, by_account).len(), 300);
    let (some, more) = (limited(20, by_account), limited(60, by_account));
    assert!(
        (20..100).contains(&some.len()) && (130..230).contains(&more.len()),
        "{some:?}, {more:?}"
    );
    assert!(some.iter().all(|account| more.contains(account)));
    // As the document itself selects them.
    assert_eq!(limited(100, "actor: account, enforce: 20"), some);
    assert_eq!(limited(60, "actor: account, enforce: 20"), some);
    assert_eq!(limited(20, "actor: account, enforce: 60"), some);
}

/// A single caller is no share of the callers.
#[test]
fn rule_for_all_is_enforced_at_hundred_only() {
    let refused = |enforce: u8| {
        let host = FakeHost::default();
        host.switches.set(Switches { enforce, ..Switches::default() });
        let mut thread = Thread::of(host);
        assert!(thread.configure(1, &RULES.replace("actor: account", "actor: all")));
        (10..20).for_each(|stream| _ = thread.request(1, stream, "ann"));
        thread.host.refused().len()
    };
    assert_eq!([0, 1, 99, 100].map(refused), [0, 0, 0, 8]);
}
