"""What goes wrong with rules, companions and releases. Gateways go on serving, with the last good rules if they had any."""

import json
import unittest

from laboratory import NODE, VERSION, EnvoyGateway, Istio, Shared, planes, rule
from objects import NEWER, TYPO

# A rule for each of many paths; a ConfigMap may have 1 MiB.
LARGE = "limits:\n" + "".join(f"- {{Url: /{at}, rules: [{{name: large-{at}, actor: all, unit: day, rpu: 9}}]}}\n" for at in range(12000))
OWN = "/own"


class Mistakes(Shared):
    def check_refused(self, says):
        """A rollout of the companion has stopped. Gateways keep the last good rules, new ones get them."""
        scene = self.scene
        scene.wait(lambda: scene.says(says, **scene.companions()), "a companion names the mistake")
        self.assertTrue(scene.ready(**scene.companions()))
        self.assertTrue(scene.knows(self.rule))
        scene.restart()
        scene.have(self.rule)
        self.assertEqual(scene.admitted(5), 3)

    def test_a_typo_by_helm(self):
        scene = self.scene
        with self.steady():
            told = scene.helm("upgrade", "--set-json=config.limits[0].rules[0].burts=5", config=rule(9, "typo"), fails=True)
            self.assertIn("burts", told, "the schema of the chart refuses it")
            scene.helm("upgrade", values={"rulesText": TYPO})
            scene.wait(lambda: scene.probes_say("/etc/diana/rules.yaml:1:", "burts"), "an event has the mistake and its place")
            self.check_refused("burts")
            scene.helm("rollback")
            scene.install()

    def test_rules_that_are_no_yaml(self):
        with self.steady():
            self.scene.helm("upgrade", values={"rulesText": "limits: [{"})
            self.check_refused("the rules cannot be used")

    def test_a_typo_by_kubectl(self):
        scene = self.scene
        with self.steady():
            scene.kubectl("patch", "configmap", "diana-companion", "--type=merge", "--patch", json.dumps({"data": {"rules.yaml": TYPO}}))
            scene.wait(lambda: scene.says("burts", **scene.companions()), "a companion names the mistake")
            self.assertTrue(scene.knows(self.rule), "companions serve the last good rules")
            scene.kubectl("delete", "pod", scene.ready(**scene.companions())[0]["metadata"]["name"], "--wait=false")
            scene.wait(lambda: len(scene.ready(**scene.companions())) == 1 < len(scene.pods(**scene.companions())), "a new one is not ready")
            self.check_refused("burts")
            scene.kubectl("delete", "pod", "-l", scene.companions()["labels"], "--timeout=10m")
            old, new = scene.ready()[0], scene.restart(ready=False)
            scene.wait(lambda: scene.warms(new), "a new gateway finds no companion that is ready")
            self.assertEqual([it["metadata"]["name"] for it in scene.ready()], [old["metadata"]["name"]])
            self.assertEqual((scene.knows(self.rule), scene.admitted(5)), (True, 0))
            scene.repair()
            scene.wait(lambda: len(scene.ready(**scene.companions())) == 2, "both companions are ready")
            scene.wait(lambda: [it["metadata"]["name"] for it in scene.ready()] == [new["metadata"]["name"]], "the new gateway serves")
            self.assertNotIn("burts", scene.kubectl("get", "configmap", "diana-companion", "-o", "yaml"))

    def test_rules_of_a_newer_version(self):
        scene = self.scene

        def upgrade(rules):
            newer = {"companion": {"image": "lab/unchecked"}, "rulesText": rules}
            scene.helm("upgrade", "--wait", "--timeout=10m", values=newer)

        with self.steady():
            for unknown, rules in NEWER.items():
                upgrade(rules)
                scene.wait(lambda unknown=unknown: scene.says(unknown), "the gateway names what it does not know")
                self.assertTrue(scene.knows(self.rule))
                scene.helm("rollback", "--wait", "--timeout=10m")
            self.assertEqual(scene.admitted(5), 3)
            upgrade(rules)
            scene.restart()
            scene.wait(lambda: scene.says(unknown), "so does a new gateway")
            self.assertEqual(scene.admitted(5), 5, "which has no rules")
            scene.helm("rollback", "--wait", "--timeout=10m")
            scene.have(self.rule)
            self.assertEqual(scene.admitted(5), 3)

    def test_rules_of_a_mebibyte(self):
        scene = self.scene
        # The pod itself: its service may leave it out while its workers read for longer than a probe waits.
        with self.steady((scene.address(), scene.plane.PORT)):
            large = LARGE + rule_text("large-last")
            self.assertGreater(len(large), 900_000)
            scene.helm("upgrade", "--wait", "--timeout=10m", values={"rulesText": large})
            scene.wait(lambda: (it := scene.get("/limited")) and it.refused, "the last rule is in force")
            self.assertEqual(scene.admitted(2), 0)

    def test_a_secret_that_is_missing(self):
        scene = self.scene
        with self.steady():
            scene.helm("upgrade", config=rule(3, self.rule), values={"companion": {"tls": {"secret": "missing", "ca": "missing"}}})
            scene.wait(lambda: len(scene.pods(**scene.companions())) == 3, "a new companion waits")
            self.assertEqual(len(scene.ready(**scene.companions())), 2)
            self.assertTrue(scene.knows(self.rule))

    def test_a_drain_of_the_node_with_both_companions(self):
        scene = self.scene
        old = {it["metadata"]["uid"] for it in scene.pods(**scene.companions())}
        with self.steady():
            gateway = scene.restart(ready=False)
            told = scene.kubectl("drain", NODE, f"--pod-selector={scene.companions()['labels']}", "--timeout=10m", fails=True)
            self.assertIn("would violate the pod's disruption budget", told, "one of them has to wait for the other's replacement")
            self.assertIn(f"node/{NODE} drained", told)
            scene.kubectl("uncordon", NODE)
            self.assertFalse(old & {it["metadata"]["uid"] for it in scene.pods(**scene.companions())})
            serves = lambda: [it["metadata"]["name"] for it in scene.ready()] == [gateway["metadata"]["name"]]  # noqa: E731
            scene.wait(serves, "the gateway that restarted meanwhile serves")
            scene.have(self.rule)
            self.assertEqual(scene.admitted(5), 3)

    def test_both_companions_end_at_once(self):
        """As when their only node is lost."""
        scene = self.scene
        with self.steady():
            self.assertEqual(scene.admitted(2), 2)
            scene.kubectl("delete", "pods", "-l", scene.companions()["labels"], "--force", "--grace-period=0")
            self.assertTrue(scene.knows(self.rule))
            self.assertEqual(scene.admitted(3), 1)
            scene.restart()
            scene.have(self.rule)
            self.assertEqual(scene.admitted(5), 3)

    def test_two_releases_on_one_gateway(self):
        scene = self.scene
        own = {"filter": {"settings": {"explain": {"header": "x-other-explain", "token_env": "DIANA_TOKEN"}}}}
        scene.helm("install", name="other", config=rule(2, "other", path=OWN), values=own)
        scene.wait(lambda: "other" in self.other(), "the other release is in force")
        scene.have(self.rule)
        self.assertEqual((scene.admitted(5), scene.admitted(5, path=OWN)), (3, 2))
        scene.helm("uninstall", "--wait", "--timeout=10m")
        scene.wait(lambda: not scene.explained(), "the first release is gone")
        self.assertIn("other", self.other())
        self.assertEqual(scene.admitted(5, path=OWN), 0)
        scene.helm("uninstall", "--wait", "--timeout=10m", name="other")

    def other(self):
        return str(self.scene.get("/", x_other_explain="of-the-laboratory").headers.get("x-other-explain"))

    def test_an_uninstallation_that_is_interrupted(self):
        scene = self.scene
        with self.steady():
            # What Helm removes last is still there.
            scene.kubectl("delete", "configmap,service,deployment,networkpolicy", "-l", "app.kubernetes.io/instance=diana")
            scene.wait(lambda: not scene.pods(**scene.companions()), "the companion is away")
            self.assertEqual(scene.admitted(5), 3, "limits stay")
            scene.helm("uninstall", "--wait", "--timeout=10m")
            scene.wait(lambda: not scene.explained(), "a second attempt removes the rest")
            self.assertEqual(scene.admitted(5), 5)


