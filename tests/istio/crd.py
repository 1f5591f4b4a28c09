"""Checks manifests against the schemas of CustomResourceDefinitions, as the API server does.

Such a schema is structural: an object takes the fields in its `properties` and no others, unless it
says so. JSON schema would take any. Rules in CEL (`x-kubernetes-validations`) are not checked.
"""

from pathlib import Path

import jsonschema
import yaml

CRDS = Path(__file__).parent / "istio-crds.yaml"
# Every object has these, and a definition does not repeat them.
COMMON = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


def closed(schema):
    """The schema, with all objects closed that a structural schema defines as closed."""
    schema = dict(schema)
    if "items" in schema:
        schema["items"] = closed(schema["items"])
    if "properties" in schema:
        schema["properties"] = {name: closed(below) for name, below in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        schema["type"] = ["integer", "string"]
    return schema


def schema_of(manifest):
    """The schema for a manifest's kind and version."""
    group, version = manifest["apiVersion"].split("/")
    for definition in yaml.safe_load_all(CRDS.read_text()):
        spec = definition["spec"]
        if (spec["group"], spec["names"]["kind"]) != (group, manifest["kind"]):
            continue
        for served in spec["versions"]:
            if served["name"] == version and served["served"]:
                schema = dict(served["schema"]["openAPIV3Schema"])
                return closed({**schema, "properties": {**COMMON, **schema["properties"]}})
    raise ValueError(f"no definition of {manifest['apiVersion']} {manifest['kind']}")


def problems(manifest):
    """The problems of a manifest, each with its path."""
    found = jsonschema.Draft202012Validator(schema_of(manifest)).iter_errors(manifest)
    return sorted(f"{problem.json_path}: {problem.message}" for problem in found)
