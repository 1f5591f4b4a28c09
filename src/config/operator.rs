//! Access for operators: `explain` and `admin`.

use super::fields::Fields;
use super::{headers, values};
use diana_policy::{Admin, Explain};

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
