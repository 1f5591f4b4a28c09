"""The dynamic module: by the chart, from the companion or from a file, and by the manifests, which mount or copy its file."""

import json
import re
import unittest

import yaml
from laboratory import NUMBERS, ROOT, TOKEN, EnvoyGateway, Istio, Scene, library, native, rule, steady
from objects import REDIS
from test_fleet import wait_for_one_limit, with_redis
from test_manifests import with_document

FILE = f"/etc/diana/{native.versioned()}"
LIMITS = "limits: [{Url: /limited, rules: [{name: own, actor: account, unit: day, rpu: RPU, algo: SW}]}]"
TYPO = "limits: [{Url: /limited, rules: [{name: own, actor: account, unit: day, rpu: 3, burts: 5}]}]"


class Native:
    plane = values = None

    def test_the_chart(self):
        scene = Scene(self.plane)
        self.prepare(scene)
        values = {"filter": {"native": self.values}}
        with steady(self, scene):
            scene.helm("install", config=rule(3, "first"), values=values)
            scene.have("first")
            self.assertEqual(scene.admitted(5), 3)
            scene.helm("test")
            listeners = scene.listeners()
            self.assertIn("DynamicModuleFilter", listeners)
            scene.helm("upgrade", config=rule(4, "first"), values=values)
            scene.wait(lambda: scene.admitted(1) == 1, "the changed rule is in force, and usage stays")
            self.assertEqual(scene.admitted(2), 0)
            self.assertEqual(scene.listeners(), listeners)
            # Only the wasm module reads these claims, so no gateway gets them.
            claims = {"limits": [{"Url": "/", "unless": {"claims": {"payload": "jwt", "values": {"role": "admin"}}}, "rules": rule(9)["limits"][0]["rules"]}]}
            scene.helm("upgrade", config=claims, values=values)
            scene.wait(lambda: scene.says("cannot read claims", **scene.companions()), "a companion names the mistake")
            self.assertTrue(scene.knows("first"))
            scene.helm("rollback", "2")
            self.replace_pods(scene)
            scene.helm("upgrade", config=rule(4, "first"), values={"filter": {"native": self.values, "disabled": True}})
            scene.wait(lambda: not scene.explained(), "the filter is gone")
            scene.helm("uninstall", "--wait", "--timeout=10m")
        scene.end()

    def test_two_pods_share_a_global_limit_by_a_listener(self):
        scene = Scene(self.plane, replicas=2)
        scene.apply(REDIS)
        self.prepare(scene)
        for proxied, way in ((True, "redis_proxy"), (False, "tcp_proxy")):
            with self.subTest(way):
                wait_for_one_limit(self, scene, {"filter": {"native": self.values}, **with_redis(scene, proxied=proxied)})
                self.assertIn(way, scene.listeners())
                self.assertTrue(scene.keys_in_redis())
        scene.end()

    def replaced(self, scene, has_library):
        """Waits until all pods have the library, and no others are left. `helm test` asks pods that end, too."""
        every = f"/api/v1/namespaces/{scene.proxies}/pods?labelSelector={scene.labels}"
        scene.wait(lambda: len(scene.cluster.api.list(every)) == scene.replicas == len(scene.ready()) and all(map(has_library, scene.ready())), "pods with the library")

    def prepare(self, scene):
        """Brings the library to the pods."""
        self.mount(scene)

    def replace_pods(self, scene):
        scene.restart()
        scene.have("first")
        self.assertEqual(scene.admitted(6), 4)

    def test_the_manifest(self):
        scene = Scene(self.plane)
        self.mount(scene)
        filter = self.manifest(scene)[-1]

        def apply(document):
            scene.cluster.apply(with_document(filter, document))

        def admitted(count):
            account = f"account-{next(NUMBERS)}"
            return scene.admitted(count, x_account_id=account)

        with steady(self, scene):
            apply(LIMITS.replace("RPU", "2"))
            scene.wait(lambda: admitted(4) == 2, "the limit is in force")
            apply(LIMITS.replace("RPU", "3"))
            scene.wait(lambda: admitted(4) == 3, "the changed limit is in force")
            apply(TYPO)
            scene.wait(lambda: scene.says("burts"), "the gateway names the mistake")
            self.assertEqual(admitted(4), 3, "the last good rules stay")
            scene.restart()
            scene.wait(lambda: scene.says("had no good document in this process"), "a new gateway names the mistake")
            self.assertEqual(admitted(4), 4, "it has no rules")
            apply(LIMITS.replace("RPU", "1"))
            scene.wait(lambda: admitted(4) == 1, "the mended document is in force")
        scene.end()

    def text(self, scene):
        text = (ROOT / "envoy" / self.plane.NAME / "native.yaml").read_text()
        for old, new in {
            "namespace: istio-system": f"namespace: {scene.namespace}",
            "namespace: default": f"namespace: {scene.namespace}",
            "istio: ingressgateway": "gateway.networking.k8s.io/gateway-name: public",
            "name: eg}": "name: public}",
            "default/eg/http": f"{scene.namespace}/public/http",
        }.items():
            text = text.replace(old, new)
        return text

    def manifest(self, scene):
        return self.text(scene).split("\n---\n")


