"""The manifests of envoy/istio and envoy/envoy-gateway with an image, which the control planes fetch from a registry."""

import json
import unittest

import yaml
from laboratory import NUMBERS, ROOT, EnvoyGateway, Istio, Scene
from objects import CENTRE, NEWER, REDIS, server

IMAGE = ROOT / "target/image"
REGISTRY = server("registry", 5000, service={"clusterIP": "10.96.200.200"}, args=["--address=0.0.0.0:5000"])
# Both control planes read a registry at such an address without TLS, Istio's agent because of a variable.
PLACE = "10.96.200.200:5000"


# Of two gateways.
LIMIT = 10
GLOBAL = f"limits: [{{Url: /limited, rules: [{{name: fleet, actor: all, unit: day, rpu: {LIMIT}, algo: SW, scope: global}}]}}]"
DIRECT = "redis: {cluster: diana_redis, timeout: 1s}\n" + GLOBAL
PROXIED = "redis: {cluster: diana_redis, timeout: 1s, proxied: true}\n" + GLOBAL
REMOTE = "remote: {cluster: config_centre, path: /rules.yaml, every: 1s, timeout: 1s}\nlimits: []"


def with_document(text, document):
    """A manifest with another document of rules."""
    manifest = yaml.safe_load(text)
    patches = [it["patch"] for it in manifest["spec"].get("configPatches", [])]
    patches += [it["operation"] for it in manifest["spec"].get("jsonPatches", [])]
    values = [it["value"] for it in patches if isinstance(it.get("value"), dict)]
    for filter in (it.get("typed_config", {}) for it in values):
        if "config" in filter:
            filter["config"]["configuration"]["value"] = document
        if "filter_config" in filter:
            filter["filter_config"]["value"] = document
    if "pluginConfig" in manifest["spec"]:
        manifest["spec"]["pluginConfig"] = yaml.safe_load(document)
    for wasm in manifest["spec"].get("wasm", []):
        wasm["config"] = yaml.safe_load(document)
    return yaml.safe_dump(manifest)


class Manifests:
    # With wrong rules in the manifest `inline` a new proxy answers `broken` to everything.
    plane = folder = inline = broken = None

    @classmethod
    def setUpClass(cls):
        cls.scene = scene = Scene(cls.plane, replicas=2)
        scene.apply(REGISTRY)
        scene.apply(REDIS)
        scene.apply(CENTRE)
        index = yaml.safe_load((IMAGE / "index.json").read_text())
        cls.digest = index["manifests"][0]["digest"]
        scene.wait(lambda: scene.ready(labels="app=registry", namespace=scene.namespace), "the registry is ready")
        push = ("push", "--insecure", "--index", IMAGE, f"{PLACE}/diana:lab")
        scene.wait(lambda: "@sha256:" in scene.cluster.run("crane", *push, fails=True), "the image is pushed")

    @classmethod
    def tearDownClass(cls):
        cls.scene.kubectl("delete", "service", "registry")
        cls.scene.end()

    def texts(self, *names):
        """Manifests as they are, but with the names of the scene and the image of this test."""
        scene = self.scene
        texts = [(ROOT / "envoy" / self.folder / f"{name}.yaml").read_text() for name in names]
        for old, new in {
            "namespace: istio-system": f"namespace: {scene.namespace}",
            "namespace: default": f"namespace: {scene.namespace}",
            "namespace: envoy-gateway-system": f"namespace: {scene.namespace}",
            "istio: ingressgateway": "gateway.networking.k8s.io/gateway-name: public",
            "name: eg": "name: public",
            "default/eg/http": f"{scene.namespace}/public/http",
            "envoyextensionpolicy/default/": f"envoyextensionpolicy/{scene.namespace}/",
            "redis.default.": f"redis.{scene.namespace}.",
            "config-centre.default.": f"config-centre.{scene.namespace}.",
            "registry.example.com/diana:0.2.0": f"{PLACE}/diana@{self.digest}",
            "0" * 64: self.digest.removeprefix("sha256:"),
        }.items():
            texts = [text.replace(old, new) for text in texts]
        return texts

    def applied(self, *texts):
        self.scene.cluster.apply(*texts)
        self.addCleanup(self.remove, *texts)

    def remove(self, *texts):
        """Until no pod has the filter: it would answer for that of the next test."""
        self.scene.cluster.run("kubectl", "delete", "-f", "-", given="\n---\n".join(texts))
        for pod in self.scene.ready():
            self.scene.wait(lambda pod=pod: "filters.http.wasm" not in self.scene.listeners(pod), "the filter is gone")

    def check(self, *texts):
        """The rules of the manifests are in force in both pods."""
        self.applied(*texts)
        self.check_limits()

    def check_limits(self):
        scene = self.scene
        for at in (0, 1):
            # Accounts that no other test has counted in the same process.
            one, other = (f"account-{next(NUMBERS)}" for _ in range(2))
            asked = lambda name, at=at: scene.get("/reports", at, x_account_id=name)  # noqa: E731
            scene.wait(lambda: (it := asked(one)) and it.refused, "the limit is in force")
            self.assertEqual([asked(other).upstream for _ in range(3)], [True, True, False])

    def check_redis(self, document, *names):
        """Both pods limit, and count in Redis."""
        scene = self.scene
        # A Redis without keys.
        scene.kubectl("rollout", "restart", "deployment/redis")
        scene.kubectl("rollout", "status", "deployment/redis", "--timeout=10m")
        # It serves until it has ended.
        every = f"/api/v1/namespaces/{scene.namespace}/pods?labelSelector=app=redis"
        scene.wait(lambda: len(scene.cluster.api.list(every)) == 1, "the Redis before is gone")
        self.applied(*(with_document(text, document) for text in self.texts(*names)))
        for at in (0, 1):
            scene.wait(lambda at=at: (it := scene.get("/limited", at)) and it.refused, "the limit is in force")
        # A call that is lost leaves the decision to the pod.
        scene.wait(lambda: scene.get("/limited") and scene.keys_in_redis(), "Redis counts")

    def check_remote(self, *names):
        self.applied(*(with_document(text, REMOTE) for text in self.texts(*names)))
        for at in (0, 1):
            self.scene.wait(lambda at=at: (it := self.scene.get("/limited", at)) and it.refused, "rules of the server are in force")

    def check_newer_rules(self, name):
        """Gateways that run keep the last good rules. Returns the manifest, with good ones."""
        scene, text = self.scene, self.texts(name)[0]
        self.check(text)
        for unknown, rules in NEWER.items():
            scene.cluster.apply(with_document(text, rules))
            scene.wait(lambda unknown=unknown: scene.says(unknown), "a gateway names what it does not know")
            self.check_limits()
        return text

    def test_rules_of_a_newer_version(self):
        scene, text = self.scene, self.check_newer_rules(self.inline)
        scene.restart()
        self.assertEqual([scene.get("/", at).status for at in (0, 1)], [self.broken] * 2, "it is ready without rules")
        scene.cluster.apply(text)
        self.check_limits()

    def test_all_are_accepted_by_the_api_server(self):
        for path in (ROOT / "envoy" / self.folder).iterdir():
            with self.subTest(path.name):
                self.scene.cluster.run("kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", path)


