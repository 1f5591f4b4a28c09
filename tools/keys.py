"""Writes docs/reference/keys.md, the page of every key of a document, from envoy/limits.schema.json."""

import json

from console import ROOT, relative, say

SCHEMA = ROOT / "envoy/limits.schema.json"
PAGE = ROOT / "docs/reference/keys.md"
HEAD = """# Every key

Made of [`envoy/limits.schema.json`](../../envoy/limits.schema.json), which is made of what the readers of documents know: `python3 tools/keys.py`
writes this page. [`envoy/limits.yaml`](../../envoy/limits.yaml) shows every key in its place; editors that read JSON schemas complete and check
them.
"""
DEFINITION = "#/definitions/"


def kinds(schema):
    """The values of a key: links to mappings, listed values, or types."""
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
        return ["a list of " + " or ".join(kinds(schema["items"])).replace("a text", "texts")]
    if "(ms|s|m|h|d)" in schema.get("pattern", ""):
        return ["a time, as `1500ms`"]
    if "(KiB|MiB)" in schema.get("pattern", ""):
        return ["a size, as `1MiB`"]
    if isinstance(schema.get("additionalProperties"), dict):
        return ["names with " + " or ".join(kinds(schema["additionalProperties"]))]
    named = {"integer": "a whole number", "number": "a number", "boolean": "`true`, `false`", "string": "a text", "object": "a mapping"}
    return [named[schema["type"]]] if isinstance(schema.get("type"), str) and schema["type"] in named else []


def row(name, schema, required):
    about = schema.get("description", "")
    needed = "required" if name in required and "required" not in about else ""
    cells = [f"`{name}`", ", ".join(kinds(schema)), "; ".join(filter(None, [about, needed]))]
    # A bar would end the cell, and angle brackets would be HTML.
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"


def page():
    definitions = json.loads(SCHEMA.read_text())["definitions"]
    parts = [HEAD]
    # The outermost mappings come first.
    for name in sorted(definitions, key=lambda it: (it != "document", it != "entry", it != "rule", it)):
        properties = definitions[name].get("properties", {})
        if properties:
            rows = [row(key, value, definitions[name].get("required", [])) for key, value in properties.items()]
            parts.append("\n".join([f"## {name}", "", "| key | value | |", "| --- | --- | --- |", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    say(f"wrote {relative(PAGE)}")
