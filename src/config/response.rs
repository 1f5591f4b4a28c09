//! `response`: the response to a refused request.

use std::rc::Rc;

use super::fields::Fields;
use super::headers::VALUE;
use super::headers::{self, Reserved, value};
use super::mapping::Allowed::{Choice, Duration, Flag, Named, Whole};
use super::mapping::{Choices, Mapping, mapping, optional, words};
use super::values::TEXT;
use diana_policy::FieldForm;
use diana_policy::time::SECOND;
use diana_policy::{BodyPiece, LimitFields, Response, SINGLE_FIELDS};

/// `response`.
pub static RESPONSE: Mapping = mapping(
    "response",
    "a mapping such as `{status: 429, body: slow down}`",
    &[
        optional("status", Whole(400, 599)),
        optional("body", TEXT),
        optional("content_type", VALUE),
        optional("headers", Named("a mapping such as `{x-reason: rate limit}`", &VALUE)),
        optional("problem", Flag),
        optional("jitter", Duration(0, 3600 * SECOND)),
        optional("fields", Choice(|| words(FIELDS))),
        optional("reset", Choice(|| words(RESETS))),
        optional("grpc_status", Whole(8, 14)),
    ],
);

/// The response fields that contain limits.
const FIELDS: Choices<FieldForm> = &[
    ("ietf", FieldForm::Ietf),
    ("x-ratelimit", FieldForm::XRateLimit),
    ("legacy", FieldForm::Legacy),
];
/// Whether the reset in these fields is a Unix time.
const RESETS: Choices<bool> = &[("seconds", false), ("unix", true)];

const MAX_BODY: usize = 8 << 10;

/// Statuses of gRPC.
const RESOURCE_EXHAUSTED: u8 = 8;
const UNAVAILABLE: u8 = 14;

/// Headers that Diana sets, each with a hint.
const OWN: Reserved = &[
    ("retry-after", ""),
    ("x-envoy-ratelimited", ""),
    ("ratelimit", ""),
    ("ratelimit-policy", ""),
    ("grpc-status", ""),
    ("grpc-message", ""),
    ("grpc-retry-pushback-ms", ""),
    ("content-type", "; use `content_type`"),
    ("host", ""),
];

/// Placeholders in a body.
const PIECES: [(&str, BodyPiece); 5] = [
    ("{rule}", BodyPiece::Rule),
    ("{retry_after}", BodyPiece::RetryAfter),
    ("{limit}", BodyPiece::Limit),
    ("{remaining}", BodyPiece::Remaining),
    ("{id}", BodyPiece::Id),
];

/// The default response.
pub fn standard() -> Response {
    Response {
        status: 503,
        body: vec![BodyPiece::Text("rate limit exceeded".into())],
        content_type: "text/plain".into(),
        headers: Vec::new(),
        is_problem: false,
        jitter: 0,
        fields: LimitFields::default(),
        grpc_status: RESOURCE_EXHAUSTED,
    }
}

/// Returns true if Diana sets a header of this name in some responses.
pub fn is_reserved(name: &str) -> bool {
    OWN.iter().any(|(own, _)| *own == name) || SINGLE_FIELDS.as_flattened().contains(&name)
}

/// Reads `response` of the document, of an entry or of a rule. Absent keys are inherited from
/// `outer`.
pub fn read(around: &Fields<'_>, outer: &Rc<Response>) -> Rc<Response> {
    let Some(fields) = around.mapping("response") else { return Rc::clone(outer) };
    let mut response = Response::clone(outer);
    response.status = fields.number("status").unwrap_or(response.status);
    if let Some(body) = body(&fields) {
        response.body = pieces(body);
    }
    if let Some(content_type) = fields.text("content_type") {
        response.content_type = content_type.into();
    }
    response.is_problem = fields.flag("problem", response.is_problem);
    if let Some(node) = fields.get("content_type").filter(|_| response.is_problem) {
        node.key_problem("not allowed with `problem`, which sets application/problem+json".into());
    }
    response.jitter = fields.number("jitter").unwrap_or(response.jitter);
    response.fields.form = fields.choice("fields", FIELDS).unwrap_or(response.fields.form);
    response.fields.is_unix = fields.choice("reset", RESETS).unwrap_or(response.fields.is_unix);
    if response.fields.is_unix && response.fields.form.single().is_none() {
        let key = if fields.get("reset").is_some() { "reset" } else { "fields" };
        let message = "`reset: unix` requires `fields: x-ratelimit` or `legacy`, since the IETF's fields have seconds";
        fields.report(key, message.into());
    }
    if let Some(status) = fields.number("grpc_status") {
        response.grpc_status = status;
        if ![RESOURCE_EXHAUSTED, UNAVAILABLE].contains(&status) {
            let message = format!(
                "found {status}, allowed: {RESOURCE_EXHAUSTED} (resource exhausted), {UNAVAILABLE} (unavailable)"
            );
            fields.report("grpc_status", message);
        }
    }
    if fields.get("headers").is_some() {
        let headers = headers::read(&fields, OWN).into_iter();
        response.headers = headers.filter_map(|(name, node)| Some((name, value(&node)?))).collect();
    }
    if let Some(names) = response.fields.form.single() {
        let is_taken = |(name, _): &&(String, String)| names.contains(&name.as_str());
        let form = FIELDS.iter().find(|(_, form)| *form == response.fields.form);
        let form = form.map(|(word, _)| *word).unwrap_or_default();
        for (name, _) in response.headers.iter().filter(is_taken) {
            fields.report("headers", format!("found `{name}`, which `fields: {form}` sets"));
        }
    }
    Rc::new(response)
}

/// Splits a body at its placeholders.
fn pieces(mut body: &str) -> Vec<BodyPiece> {
    let mut pieces = Vec::new();
    while !body.is_empty() {
        let first = |(word, piece): &(&'static str, BodyPiece)| {
            Some((body.find(word)?, word.len(), piece.clone()))
        };
        let next = PIECES.iter().filter_map(first).min_by_key(|(at, ..)| *at);
        let (at, length, piece) = next.unwrap_or((body.len(), 0, BodyPiece::Rule));
        let (text, rest) = body.split_at(at);
        if !text.is_empty() {
            pieces.push(BodyPiece::Text(text.into()));
        }
        if length > 0 {
            pieces.push(piece);
        }
        body = rest.get(length..).unwrap_or_default();
    }
    pieces
}

fn body<'a>(fields: &Fields<'a>) -> Option<&'a str> {
    let text = fields.text("body")?;
    let node = fields.get("body")?;
    let is_control = |found: char| found.is_control() && !['\t', '\n', '\r'].contains(&found);
    if text.len() > MAX_BODY {
        node.problem(format!("found {} bytes, allowed: at most {MAX_BODY}", text.len()));
    } else if text.chars().any(is_control) {
        node.problem("found a control character, allowed: text and newlines".into());
    } else if text.ends_with(['\n', '\r']) {
        node.problem(
            "ends with a newline, which gRPC does not allow; in YAML write `|-` instead of `|`"
                .into(),
        );
    } else {
        return Some(text);
    }
    None
}
