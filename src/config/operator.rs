//! Access for operators: `explain` and `admin`.

use super::fields::Fields;
use super::headers::MARKER;
use super::mapping::Allowed::Text;
use super::mapping::{Mapping, mapping, required};
use super::values::VARIABLE;
use super::{headers, values};
use diana_policy::{Admin, Explain};

/// `explain`.
pub static EXPLAIN: Mapping = mapping(
    "explain",
    "a mapping such as `{header: x-diana-explain, token_env: DIANA_TOKEN}`",
    &[required("header", MARKER), required("token_env", VARIABLE)],
);

/// `admin`.
pub static ADMIN: Mapping = mapping(
    "admin",
    "a mapping such as `{path: /.diana, token_env: DIANA_TOKEN}`",
    &[
        required("path", Text("a path such as `/.diana`, not `/` alone", |_| true)),
        required("token_env", VARIABLE),
    ],
);

/// Reads `explain`.
pub fn explain(top: &Fields<'_>) -> Option<Explain> {
    let fields = top.mapping("explain")?;
    let (header, token_env) = (headers::marker(&fields, "header"), fields.text("token_env"));
    Some(Explain { header: header?, token_env: token_env?.into() })
}

/// Reads `admin`.
pub fn admin(top: &Fields<'_>) -> Option<Admin> {
    let fields = top.mapping("admin")?;
    let token_env = fields.text("token_env");
    let node = fields.node("path")?;
    let allowed = fields.allowed("path");
    let prefix = values::path(node, &allowed, false)?;
    if prefix.path().len() == 1 {
        node.reject(allowed);
        return None;
    }
    let path = String::from_utf8_lossy(prefix.path()).into_owned();
    Some(Admin { path, token_env: token_env?.into() })
}
