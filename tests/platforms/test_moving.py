"""Limits of Envoy Gateway, and the rules that `diana import` makes of them: the same answers to the same requests. Limits of a day return no
permit during a test."""

import json
import random
import subprocess
import unittest

import yaml
from clients import get
from laboratory import CARGO_TARGET, VERSION, EnvoyGateway, Shared

DIANA = CARGO_TARGET / "debug/diana"
KINDS = "backendtrafficpolicy,httproute,gateway"
# A caller with a separate count, by whose refusals the test sees that the limits apply.
PROBE = {"x_probe": "on"}
# No request is for two rules: Envoy charges one of them before the other refuses.
CALLERS = [{"x_user": "one"}, {"x_user": "two"}, {"x_tenant": "a"}, {"x_tenant": "b"}, {}]


def rule(requests, **selectors):
    """A rule of a day for requests with some headers; without a value for each of its values."""
    headers = [{"name": name.replace("_", "-"), **({"value": value} if value else {"type": "Distinct"})} for name, value in selectors.items()]
    return {**({"clientSelectors": [{"headers": headers}]} if headers else {}), "limit": {"requests": requests, "unit": "Day"}}


RULES = [rule(1, **PROBE), rule(4, x_user="one"), rule(6, x_user="two"), rule(3, x_tenant=None), rule(5)]
POLICY = {
    "apiVersion": "gateway.envoyproxy.io/v1alpha1",
    "kind": "BackendTrafficPolicy",
    "metadata": {"name": "moving", "namespace": "NAMESPACE"},
    "spec": {
        "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "all"}],
        "rateLimit": {"type": "Local", "local": {"rules": RULES}},
    },
}


def requests():
    """The headers of a hundred requests, the same in each run."""
    choose = random.Random(64)
    return [choose.choice(CALLERS) for _ in range(100)]


@unittest.skipIf(VERSION == "oldest", "Kubernetes 1.36 accepts no limit of Envoy Gateway 1.8: the greatest number of requests is too great for its format")
class OnEnvoyGateway(Shared, unittest.TestCase):
    plane = EnvoyGateway

    def answers(self):
        """The statuses of all requests, in turn."""
        address = self.scene.address()
        return [get(address, self.plane.PORT, **headers).status for headers in requests()]

    def refuses(self):
        return self.scene.get(**PROBE).status == 429

    def test_a_policy_and_its_rules_give_the_same_answers(self):
        self.scene.apply(json.dumps(POLICY))
        self.scene.wait(self.refuses, "the policy is in force")
        exported = self.scene.kubectl("get", KINDS, "-o", "yaml")
        before = self.answers()
        self.scene.kubectl("delete", "backendtrafficpolicy", "moving")
        self.scene.wait(lambda: not self.refuses(), "the policy is gone")
        imported = subprocess.run([DIANA, "import", "-", "--format", "json"], input=exported, capture_output=True, text=True, check=False)
        result = json.loads(imported.stdout)
        self.assertEqual((imported.returncode, result["gaps"], result["inert"]), (0, [], []))
        self.scene.helm("upgrade", "--install", config=yaml.safe_load(result["document"]))
        self.scene.wait(self.refuses, "the rules are in force")
        self.assertEqual(before, self.answers())
        # Both refuse some, and admit as many as the limits do.
        self.assertIn(429, before)
        self.assertIn(200, before)


if __name__ == "__main__":
    unittest.main()
