"""Diana on both control planes, from the installation to the uninstallation, while a client sends requests all the time."""

import time
import unittest

from clients import Call, Stream, refused_after
from laboratory import VERSION, EnvoyGateway, Istio, Scene, rule, steady
from objects import GRPC, OWN_LIMIT

# A replaced listener closes open connections after 60 s below Envoy Gateway, and after 45 s below Istio.
DRAIN = 65


class Life:
    plane, helm = None, "helm"

    def test_from_the_installation_to_the_uninstallation(self):
        scene = Scene(self.plane, helm=self.helm)
        scene.apply(GRPC)
        scene.wait(lambda: self.calls(scene), "the route of gRPC works")
        before = scene.configuration()
        with steady(self, scene):
            # The commands of the page, one directly after the other.
            scene.helm("install", "--wait", "--timeout=10m", config=rule(5, "first"))
            scene.have("first")
            self.assertEqual(scene.admitted(8), 5)
            self.assertEqual(scene.explained("/limited")[0]["decision"], "refused")
            listeners, streams = scene.listeners(), [Stream(scene, "/sse"), Stream(scene, "/ws"), Call(scene)]
            self.assertTrue(all(stream.lives() for stream in streams))
            scene.helm("upgrade", config=rule(3, "second"))
            scene.have("second")
            changed = time.monotonic()
            self.assertEqual(scene.admitted(8), 3)
            scene.helm("rollback", "1")
            scene.have("first")
            self.assertEqual(scene.admitted(8), 0, "usage has survived")
            scene.helm("upgrade", config={**rule(5, "first"), "disabled": True})
            scene.wait(lambda: scene.explain_all("/limited", why="disabled"), "the kill switch is in force")
            self.assertEqual(scene.admitted(8), 8)
            scene.helm("upgrade", config=rule(5, "first"))
            scene.wait(lambda: scene.explain_all("/limited", decision="refused"), "it is switched on again, and usage has survived")
            # Rules are not in the listener, so nothing drains.
            self.assertEqual(scene.listeners(), listeners)
            time.sleep(max(0, changed + DRAIN - time.monotonic()))
            self.assertTrue(all(stream.lives() for stream in streams))
            # The listeners from before have drained.
            scene.helm("test")
            self.assertIn(f"{scene.address()} has the document of this release", scene.kubectl("logs", "diana-test"))
            self.assertIn("rules: 1 first\n", scene.kubectl("logs", "diana-test"))
            # As the page says: the filter first, then the rest.
            scene.helm("upgrade", config=rule(5, "first"), values={"filter": {"disabled": True}})
            scene.wait(lambda: not scene.explained(), "the filter is gone")
            self.assertEqual(scene.admitted(8), 8)
            scene.helm("uninstall", "--wait", "--timeout=10m")
            scene.wait(lambda: scene.configuration() == before, "the configuration is as before")
            self.assertEqual(scene.admitted(8), 8)
        scene.end()

    def test_limits_hold_when_helm_test_ends(self):
        scene = Scene(self.plane, helm=self.helm)
        scene.helm("install", "--wait", "--timeout=10m", config=rule(3))
        scene.helm("test")
        self.assertEqual(scene.admitted(5), 3)
        scene.end()

    def calls(self, scene):
        """Whether there is a route for gRPC."""
        call = Call(scene)
        try:
            return call.lives()
        except call.Error:
            return False

    def test_times_until_a_limit_holds(self):
        """Prints the times, and does not judge them."""
        scene = Scene(self.plane)
        took = {"`helm install` of Diana": refused_after(scene, lambda: scene.helm("install", config=one(1)))}
        scene.helm("upgrade", config=one(10**9))
        scene.wait(lambda: (it := scene.get("/limited")) and it.upstream, "the limit is not in force")
        took["`helm upgrade`, a change of rules"] = refused_after(scene, lambda: scene.helm("upgrade", config=one(1)))
        scene.helm("uninstall", "--wait", "--timeout=10m")
        scene.wait(lambda: (it := scene.get("/limited")) and it.upstream, "nothing is limited")
        for what, seconds in (took | self.own_limit(scene)).items():
            print(f"\n{self.plane.NAME}: {seconds:4.1f} s from {what} to the first refusal", flush=True)
        scene.end()

    def own_limit(self, scene):
        return {}


def one(count):
    """A limit whose refusals have the status of Envoy Gateway's own limit."""
    return {**rule(count), "response": {"status": 429}}


class OnIstio(Life, unittest.TestCase):
    plane = Istio


class OnEnvoyGateway(Life, unittest.TestCase):
    plane, helm = EnvoyGateway, "helm4"

    def own_limit(self, scene):
        """That of Envoy Gateway."""
        if VERSION == "oldest":
            # Kubernetes 1.36 accepts no limit of Envoy Gateway 1.8: the greatest number of requests is too great for its format.
            return {}

        def apply(requests):
            scene.apply(OWN_LIMIT.replace("REQUESTS", str(requests)))

        took = {"`kubectl apply` of Envoy Gateway's own limit": refused_after(scene, lambda: apply(1))}
        apply(10**9)
        scene.wait(lambda: (it := scene.get("/limited")) and it.upstream, "the limit is not in force")
        took["`kubectl apply`, a change of it"] = refused_after(scene, lambda: apply(1))
        return took


if __name__ == "__main__":
    unittest.main()
