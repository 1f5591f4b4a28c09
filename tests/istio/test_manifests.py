"""The contents of the manifests in envoy/istio are valid for Envoy and Diana. `make platforms` applies them."""

import copy
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "envoy/istio"


def manifest(name):
    return yaml.safe_load((FOLDER / name).read_text())


def validate(change):
    """The output of `envoy --mode validate` for envoy.yaml after a change of its first HTTP filter."""
    bootstrap = yaml.safe_load((ROOT / "envoy/envoy.yaml").read_text())
    manager = bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]
    filters = manager["typed_config"]["http_filters"]
    filters[0] = change(filters[0])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(bootstrap, file)
        file.flush()
        command = [os.environ["DIANA_ENVOY"], "--mode", "validate", "-l", "warning", "-c", file.name]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


class Contents(unittest.TestCase):
    def setUp(self):
        self.patches = manifest("envoyfilter.yaml")["spec"]["configPatches"]
        self.plugin = manifest("wasmplugin.yaml")["spec"]

    def in_envoy(self, filter):
        """The filter of the EnvoyFilter, with the local path of the module."""
        here = copy.deepcopy(filter)
        here["typed_config"]["config"]["vm_config"]["code"]["local"]["filename"] = "target/diana.wasm"
        return here

    def test_envoy_takes_the_filter(self):
        done = validate(lambda _: self.in_envoy(self.patches[0]["patch"]["value"]))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_way_to_redis_is_the_tested_one(self):
        redis = manifest("redis.yaml")["spec"]["configPatches"][0]["patch"]["value"]
        fleet = yaml.safe_load((ROOT / "envoy/fleet.yaml").read_text())["static_resources"]["clusters"]
        tested = next(cluster for cluster in fleet if cluster["name"] == "diana_redis")
        self.assertEqual(redis.pop("load_assignment")["cluster_name"], tested.pop("load_assignment")["cluster_name"])
        self.assertEqual(redis, tested)

    def test_an_image_changes_where_the_module_comes_from_and_nothing_else(self):
        extension, entry, *rest = manifest("image.yaml")["spec"]["configPatches"]
        filter = extension["patch"]["value"]
        self.assertIn("config_discovery", entry["patch"].pop("value"))
        filter["typed_config"]["config"]["vm_config"]["code"] = {"local": {"filename": "/etc/diana/plugin.wasm"}}
        self.assertEqual(filter, self.patches[0]["patch"].pop("value"))
        self.assertEqual([entry, *rest], self.patches)

    def test_the_dynamic_module_is_another_filter_at_the_same_place(self):
        patches = manifest("native.yaml")["spec"]["configPatches"]
        native, wasm = (it[0]["patch"]["value"].pop("typed_config") for it in (patches, self.patches))
        self.assertEqual(patches, self.patches)
        self.assertEqual((native["filter_name"], native["filter_config"]), (wasm["config"]["root_id"], wasm["config"]["configuration"]))
        *_, policy = yaml.safe_load_all((FOLDER.parent / "envoy-gateway/native.yaml").read_text())
        native["dynamic_module_config"]["metrics_namespace"] = "diana"
        self.assertEqual(policy["spec"]["jsonPatches"][0]["operation"]["value"]["typed_config"], native)

    def test_diana_takes_the_plugin_config(self):
        def with_plugin_config(filter):
            # Istio passes `pluginConfig` as JSON in a StringValue.
            configuration = filter["typed_config"]["config"]["configuration"]
            configuration["value"] = json.dumps(self.plugin["pluginConfig"])
            return filter

        done = validate(with_plugin_config)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.plugin["pluginConfig"]["limits"][0]["rules"][0]["unit"] = "fortnight"
        done = validate(with_plugin_config)
        self.assertEqual(done.returncode, 1)
        self.assertIn("limits[0].rules[0].unit", done.stderr)

    def test_labels_are_those_of_envoy_gateway(self):
        # `make platforms` sees those. Istio takes this bootstrap by an annotation of injected pods only.
        gateway = yaml.safe_load((FOLDER.parent / "envoy-gateway/proxy.yaml").read_text())["spec"]["bootstrap"]["value"]
        own = json.loads(manifest("bootstrap.yaml")["data"]["custom_bootstrap.json"])
        self.assertEqual(own["stats_config"], yaml.safe_load(gateway)["stats_config"])

    def test_both_say_the_same(self):
        config = self.patches[0]["patch"]["value"]["typed_config"]["config"]
        self.assertEqual(yaml.safe_load(config["configuration"]["value"]), self.plugin["pluginConfig"])
        self.assertEqual("file://" + config["vm_config"]["code"]["local"]["filename"], self.plugin["url"])
        self.assertEqual(config["failure_policy"], self.plugin["failStrategy"])
        self.assertEqual(config["root_id"], self.plugin["pluginName"])


if __name__ == "__main__":
    unittest.main()
