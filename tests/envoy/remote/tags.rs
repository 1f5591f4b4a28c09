//! Tags of documents: a server answers 304 to a gateway that has its document.

use super::{document, gateway, in_force, metric, settles_on};
use crate::harness::{ConfigServer, Exchange, ServerResponse, eventually};

fn tagged(name: &str, tag: &str) -> ServerResponse {
    ServerResponse::Tagged(document(name, 10), tag.into())
}

/// Waits until the last three requests have this condition, and these answers.
#[track_caller]
fn polls(server: &ConfigServer, condition: Option<&str>, status: u16, tag: &str) {
    let condition = condition.map(str::to_owned);
    let wanted = Exchange { condition, status, tag: tag.into() };
    eventually(&format!("three times {wanted:?}"), || {
        let exchanges = server.exchanges();
        exchanges.ends_with(&[(); 3].map(|()| wanted.clone())).then_some(())
    });
}

#[test]
fn document_in_force_is_sent_once() {
    let documents = [("a", "\"a\""), ("b", "W/\"b\""), ("c", "\"c-gzip\"")];
    let server = ConfigServer::start(tagged("a", "\"a\""));
    let envoy = gateway(server.port).workers(1).start();
    for (name, tag) in documents {
        server.respond_with(tagged(name, tag));
        settles_on(&envoy, name);
        polls(&server, Some(tag), 304, tag);
        assert_eq!(in_force(&envoy).as_deref(), Some(name));
    }
    assert_eq!(metric(&envoy, "rejected"), 0);
    // A refused document has no tag, so that each poll shows whether it was mended.
    let bad = "limits: [{Url: /, rules: [{actor: all, unit: dya}]}]";
    server.respond_with(ServerResponse::Tagged(bad.into(), "\"bad\"".into()));
    polls(&server, None, 200, "\"bad\"");
    assert_eq!(in_force(&envoy).as_deref(), Some("c"));
    server.respond_with(tagged("d", "\"d\""));
    settles_on(&envoy, "d");
    polls(&server, Some("\"d\""), 304, "\"d\"");
    let mut exchanges = server.exchanges();
    assert_eq!(exchanges[0].condition, None, "a gateway without a document takes no 304");
    // A worker that takes over has no tag, and may have to poll again after a late answer.
    exchanges.retain(|it| it.condition.is_some());
    exchanges.dedup();
    let lines = exchanges.iter().map(|it| {
        let condition = it.condition.as_deref().unwrap_or_default();
        format!("{condition} {} {}", it.status, it.tag)
    });
    let wanted = [
        "\"a\" 304 \"a\"",
        "\"a\" 200 W/\"b\"",
        "W/\"b\" 304 W/\"b\"",
        "W/\"b\" 200 \"c-gzip\"",
        "\"c-gzip\" 304 \"c-gzip\"",
        "\"c-gzip\" 200 \"bad\"",
        "\"d\" 304 \"d\"",
    ];
    assert_eq!(lines.collect::<Vec<_>>(), wanted);
    envoy.assert_unharmed();
}
