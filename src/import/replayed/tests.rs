use std::rc::Rc;

use diana_replay::PlainRequest;

use crate::importer::tests::NoFiles;
use crate::{Counting, Importer, SourceText};

/// The summary of a rule about requests of a caller without a header, of one path each.
fn summary(middleware: &str, paths: &[&str]) -> String {
    let text = format!(
        "http: {{middlewares: {{a: {{rateLimit: {middleware}}}}}, routers: {{r: {{rule: 'PathPrefix(`/a`)', middlewares: [a]}}}}}}"
    );
    let mut importer = Importer::new(None);
    importer.read(&SourceText { name: "a".into(), text }, &NoFiles);
    let mut result = importer.finish(Counting::PerGateway);
    let mut rules = result.replays();
    for (number, path) in paths.iter().enumerate() {
        let request = Rc::new(PlainRequest {
            at: 1_795_500_000_000_000 + number as u64,
            took: 0,
            status: 200,
            address: Some([198, 51, 100, 1].into()),
            host: Some("example.com".into()),
            method: "GET".into(),
            path: (*path).into(),
            headers: Vec::new(),
            route: None,
        });
        rules.iter_mut().for_each(|rule| rule.request(&request));
    }
    rules.iter().map(|rule| rule.summary()).collect()
}

#[test]
fn log_has_only_the_requests_of_a_rule() {
    let found = summary("{average: 1, period: 1h}", &["/b", "/a", "/a/x", "/a?q", "/b"]);
    assert_eq!(found, "equal, by 3 requests of the log: the original refuses 2 of them, Diana 2");
}

#[test]
fn log_shows_requests_without_a_key() {
    let middleware = "{average: 1, period: 1h, sourceCriterion: {requestHeaderName: x-user}}";
    let found = summary(middleware, &["/a", "/a", "/a"]);
    let expected = "looser, by 3 requests of the log: the original refuses 2 of them, Diana 0; \
        0 only Diana, 2 only the original";
    assert_eq!(found, expected);
}
