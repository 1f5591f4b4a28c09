"""What goes wrong in a cluster, and what happens then. Gateways go on serving, with the last good rules if they had any."""

import unittest

from laboratory import VERSION, EnvoyGateway, Istio, Scene, Steady, planes, rule


class Mistakes:
    plane = None

    def installed(self, *more, **options):
        scene = Scene(self.plane, **options)
        scene.helm("install", *more, config=rule(3, "good"))
        scene.have("good")
        scene.wait(lambda: len(scene.ready(**scene.companions())) == 2, "both companions are ready")
        return scene

    def test_a_typo_by_helm(self):
        scene = self.installed()
        with Steady(scene) as client:
            # Helm refuses it by the chart's schema, or the companion stops the rollout.
            scene.helm("upgrade", "--set-json=config.limits[0].rules[0].burts=5", config=rule(9, "typo"), fails=True)
            self.assertEqual(len(scene.ready(**scene.companions())), 2)
            self.assertTrue(scene.knows("good"))
            scene.restart()
            scene.have("good")
            self.assertEqual(scene.admitted(5), 3)
            scene.helm("upgrade", config=rule(4, "mended"))
            scene.have("mended")
        self.assertEqual(client.bad(), {})
        scene.end()

    def test_a_typo_by_kubectl(self):
        scene = self.installed()
        with Steady(scene) as client:
            text = '{"data": {"rules.yaml": "limits: [{Url: /limited, rules: [{name: typo, actor: all, unit: day, rpu: 5, burts: 5}]}]"}}'
            scene.kubectl("patch", "configmap", "diana-companion", "--type=merge", f"--patch={text}")
            scene.kubectl("delete", "pod", scene.ready(**scene.companions())[0]["metadata"]["name"], "--wait=false")
            scene.wait(lambda: scene.says("burts", **scene.companions()), "a companion names the mistake")
            self.assertEqual(len(scene.ready(**scene.companions())), 1)
            self.assertTrue(scene.knows("good"))
            scene.restart()
            scene.have("good")
            scene.helm("upgrade", "--force", config=rule(4, "mended"))
            scene.have("mended")
        self.assertEqual(client.bad(), {})
        scene.end()

    def test_a_companion_that_is_away_at_the_installation(self):
        scene = Scene(self.plane)
        with Steady(scene) as client:
            scene.helm("install", config=rule(3, "good"), values={"companion": {"image": "lab/nothing"}})
            scene.wait(scene.fetches, "the changed listener waits for the module")
            self.assertEqual(scene.admitted(5), 5)
            scene.helm("upgrade", config=rule(3, "good"))
            scene.have("good")
            self.assertEqual(scene.admitted(5), 3)
        self.assertEqual(client.bad(), {})
        scene.end()

    def test_a_companion_that_is_away_for_a_new_pod(self):
        scene = self.installed()
        with Steady(scene) as client:
            scene.kubectl("scale", "--replicas=0", "deployment/diana-companion")
            scene.wait(lambda: not scene.pods(**scene.companions()), "the companion is away")
            old = scene.ready()[0]
            scene.restart(ready=False)
            new = scene.wait(lambda: [it for it in scene.pods() if it["metadata"]["uid"] != old["metadata"]["uid"]], "a new pod is there")[
                0
            ]
            scene.wait(lambda: scene.fetches(new), "its listener waits for the module")
            # The rollout has stopped, and the old pod serves by its rules.
            self.assertEqual([it["metadata"]["uid"] for it in scene.ready()], [old["metadata"]["uid"]])
            self.assertEqual(scene.admitted(5), 3)
            scene.kubectl("scale", "--replicas=2", "deployment/diana-companion")
            scene.wait(lambda: scene.ready() and scene.ready()[0]["metadata"]["uid"] == new["metadata"]["uid"], "the new pod serves")
            scene.have("good")
        self.assertEqual(client.bad(), {})
        scene.end()

    def test_two_releases_on_one_gateway(self):
        scene = self.installed()
        scene.helm(
            "install",
            name="other",
            config={"limits": [{"Url": "/", "rules": [{"name": "other", "actor": "all", "unit": "day", "rpu": 200, "algo": "SW"}]}]},
            values={"filter": {"settings": {"explain": {"header": "x-other-explain", "token_env": "DIANA_TOKEN"}}}},
        )
        scene.wait(
            lambda: "other" in str(scene.get(x_other_explain="of-the-laboratory").headers.get("x-other-explain")),
            "the other release is in force",
        )
        scene.have("good")
        scene.helm("upgrade", config=rule(4, "changed"))
        scene.have("changed")
        self.assertEqual(scene.admitted(6), 4)
        scene.helm("uninstall", "--wait", "--timeout=30m")
        scene.wait(lambda: not scene.explained(), "the first release is gone")
        self.assertIn("other", str(scene.get(x_other_explain="of-the-laboratory").headers.get("x-other-explain")))
        scene.end()


class OnIstio(Mistakes, unittest.TestCase):
    plane = Istio


class OnEnvoyGateway(Mistakes, unittest.TestCase):
    plane = EnvoyGateway

    def test_a_policy_of_another_team_on_its_route(self):
        scene = self.installed()
        scene.apply(TEAM)
        scene.wait(lambda: "ext_proc" in scene.listeners(), "the team's policy is in force")
        self.assertEqual(scene.admitted(5), 3)
        scene.end()

    def test_a_listener_that_does_not_exist(self):
        scene = Scene(self.plane)
        gateways = {"gateways": [{"name": "public", "listeners": ["http", "nothing"]}]}
        with Steady(scene) as client:
            scene.helm("install", config=rule(3, "good"), values={"envoyGateway": gateways})
            policy = ("get", "envoypatchpolicy", "-o", "jsonpath={.items[0].status}")
            scene.wait(lambda: '"Programmed"' in scene.kubectl(*policy), "the patch is judged")
            self.assertIn("nothing", scene.kubectl(*policy))
            scene.helm("upgrade", config=rule(3, "good"))
            scene.have("good")
        self.assertEqual(client.bad(), {})
        scene.end()

    def test_patches_that_are_disabled(self):
        scene = Scene(self.plane)
        try:
            planes.envoy_gateway(scene.cluster, VERSION, patches=False)
            with Steady(scene) as client:
                scene.helm("install", config=rule(3, "good"))
                scene.wait(lambda: len(scene.ready(**scene.companions())) == 2, "both companions are ready")
                self.assertEqual(scene.admitted(5), 5, "nothing is limited")
                planes.envoy_gateway(scene.cluster, VERSION)
                scene.have("good")
                self.assertEqual(scene.admitted(5), 3)
            self.assertEqual(client.bad(), {})
        finally:
            planes.envoy_gateway(scene.cluster, VERSION)
        scene.end()


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
