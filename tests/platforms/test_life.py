"""Diana on both control planes, from the installation to the uninstallation, while a client sends requests all the time."""

import time
import unittest

from laboratory import EnvoyGateway, Istio, Scene, Steady, Stream, rule, seconds

# A replaced listener closes what is still open after 60 s below Envoy Gateway, and after 45 s below Istio.
DRAIN = 65


class Life:
    plane, helm = None, "helm"

    def test_from_the_installation_to_the_uninstallation(self):
        scene = Scene(self.plane, helm=self.helm)
        before = scene.configuration()
        with Steady(scene) as client:
            took = seconds(lambda: (scene.helm("install", config=rule(5, "first")), scene.have("first")))
            print(f"\n{self.plane.NAME}: {took:.1f} s from `helm install` to rules in force", flush=True)
            self.assertEqual(scene.admitted(8), 5)
            self.assertEqual(scene.explained("/limited")[0]["decision"], "refused")
            listeners, streams = scene.listeners(), [Stream(scene, "/sse"), Stream(scene, "/ws")]
            took = seconds(lambda: (scene.helm("upgrade", config=rule(3, "second")), scene.have("second")))
            print(f"{self.plane.NAME}: {took:.1f} s from `helm upgrade` to the new rules in force", flush=True)
            self.assertEqual(scene.admitted(8), 3)
            scene.helm("rollback", "1")
            scene.have("first")
            self.assertEqual(scene.admitted(8), 0, "usage has survived")
            scene.helm("upgrade", config={**rule(5, "first"), "disabled": True})
            scene.wait(lambda: scene.explained("/limited")[0].get("why") == "disabled", "the kill switch is in force")
            self.assertEqual(scene.admitted(8), 8)
            scene.helm("upgrade", config=rule(5, "first"))
            scene.wait(lambda: scene.explained("/limited")[0]["decision"] == "refused", "it is switched on again, and usage has survived")
            # Rules are not in the listener, so nothing drains.
            self.assertEqual(scene.listeners(), listeners)
            time.sleep(DRAIN)
            self.assertTrue(all(stream.lives() for stream in streams))
            scene.helm("uninstall", "--wait", "--timeout=30m")
            scene.wait(lambda: scene.configuration() == before, "the configuration is as before")
            self.assertEqual(scene.admitted(8), 8)
        self.assertEqual(client.bad(), {})
        scene.end()


class OnIstio(Life, unittest.TestCase):
    plane = Istio


class OnEnvoyGateway(Life, unittest.TestCase):
    plane, helm = EnvoyGateway, "helm4"


if __name__ == "__main__":
    unittest.main()
