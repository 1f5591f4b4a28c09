//! A claim of a JSON web token. It is either verified by a preceding filter (`{jwt_claim: sub,
//! payload: <payload_in_metadata of jwt_authn>}`, or with `payload_header` the header of its
//! `forward_payload_header`), or read from the `authorization` header without verification
//! (`{jwt_claim: sub, unverified: true}`), where any client can forge it. A list of names leads to
//! a claim within others: `{jwt_claim: [realm_access, name], …}`.

use std::borrow::Cow;
use std::rc::Rc;

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::metadata::Metadata;
use super::{
    BuiltSource, Mistake, Source, SourceKind, SourceValue, ValueForm, header, header_name, names,
    text,
};
use diana_policy::json::{self, Member};
use diana_policy::port::{Request, Values};
use diana_policy::spelling::header::{signed_part, token};
use diana_policy::tree::Tree;

/// `jwt_claim` in the registry.
pub const KIND: SourceKind = SourceKind {
    name: "jwt_claim",
    form: ValueForm::TextOrTexts,
    options: &[
        ("payload", ValueForm::Text),
        ("payload_header", ValueForm::Text),
        ("unverified", ValueForm::Flag),
    ],
    build,
};

/// Maximum length of an encoded payload. Those of identity providers are far shorter.
const LONGEST: usize = 16 << 10;

const CONFIG: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

const BASE64: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, CONFIG);

/// Returns true if this may be the header of a JSON web token: base64 of an object. Only its first
/// characters count, since programs differ in the rest that they accept: its length, other
/// characters in it, unused bits at its end.
fn is_header(text: &[u8]) -> bool {
    const START: usize = 64;
    let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut start: Vec<u8> = text.iter().copied().filter(is_known).take(START).collect();
    if start.len() % 4 == 1 {
        start.pop();
    }
    let lenient = CONFIG.with_decode_allow_trailing_bits(true);
    let lenient = GeneralPurpose::new(&base64::alphabet::URL_SAFE, lenient);
    lenient.decode(start).is_ok_and(|json| json.trim_ascii_start().starts_with(b"{"))
}

#[derive(Debug)]
struct Unverified(Vec<String>);

/// A claim in the header in which jwt_authn forwards the payload of a verified token.
#[derive(Debug)]
struct Forwarded {
    header: String,
    claim: Vec<String>,
}

fn build(claim: &Tree, options: &[(String, Tree)]) -> BuiltSource {
    let claim = names("jwt_claim", claim)?;
    let option = |name: &str| options.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    match (option("payload"), option("payload_header"), option("unverified")) {
        (None, Some(name), None | Some(Tree::Bool(false))) => {
            Ok(Rc::new(Forwarded { header: header_name("payload_header", name)?, claim }))
        }
        (Some(payload), None, None | Some(Tree::Bool(false))) => {
            let payload = text("payload", payload)?;
            let claim = claim.iter().map(String::as_str);
            let path = ["envoy.filters.http.jwt_authn", &payload].into_iter().chain(claim);
            Ok(Rc::new(Metadata::new(&path.collect::<Vec<_>>())))
        }
        (None, None, Some(Tree::Bool(true))) => Ok(Rc::new(Unverified(claim))),
        _ => {
            let message = "requires exactly one of `payload: <payload_in_metadata of jwt_authn>`, \
                           `payload_header: <its forward_payload_header>` and `unverified: true`"
                .into();
            Err(vec![Mistake { key: "jwt_claim".into(), message }])
        }
    }
}

impl Source for Unverified {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        match header::credentials(request) {
            SourceValue::Value(credentials) => self.claim(&credentials),
            other => other,
        }
    }

    fn reads_headers(&self) -> bool {
        true
    }

    fn is_caller_chosen(&self) -> bool {
        true
    }

    fn warning(&self) -> Option<String> {
        Some(format!("claim `{}` is read from unverified tokens", self.0.join(".")))
    }
}

impl Source for Forwarded {
    fn find<'r>(&self, request: &'r dyn Request) -> SourceValue<'r> {
        let payload = match request.header(&self.header) {
            Values::None => return SourceValue::NoMetadata,
            Values::One(payload) => payload,
            // jwt_authn removes the header of a client, and sets one value.
            Values::Many(_) => return SourceValue::Unclear,
        };
        let claims = BASE64.decode(payload).ok();
        match claims.map_or(Member::Unreadable, |claims| json::member(&claims, &self.claim)) {
            Member::Value(claim) => SourceValue::text(Cow::Owned(claim)),
            Member::Absent => SourceValue::Absent,
            Member::Unreadable => SourceValue::Unclear,
        }
    }

    fn reads_headers(&self) -> bool {
        true
    }

    fn header(&self) -> Option<&str> {
        Some(&self.header)
    }

    fn is_caller_chosen(&self) -> bool {
        false
    }
}

impl Unverified {
    /// The claim in a token. Text that is no token has no claim, and that of a token which cannot
    /// be read is unclear: the upstream may read it.
    fn claim(&self, credentials: &[u8]) -> SourceValue<'static> {
        let signed = signed_part(credentials);
        let Some(token) = signed.as_deref().or_else(|| token(credentials)) else {
            return SourceValue::Absent;
        };
        let mut parts = token.split(|&byte| byte == b'.');
        let (Some(header), Some(payload)) = (parts.next(), parts.next()) else {
            return SourceValue::Absent;
        };
        let is_short = payload.len() <= LONGEST;
        let claims = if is_short { BASE64.decode(payload).ok() } else { None };
        match claims.map_or(Member::Unreadable, |claims| json::member(&claims, &self.0)) {
            Member::Value(claim) => SourceValue::text(Cow::Owned(claim)),
            Member::Absent => SourceValue::Absent,
            Member::Unreadable if is_header(header) => SourceValue::Unclear,
            Member::Unreadable => SourceValue::Absent,
        }
    }
}
