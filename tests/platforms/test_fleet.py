"""Gateways of several pods, with a Redis."""

import unittest

from laboratory import REDIS, EnvoyGateway, Istio, Scene, rule


class Fleet:
    plane = None

    def check(self, proxied):
        scene = Scene(self.plane, replicas=2)
        scene.apply(REDIS)
        address = f"redis.{scene.namespace}.svc.cluster.local"
        redis = {"enabled": True, "address": address, "proxied": proxied, "settings": {"timeout": "1s"}}
        scene.helm("install", config=rule(10, scope="global"), values={"redis": redis})
        for at in (0, 1):
            scene.have("all", at=at)
        self.assertEqual(scene.admitted(8, at=0) + scene.admitted(8, at=1), 10)
        scene.end()

    def test_two_pods_share_a_global_limit(self):
        self.check(proxied=False)


class OnIstio(Fleet, unittest.TestCase):
    plane = Istio

    def test_two_pods_share_a_global_limit_over_envoys_proxy_of_redis(self):
        self.check(proxied=True)


class OnEnvoyGateway(Fleet, unittest.TestCase):
    plane = EnvoyGateway


if __name__ == "__main__":
    unittest.main()
