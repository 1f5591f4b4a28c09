//! A configuration as a `Struct`: any bytes, and documents with an equivalent in JSON.
use serde_json::Value;

pub fn run(input: &[u8]) {
    let parsed = crate::bounded::to((4 << 10) * input.len() + (4 << 20), || {
        diana_config::Reader::default().policy(input)
    });
    drop(parsed);
    let Ok(Value::Object(object)) = serde_json::from_slice(input) else { return };
    if object.is_empty() || input.len() > 4096 {
        return;
    }
    let text = Value::Object(object.clone()).to_string();
    // Numbers that a `Struct` does not represent exactly have another spelling.
    let mut plain = true;
    each(&Value::Object(object.clone()), &mut |value| {
        plain &= value
            .as_number()
            .is_none_or(|number| number.as_i64().is_some_and(|n| n.abs() < 1 << 53));
        // YAML text does not support all escapes of JSON.
        plain &= value.as_str().is_none_or(|text| text.chars().all(|c| (' '..'\x7f').contains(&c)));
    });
    if !plain {
        return;
    }
    let bytes: Vec<u8> = fields(&object);
    let (written, sent) = (
        diana_config::Reader::default().policy(text.as_bytes()),
        diana_config::Reader::default().policy(&bytes),
    );
    match (written, sent) {
        (Ok(written), Ok(sent)) => {
            assert_eq!(format!("{:?}", written.limits), format!("{:?}", sent.limits));
        }
        (Err(_), Err(_)) => {}
        (written, sent) => {
            panic!("{:?} as text, {:?} as a Struct", written.err(), sent.err());
        }
    }
}

/// Calls `see` with every value and every name.
fn each(value: &Value, see: &mut dyn FnMut(&Value)) {
    see(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| each(item, see)),
        Value::Object(pairs) => pairs.iter().for_each(|(name, value)| {
            see(&Value::String(name.clone()));
            each(value, see);
        }),
        _ => {}
    }
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 & 0x7f | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag], &varint(content.len())[..], content].concat()
}

fn fields(object: &serde_json::Map<String, Value>) -> Vec<u8> {
    let entry = |(key, value): (&String, &Value)| {
        field(0x0a, &[field(0x0a, key.as_bytes()), field(0x12, &message(value))].concat())
    };
    object.iter().flat_map(entry).collect()
}

fn message(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => vec![0x08, 0],
        Value::Bool(flag) => vec![0x20, u8::from(*flag)],
        Value::Number(number) => {
            [&[0x11], &number.as_f64().unwrap_or_default().to_le_bytes()[..]].concat()
        }
        Value::String(text) => field(0x1a, text.as_bytes()),
        Value::Object(object) => field(0x2a, &fields(object)),
        Value::Array(items) => {
            let items = items.iter().flat_map(|item| field(0x0a, &message(item)));
            field(0x32, &items.collect::<Vec<_>>())
        }
    }
}
