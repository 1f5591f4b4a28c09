"""Diana beside other features of a gateway: listeners of every kind, tokens, CORS, health checks, and settings of a class."""

import base64
import hashlib
import hmac
import json
import unittest

from clients import Http3, secure
from laboratory import VERSION, Authority, EnvoyGateway, Istio, Scene, Shared, merged, planes, rule, steady
from objects import (
    ENVOY_GATEWAY_CLASS,
    GATEWAY_SECURITY,
    HOSTS,
    HTTP3,
    ISTIO_SECURITY,
    ISTIO_TWO_GATEWAYS,
    KEY,
    LISTENER_SET,
    TLS_LISTENERS,
    UPSTREAM,
)

ORIGIN = "https://shop.example.com"
LATER = {"name": "later", "port": 8081, "protocol": "HTTP"}


def bearer():
    """The value of `authorization` with a token of `lab`."""
    head, claims = (base64.urlsafe_b64encode(json.dumps(it).encode()).rstrip(b"=") for it in ({"alg": "HS256"}, {"iss": "lab", "sub": "me"}))
    signature = base64.urlsafe_b64encode(hmac.digest(KEY, head + b"." + claims, hashlib.sha256)).rstrip(b"=")
    return f"Bearer {b'.'.join((head, claims, signature)).decode()}"