def rule_text(name):
    return json.dumps(rule(3, name)["limits"][0]).join(["- ", "\n"])


class OnIstio(Mistakes, unittest.TestCase):
    plane = Istio


class OnEnvoyGateway(Mistakes, unittest.TestCase):
    plane = EnvoyGateway

    def test_a_policy_of_another_team_on_its_route(self):
        scene = self.scene
        scene.apply(TEAM)
        scene.wait(lambda: "ext_proc" in scene.listeners(), "the team's policy is in force")
        self.assertEqual(scene.admitted(5), 3)
        scene.kubectl("delete", "envoyextensionpolicy", "team")

    def test_a_listener_that_does_not_exist(self):
        scene = self.scene
        with self.steady():
            gateways = {"gateways": [{"name": "public", "listeners": ["http", "nothing"]}]}
            scene.helm("upgrade", config=rule(3, self.rule), values={"envoyGateway": gateways})
            status = ("get", "envoypatchpolicy", "-o", "jsonpath={.items[0].status}")
            scene.wait(lambda: "nothing" in scene.kubectl(*status), "the status names it")
            self.assertTrue(scene.knows(self.rule))
            self.assertEqual(scene.admitted(5), 3)

    def test_patches_that_are_disabled(self):
        scene = self.scene
        try:
            with self.steady():
                planes.envoy_gateway(scene.cluster, VERSION, patches=False)
                scene.wait(lambda: not scene.explained(), "the filter is gone")
                self.assertEqual(scene.admitted(5), 5)
                planes.envoy_gateway(scene.cluster, VERSION)
                scene.have(self.rule)
                self.assertEqual(scene.admitted(5), 3)
        finally:
            planes.envoy_gateway(scene.cluster, VERSION)


TEAM = """
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyExtensionPolicy
metadata: {name: team, namespace: NAMESPACE}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: all}]
  extProc: [{failOpen: true, backendRefs: [{name: upstream, port: 8080}]}]
"""


if __name__ == "__main__":
    unittest.main()
