"""Gateways of several pods, and Redis."""

import unittest

from laboratory import NUMBERS, TOKEN, EnvoyGateway, Istio, Scene, explanation, rule, steady
from objects import REDIS

MANY = 20


def with_redis(scene, **more):
    """Values with the Redis of a scene."""
    address = f"redis.{scene.namespace}.svc.cluster.local"
    return {"redis": {"enabled": True, "address": address, "settings": {"timeout": "1s"}, **more}}


def wait_for_one_limit(case, scene, values):
    """Waits until two pods admit the limit of a rule together, and never more."""

    def admitted():
        """How many of 16 requests both pods admit. On a slow machine calls get lost, so that Redis counts some twice, or a pod decides
        by its share: then another rule is asked."""
        name = f"fleet-{next(NUMBERS)}"
        scene.helm("upgrade", "--install", config=rule(10, name, scope="global"), values=values)
        for at in (0, 1):
            scene.have(name, at=at)
        answers = [scene.get("/limited", at, x_diana_explain=TOKEN) for at in (0, 1) for _ in range(8)]
        if {explanation(it)[0]["scope"] for it in answers} == {"global"}:
            count = sum(it.upstream for it in answers)
            case.assertLessEqual(count, 10)
            return count

    scene.wait(lambda: admitted() == 10, "both pods admit the limit together")


class Fleet:
    plane = None

    def check(self, proxied):
        scene = Scene(self.plane, replicas=2)
        scene.apply(REDIS)
        wait_for_one_limit(self, scene, with_redis(scene, proxied=proxied))
        scene.end()

    def test_two_pods_share_a_global_limit(self):
        self.check(proxied=False)

    def test_redis_its_name_and_its_password_are_missing_while_pods_start(self):
        scene = Scene(self.plane)
        values = with_redis(scene, proxied=False, passwordEnv="NOT_THERE")
        with steady(self, scene):
            scene.helm("install", config=rule(3, scope="global"), values=values)
            scene.have("all")
            scene.restart()
            scene.have("all")
            self.assertEqual(scene.admitted(5), 3, "one gateway has the whole limit")
            scene.apply(REDIS)
            scene.helm("upgrade", config=rule(3, scope="global"), values=with_redis(scene, proxied=False))
            scene.wait(lambda: scene.get("/limited") and scene.keys_in_redis(), "Redis counts")
        scene.end()

    def test_from_2_to_20_pods_during_a_rule_change(self):
        scene = Scene(self.plane, replicas=2)
        scene.helm("install", config=rule(3, "before"))
        for at in (0, 1):
            scene.have("before", at=at)
        with steady(self, scene):
            scene.apply(scene.plane.GATEWAY.replace("REPLICAS", str(MANY)))
            scene.helm("upgrade", config=rule(3, "after"))
            scene.wait(lambda: len(scene.ready()) == MANY, "all pods are ready")
            for at in range(MANY):
                scene.have("after", at=at)
                self.assertEqual(scene.admitted(5, at=at), 3)
        scene.end()


class OnIstio(Fleet, unittest.TestCase):
    plane = Istio

    def test_two_pods_share_a_global_limit_over_envoys_proxy_of_redis(self):
        self.check(proxied=True)


class OnEnvoyGateway(Fleet, unittest.TestCase):
    plane = EnvoyGateway


if __name__ == "__main__":
    unittest.main()
