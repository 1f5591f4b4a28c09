//! Values at JSON pointers, compared with serde_json.

use diana_policy::json::pointed;
use serde_json::Value;

/// A pointer, followed by a document.
pub fn run(input: &[u8]) {
    let mut parts = input.splitn(2, |byte| *byte == b'\n');
    let Ok(pointer) = str::from_utf8(parts.next().unwrap_or_default()) else { return };
    let json = parts.next().unwrap_or_default();
    let found = crate::bounded::to(16 * input.len() + 4096, || pointed(json, pointer));
    assert!(found.is_none_or(|found| found.len() <= json.len()));
    let Ok(value) = serde_json::from_slice::<Value>(json) else { return };
    let escapes = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if !pointer.starts_with('/') || !escapes {
        return;
    }
    // Written again, so that names are unique.
    let json = value.to_string();
    let found = pointed(json.as_bytes(), pointer);
    match value.pointer(pointer) {
        None | Some(Value::Null) => assert_eq!(found, None),
        Some(Value::String(text)) => assert_eq!(found.as_deref(), Some(text.as_bytes())),
        Some(wanted) => {
            let found = found.expect("there is a value");
            assert_eq!(serde_json::from_slice::<Value>(&found).unwrap(), *wanted);
        }
    }
}