class OnIstio(Manifests, unittest.TestCase):
    plane, folder, inline, broken = Istio, "istio", "image", 500

    def test_the_module_in_a_file(self):
        self.check(*self.texts("envoyfilter", "listeners"))

    def test_rules_of_a_newer_version_with_the_module_in_a_file(self):
        scene, text = self.scene, self.check_newer_rules("envoyfilter")
        old = {it["metadata"]["uid"] for it in scene.ready()}
        new = scene.restart(ready=False)["metadata"]["name"]
        pod = f"/api/v1/namespaces/{scene.namespace}/pods/{new}"
        restarted = lambda: any(it["restartCount"] for it in scene.cluster.api.get(pod)["status"].get("containerStatuses", []))  # noqa: E731
        scene.wait(restarted, "the startup probe has ended the new pod, which has no listener")
        self.assertEqual({it["metadata"]["uid"] for it in scene.ready()}, old)
        scene.cluster.apply(text)
        scene.wait(lambda: len(now := scene.ready()) == 2 and not old & {it["metadata"]["uid"] for it in now}, "new pods are ready")
        self.check_limits()

    def test_an_image(self):
        self.check(*self.texts("image"))

    def test_wasmplugin(self):
        # The manifest has a file.
        self.check(*(text.replace("file:///etc/diana/plugin.wasm", f"oci://{PLACE}/diana@{self.digest}") for text in self.texts("wasmplugin")))

    def test_redis(self):
        self.check_redis(DIRECT, "image", "redis")

    def test_envoys_proxy_of_redis(self):
        self.check_redis(PROXIED, "envoyfilter", "redis-proxied")

    def test_rules_of_a_server(self):
        self.check_remote("image", "remote")


class OnEnvoyGateway(Manifests, unittest.TestCase):
    plane, folder, inline, broken = EnvoyGateway, "envoy-gateway", "extension-policy", 503

    def with_bootstrap(self, name):
        """Gives the Gateway the bootstrap of a manifest."""
        bootstrap = yaml.safe_load(self.texts(name)[0])["spec"]["bootstrap"]
        scene, old = self.scene, {it["metadata"]["uid"] for it in self.scene.pods()}
        if json.loads(scene.kubectl("get", "envoyproxy", "own", "-o", "json"))["spec"].get("bootstrap") == bootstrap:
            return
        scene.kubectl("patch", "envoyproxy", "own", "--type=merge", "--patch", json.dumps({"spec": {"bootstrap": bootstrap}}))
        scene.wait(lambda: len(now := scene.pods()) == len(scene.ready()) == 2 and not old & {it["metadata"]["uid"] for it in now}, "new pods")

    def test_policies(self):
        self.with_bootstrap("proxy")
        self.check(*self.texts("extension-policy", "patch-policy"))
        label = 'diana_rule_refused{namespace="diana",rule="reports"'
        self.scene.wait(lambda: label in self.scene.admin("/stats/prometheus"), "metrics have labels")

    def test_redis_and_rules_of_a_server(self):
        self.with_bootstrap("proxy")
        self.check_redis(DIRECT, "extension-policy")
        self.doCleanups()
        self.check_remote("extension-policy")

    def test_envoys_proxy_of_redis(self):
        self.with_bootstrap("proxy-proxied")
        self.check_redis(PROXIED, "extension-policy")


if __name__ == "__main__":
    unittest.main()
