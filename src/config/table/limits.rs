//! Entries of `limits`, conditions on requests, and sources of callers.

use super::{RESPONSE, TEXT, TEXTS};
use crate::addresses::ADDRESSES;
use crate::mapping::Allowed::{Any, Either, Flag, List, Map, Named, Number, Text};
use crate::mapping::{Allowed, Mapping, mapping, optional, required};
use crate::rule::RULE;
use diana_request::identity::{self, ValueForm, folded};

/// An entry.
pub static ENTRY: Mapping = mapping(
    "entry",
    "a mapping such as `{Url: /, rules: […]}`",
    &[
        // One of both is required.
        optional("Url", Either(&[URL, List("a list of paths", &URL)])),
        optional("url", Either(&[URL, List("a list of paths", &URL)])),
        required(
            "rules",
            List("a list of rules such as `{actor: device, unit: second, rpu: 10}`", &Map(&RULE)),
        ),
        optional("match", BLOCKS),
        optional("unless", BLOCKS),
        optional("except", Map(&EXCEPT)),
        optional("response", Map(&RESPONSE)),
        optional("ignore_case", Flag),
        optional("each", Flag),
    ],
);

/// A path.
pub const URL: Allowed = Text("a path such as `/sample`", |_| true);
const BLOCKS: Allowed = Either(&[Map(&MATCH), List("a list of those", &Map(&MATCH))]);

/// `match` and `unless`.
pub static MATCH: Mapping = mapping(
    "match",
    "a mapping such as `{methods: [POST], hosts: [\"*.example.com\"]}`",
    &[
        optional("methods", List("a list of methods such as `[GET, POST]`", &TEXT)),
        optional("hosts", HOSTS),
        optional("headers", CONDITIONS),
        optional("query", CONDITIONS),
        optional("cookies", CONDITIONS),
        optional("addresses", ADDRESSES),
        optional(
            "metadata",
            Named(
                "a mapping from namespaces to mappings from keys to conditions, such as \
                 `{com.example.tenancy: {plan: gold}}`",
                &KEYED_CONDITIONS,
            ),
        ),
        optional("claims", Map(&CLAIMS)),
    ],
);

const HOSTS: Allowed = List("a list of hosts such as `[example.com, \"*.example.com\"]`", &TEXT);

static CLAIMS: Mapping = mapping(
    "claims",
    "a mapping such as `{payload: jwt, values: {plan: gold}}`, where `payload` is the \
     `payload_in_metadata` of jwt_authn",
    &[required("payload", PAYLOAD), required("values", KEYED_CONDITIONS)],
);

/// The metadata key under which jwt_authn stores the claims of a verified token.
pub const PAYLOAD: Allowed =
    Text("the `payload_in_metadata` of jwt_authn", |name| !name.is_empty() && !name.contains('\0'));

/// Conditions on named values.
pub const CONDITIONS: Allowed =
    Named("a mapping from names to conditions, such as `{x-app: {prefix: mobile}}`", &TEST);

/// Conditions on values that may be within other values.
pub const KEYED_CONDITIONS: Allowed = Either(&[
    CONDITIONS,
    List("a list such as `[{key: [realm_access, roles], test: admin}]`", &Map(&KEYED_CONDITION)),
]);

/// A condition on a value that may be within others.
pub static KEYED_CONDITION: Mapping = mapping(
    "keyed_condition",
    "a mapping such as `{key: [realm_access, roles], test: admin}`",
    &[required("key", Either(&[TEXT, TEXTS])), required("test", TEST)],
);

/// A condition on a value.
pub const TEST: Allowed = Either(&[LINE, Map(&TESTS)]);
static TESTS: Mapping = mapping(
    "test",
    "one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, `{in: […]}`, `{present: true}`, \
     `{not: …}`, `{ge: …, lt: …}`",
    &[
        optional("exact", LINE),
        optional("prefix", SOME),
        optional("suffix", SOME),
        optional("contains", SOME),
        optional("in", List("a list of values such as `[gold, silver]`", &LINE)),
        optional("present", Flag),
        optional("not", Either(&[LINE, Map(&TESTS)])),
        optional("gt", Number),
        optional("ge", Number),
        optional("lt", Number),
        optional("le", Number),
        optional("ignore_case", Flag),
    ],
);

/// Text that can be in a header.
pub const LINE: Allowed = Text("text on one line", is_line);
const SOME: Allowed =
    Text("non-empty text on one line; write `{present: true}` to match any value", |text| {
        !text.is_empty() && is_line(text)
    });

fn is_line(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control())
}

/// `except` of the document, of an entry or of a rule.
pub static EXCEPT: Mapping = mapping(
    "except",
    "a mapping such as `{addresses: [10.0.0.0/8], paths: [/healthz]}`",
    &[
        optional("addresses", ADDRESSES),
        optional("paths", List("a list of paths such as `[/healthz]`", &TEXT)),
        optional("hosts", HOSTS),
        optional("headers", CONDITIONS),
    ],
);

/// Sources of an actor.
pub const SOURCES: Allowed =
    List("a list of sources such as `[{header: x-tenant}, {client_address: {}}]`", &Map(&SOURCE));

/// A source. Its kind builds and validates it.
pub static SOURCE: Mapping = Mapping {
    name: "source",
    what: "a mapping such as `{header: x-tenant}`",
    keys: &[],
    more: || {
        let kinds = identity::REGISTRY.iter();
        let keys = kinds.flat_map(|kind| [&[(kind.name, kind.form)], kind.options].concat());
        let keys = keys.chain(folded::OPTIONS.iter().copied());
        keys.map(|(name, form)| optional(name, written_as(form))).collect()
    },
};

fn written_as(form: ValueForm) -> Allowed {
    match form {
        ValueForm::Text => TEXT,
        ValueForm::Texts => TEXTS,
        ValueForm::TextOrTexts => Either(&[TEXT, TEXTS]),
        ValueForm::Flag => Flag,
        ValueForm::Any => Any,
    }
}
