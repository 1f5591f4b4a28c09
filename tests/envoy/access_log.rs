//! The access log names the rule that refused a request.

use crate::harness::{Gateway, eventually};

#[test]
fn refusal_names_its_rule() {
    let envoy = Gateway::with(
        "limits: [{Url: /, rules: [{name: only, actor: account, unit: hour, rpu: 1, scope: local}]}]",
    )
    .start_shared();
    assert_eq!(envoy.statuses(2, "/", &[("x-account-id", "very-secret-zoe")]), [200, 503]);
    let lines = eventually("two lines of access log", || {
        Some(envoy.access_log()).filter(|lines| lines.len() == 2)
    });
    assert_eq!(lines[0], "200 direct_response -");
    let (answer, state) = lines[1].rsplit_once(" diana_refused ").expect("the details name us");
    assert_eq!(answer, "503");
    for part in ["only", "local"] {
        assert!(state.contains(part), "{part} is missing in {state}");
    }
    assert!(!state.contains("zoe"), "the caller is named in {state}");
}
