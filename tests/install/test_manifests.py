"""The manifests of envoy/istio and envoy/envoy-gateway, converted as by their control planes: limits are enforced."""

import tempfile
import unittest
from pathlib import Path

import yaml
from control_planes import EnvoyGateway, Istio, Unknown
from gateways import centre, envoy, redis
from servers import ROOT, wait_for

ISTIO, GATEWAY = ROOT / "envoy/istio", ROOT / "envoy/envoy-gateway"
LIMIT = 5
# A sliding window of a day returns no permits during a test.
GLOBAL = f"limits: [{{Url: /, rules: [{{name: fleet, actor: all, unit: day, rpu: {LIMIT}, algo: SW, scope: global}}]}}]"
DIRECT = "namespace: shop\nredis: {cluster: diana_redis, timeout: 1s, password_env: DIANA_REDIS_PASSWORD}\n" + GLOBAL
PROXIED = "namespace: shop\nredis: {cluster: diana_redis, timeout: 1s, proxied: true}\n" + GLOBAL
REMOTE = "namespace: shop\nremote: {cluster: config_centre, path: /rules.yaml, every: 1s, timeout: 1s}\nlimits: []"


def manifests(folder, *names):
    return [yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in names]


def refusals(gateway):
    """The line of a gateway's metrics with this counter. None if it does not exist yet."""
    lines = [line for line in gateway.metrics().splitlines() if "rule" in line and "refused" in line and line[0] != "#"]
    return lines[0] if lines else None


class AsTheyStand(unittest.TestCase):
    def check(self, plane, folder, *names):
        with envoy(plane, manifests(folder, *names)) as gateway:
            statuses = [gateway.get("/share/qq", x_account_id="ada")[0] for _ in range(3)]
            self.assertEqual(statuses, [200, 200, 503])
            self.assertEqual(gateway.get("/share/qq", x_account_id="bob")[0], 200)
            return wait_for(lambda: refusals(gateway), "refusals are counted")

    def test_envoyfilter_with_the_module_in_a_file(self):
        self.check(Istio, ISTIO, "envoyfilter")

    def test_envoyfilter_with_an_image(self):
        self.check(Istio, ISTIO, "image")

    def test_wasmplugin(self):
        self.check(Istio, ISTIO, "wasmplugin")

    def test_istio_with_labels(self):
        line = self.check(Istio, ISTIO, "image", "bootstrap")
        self.assertEqual(line, 'diana_rule_refused{namespace="diana",rule="share-qq"} 1')

    def test_envoy_gateway(self):
        line = self.check(EnvoyGateway, GATEWAY, "extension-policy", "patch-policy", "proxy")
        self.assertEqual(line, 'diana_rule_refused{namespace="diana",rule="share-qq"} 1')


class Fleets(unittest.TestCase):
    """Two gateways that share limits in one Redis."""

    def check(self, plane, folder, names, document, host_env=False):
        def start(port):
            return envoy(plane, manifests(folder, *names), {"redis.": port}, document, host_env)

        with redis() as port, start(port) as first, start(port) as second:
            statuses = [gateway.get("/")[0] for _ in range(LIMIT) for gateway in (first, second)]
            admitted = sum(self.allowed(gateway) for gateway in (first, second))
            self.assertEqual(set(statuses[-2:]), {503}, statuses)
            self.assertEqual(admitted, LIMIT, statuses)

    def allowed(self, gateway):
        """The number of requests that the rule admitted, after all are counted."""
        wait_for(lambda: refusals(gateway), "refusals are counted")
        lines = [line for line in gateway.metrics().splitlines() if "rule" in line and "allowed" in line and line[0] != "#"]
        return sum(int(line.split()[-1]) for line in lines)

    def test_istio_with_an_envoyfilter(self):
        self.check(Istio, ISTIO, ["image", "redis", "bootstrap"], DIRECT, host_env=True)

    def test_istio_with_a_wasmplugin(self):
        self.check(Istio, ISTIO, ["wasmplugin", "redis"], DIRECT, host_env=True)

    def test_istio_over_envoys_proxy_of_redis(self):
        self.check(Istio, ISTIO, ["envoyfilter", "redis-proxied"], PROXIED)

    def test_envoy_gateway(self):
        self.check(EnvoyGateway, GATEWAY, ["extension-policy", "patch-policy", "proxy"], DIRECT, host_env=True)

    def test_envoy_gateway_over_envoys_proxy_of_redis(self):
        self.check(EnvoyGateway, GATEWAY, ["extension-policy", "proxy-proxied"], PROXIED)


class RemoteRules(unittest.TestCase):
    def check(self, plane, folder, *names):
        with tempfile.TemporaryDirectory() as files, centre(files) as port:
            (Path(files) / "rules.yaml").write_text("limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 0}]}]")
            with envoy(plane, manifests(folder, *names), {"config-centre": port}, REMOTE) as gateway:
                wait_for(lambda: gateway.get("/")[0] == 503, "rules of the centre are in force")

    def test_istio(self):
        self.check(Istio, ISTIO, "image", "remote")

    def test_envoy_gateway(self):
        self.check(EnvoyGateway, GATEWAY, "extension-policy", "proxy")


class Refused(unittest.TestCase):
    def test_what_the_control_planes_would_not_take(self):
        plugin, policy = manifests(ISTIO, "wasmplugin"), manifests(GATEWAY, "extension-policy")
        plugin[0]["spec"].update(url="oci://registry.example.com/diana:1", sha256="latest")
        with self.assertRaises(Unknown):
            Istio(1, 2, "m").apply(*plugin)
        policy[0]["spec"]["wasm"][0]["code"]["image"]["sha256"] = "latest"
        with self.assertRaises(Unknown):
            EnvoyGateway(1, 2, "m").apply(*policy)
        with self.assertRaises(Unknown):
            # A patch of a filter that does not exist.
            EnvoyGateway(1, 2, "m").apply(*manifests(GATEWAY, "patch-policy"))


if __name__ == "__main__":
    unittest.main()
