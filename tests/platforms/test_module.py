"""The module cannot be fetched: at the first installation, at an upgrade to another module, and by a new pod. Gateways go on serving, and
whatever waits for it goes on by itself once it is there."""

import unittest

from clients import Steady
from laboratory import NO_DIGEST, TOKEN, Authority, EnvoyGateway, Istio, Scene, merged, movable_clocks, rule, sha256, steady
from objects import NEWER

MANY = 4
NEXT = {"companion": {"image": "lab/diana-next"}, "filter": {"sha256": sha256(1)}}
DAY_AND_HOUR = 25 * 3600


class Module:
    plane = None

    def check(self, broken, breaks=lambda scene: None, mends=lambda scene: None):
        """`broken` are values; `breaks` and `mends` change more."""
        scene = Scene(self.plane)
        with steady(self, scene):
            breaks(scene)
            scene.helm("install", config=rule(3, "first"), values=broken)
            scene.wait(scene.warms, "the changed listener waits for the module")
            self.assertEqual(scene.admitted(5), 5, "nothing is limited yet")
            mends(scene)
            scene.helm("upgrade", config=rule(3, "first"))
            scene.have("first")
            self.assertEqual(scene.admitted(5), 3)
            breaks(scene)
            scene.helm("upgrade", config=rule(3, "first"), values=merged(NEXT, broken))
            scene.wait(scene.warms, "the changed listener waits for the other module")
            self.assertEqual(scene.admitted(5), 0, "the rules are in force, and usage stays")
            old, new = scene.ready()[0], scene.restart(ready=False)
            scene.wait(lambda: scene.warms(new), "the first listener of the new pod waits for the module")
            # The rollout has stopped.
            self.assertEqual([it["metadata"]["name"] for it in scene.ready()], [old["metadata"]["name"]])
            self.assertEqual(scene.admitted(5), 0)
            mends(scene)
            scene.helm("upgrade", config=rule(3, "second"), values=NEXT)
            scene.wait(lambda: [it["metadata"]["name"] for it in scene.ready()] == [new["metadata"]["name"]], "the new pod serves")
            scene.have("second")
            self.assertEqual(scene.admitted(5), 3)
        scene.end()

    def test_there_is_no_companion(self):
        self.check({"companion": {"image": "lab/nothing"}})

    def test_the_companion_hangs(self):
        self.check({"companion": {"image": "lab/hanging"}})

    def test_the_companion_has_another_module(self):
        self.check({"filter": {"sha256": NO_DIGEST}}, mends=self.check_test_fails)

    def check_test_fails(self, scene):
        """The metrics of a listener that waits are those of one that has the filter."""
        self.assertIn("failed", scene.helm("test", fails=True))
        self.assertIn("has a listener that waits", scene.kubectl("logs", "diana-test"))

    def test_a_network_policy_drops_what_gateways_ask(self):
        self.check({}, Scene.drop, lambda scene: scene.drop(False))

    def test_the_companion_is_slow(self):
        scene = Scene(self.plane)
        with steady(self, scene):
            scene.helm("install", config=rule(3, "good"), values={"companion": {"image": "lab/slow"}})
            scene.wait(scene.warms, "the changed listener waits for the module")
            self.assertEqual(scene.admitted(5), 5)
            scene.have("good")
            self.assertEqual(scene.admitted(5), 3)
        scene.end()

    def test_another_version_of_the_module_during_both_rollouts(self):
        scene = Scene(self.plane)
        first = scene.install()
        with steady(self, scene):
            scene.helm("upgrade", config=rule(3, "second"), values=NEXT)
            scene.restart()
            scene.have("second")
            self.assertEqual(scene.admitted(5), 3)
            scene.helm("rollback", "1")
            scene.restart()
            scene.have(first)
            self.assertEqual(scene.admitted(5), 3)
        scene.end()

    def test_a_newer_version_and_back(self):
        """Rules with a key that only the newer module knows. The server in place of the companion has them, too, and both modules."""
        scene = Scene(self.plane)
        first = scene.install()
        newer = {"companion": {"image": "lab/unchecked"}, "rulesText": NEWER["moon_starts"]}
        with steady(self, scene):
            self.assertEqual(scene.admitted(5), 3)
            scene.helm("upgrade", "--wait", "--timeout=10m", values=newer)
            scene.wait(lambda: scene.says("moon_starts"), "the older module names the key")
            self.assertEqual((scene.knows(first), scene.admitted(5)), (True, 0))
            scene.helm("upgrade", values=merged(newer, {"filter": NEXT["filter"]}))
            scene.have("newer")
            self.assertEqual(scene.admitted(5), 3)
            # The module goes back before the rules.
            rejected = self.rejected(scene)
            with Steady((scene.address(), scene.plane.PORT, "/limited")) as client:
                scene.helm("upgrade", values=newer)
                scene.have(first)
                scene.wait(lambda: self.rejected(scene) > rejected, "the older module refuses the rules again")
                scene.helm("rollback", "1", "--wait", "--timeout=10m")
                scene.have(first)
            self.assertEqual(set(client.seen), {"refused"}, "usage stays, and a limit was in force all the time")
            scene.restart()
            scene.have(first)
            self.assertEqual(scene.admitted(5), 3)
        scene.end()

    def rejected(self, scene):
        """How many documents the gateway has refused."""
        return sum(int(line.rpartition(": ")[2]) for line in scene.admin("/stats?filter=remote.rejected").splitlines())

    def test_all_gateways_start_at_once_while_the_companion_is_away(self):
        scene = Scene(self.plane, replicas=MANY)
        name = scene.install()
        scene.scale_companions(0)
        old = {it["metadata"]["uid"] for it in scene.pods()}
        scene.cluster.run("kubectl", "-n", scene.proxies, "delete", "pods", "-l", scene.labels)
        new = scene.wait(lambda: len(found := scene.pods()) == MANY and found, "all new pods are there")
        self.assertFalse(old & {it["metadata"]["uid"] for it in new})
        for pod in new:
            scene.wait(lambda pod=pod: scene.warms(pod), "the first listener of a new pod waits for the module")
        self.assertEqual(scene.ready(), [])
        self.while_it_is_away(scene)
        scene.scale_companions(2)
        scene.wait(lambda: len(scene.ready()) == MANY, "all pods serve")
        for at in range(MANY):
            scene.have(name, at=at)
            self.assertEqual(scene.admitted(5, at=at), 3)
        scene.end()

    def while_it_is_away(self, scene):
        """A startup probe of Envoy Gateway's proxies would end them after five minutes."""

    def test_a_day_later(self):
        """Envoy forgets code that it has not asked for in a day, if another module is configured."""
        with movable_clocks(self.plane.NAME) as move:
            scene = Scene(self.plane)
            first = scene.install()
            other = merged(NEXT, {"filter": {"settings": {"explain": {"header": "x-other-explain", "token_env": "DIANA_TOKEN"}}}})
            scene.helm("install", name="other", config=rule(3, "other", path="/other"), values=other)
            scene.wait(lambda: "other" in str(scene.get(x_other_explain=TOKEN).headers.get("x-other-explain")), "the other is in force")
            move(DAY_AND_HOUR)
            with steady(self, scene):
                scene.have(first)
                # A changed filter of one release asks for its code again, and then for that of the other.
                changed = {"filter": {"settings": {"namespace": "changed"}}}
                scene.scale_companions(0, "diana", "other-diana")
                scene.helm("upgrade", config=rule(3, first), values=merged(changed, {"companion": {"image": "lab/nothing"}}))
                scene.wait(scene.warms, "the changed listener waits for the code that was forgotten")
                self.assertEqual((scene.admitted(5), scene.admitted(5, path="/other")), (3, 3))
                scene.helm("upgrade", config=rule(3, first), values=changed)
                scene.scale_companions(2, "diana", "other-diana")
                scene.wait(lambda: scene.listeners().count("namespace: changed"), "the changed filter is in force")
                scene.have(first)
                scene.restart()
                scene.have(first)
                self.assertEqual((scene.admitted(5), scene.admitted(5, path="/other")), (3, 3))
        scene.end()

    def test_a_day_later_the_certificate_of_the_companion_has_expired(self):
        with movable_clocks(self.plane.NAME) as move:
            scene, authority = Scene(self.plane), Authority()
            host = f"diana-companion.{scene.namespace}.svc"
            scene.lay_certificate(authority.issue(host, days=1))
            name = scene.install(values={"companion": {"tls": {"secret": "certificate", "ca": authority.text}}})
            move(DAY_AND_HOUR)
            with steady(self, scene):
                scene.wait(lambda: scene.says("if it cannot connect"), "the gateway does not trust it")
                old, new = scene.ready()[0], scene.restart(ready=False)
                scene.wait(lambda: scene.warms(new), "neither does a new one")
                self.assertEqual([it["metadata"]["name"] for it in scene.ready()], [old["metadata"]["name"]])
                self.assertEqual((scene.knows(name), scene.admitted(5)), (True, 3))
                scene.lay_certificate(authority.issue(host))
                scene.wait(lambda: [it["metadata"]["name"] for it in scene.ready()] == [new["metadata"]["name"]], "the new gateway serves")
                scene.have(name)
                self.assertEqual(scene.admitted(5), 3)
        scene.end()


class OnIstio(Module, unittest.TestCase):
    plane = Istio

    def while_it_is_away(self, scene):
        restarts = lambda: [it["status"]["containerStatuses"][0]["restartCount"] for it in scene.pods()]  # noqa: E731
        scene.wait(lambda: min(restarts()) > 0, "the startup probe has ended each new pod once")


class OnEnvoyGateway(Module, unittest.TestCase):
    plane = EnvoyGateway


if __name__ == "__main__":
    unittest.main()
