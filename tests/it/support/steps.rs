//! Steps of a scenario file: requests, and events between them.

use kit::fake::FakeRequest;
use serde_yaml::{Mapping, Value};

/// The beginning of a line with a step.
const STEP: &str = "> ";

/// The configuration of a scenario, and its steps: the line and the keys of each.
pub fn split(scenario: &str) -> (String, Vec<(&str, Mapping)>) {
    let (steps, configuration): (Vec<&str>, Vec<&str>) =
        scenario.lines().partition(|line| line.starts_with(STEP));
    let keys = |step: &str| serde_yaml::from_str(step.strip_prefix(STEP).unwrap()).unwrap();
    (configuration.join("\n"), steps.into_iter().map(|step| (step, keys(step))).collect())
}

/// A request: `GET /` of `example.com`, with changes. Other keys are headers.
pub fn request(keys: &Mapping) -> FakeRequest {
    let mut request = FakeRequest::get("/");
    for (key, value) in keys {
        let key = text(key);
        match key.as_str() {
            "path" => request.path = bytes(value),
            "method" => request.method = bytes(value),
            "host" => request.authority = bytes(value),
            "from" => request = request.from(&text(value)),
            "route" => request = request.routed(&text(value)),
            "account" => request = header(request, "x-account-id", value),
            "claims" => request = metadata(request, "envoy.filters.http.jwt_authn", value),
            "metadata" => {
                for (namespace, value) in value.as_mapping().unwrap() {
                    request = metadata(request, &text(namespace), value);
                }
            }
            _ => request = header(request, &key, value),
        }
    }
    request
}

/// A list is a repeated header.
fn header(request: FakeRequest, name: &str, value: &Value) -> FakeRequest {
    match value {
        Value::Sequence(values) => {
            values.iter().fold(request, |request, value| header(request, name, value))
        }
        value => request.header(name, text(value)),
    }
}

/// All leaves below a namespace: text, or numbers and flags as the host has them.
fn metadata(request: FakeRequest, namespace: &str, value: &Value) -> FakeRequest {
    fn add(request: FakeRequest, path: &[&str], value: &Value) -> FakeRequest {
        match value {
            Value::Mapping(keys) => keys.iter().fold(request, |request, (key, value)| {
                add(request, &[path, &[key.as_str().unwrap()]].concat(), value)
            }),
            value => request.property(path, encoded(value)),
        }
    }
    fn encoded(value: &Value) -> Vec<u8> {
        match value {
            Value::Number(number) => number.as_f64().unwrap().to_le_bytes().into(),
            Value::Bool(flag) => vec![u8::from(*flag)],
            Value::Sequence(items) => list(items.iter().map(encoded).collect()),
            value => text(value).into_bytes(),
        }
    }
    /// The number of items, their lengths, each beside that of an empty value, and their texts.
    fn list(items: Vec<Vec<u8>>) -> Vec<u8> {
        let number = |number: usize| (number as u32).to_le_bytes();
        let lengths = items.iter().flat_map(|item| [number(item.len()), [0; 4]].concat());
        let texts = items.iter().flat_map(|item| [item.as_slice(), &[0, 0]].concat());
        number(items.len()).into_iter().chain(lengths).chain(texts).collect()
    }
    add(request, &["metadata", "filter_metadata", namespace], value)
}

/// A duration in the notation of the configuration, in ticks.
pub fn ticks(value: &Value) -> u64 {
    let written = text(value);
    let digits = written.find(|letter: char| !letter.is_ascii_digit()).unwrap();
    let (number, unit) = written.split_at(digits);
    let unit = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => panic!("{written}: no unit"),
    };
    number.parse::<u64>().unwrap() * unit
}

pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        other => panic!("{other:?} is no text"),
    }
}

/// `None` if the value is `~`, for a request without a path.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    (!value.is_null()).then(|| text(value).into_bytes())
}

/// The outcomes with consecutive equal ones counted, in one line if each has one.
pub fn counted(lines: Vec<String>) -> String {
    let mut runs: Vec<(u64, String)> = Vec::new();
    for line in lines {
        match runs.last_mut() {
            Some((count, last)) if *last == line => *count += 1,
            _ => runs.push((1, line)),
        }
    }
    let written = runs.into_iter().map(|(count, line)| match count {
        1 => line,
        _ => format!("{count} times {line}"),
    });
    let written: Vec<_> = written.collect();
    let has_more = written.iter().any(|outcome| outcome.contains('\n'));
    written.join(if has_more { "\n" } else { "; " })
}
