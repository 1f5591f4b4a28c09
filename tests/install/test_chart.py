"""The Helm chart, rendered by Helm's SDK from the package helm-python-sdk, is equivalent to the manifests."""

import json
import os
import subprocess
import sys
import unittest

import yaml
from control_planes import EnvoyGateway, Istio
from gateways import envoy, redis
from servers import ROOT
from test_manifests import DIRECT, GATEWAY, ISTIO, LIMIT, manifests

sys.path.insert(0, str(ROOT / "tools"))
from image import version  # noqa: E402

CHART = ROOT / "charts/diana"
IMAGE = {"url": "registry.example.com/diana:0.2.0", "sha256": "0" * 64}
# In a separate process, since Helm's library has a Go runtime.
RENDER = """
import json, sys
import helm_python as helm
asked = json.load(sys.stdin)
with helm.Chart.load(asked["chart"]) as chart:
    try:
        chart.validate_schema(asked["values"])
        told = chart.render(asked["values"], name="diana", namespace=asked["namespace"])
    except helm.HelmError as error:
        sys.exit(str(error))
json.dump(told, sys.stdout)
"""


def render(namespace="default", **values):
    """The manifests of the chart for values, or Helm's error."""
    asked = json.dumps({"chart": str(CHART), "namespace": namespace, "values": {"image": IMAGE, **values}})
    command = [os.environ["DIANA_HELM_PYTHON"], "-c", RENDER]
    done = subprocess.run(command, input=asked, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr
    return [it for text in json.loads(done.stdout).values() for it in yaml.safe_load_all(text) if it]


def of_kind(kind, rendered):
    return next(it for it in rendered if it["kind"] == kind)


class Chart(unittest.TestCase):
    def setUp(self):
        plugin, *_ = manifests(ISTIO, "wasmplugin")
        self.config = plugin["spec"]["pluginConfig"]
        self.called = {"redis": {"enabled": True}, "centre": {"enabled": True}}

    def test_istio_as_the_manifests(self):
        rendered = render("istio-system", config=self.config, **self.called)
        written, *others = manifests(ISTIO, "image", "redis", "remote")
        redis, centre, extension, *rest = of_kind("EnvoyFilter", rendered)["spec"].pop("configPatches")
        told, wanted = [it["patch"]["value"]["typed_config"]["config"] for it in (extension, written["spec"]["configPatches"][0])]
        self.assertEqual(json.loads(told.pop("configuration")["value"]), yaml.safe_load(wanted.pop("configuration")["value"]))
        self.assertEqual([extension, *rest], written["spec"].pop("configPatches"))
        self.assertEqual([redis, centre], [it["spec"]["configPatches"][0] for it in others])
        self.assertEqual(of_kind("EnvoyFilter", rendered)["spec"], written["spec"])
        tags = [it["data"]["custom_bootstrap.json"] for it in (of_kind("ConfigMap", rendered), *manifests(ISTIO, "bootstrap"))]
        self.assertEqual(*map(json.loads, tags))

    def test_istio_after_another_filter(self):
        rendered = of_kind("EnvoyFilter", render("istio-system", istio={"after": "envoy.filters.http.cors"}))
        patch = next(it for it in rendered["spec"]["configPatches"] if it["applyTo"] == "HTTP_FILTER")
        self.assertEqual(patch["patch"]["operation"], "INSERT_AFTER")
        manager = patch["match"]["listener"]["filterChain"]["filter"]
        self.assertEqual(manager["subFilter"], {"name": "envoy.filters.http.cors"})

    def test_envoy_gateway_as_the_manifests(self):
        rendered = render(controlPlane="envoy-gateway", config=self.config, **self.called)
        for written in manifests(GATEWAY, "extension-policy", "patch-policy"):
            self.assertEqual(of_kind(written["kind"], rendered), written)
        told, wanted = of_kind("EnvoyProxy", rendered), manifests(GATEWAY, "proxy")[0]
        self.assertEqual(*(yaml.safe_load(it["spec"]["bootstrap"]["value"]) for it in (told, wanted)))

    def test_limits_hold_in_both(self):
        for plane, name in ((Istio, "istio"), (EnvoyGateway, "envoy-gateway")):
            values = {"controlPlane": name, "config": yaml.safe_load(DIRECT)}
            rendered = render(redis={"enabled": True, "passwordEnv": "DIANA_REDIS_PASSWORD"}, **values)
            with self.subTest(plane=name), redis() as port, envoy(plane, rendered, {"redis.": port}) as gateway:
                statuses = [gateway.get("/")[0] for _ in range(LIMIT + 1)]
                self.assertEqual(statuses, [200] * LIMIT + [503])

    def test_values_that_mean_nothing_are_refused(self):
        for said, values in {
            "sha256": {"image": {**IMAGE, "sha256": ""}},
            "controlPlane": {"controlPlane": "nginx"},
            "port": {"redis": {"enabled": True, "port": "many"}},
            "redsi": {"redsi": {"enabled": True}},
            "listeners": {"envoyGateway": {"listeners": []}},
        }.items():
            with self.subTest(said=said):
                told = render(**values)
                self.assertIsInstance(told, str)
                self.assertIn(said, told)

    def test_versions_agree(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual({chart["version"], chart["appVersion"]}, {version()})
        self.assertTrue(yaml.safe_load((CHART / "values.yaml").read_text())["image"]["url"].endswith(":" + version()))


if __name__ == "__main__":
    unittest.main()
