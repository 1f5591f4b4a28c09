//! The schema of `LimitPolicy` as the API server applies it, and documents in its form.

use serde_json::{Map, Value, json};

/// The schema of a `spec`.
pub fn spec_schema() -> Value {
    let crd = diana_config::resource::crd::crd();
    let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
    schema.unwrap().clone()
}

/// The first mistake that the API server finds in a value, with strict validation.
pub fn mistake(value: &Value, schema: &Value, path: &str) -> Option<String> {
    if schema.get("x-kubernetes-int-or-string").is_some() {
        if !value.is_string() && !value.is_u64() {
            return Some(format!("{path}: neither a number nor text"));
        }
    } else if !fits(value, schema["type"].as_str().unwrap()) {
        return Some(format!("{path}: not of type {}", schema["type"]));
    }
    let below = |key: &str| format!("{path}.{key}");
    let found = match value {
        Value::Array(items) => items.iter().enumerate().find_map(|(number, item)| {
            mistake(item, &schema["items"], &format!("{path}[{number}]"))
        }),
        Value::Object(_) if schema.get("x-kubernetes-preserve-unknown-fields").is_some() => None,
        Value::Object(pairs) => pairs.iter().find_map(|(key, value)| {
            let schema =
                schema["properties"].get(key).or_else(|| schema.get("additionalProperties"));
            match schema {
                Some(schema) => mistake(value, schema, &below(key)),
                None => Some(format!("{}: unknown field", below(key))),
            }
        }),
        _ => None,
    };
    found.or_else(|| (!holds(value, schema)).then(|| format!("{path}: not allowed by the schema")))
}

fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        kind => panic!("{kind}"),
    }
}

/// Returns true if a value passes the validations of a schema.
fn holds(value: &Value, schema: &Value) -> bool {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let passing = |several: &Vec<Value>| several.iter().filter(|one| holds(value, one)).count();
    let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let number = value.as_f64();
    let count = value.as_array().map(Vec::len);
    list("required").is_none_or(|keys| keys.iter().all(has))
        && list("anyOf").is_none_or(|several| passing(several) > 0)
        && list("oneOf").is_none_or(|several| passing(several) == 1)
        && list("enum").is_none_or(|words| words.contains(value))
        && number.zip(bound("minimum")).is_none_or(|(number, least)| number >= least)
        && number.zip(bound("maximum")).is_none_or(|(number, most)| number <= most)
        && count.zip(bound("minItems")).is_none_or(|(count, least)| count as f64 >= least)
        && count.zip(bound("maxItems")).is_none_or(|(count, most)| count as f64 <= most)
        && value
            .as_str()
            .zip(schema.get("pattern"))
            .is_none_or(|(text, pattern)| matches(text, pattern.as_str().unwrap()))
}

/// Returns true if a text matches one of the patterns of the schema: numbers with units, or words.
fn matches(text: &str, pattern: &str) -> bool {
    let inner = pattern.trim_start_matches(['^', '(']).trim_end_matches(['$', ')']);
    let Some(units) = inner.strip_prefix("[0-9]+(") else {
        return inner.split('|').any(|word| word == text);
    };
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    unit.len() < text.len() && units.split('|').any(|one| one == unit)
}

/// A value of a document in the form of the resource.
pub fn in_form(value: &Value, schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    match (schema["type"].as_str(), value) {
        (Some("array"), Value::Array(items)) => {
            items.iter().map(|item| in_form(item, &schema["items"])).collect()
        }
        // Conditions by names are a list of keys and tests.
        (Some("array"), Value::Object(pairs))
            if schema.pointer("/items/properties/test").is_some() =>
        {
            let one = |(key, test): (&String, &Value)| {
                in_form(&json!({"key": [key], "test": test}), &schema["items"])
            };
            pairs.iter().map(one).collect()
        }
        (Some("array"), one) => json!([in_form(one, &schema["items"])]),
        (Some("object"), Value::Object(pairs)) => {
            match (properties, schema.get("additionalProperties")) {
                (Some(properties), _) => {
                    let of_pair = |(key, value): (&String, &Value)| of_pair(key, value, properties);
                    Value::Object(pairs.iter().map(of_pair).collect())
                }
                (_, Some(of)) => {
                    let named = pairs.iter().map(|(key, value)| (key.clone(), in_form(value, of)));
                    Value::Object(named.collect())
                }
                _ => value.clone(),
            }
        }
        (Some("object"), word) => match properties {
            Some(properties) if properties.contains_key("exact") => json!({"exact": word}),
            Some(_) => json!({word.as_str().unwrap(): true}),
            None => json!({}),
        },
        (Some("string"), Value::Number(_)) => json!("0s"),
        _ => value.clone(),
    }
}

/// A key and its value: where the resource has several keys, the one for this kind of value.
fn of_pair(key: &str, value: &Value, properties: &Map<String, Value>) -> (String, Value) {
    let key = if key == "Url" { "url" } else { key };
    let names = ["", "s", "_from", "_named"].map(|end| format!("{key}{end}"));
    let known = names.iter().filter_map(|name| Some((name, properties.get(name)?)));
    let suits = |(_, schema): &(&String, &Value)| is_like(value, schema);
    let found = known.clone().find(suits).or_else(|| known.clone().next());
    let (name, schema) = found.unwrap_or_else(|| panic!("{key}"));
    (name.clone(), in_form(value, schema))
}

/// Returns true if a value is a list, a mapping or neither, as in the schema.
fn is_like(value: &Value, schema: &Value) -> bool {
    match schema["type"].as_str() {
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => !value.is_array() && !value.is_object(),
    }
}
