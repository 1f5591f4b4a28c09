"""Envoy Gateway names Envoy's listeners after what other teams change: after the first listener of a port, in merged Gateways after the oldest
Gateway, or after the port. Limits hold all the same. `helm test` and the metrics of the alert show each listener without Diana."""

import json
import re
import unittest

import yaml
from clients import get
from laboratory import ASKED, VERSION, EnvoyGateway, Istio, Scene, Shared, planes, rule
from objects import ENVOY_GATEWAY_CLASS

V2 = ["XDSNameSchemeV2"]
HOST = "b.example.com"


def listener(name, port, host=None):
    return {"name": name, "port": port, "protocol": "HTTP", **({"hostname": host} if host else {})}


# Two of each port, one of them for a host name.
PLAIN, OTHER = listener("http", 80), listener("other", 8080)
HOSTED, OTHER_HOSTED = listener("hosted", 80, HOST), listener("other-hosted", 8080, HOST)
FOUR = [PLAIN, HOSTED, OTHER, OTHER_HOSTED]
NEW = listener("new", 80, "new.example.com")
# The ports of pods.
PORTS = {80: 10080, 8080: 8080, 8443: 8443}
CHANGES = {
    "the first listeners of both ports are removed": [HOSTED, OTHER_HOSTED],
    "they are there again, and in front": FOUR,
    "all are in another order": [OTHER_HOSTED, HOSTED, OTHER, PLAIN],
    "one is on another port": [PLAIN, HOSTED, listener("other", 8443), listener("other-hosted", 8443, HOST)],
    "one is left": [HOSTED],
    "all are there": FOUR,
}


class OnEnvoyGateway(Shared, unittest.TestCase):
    plane = EnvoyGateway

    def have_scheme(self, flags=()):
        """Lets Envoy Gateway name listeners by another scheme."""
        planes.envoy_gateway(self.scene.cluster, VERSION, flags=flags)
        self.scene.wait(lambda: all(bool(flags) == it.startswith("tcp-") for it in self.named()), "listeners have the names of the scheme")

    def named(self):
        """The names of the listeners of Gateways."""
        told = json.loads(self.scene.admin("/listeners?format=json"))["listener_statuses"]
        return {it["name"] for it in told if it["local_address"]["socket_address"]["port_value"] in PORTS.values()}

    def change(self, listeners):
        """Gives the Gateway these listeners, and waits until the proxy has them. The first one of a port names it, or the port."""
        self.scene.kubectl("patch", "gateway", "public", "--type=merge", "--patch", json.dumps({"spec": {"listeners": listeners}}))
        first = {it["port"]: f"{self.scene.namespace}/public/{it['name']}" for it in reversed(listeners)}
        self.scene.wait(lambda: self.named() in (set(first.values()), {f"tcp-{port}" for port in first}), "the proxy has the changed listeners")

    def limited(self, port):
        """Whether every worker refuses on a port of a pod."""
        return all((it := get(self.scene.address(), port, "/limited", host=HOST)) and it.refused for _ in range(ASKED))

    def use_up(self, **values):
        """Installs a limit that covers all listeners, and uses it up."""
        self.scene.helm("upgrade", "--install", config=rule(3, self.rule), values={"envoyGateway": values})
        for port in {PORTS[80], PORTS[8080]}:
            self.scene.wait(lambda port=port: self.limited(port), "the limit holds on the port")

    def check_changes(self, changes):
        for what, listeners in changes.items():
            with self.subTest(what):
                self.change(listeners)
                for port in {PORTS[it["port"]] for it in listeners}:
                    self.assertTrue(self.limited(port))
                self.assertEqual(self.without(), set())

    def without(self):
        """The listeners without Diana by the metrics that `helm test` and the alert read. Those of before are there until they have drained."""
        told = self.scene.admin("/stats/prometheus")
        has = lambda metric: set(re.findall(rf'^{metric}[^}}]*http_conn_manager_prefix="(https?-[0-9]+)"', told, re.M))  # noqa: E731
        return has("envoy_http_downstream_cx_active") - has(f'envoy_http_rbac_shadow_allowed{{.*="diana_{self.release()}_"')

    def release(self):
        return f"{self.scene.namespace.replace('-', '_')}_diana"

    def test_changes_by_others(self):
        self.change(FOUR)
        self.use_up(gateways=[{"name": "public", "listeners": ["http", "hosted", "other", "other-hosted"]}])
        self.check_changes(CHANGES)
        # The first VM has ended with its listeners, and has not taken the metrics of the second one with it.
        self.scene.helm("test")
        self.change([NEW, *FOUR])
        self.scene.wait(lambda: self.without() == {"http-10080"}, "metrics tell which port has lost it")
        self.assertFalse(self.limited(PORTS[80]))
        self.assertTrue(self.limited(PORTS[8080]))
        self.check_test_fails("has no Diana in http-10080")
        self.change([PLAIN])

    def test_changes_by_others_with_names_by_port(self):
        self.change(FOUR)
        try:
            # As values of before, which know no ports.
            self.use_up(gateways=[{"name": "public", "listeners": ["http", "other"]}])
            self.have_scheme(V2)
            self.assertTrue(self.limited(PORTS[80]) and self.limited(PORTS[8080]))
            self.use_up(gateways=[{"name": "public"}])
            self.check_changes({"a name that nobody knew is in front": [NEW, *FOUR], **CHANGES})
            self.use_up(gateways=[{"name": "public", "listeners": ["http", "other"]}])
            self.have_scheme()
            self.assertTrue(self.limited(PORTS[80]) and self.limited(PORTS[8080]))
        finally:
            self.have_scheme()
        self.change([PLAIN])

    def test_merged_gateways_of_which_the_oldest_is_deleted(self):
        self.scene = scene = Scene(Merged)
        both = [f"{scene.namespace}/{gateway}/{name}" for gateway in ("public", "younger") for name in ("http", "other")]
        try:
            for flags in ([], V2):
                self.have_scheme(flags)
                scene.kubectl("delete", "gateway", "younger", "--timeout=10m", "--ignore-not-found")
                scene.apply(OLDER)
                scene.apply(YOUNGER)
                self.use_up(gateways=[{"class": scene.namespace, "listeners": both}])
                self.assertEqual({"tcp-80", "tcp-8080"} if flags else set(both[:2]), self.named())
                scene.kubectl("delete", "gateway", "public", "--timeout=10m")
                scene.wait(lambda: flags or self.named() == set(both[2:]), "listeners have the name of the other Gateway")
                self.assertTrue(self.limited(PORTS[80]) and self.limited(PORTS[8080]))
                self.assertEqual(self.without(), set())
        finally:
            self.have_scheme()
        scene.end()
        scene.cluster.run("kubectl", "delete", "gatewayclass", scene.namespace)


