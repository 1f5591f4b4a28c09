//! The CustomResourceDefinition, generated from the declarations of mappings.

use std::slice;

use serde_json::{Map, Value, json};

use super::{DIFFERENCES, GROUP, KIND, KeyDifference, ResourceForm, SPEC, keys};
use crate::mapping::{Allowed, Mapping};
use crate::schema::words::Words;
use crate::schema::{SIZE, duration_pattern};

/// The version of the resource.
pub const VERSION: &str = "v1alpha1";

/// The annotation with the version of Diana.
pub const VERSION_ANNOTATION: &str = "limits.diana.internal/version";

/// Routes that a policy may name.
const MOST_TARGETS: u64 = 16;

/// The CustomResourceDefinition of `LimitPolicy`.
#[must_use]
pub fn crd() -> Value {
    let writer = Writer { words: Words::read() };
    let mut spec = writer.mapping(&[&SPEC], &mut Vec::new());
    if let Some(Value::Object(targets)) = spec.pointer_mut("/properties/targetRefs") {
        targets.extend([("minItems".into(), 1.into()), ("maxItems".into(), MOST_TARGETS.into())]);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("limitpolicies.{GROUP}"),
            "labels": {"gateway.networking.k8s.io/policy": "Direct"},
            "annotations": {VERSION_ANNOTATION: env!("CARGO_PKG_VERSION")},
        },
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": format!("{KIND}List"),
                "plural": "limitpolicies",
                "singular": "limitpolicy",
                "categories": ["gateway-api"],
            },
            "scope": "Namespaced",
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "Limits of requests on the routes of a team. They count beside those of the platform.",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec,
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

fn columns() -> Value {
    let of = |kind: &str, field: &str| format!(".status.conditions[?(@.type==\"{kind}\")].{field}");
    json!([
        {"name": "Routes", "type": "string", "jsonPath": ".spec.targetRefs[*].name"},
        {"name": "Accepted", "type": "string", "jsonPath": of("Accepted", "status")},
        {"name": "Reason", "type": "string", "jsonPath": of("Accepted", "reason")},
        {"name": "Programmed", "type": "string", "jsonPath": of("Programmed", "status")},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ])
}

/// The schema of the status: that of policy attachment, and the latest form that was accepted.
fn status() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer", "format": "int64"});
    let conditions = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": text,
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": number,
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "reason": text,
                "message": text,
            },
        },
    });
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": number,
            "conditions": conditions,
            "ancestors": {
                "type": "array",
                "description": "The Gateways of the routes.",
                "items": {
                    "type": "object",
                    "required": ["ancestorRef", "controllerName"],
                    "properties": {
                        "ancestorRef": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"group": text, "kind": text, "namespace": text, "name": text},
                        },
                        "controllerName": text,
                        "conditions": conditions,
                    },
                },
            },
            "inForce": {
                "type": "object",
                "description": "The latest accepted form, which stays in force while a newer one is not accepted.",
                "properties": {
                    "generation": number,
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
            },
        },
    })
}

struct Writer {
    words: Words,
}

