//! The call to the configuration server.

use super::digest;
use diana_policy::port::{Call, Destination, Environment};
use diana_policy::remote::{Own, Remote, RemoteHeader};
use diana_policy::spelling::header::is_value;

/// Builds the call. Fails if the environment lacks a variable.
pub fn of(remote: &Remote, environment: &dyn Environment) -> Result<Call, String> {
    let mut headers: Vec<(String, String)> = vec![
        (":method".into(), remote.method.into()),
        (":path".into(), remote.path.clone()),
        (":authority".into(), remote.authority.clone()),
    ];
    for (name, value) in &remote.headers {
        let value = match value {
            RemoteHeader::Text(text) => Some(text.clone()),
            RemoteHeader::Variable(variable) => {
                environment.variable(variable).filter(|text| is_value(text))
            }
        };
        let value = value.ok_or_else(|| {
            format!(
                "remote.headers.{name}.env: this variable is not in the environment of the VM, or its value is not valid in a \
                 header; see `environment_variables` of `vm_config`"
            )
        })?;
        headers.push((name.clone(), value));
    }
    if let Some(node) = environment.node().filter(|node| is_value(node)) {
        headers.push(("x-diana-gateway".into(), node));
    }
    let destination = Destination::Cluster(remote.cluster.clone());
    let body = remote.body.clone().into();
    Ok(Call { destination, headers, body, timeout: remote.timeout })
}

/// The header of a call that names the document in force in all workers, and the newest one if it is
/// invalid. A version of 0 is none.
pub fn document(in_force: u64, refused: u64) -> (String, String) {
    let mut value = if in_force == 0 { "-".into() } else { format!("{in_force:016x}") };
    if refused != 0 {
        value.push_str(&format!(" refused={refused:016x}"));
    }
    ("x-diana-document".into(), value)
}

/// A hash of the settings that affect polling, or which documents are valid, but not the identity
/// of the document.
pub fn settings(remote: &Remote, own: &Own, call: &Call) -> u64 {
    let numbers = [remote.every, remote.timeout, remote.max_size as u64].map(u64::to_le_bytes);
    let mark = own.mark.as_deref().unwrap_or_default().as_bytes();
    let mut parts = vec![numbers.as_flattened(), env!("CARGO_PKG_VERSION").as_bytes(), mark];
    parts.extend(call.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
    digest(&parts)
}
