//! Tags of documents: a server answers 304 to a gateway that has its document.

use fastrand::Rng;

use super::{EVERY, Gateway, LOCAL, MILLISECOND, SECOND, Server, document};
use kit::seed;

/// A server of this document, with a tag.
fn tags(name: &str, tag: &str) -> Server {
    Server::Tags(document(name), tag.into())
}

fn bytes(gateway: &Gateway) -> usize {
    gateway.workers.iter().map(|worker| worker.bytes).sum()
}

#[test]
fn document_in_force_is_sent_once() {
    for tag in [
        "\"a\"",
        "W/\"a\"",
        "\"5f3a-61c\"",
        "W/\"5f3a-61c\"",
        "\"a-gzip\"",
        "unquoted",
        "\"a,b c\"",
    ] {
        let mut gateway = Gateway::new(4, LOCAL, tags("a", tag));
        gateway.run(10 * EVERY);
        let (polls, size) = (gateway.calls(), document("a").len());
        assert!(polls >= 10, "{polls}");
        assert_eq!((gateway.rules(), bytes(&gateway)), (vec!["a"; 4], size), "{tag}");
        // A 304 is a successful poll.
        assert_eq!((gateway.count("fetched"), gateway.count("failed")), (polls, 0), "{tag}");
        assert_eq!(gateway.lines().len(), 1, "{tag}");
        gateway.server = tags("b", "\"b\"");
        gateway.run(EVERY + SECOND);
        assert_eq!((gateway.rules(), bytes(&gateway)), (vec!["b"; 4], 2 * size), "{tag}");
    }
}

#[test]
fn gateway_that_lacks_the_document_has_no_tag() {
    let bad = || tags("Bad Name", "\"bad\"");
    for (before, after) in [
        (None, Server::Tags(String::new(), "\"empty\"".into())),
        (None, bad()),
        (Some("a"), bad()),
        // Without a tag, or with one that no request can have.
        (Some("a"), Server::Serves(document("b"))),
        (Some("a"), tags("b", "")),
        (Some("a"), tags("b", "\"\u{e9}\"")),
        (Some("a"), tags("b", &"x".repeat(2_000))),
    ] {
        let first = before.map_or(Server::Responds(404), |name| tags(name, "\"a\""));
        let mut gateway = Gateway::new(1, LOCAL, first);
        gateway.run(EVERY + SECOND);
        gateway.server = after.clone();
        gateway.run(EVERY + SECOND);
        let sent = gateway.workers[0].sent.len();
        gateway.run(5 * EVERY);
        let calls = gateway.workers[0].callout.sent.borrow();
        assert!(calls.len() >= sent + 4, "{after:?}");
        let mut headers = calls[sent..].iter().flat_map(|call| &call.headers);
        assert!(headers.all(|(name, _)| name != "if-none-match"), "{after:?}");
    }
}

#[test]
fn unchanged_answer_without_a_tag_is_a_failure() {
    let mut gateway = Gateway::new(2, LOCAL, Server::Responds(304));
    gateway.run(3 * EVERY);
    assert_eq!((gateway.rules(), gateway.count("fetched")), (vec!["own"; 2], 0));
    assert!(gateway.count("failed") >= 2 && gateway.lines().join("").contains("status 304"));
}

#[test]
fn condition_of_the_configuration_and_posts_stay_as_they_are() {
    for settings in ["headers: {if-none-match: '\"x\"'}", "method: POST, body: x"] {
        let config = format!("{}, {settings}}}", LOCAL.trim_end_matches('}'));
        let mut gateway = Gateway::new(1, &config, tags("a", "\"a\""));
        gateway.run(3 * EVERY);
        let calls = gateway.workers[0].callout.sent.borrow();
        let headers = |at: usize| {
            let own = calls[at].headers.iter().filter(|(name, _)| name != "x-diana-document");
            own.cloned().collect::<Vec<_>>()
        };
        assert!(calls.len() >= 3 && (1..calls.len()).all(|at| headers(at) == headers(0)));
    }
}

/// Whatever happens, a gateway has the document of its server after a poll.
#[test]
fn tags_never_keep_an_old_document() {
    let mut random = Rng::with_seed(seed::next());
    for _ in 0..20 {
        let mut gateway = Gateway::new(random.usize(1..4), LOCAL, tags("r0", "\"0\""));
        for _ in 0..30 {
            // Contents return, with the same tag or with another.
            let number = random.u8(0..4);
            let kind = random.choice(&["", "W/"]).unwrap();
            let tag = format!("{kind}\"{number}{}\"", random.u8(0..2));
            gateway.server = match random.u8(0..8) {
                0 => Server::Responds(503),
                1 => Server::BreaksOff,
                2 => Server::Serves(document(&format!("r{number}"))),
                3 => Server::Tags(document("Bad Name"), format!("\"bad{number}\"")),
                _ => tags(&format!("r{number}"), &tag),
            };
            match random.u8(0..8) {
                0 if gateway.workers.len() > 1 => {
                    let leader = gateway.leader();
                    gateway.workers.swap_remove(leader);
                }
                1 => gateway.start(LOCAL),
                2 => gateway.data.clear(),
                _ => {}
            }
            gateway.run(random.u64(MILLISECOND..2 * EVERY));
            if random.bool() {
                let name = format!("r{number}");
                gateway.server = tags(&name, &tag);
                gateway.run(EVERY + 4 * SECOND);
                assert_eq!(gateway.rules(), vec![name; gateway.workers.len()]);
            }
        }
    }
}