class OnIstio(Shared, unittest.TestCase):
    plane = Istio

    def test_changes_by_others(self):
        scene = self.scene
        self.assertEqual(scene.admitted(5), 3)
        for listeners in ([OTHER, PLAIN], [listener("http", 8080)], [PLAIN]):
            spec = {"listeners": listeners}
            scene.kubectl("patch", "gateway", "public", "--type=merge", "--patch", json.dumps({"spec": spec}))
            for port in (it["port"] for it in listeners):
                scene.wait(lambda port=port: (it := scene.get("/limited", port=port)) and it.refused, "limits hold on each port")
        scene.helm("test")

    def test_a_listener_that_an_operator_leaves_out(self):
        """Proxies tell all their listeners if they are asked to."""
        scene = self.scene
        matcher = json.dumps({"proxyStatsMatcher": {"inclusionSuffixes": ["downstream_cx_active"]}})
        metadata = {"metadata": {"annotations": {"proxy.istio.io/config": matcher}}}
        own = yaml.safe_load(scene.kubectl("get", "configmap", "own", "-o", "jsonpath={.data.deployment}"))
        own["spec"]["template"].update(metadata)
        scene.kubectl("patch", "configmap", "own", "--type=merge", "--patch", json.dumps({"data": {"deployment": yaml.safe_dump(own)}}))
        scene.wait(lambda: all("downstream_cx_active" in str(it["metadata"]["annotations"]) for it in scene.ready()), "the proxy tells more")
        spec = {"listeners": [PLAIN, OTHER]}
        scene.kubectl("patch", "gateway", "public", "--type=merge", "--patch", json.dumps({"spec": spec}))
        scene.have(self.rule)
        scene.wait(lambda: (it := scene.get("/limited", port=8080)) and (it.upstream or it.refused), "the other listener serves")
        scene.helm("test")
        self.assertIn("in outbound_0.0.0.0_80 outbound_0.0.0.0_8080\n", scene.kubectl("logs", "diana-test"))
        change = {"op": "add", "path": "/spec/configPatches/1/match/listener/portNumber", "value": 80}
        scene.kubectl("patch", "envoyfilter", "diana", "--type=json", "--patch", json.dumps([change]))
        self.check_test_fails("has no Diana in outbound_0.0.0.0_8080")
        scene.helm("upgrade", "--force", config=rule(3, self.rule))
        scene.helm("test")


class Merged(EnvoyGateway):
    GATEWAY = ENVOY_GATEWAY_CLASS.replace("MERGED", "true")

    @staticmethod
    def place(namespace):
        return "envoy-gateway-system", f"gateway.envoyproxy.io/owning-gatewayclass={namespace}"


def gateway(name, host=None):
    metadata, spec = {"name": name, "namespace": "NAMESPACE"}, {"gatewayClassName": "NAMESPACE"}
    spec["listeners"] = [listener("http", 80, host), listener("other", 8080, host)]
    return json.dumps({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": metadata, "spec": spec})


OLDER = gateway("public")
YOUNGER = f"""
{gateway("younger", HOST)}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: younger, namespace: NAMESPACE}}
spec:
  parentRefs: [{{name: younger}}]
  rules: [{{backendRefs: [{{name: upstream, port: 8080}}]}}]
"""


if __name__ == "__main__":
    unittest.main()
