//! Claims of unverified tokens, compared with serde_json.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diana_policy::json::{Member, member};
use diana_policy::tree::Tree;
use diana_request::identity::jwt_claim::KIND;
use kit::fake::FakeRequest;
use serde_json::Value;

/// A payload. If it is not an object, also a header.
pub fn run(input: &[u8]) {
    let source = super::source(&KIND, "sub", &[("unverified", Tree::Bool(true))]);
    let ask = |header: &[u8]| {
        let request = FakeRequest::get("/").header("authorization", header);
        super::value(super::found(&*source, &request))
    };
    let limit = 64 * input.len() + 4096;
    let direct = crate::bounded::to(limit, || ask(input));
    assert!(direct.is_none_or(|claim| claim.len() <= input.len()));
    let token = format!("bEArer  e30.{}.c2ln", URL_SAFE_NO_PAD.encode(input));
    let got = ask(token.as_bytes());
    if input.len() <= 8 << 10 {
        let claim = match member(input, &["sub"]) {
            Member::Value(claim) if !claim.is_empty() => Some(claim),
            _ => None,
        };
        assert_eq!(got, claim);
    }
    let Ok(Value::Object(object)) = serde_json::from_slice(input) else { return };
    let wanted = match object.get("sub") {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) if !number.is_f64() => Some(number.to_string()),
        // A number out of range is read as another name.
        Some(Value::Number(_)) => return,
        _ => None,
    };
    if input.len() <= 8 << 10 {
        assert_eq!(got, wanted.map(String::into_bytes));
    }
}
