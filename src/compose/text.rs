//! The text of a document: JSON, with a line for each entry.

use diana_policy::tree::Tree;

/// The text of a document with these entries.
pub fn of(document: &Tree, limits: &[&Tree]) -> String {
    let mut text = String::from("{");
    for (key, value) in others(document) {
        quote(key, &mut text);
        text.push(':');
        write(value, &mut text);
        text.push_str(",\n");
    }
    text.push_str("\"limits\":[");
    for (number, entry) in limits.iter().enumerate() {
        text.push_str(if number == 0 { "\n" } else { ",\n" });
        write(entry, &mut text);
    }
    text.push_str("]}\n");
    text
}

/// The keys of a document without its entries.
pub fn others(document: &Tree) -> impl Iterator<Item = &(String, Tree)> {
    let pairs = match document {
        Tree::Map(pairs) => pairs.as_slice(),
        _ => &[],
    };
    pairs.iter().filter(|(key, _)| key != "limits")
}

fn write(tree: &Tree, text: &mut String) {
    match tree {
        Tree::Null => text.push_str("null"),
        Tree::Bool(value) => text.push_str(&value.to_string()),
        Tree::Int(value) => text.push_str(&value.to_string()),
        // As written, since a reader compares decimals.
        Tree::Number(number) => text.push_str(number),
        Tree::Text(value) => quote(value, text),
        Tree::List(items) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Tree::Map(pairs) => {
            text.push('{');
            for (number, (key, value)) in pairs.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                quote(key, text);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
    }
}

fn quote(value: &str, text: &mut String) {
    text.push_str(&serde_json::Value::from(value).to_string());
}