impl Writer {
    /// The schema of a mapping with the keys of all these. `outer` are the mappings around it.
    fn mapping(&self, mappings: &[&'static Mapping], outer: &mut Vec<&'static str>) -> Value {
        let around = outer.clone();
        outer.extend(mappings.iter().map(|mapping| mapping.name));
        let mut properties = Map::new();
        for mapping in mappings {
            for key in keys(mapping, &around) {
                let mut schema = self.form(&key.form, outer);
                let meaning = self.words.of(mapping.name, key.document);
                if let (Some(meaning), Some(schema)) = (meaning, schema.as_object_mut()) {
                    schema.insert("description".into(), meaning.into());
                }
                match properties.get_mut(key.name) {
                    Some(known) => widen(known, &schema),
                    None => _ = properties.insert(key.name.into(), schema),
                }
            }
        }
        outer.truncate(around.len());
        let mut schema = json!({"type": "object", "properties": properties});
        let requirements: Vec<_> = mappings.iter().map(|mapping| required(mapping)).collect();
        let object = schema.as_object_mut().into_iter();
        object.for_each(|schema| match requirements.as_slice() {
            [one] => schema.extend(one.clone()),
            several => _ = schema.insert("anyOf".into(), several.into()),
        });
        schema
    }

    fn form(&self, form: &ResourceForm, outer: &mut Vec<&'static str>) -> Value {
        match form {
            ResourceForm::Any => {
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
            }
            ResourceForm::Single(kinds) => single(kinds),
            ResourceForm::Text(_) => json!({"type": "string"}),
            ResourceForm::Mapping(mappings) => self.mapping(mappings, outer),
            ResourceForm::List(_, item) => {
                json!({"type": "array", "items": self.form(&ResourceForm::of(slice::from_ref(item)), outer)})
            }
            ResourceForm::Named(_, value) => {
                let value = self.form(&ResourceForm::of(slice::from_ref(value)), outer);
                json!({"type": "object", "additionalProperties": value})
            }
        }
    }
}

/// The requirements of a mapping.
fn required(mapping: &Mapping) -> Map<String, Value> {
    let of =
        |name: &str| DIFFERENCES.iter().find(|(of, key, _)| (*of, *key) == (mapping.name, name));
    let mut required = Vec::new();
    let mut choices = Vec::new();
    for key in mapping.all() {
        match of(key.name) {
            Some((.., KeyDifference::Split { single, other, is_required: true })) => {
                choices.push(json!({"oneOf": [{"required": [single]}, {"required": [other]}]}));
            }
            Some((.., KeyDifference::Required(_))) => required.push(key.name),
            None if key.is_required => required.push(key.name),
            _ => {}
        }
    }
    let mut schema = Map::new();
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    if let Some(Value::Object(choice)) = choices.into_iter().next() {
        schema.extend(choice);
    }
    schema
}

/// Lets the schema of a whole number also allow the range of another one.
fn widen(known: &mut Value, other: &Value) {
    let bound = |key: &str| other.get(key).and_then(Value::as_u64);
    if let (Some(minimum), Some(known)) = (bound("minimum"), known.get_mut("minimum"))
        && known.as_u64().is_some_and(|known| minimum < known)
    {
        *known = minimum.into();
    }
}

/// The schema of a value of one of these kinds.
fn single(kinds: &[Allowed]) -> Value {
    let (mut numbers, mut texts) = (Map::new(), Vec::new());
    for one in kinds {
        match one {
            Allowed::Choice(words) => texts.push(json!({"enum": words()})),
            Allowed::Duration(..) => texts.push(json!({"pattern": duration_pattern("")})),
            Allowed::Size(_) => texts.push(json!({"pattern": SIZE})),
            // The companion reads it.
            Allowed::Text(..) => texts.push(json!({})),
            Allowed::Flag => numbers = object(json!({"type": "boolean"})),
            Allowed::Number => numbers = object(json!({"type": "number"})),
            Allowed::Whole(min, max) => {
                let schema =
                    json!({"type": "integer", "format": "int64", "minimum": min, "maximum": max});
                numbers = object(schema);
            }
            Allowed::Fraction(_, min, max) => {
                let [min, max] = [min, max].map(|millionths| *millionths as f64 / 1e6);
                numbers = object(json!({"type": "number", "minimum": min, "maximum": max}));
            }
            _ => {}
        }
    }
    let mut text = match texts.as_slice() {
        [] => return numbers.into(),
        [one] => object(one.clone()),
        several => object(json!({"anyOf": several})),
    };
    if numbers.is_empty() {
        text.insert("type".into(), "string".into());
        return text.into();
    }
    // A type would exclude the other kind.
    numbers.retain(|key, _| key == "minimum" || key == "maximum");
    if let Some(Value::Array(words)) = text.remove("enum") {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
        numbers.insert("pattern".into(), format!("^({})$", words.join("|")).into());
    }
    numbers.insert("x-kubernetes-int-or-string".into(), true.into());
    numbers.into()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
