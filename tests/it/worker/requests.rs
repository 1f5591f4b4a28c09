//! What a gateway shows of itself: the requests that it saw, and the document in force.

use super::Thread;
use diana_policy::time::SECOND;
use kit::fake::{FakeEnvironment, FakeRequest};
use kit::host::FakeHost;

const TOKEN: &str = "a token of 24 characters";
const RULES: &str = "admin: {path: /.diana, token_env: TOKEN}\nexcept: {paths: [/free]}\n\
                     limits: [{Url: /a, rules: [{actor: all, unit: day, rpu: 2}]}]";

#[test]
fn every_request_is_counted_once() {
    for text in [RULES.to_owned(), format!("disabled: true\n{RULES}")] {
        let environment = FakeEnvironment([("TOKEN".into(), TOKEN.into())].into());
        let mut thread = Thread::of(FakeHost { environment, ..FakeHost::default() });
        assert!(thread.configure(1, &text));
        let bearer = format!("Bearer {TOKEN}");
        // Admitted, refused, exempt, without a rule, of an operator, and with a wrong token.
        let paths = ["/a", "/a", "/a", "/free", "/b", "/.diana/rules", "/.diana/rules"];
        for (stream, path) in (10..).zip(paths) {
            let token = if stream == 16 { "Bearer wrong" } else { &bearer };
            thread.ask(1, stream, FakeRequest::get(path).header("authorization", token));
        }
        thread.pass(2 * SECOND);
        assert_eq!(thread.host.count_of("diana.ns.requests"), 7);
        assert_eq!(thread.host.next(), None, "nothing is left to report");
        // The last ones are reported when the root ends.
        thread.ask(1, 20, FakeRequest::get("/b"));
        thread.end(1);
        assert_eq!(thread.host.count_of("diana.ns.requests"), 8);
    }
}

/// As `adler32sum` of Helm's templates computes it.
#[test]
fn document_is_shown_by_the_checksum_of_its_text() {
    let gauge = |thread: &Thread| thread.host.count_of("diana.ns.document");
    let mut thread = Thread::with("limits: []\n");
    assert_eq!(gauge(&thread), 0x193b_03af);
    let other = "limits: []\n# another text\n";
    assert!(thread.configure(2, other));
    let both = gauge(&thread);
    assert_eq!(both, 0x788b_08d2);
    assert!(!thread.configure(2, "limits: 7"));
    assert_eq!(gauge(&thread), both, "the last good one");
    // The listener of the earlier one has drained.
    thread.end(1);
    assert_eq!(gauge(&thread), both);
    // Its VM ends with it, and may have a successor with the same metrics.
    thread.end(2);
    assert_eq!(gauge(&thread), both);
    // The threads of a process stay, and have its metrics for as long.
    let process = Some(&*Box::leak(Box::default()));
    let mut thread = Thread::of(FakeHost { process, ..FakeHost::default() });
    assert!(thread.configure(1, other));
    assert_eq!(gauge(&thread), both);
    thread.end(1);
    assert_eq!(gauge(&thread), 0);
}