class OnIstio(Native, unittest.TestCase):
    plane, values = Istio, {"file": FILE}

    def mount(self, scene):
        """Changes the Deployment of the gateway as the manifest says, by an init container."""
        said = re.findall(r"^# +(\w+): +(\[.*\])$", self.text(scene), re.M)
        fields = {name: yaml.safe_load(value) for name, value in said}
        env = [*fields["env"], {"name": "DIANA_TOKEN", "value": TOKEN}]
        container = {"name": "istio-proxy", "volumeMounts": fields["volumeMounts"], "env": env}
        pod = {"volumes": fields["volumes"], "initContainers": fields["initContainers"], "containers": [container]}
        self.assertEqual(set(fields), {"volumes", "volumeMounts", "initContainers", "env"})
        deployment = yaml.safe_dump({"spec": {"replicas": scene.replicas, "template": {"spec": pod}}})
        scene.kubectl("patch", "configmap", "own", "--type=merge", "--patch", json.dumps({"data": {"deployment": deployment}}))
        self.replaced(scene, lambda pod: "initContainers" in pod["spec"])


class OnEnvoyGateway(Native, unittest.TestCase):
    plane, values = EnvoyGateway, {"sha256": library()}

    def prepare(self, scene):
        """The companion has it."""

    def asks(self, scene, pod):
        """Whether a proxy has failed to reach the companion."""
        try:
            return bool(re.search(r": [1-9]", scene.admin("/stats?filter=companion.upstream_cx_connect_fail", pod)))
        except RuntimeError:
            return False

    def replace_pods(self, scene):
        scene.scale_companions(0)
        old, new = scene.ready()[0], scene.restart(ready=False)
        scene.wait(lambda: self.asks(scene, new), "a new gateway asks for the library")
        # The rollout has stopped.
        self.assertEqual([it["metadata"]["name"] for it in scene.ready()], [old["metadata"]["name"]])
        scene.scale_companions(2)
        scene.wait(lambda: [it["metadata"]["name"] for it in scene.ready()] == [new["metadata"]["name"]], "the new gateway serves")
        scene.have("first")
        self.assertEqual(scene.admitted(6), 4)

    def mount(self, scene):
        """Gives the Gateway the volume of the manifest's EnvoyProxy."""
        spec = yaml.safe_load(self.manifest(scene)[0])["spec"]
        scene.kubectl("patch", "envoyproxy", "own", "--type=merge", "--patch", json.dumps({"spec": spec}))
        self.replaced(scene, lambda pod: any("image" in it for it in pod["spec"]["volumes"]))


if __name__ == "__main__":
    unittest.main()
