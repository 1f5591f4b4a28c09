"""The schema of rules in a validator: it accepts all that the filter accepts, and refuses most of what the filter
refuses."""

import json
import re
import unittest
from pathlib import Path

import jsonschema
import yaml

ENVOY = Path(__file__).resolve().parents[2] / "envoy"
SCHEMA = json.loads((ENVOY / "limits.schema.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)



class Loader(yaml.SafeLoader):
    """YAML 1.2, where `on` is text, as in the filter and in editors."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))

RULE = {"actor": "device", "unit": "second", "rpu": 10}


def limits(**changes):
    return {"limits": [{"Url": "/", "rules": [{**RULE, **changes}]}]}


class Schema(unittest.TestCase):
    def test_it_is_one(self):
        jsonschema.Draft7Validator.check_schema(SCHEMA)

    def test_shipped_rules_are_valid(self):
        for path in [ENVOY / "limits.yaml", ENVOY / "fleet-rules.yaml", *(ENVOY / "examples").iterdir()]:
            with self.subTest(path.name):
                self.assertEqual([error.message for error in VALIDATOR.iter_errors(yaml.load(path.read_text(), Loader))], [])

    def test_the_shorter_forms_are_valid(self):
        [block] = limits()["limits"]
        for document in [block, [block], {"limits": []}, [], {"url": "/", "rules": []}]:
            self.assertTrue(VALIDATOR.is_valid(document), document)

    def test_mistakes_are_found(self):
        for changes in [
            {"alg": "W"}, {"algo": "X"}, {"rpu": -1}, {"rpu": "10"}, {"rpu": 1.5}, {"max_delay": "5 s"}, {"slices": 61},
            {"ban": {"after": 5}}, {"ban": {"after": 5, "within": "1m", "for": "1m", "until": "1m"}}, {"scope": "world"},
            {"actor": 5}, {"cost": {"header": "x"}}, {"except": {"paths": "/"}}, {"response": {"status": 200}},
        ]:
            self.assertFalse(VALIDATOR.is_valid(limits(**changes)), changes)
        for document in [{}, {"limits": {}}, {"limits": [], "limit": []}, {"limits": [{"Url": "/"}]}, 5]:
            self.assertFalse(VALIDATOR.is_valid(document), document)

    def test_every_key_of_a_rule_says_what_it_means(self):
        elsewhere = {"except", "response"}
        for name, key in SCHEMA["definitions"]["rule"]["properties"].items():
            self.assertTrue("description" in key or name in elsewhere, name)
