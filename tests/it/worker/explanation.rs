//! Missing and short tokens. Explanations themselves are in `scenarios/explain.txt`.

use super::{FakeHost, Thread};
use diana_worker::host::Level;
use kit::fake::{FakeEnvironment, FakeRequest};

#[test]
fn missing_or_short_token_gets_no_explanation() {
    for (token, why) in [(None, "not in the environment"), (Some("fifteen letters"), "shorter")] {
        let variables = token.map(|token: &str| ("DIANA_TOKEN".into(), token.into()));
        let environment = FakeEnvironment(variables.into_iter().collect());
        let mut thread = Thread::of(FakeHost { environment, ..FakeHost::default() });
        assert!(
            thread.configure(1, "explain: {header: X-Why, token_env: DIANA_TOKEN}\nlimits: []")
        );
        let log = thread.host.log.take();
        let errors: Vec<&String> =
            log.iter().filter(|(level, _)| *level == Level::Error).map(|(_, line)| line).collect();
        assert!(errors.len() == 1 && errors[0].contains(why), "{errors:?}");
        let request = FakeRequest::get("/").header("x-why", token.unwrap_or_default());
        assert!(thread.ask(1, 10, request));
        assert!(thread.responds(10).unwrap_or_default().is_empty());
        assert_eq!(*thread.host.removed_headers.borrow(), ["x-why"]);
    }
}
