"""The manifests of envoy/istio and envoy/envoy-gateway with an image, which the control planes fetch from a registry."""

import subprocess
import sys
import unittest

import yaml
from laboratory import ROOT, EnvoyGateway, Istio, Scene

IMAGE = ROOT / "target/image"
REGISTRY = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: registry, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: registry}}
  template:
    metadata: {labels: {app: registry}}
    spec:
      containers:
      - name: registry
        image: lab/registry
        args: [--address=0.0.0.0:5000]
        readinessProbe: {tcpSocket: {port: 5000}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: registry, namespace: NAMESPACE}
spec:
  selector: {app: registry}
  clusterIP: 10.96.200.200
  ports: [{name: http, port: 5000}]
"""
# Both control planes read a registry at such an address without TLS, Istio's agent because of a variable.
PLACE = "10.96.200.200:5000"


class Manifests:
    plane = None

    @classmethod
    def setUpClass(cls):
        cls.scene = scene = Scene(cls.plane)
        scene.apply(REGISTRY)
        subprocess.run([sys.executable, ROOT / "tools/image.py"], check=True, stdout=subprocess.DEVNULL)
        index = yaml.safe_load((IMAGE / "index.json").read_text())
        cls.digest = index["manifests"][0]["digest"]
        scene.wait(lambda: scene.ready(labels="app=registry", namespace=scene.namespace), "the registry is ready")
        push = ("push", "--insecure", "--index", IMAGE, f"{PLACE}/diana:lab")
        scene.wait(lambda: "@sha256:" in scene.cluster.run("crane", *push, fails=True), "the image is pushed")

    @classmethod
    def tearDownClass(cls):
        cls.scene.kubectl("delete", "service", "registry")
        cls.scene.end()

    def check(self, folder, *names):
        """Applies manifests as they are, but with the names of the scene and the image of this test."""
        scene = self.scene
        texts = [(ROOT / "envoy" / folder / f"{name}.yaml").read_text() for name in names]
        for old, new in {
            "namespace: istio-system": f"namespace: {scene.namespace}",
            "namespace: default": f"namespace: {scene.namespace}",
            "istio: ingressgateway": "gateway.networking.k8s.io/gateway-name: public",
            "name: eg": "name: public",
            "default/eg/http": f"{scene.namespace}/public/http",
            "envoyextensionpolicy/default/": f"envoyextensionpolicy/{scene.namespace}/",
            "registry.example.com/diana:0.2.0": f"{PLACE}/diana@{self.digest}",
            "file:///etc/diana/plugin.wasm": f"oci://{PLACE}/diana@{self.digest}",
            "0" * 64: self.digest.removeprefix("sha256:"),
        }.items():
            texts = [text.replace(old, new) for text in texts]
        scene.cluster.apply(*texts)
        scene.wait(lambda: (answer := scene.get("/share/qq", x_account_id="somebody")) and answer.refused, "the limit is in force")
        answers = [scene.get("/share/qq", x_account_id=f"of {names}") for _ in range(3)]
        self.assertEqual([it.upstream for it in answers], [True, True, False])
        self.assertTrue(scene.get("/share/qq", x_account_id="another").upstream)
        scene.cluster.run("kubectl", "delete", "-f", "-", given="\n---\n".join(texts))
        scene.wait(
            lambda: all((it := scene.get("/share/qq", x_account_id="somebody")) and it.upstream for _ in range(9)), "the limit is gone"
        )


class OnIstio(Manifests, unittest.TestCase):
    plane = Istio

    def test_envoyfilter(self):
        self.check("istio", "image")

    def test_wasmplugin(self):
        self.check("istio", "wasmplugin")


class OnEnvoyGateway(Manifests, unittest.TestCase):
    plane = EnvoyGateway

    def test_policies(self):
        self.check("envoy-gateway", "extension-policy", "patch-policy")


if __name__ == "__main__":
    unittest.main()
