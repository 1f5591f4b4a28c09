//! Requests that come once more since the host follows a redirect itself, after the rules have changed meanwhile.

use std::rc::Rc;

use diana_core::port::Request;
use diana_core::time::SECOND;
use diana_worker::Stream;
use kit::ending::FakeEnding;
use kit::fake::FakeRequest;

use super::Thread;

const CONNECTION: [&str; 2] = ["connection", "id"];
const ROOT: u32 = 1;

fn text(limit: u32, scope: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{name: few, actor: account, in_flight: {limit}, scope: {scope}}},
           {{name: tokens, actor: account, unit: day, rpu: {limit}, algo: W, scope: {scope},
             cost: {{response: {{header: x-used}}, reserve: 1, max: 1}}}}]}}]"
    )
}

/// A request comes by a connection. Whether it goes on.
fn request(thread: &mut Thread, stream: u32, connection: u8) -> bool {
    let request = FakeRequest::get("/").header("x-account-id", "ann");
    let request: Rc<dyn Request> = Rc::new(request.property(&CONNECTION, [connection; 8]));
    thread.host.begin(ROOT, stream);
    let mut new = Stream::new(thread.roots[&ROOT].instance().cloned().unwrap(), stream);
    let goes_on = new.request(&*request, &thread.worker, &thread.host);
    thread.streams.insert(stream, new);
    goes_on
}

fn end(thread: &mut Thread, stream: u32, ending: &FakeEnding) {
    thread.host.begin(ROOT, ROOT);
    let mut stream = thread.streams.remove(&stream).unwrap();
    stream.response(ending, &thread.worker, &thread.host);
    stream.end(ending, &thread.worker, &thread.host);
}

fn redirect(thread: &mut Thread, stream: u32, connection: u8) {
    let followed = FakeEnding::denied(302, "internal_redirect");
    end(thread, stream, &followed.property(&CONNECTION, [connection; 8]));
}

/// Its own place is not one too many, and is its own until it ends.
#[test]
fn whoever_was_let_through_goes_on_though_the_rules_have_changed() {
    for scope in ["local", "gateway"] {
        let mut thread = Thread::with(&text(2, scope));
        assert!(request(&mut thread, 10, 1) && request(&mut thread, 11, 2));
        assert!(thread.configure(ROOT, &text(1, scope)));
        redirect(&mut thread, 10, 1);
        assert!(request(&mut thread, 12, 1), "it was let through before, {scope}");
        assert!(!request(&mut thread, 13, 3), "its permits are taken over, {scope}");
        // Once more, after another change.
        assert!(thread.configure(ROOT, &text(2, scope)));
        redirect(&mut thread, 12, 1);
        assert!(request(&mut thread, 14, 1), "{scope}");
        assert!(!request(&mut thread, 15, 3), "{scope}");
        let unused = FakeEnding::answered(200).header("x-used", "0");
        end(&mut thread, 14, &unused);
        end(&mut thread, 11, &unused);
        thread.pass(SECOND);
        let goes_on = [20, 21, 22].map(|stream| request(&mut thread, stream, 4));
        assert_eq!(goes_on, [true, true, false], "nothing is left of them, {scope}");
    }
}

/// Who comes instead is judged by the rules in force, and what was kept is given back.
#[test]
fn nobody_else_goes_on_by_rules_that_have_changed() {
    for scope in ["local", "gateway"] {
        let mut thread = Thread::with(&text(2, scope));
        assert!(request(&mut thread, 10, 1));
        assert!(thread.configure(ROOT, &text(1, scope)));
        redirect(&mut thread, 10, 1);
        assert!(!request(&mut thread, 11, 2), "by the rules before there was one more, {scope}");
        thread.pass(SECOND);
        assert!(request(&mut thread, 12, 2), "{scope}");
    }
}