def add_listeners(scene, listeners):
    """The Gateway has these listeners beside its first one."""
    spec = {"listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}, *listeners]}
    scene.kubectl("patch", "gateway", "public", "--type=merge", "--patch", json.dumps({"spec": spec}))


class Beside(Shared):
    security = policies = unauthenticated = None

    def test_tokens_cors_and_health_checks(self):
        scene = self.scene
        scene.apply(self.security)
        scene.wait(lambda: (it := scene.get("/")) and it.status == self.unauthenticated, "tokens are demanded")
        # That is in a route below Envoy Gateway, and this in a listener.
        scene.wait(lambda: (it := self.health()) and it.status == 200, "health checks are answered")
        token, preflight = {"authorization": bearer()}, {"method": "OPTIONS", "origin": ORIGIN, "access_control_request_method": "GET"}

        def unlimited():
            self.assertEqual([scene.get("/limited").status for _ in range(5)], [self.unauthenticated] * 5)
            self.assertEqual([scene.get("/limited", **preflight).status for _ in range(5)], [200] * 5)
            self.assertEqual([self.health().status for _ in range(5)], [200] * 5)

        unlimited()
        self.assertEqual(scene.admitted(5, **token), 3, "nothing of it was counted")
        unlimited()
        refusal = scene.get("/limited", origin=ORIGIN, **token)
        self.assertTrue(refusal.refused)
        self.assertEqual(refusal.headers.get("access-control-allow-origin"), ORIGIN)
        scene.kubectl("delete", self.policies, "team")
        scene.apply(UPSTREAM.replace("LABELS", "{}"))
        scene.wait(lambda: (it := scene.get("/")) and it.upstream, "no tokens are demanded")

    def test_a_listener_that_is_added_later(self):
        scene = self.scene
        with self.steady():
            add_listeners(scene, [LATER])
            self.check_later(8081, "later")
        add_listeners(scene, [])

    def test_a_listener_of_a_listener_set(self):
        scene = self.scene
        with self.steady():
            allowed = {"spec": {"allowedListeners": {"namespaces": {"from": "Same"}}}}
            scene.kubectl("patch", "gateway", "public", "--type=merge", "--patch", json.dumps(allowed))
            scene.apply(LISTENER_SET)
            self.check_later(8082, "NAMESPACE/public/NAMESPACE/more/extra")
            scene.kubectl("delete", "listenerset,httproute", "more")

    def check_later(self, port, name):
        """Limits hold on a listener that is there since a moment ago."""
        scene = self.scene
        later = lambda: scene.get("/limited", port=port)  # noqa: E731
        scene.wait(lambda: (it := later()) and (it.upstream or it.refused), "the new listener serves")
        self.cover(scene, port, name)
        scene.wait(lambda: (it := later()) and it.refused, "limits hold on the new listener")
        self.assertEqual(scene.admitted(2), 0)

    def cover(self, scene, port, name):
        """Every listener has the filter."""

    def test_listeners_with_tls(self):
        scene = self.scene
        scene.lay_certificate(Authority().issue(*HOSTS))
        add_listeners(scene, TLS_LISTENERS)
        self.with_tls(scene)
        answers = [lambda host=host: secure(scene.address(), self.tls_port, host, "/limited") for host in HOSTS]
        answers += self.more_answers(scene)
        for answer in answers:
            scene.wait(answer, "the listener serves")
        name = "of-every-listener"
        scene.helm("upgrade", config=rule(len(answers) + 1, name), values=self.tls_values)
        scene.have(name)
        for answer in answers:
            scene.wait(lambda: (it := answer()) and it.refused, "limits hold")
        self.assertEqual(scene.admitted(2), 0, "all listeners count together")
        add_listeners(scene, [])
        self.without_tls(scene)

    def with_tls(self, scene):
        pass

    def without_tls(self, scene):
        pass

    def more_answers(self, scene):
        return []


class OnIstio(Beside, unittest.TestCase):
    plane, tls_port, tls_values = Istio, 443, {}
    security, policies, unauthenticated = ISTIO_SECURITY, "requestauthentication,authorizationpolicy", 403

    def health(self):
        """Istio's is a port of its own."""
        return self.scene.get("/healthz/ready", port=15021)

    def test_a_sidecar(self):
        scene = Scene(Sidecar)
        with steady(self, scene):
            name = scene.install()
            self.assertEqual(scene.admitted(5), 3)
        # The service itself restarts, and may end before its sidecar.
        scene.restart()
        scene.have(name)
        self.assertEqual(scene.admitted(5), 3)
        scene.end()

    def test_strict_mtls(self):
        scene = self.scene
        with self.steady():
            scene.apply(STRICT)
            scene.restart()
            scene.have(self.rule)
            self.assertEqual(scene.admitted(5), 3)

    def test_gateways_of_two_revisions_of_istiod(self):
        """One release covers both, and a gateway moves from one to the other."""
        planes.istiod(self.scene.cluster, VERSION, "canary")
        scene = Scene(TwoRevisions, replicas=2)

        def of(pod):
            """Its Gateway, and the revision of istiod that serves it."""
            metadata = pod["metadata"]
            return metadata["labels"]["gateway.networking.k8s.io/gateway-name"], metadata["annotations"]["istio.io/rev"]

        def are(*gateways):
            return sorted(map(of, scene.pods())) == sorted(map(of, scene.ready())) == sorted(gateways)

        def limited(name):
            for at in (0, 1):
                scene.have(name, at=at)
                self.assertEqual(scene.admitted(5, at=at), 3)

        self.assertTrue(are(("public", "default"), ("other", "canary")))
        # istiod 1.30 takes the listeners from the pods of a gateway as soon as its label names another revision.
        answers = "public-istio" if VERSION == "newest" else "other-istio"
        address = scene.kubectl("get", "service", answers, "-o", "jsonpath={.spec.clusterIP}")
        with steady(self, scene, (address, Istio.PORT)):
            scene.helm("install", config=rule(3, "first"))
            limited("first")
            scene.helm("upgrade", config=rule(3, "second"))
            limited("second")
            scene.kubectl("label", "gateway", "public", "istio.io/rev=canary")
            scene.wait(lambda: are(("public", "canary"), ("other", "canary")), "the gateway has moved")
            for at, pod in enumerate(scene.ready()):
                scene.have("second", at=at)
                self.assertEqual(scene.admitted(5, at=at), 3 if of(pod)[0] == "public" else 0, "only new pods begin from zero")
            scene.helm("upgrade", config=rule(3, "third"))
            limited("third")
        scene.end()

    def test_two_revisions_of_istiod(self):
        """The second one has a gateway whose proxies are too old, until they are upgraded, too."""
        planes.istiod(self.scene.cluster, VERSION, "canary")
        scene = Scene(TooOld)
        with steady(self, scene):
            scene.helm("install", "--wait", "--timeout=10m", config=rule(3))
            # Clusters and listeners arrive together, also those that were applied before.
            add_listeners(scene, [LATER])
            scene.wait(lambda: (it := scene.get(port=8081)) and it.upstream, "a later listener serves")
            self.assertFalse(f"diana_{scene.namespace}" in scene.configuration())
            self.assertEqual(scene.admitted(5), 5)
            scene.apply(Istio.GATEWAY.replace("REPLICAS", "1"))
            scene.have("all")
            self.assertEqual(scene.admitted(5), 3)
        scene.end()


class OnEnvoyGateway(Beside, unittest.TestCase):
    plane, tls_port = EnvoyGateway, 10443
    security, policies, unauthenticated = GATEWAY_SECURITY, "securitypolicy,clienttrafficpolicy", 401
    tls_values = {"envoyGateway": {"gateways": [{"name": "public", "listeners": ["http", "a"]}]}}

    def health(self):
        return self.scene.get("/limited/healthz")

    def cover(self, scene, port, name):
        self.assertEqual([scene.get("/limited", port=port).upstream for _ in range(5)], [True] * 5, "the new listener has no filter yet")
        self.assertEqual(scene.admitted(5), 3)
        gateways = {"gateways": [{"name": "public", "listeners": ["http", name]}]}
        scene.helm("upgrade", config=rule(3, self.rule), values={"envoyGateway": gateways})

    def with_tls(self, scene):
        scene.apply(HTTP3)

    def without_tls(self, scene):
        # A Gateway has one policy of this kind, and a later one is in conflict.
        scene.kubectl("delete", "clienttrafficpolicy", "http3")

    def more_answers(self, scene):
        client = Http3(planes.proxy(scene.envoy()), scene.address(), self.tls_port, HOSTS[0])
        self.addCleanup(client.end)
        return [lambda: client.get("/limited")]

    def check_class(self, merged_gateways, gateways):
        class Own(EnvoyGateway):
            GATEWAY = ENVOY_GATEWAY_CLASS.replace("MERGED", merged_gateways)
            VALUES = merged(EnvoyGateway.VALUES, {"envoyGateway": {"gateways": gateways}})

            @staticmethod
            def place(namespace):
                if merged_gateways == "true":
                    return "envoy-gateway-system", f"gateway.envoyproxy.io/owning-gatewayclass={namespace}"
                return EnvoyGateway.place(namespace)

        scene = Scene(Own)
        with steady(self, scene):
            # Diana explains by a variable that the EnvoyProxy of the class sets.
            scene.install()
            self.assertEqual(scene.admitted(5), 3)
        scene.end()
        # A class stays until no Gateway has it.
        scene.cluster.run("kubectl", "delete", "gatewayclass", scene.namespace)

    def test_an_envoy_proxy_of_the_class(self):
        self.check_class("false", [{"name": "public", "listeners": ["http"]}])

    def test_merged_gateways(self):
        self.check_class("true", [{"class": "NAMESPACE", "listeners": ["NAMESPACE/public/http"]}])


class Sidecar(Istio):
    """The sidecar of the upstream as the gateway."""

    GATEWAY, LABELS, PORT = "", "{istio-injection: enabled}", 8080
    VALUES = {"controlPlane": "istio", "istio": {"context": "SIDECAR_INBOUND", "selector": {"app": "upstream"}}}

    @staticmethod
    def place(namespace):
        return namespace, "app=upstream"


class TwoRevisions(Istio):
    """Two gateways of two revisions of istiod, `public` of the default one."""

    GATEWAY = ISTIO_TWO_GATEWAYS
    VALUES = {"controlPlane": "istio", "istio": {"selector": {"fleet": "both"}}}

    @staticmethod
    def place(namespace):
        return namespace, "fleet=both"


class TooOld(Istio):
    """A gateway of another revision of istiod, whose proxies say that they are of a version that the chart leaves alone."""

    GATEWAY = Istio.GATEWAY.replace("{name: DIANA_TOKEN,", "{name: ISTIO_META_ISTIO_VERSION, value: 1.29.9}, {name: DIANA_TOKEN,")
    LABELS = "{istio.io/rev: canary}"


STRICT = """
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: NAMESPACE}
spec: {mtls: {mode: STRICT}}
"""


if __name__ == "__main__":
    unittest.main()
