"""Writes what follows from envoy/limits.schema.json: the tables of docs/reference/keys.md, the page of all keys of a document, and the
schema of the chart's values, which contains that of the rules."""

import json

from console import ROOT, relative, say

SCHEMA = ROOT / "envoy/limits.schema.json"
PAGE = ROOT / "docs/reference/keys.md"
DEFINITION = "#/definitions/"
# The chart's own values, and the schema that Helm reads.
OWN_VALUES, VALUES = ROOT / "tools/values.schema.json", ROOT / "charts/diana/values.schema.json"
# The keys that only a new filter can change: the chart sets `remote`, and the rest of `redis`.
SETTINGS = {"namespace", "keys", "log", "accepted", "mark", "explain", "admin"}
OF_CHART = {"cluster", "pipe", "proxied", "username_env", "password_env", "password_secret"}


def kinds(schema):
    """The allowed values: links to mappings, listed values, or types."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(DEFINITION)
        return [f"[`{name}`](#{name})"]
    for several in ("anyOf", "allOf"):
        if several in schema:
            return list(dict.fromkeys(kind for each in schema[several] for kind in kinds(each)))
    if "enum" in schema:
        return [f"`{value}`" for value in schema["enum"]]
    if "const" in schema:
        return [f"`{schema['const']}`"]
    if schema.get("type") == "array":
        items = " or ".join(kinds(schema["items"]))
        return [f"a list of {items}".replace("of text", "of texts").replace("of a whole number", "of whole numbers")]
    if "(ms|s|m|h|d)" in schema.get("pattern", ""):
        return ["a duration such as `1500ms`"]
    if "(KiB|MiB)" in schema.get("pattern", ""):
        return ["a size such as `1MiB`"]
    if isinstance(schema.get("additionalProperties"), dict):
        return ["names, each with " + " or ".join(kinds(schema["additionalProperties"]))]
    # Only sources that read a mapping themselves have no type.
    named = {None: "a mapping", "integer": "a whole number", "number": "a number", "boolean": "`true`, `false`", "string": "text", "object": "a mapping"}
    return [named[schema.get("type")]]


def row(name, schema, required):
    meaning = schema.get("description", "")
    needed = "required" if name in required and "required" not in meaning else ""
    cells = [f"`{name}`", ", ".join(kinds(schema)), "; ".join(filter(None, [meaning, needed]))]
    # Escaped, since a bar would end the cell, and text in angles would be HTML.
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"


def page():
    definitions = json.loads(SCHEMA.read_text())["definitions"]
    # The introduction.
    parts = [PAGE.read_text().partition("\n## ")[0]]
    # The outermost mappings come first.
    for name in sorted(definitions, key=lambda it: (it != "document", it != "entry", it != "rule", it)):
        properties = definitions[name].get("properties", {})
        if properties:
            what = definitions[name]["description"]
            rows = [row(key, value, definitions[name].get("required", [])) for key, value in properties.items()]
            parts.append("\n".join([f"## {name}", "", f"{what[:1].upper()}{what[1:]}.", "", "| key | value | meaning |", "| --- | --- | --- |", *rows, ""]))
    return "\n".join(parts)


def part(mapping, wanted):
    """The schema of a mapping, with the wanted ones of its keys, of which none is required."""
    properties = {key: value for key, value in mapping["properties"].items() if key in wanted}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def values():
    """The schema of the chart's values."""
    schema, definitions = json.loads(OWN_VALUES.read_text()), json.loads(SCHEMA.read_text())["definitions"]
    document, redis = definitions.pop("document"), definitions.pop("redis")
    definitions.pop("remote")
    parts = {
        "rules": part(document, set(document["properties"]) - SETTINGS - {"redis", "remote"}),
        "settings": part(document, SETTINGS),
        "redis_settings": part(redis, set(redis["properties"]) - OF_CHART),
    }
    schema["definitions"] |= definitions | parts
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def main():
    for path, text in ((PAGE, page()), (VALUES, values())):
        path.write_text(text)
        say(f"wrote {relative(path)}")


if __name__ == "__main__":
    main()
