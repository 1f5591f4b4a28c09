"""Limits of teams: LimitPolicy objects of two teams beside the rules of a platform, with the rights of the chart."""

import json
import threading
import time
import unittest
from pathlib import Path

from clients import get, refused_after
from laboratory import ASKED, NUMBERS, ROOT, VERSION, EnvoyGateway, Istio, Scene, library
from objects import OWN_LIMIT
from test_gitops import argo_cd
from test_names import Merged

CRDS = ROOT / "charts/diana-crds"
PAGE = ROOT / "docs/guides/policies-platform.md"
GATEWAY_API = "gateway.networking.k8s.io"
# Only namespaces with this label may have policies.
LABEL = {"policies": "allowed"}
# Two rules of the platform. Teams may replace the first one.
DEFAULT = {"name": "default", "actor": "account", "unit": "day", "rpu": 9, "algo": "SW"}
CONFIG = {"limits": [{"Url": "/defaults", "rules": [DEFAULT, {**DEFAULT, "name": "firm", "rpu": 90}]}], "response": {"status": 429}}
# A gateway without a document refuses all requests.
VALUES = {"filter": {"before": "closed"}, "policies": {"enabled": True, "namespaces": {"matchLabels": LABEL}, "rules": 5, "defaults": ["default"]}}


def limit(count, name="few", path="/", **more):
    """The entries of a policy with one rule. A sliding window of a day returns no permits during a test."""
    return [{"url": path, "rules": [{"name": name, "actor": "all", "unit": "day", "rpu": count, "algo": "SW", **more}]}]


class Team:
    """A namespace with a route of its own host name."""

    def __init__(self, scene, labels=LABEL):
        self.scene, self.number = scene, next(NUMBERS)
        self.namespace, self.host = f"team-{self.number}", f"team-{self.number}.example.com"
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}})
        grant = {"from": [{"group": GATEWAY_API, "kind": kind, "namespace": self.namespace} for kind in ("HTTPRoute", "GRPCRoute")]}
        grant["to"] = [{"group": "", "kind": "Service", "name": "upstream"}]
        metadata = {"name": self.namespace, "namespace": scene.namespace}
        self.apply({"apiVersion": f"{GATEWAY_API}/v1beta1", "kind": "ReferenceGrant", "metadata": metadata, "spec": grant})
        self.route()
        scene.wait(lambda: all((it := self.get(at=at)) and it.upstream for at in (0, 1)), f"the route of {self.namespace} works")

    def apply(self, *objects, fails=False):
        words = ("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-")
        return self.scene.cluster.run(*words, given="\n---\n".join(map(json.dumps, objects)), fails=fails)

    def route(self, name="shop", kind="HTTPRoute", hosts=None, rule=None, fails=False):
        """A route to the upstream; `rule` has more fields of its only rule."""
        spec = {"parentRefs": [{"name": "public", "namespace": self.scene.namespace}], "hostnames": hosts or [self.host]}
        spec["rules"] = [{"backendRefs": [{"name": "upstream", "namespace": self.scene.namespace, "port": 8080}], **(rule or {})}]
        metadata = {"name": name, "namespace": self.namespace}
        return self.apply({"apiVersion": f"{GATEWAY_API}/v1", "kind": kind, "metadata": metadata, "spec": spec}, fails=fails)

    def manifest(self, limits, name="limits", target="shop"):
        """A policy for a route."""
        spec = {"targetRefs": [{"group": GATEWAY_API, "kind": "HTTPRoute", "name": target}], "limits": limits}
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "limits.diana.internal/v1alpha1", "kind": "LimitPolicy", "metadata": metadata, "spec": spec}

    def policy(self, limits, name="limits", target="shop", fails=False):
        """Applies a policy. Returns the output of kubectl."""
        return self.apply(self.manifest(limits, name, target), fails=fails)

    def remove(self):
        """Deletes the policy `limits`, and waits until no worker limits the route."""
        self.kubectl("delete", "limitpolicy", "limits")
        self.scene.wait(lambda: all(self.get(at=at).upstream for at in (0, 1) for _ in range(ASKED)), f"nothing limits {self.namespace}")

    def kubectl(self, *words, fails=False):
        return self.scene.cluster.run("kubectl", "-n", self.namespace, *words, fails=fails)

    def object(self, name="limits"):
        return json.loads(self.kubectl("get", "limitpolicy", name, "-o", "json"))

    def condition(self, kind, name="limits"):
        """The condition of a policy about its present generation; empty while there is none."""
        found = self.object(name)
        conditions = found.get("status", {}).get("conditions", [])
        return next((it for it in conditions if it["type"] == kind and it.get("observedGeneration") == found["metadata"]["generation"]), {})

    def programmed(self, name="limits"):
        """Waits as a pipeline does, until the present generation is in force."""
        self.kubectl("wait", "--for=condition=Programmed", "--timeout=10m", f"limitpolicy/{name}")
        self.scene.wait(lambda: self.condition("Programmed", name).get("status") == "True", f"{self.namespace}/{name} is programmed")

    def refused(self, reason, name="limits"):
        """Waits until a policy is refused for this reason. Returns the message."""
        self.scene.wait(lambda: self.condition("Accepted", name).get("reason") == reason, f"{self.namespace}/{name} is refused: {reason}")
        condition = self.condition("Accepted", name)
        if condition["status"] != "False":
            raise AssertionError(condition)
        return condition["message"]

    def refused_or_programmed(self, name):
        """Waits until a policy has a status about its present generation."""
        kinds = (("Accepted", "False"), ("Programmed", "True"))
        self.scene.wait(lambda: any(self.condition(kind, name).get("status") == status for kind, status in kinds), f"{self.namespace}/{name} has a status")

    def get(self, path="/limited", at=0, **headers):
        return self.scene.get(path, at, host=headers.pop("host", self.host), **headers)

    def admitted(self, count, at=0, path="/limited", **headers):
        return self.scene.admitted(count, at, path, host=headers.pop("host", self.host), **headers)


class Watcher:
    """A client of a route that admits nothing. It asks the service of the gateway all the time."""

    def __init__(self, team):
        self.place, self.host, self.count, self.bad, self.over = team.scene.service(), team.host, 0, [], threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            answer = get(*self.place, "/limited", host=self.host)
            self.count += bool(answer)
            if answer and answer.upstream:
                self.bad.append(answer)

    def __enter__(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def let_teams_attach(scene):
    """Lets routes of all namespaces attach to the Gateway."""
    patch = [{"op": "add", "path": "/spec/listeners/0/allowedRoutes", "value": {"namespaces": {"from": "All"}}}]
    scene.kubectl("patch", "gateway", "public", "--type=json", "--patch", json.dumps(patch))


class Policies:
    plane = define = forge = None

    @classmethod
    def setUpClass(cls):
        cls.scene = scene = Scene(cls.plane, replicas=2)
        cls.define(scene)
        scene.cluster.run("kubectl", "wait", "--for=condition=Established", "crd/limitpolicies.limits.diana.internal")
        let_teams_attach(scene)
        cls.install()
        for at in (0, 1):
            scene.have("default", "firm", at=at)

    @classmethod
    def install(cls):
        cls.scene.helm("upgrade", "--install", "--wait", "--timeout=10m", config=CONFIG, values=VALUES)

    @classmethod
    def tearDownClass(cls):
        cls.scene.end()

    def teams(self, count, scene=None, **options):
        teams = [Team(scene or self.scene, **options) for _ in range(count)]
        for team in teams:
            self.addCleanup(self.scene.cluster.run, "kubectl", "delete", "namespace", team.namespace, "--timeout=10m")
        return teams

    def test_a_team_limits_its_own_route(self):
        scene, (one, other) = self.scene, self.teams(2)
        one.policy(limit(3))
        one.programmed()
        for at in (0, 1):
            self.assertEqual((one.admitted(5, at), other.admitted(5, at), scene.admitted(5, at)), (3, 5, 5))
        refusal = one.get()
        self.assertEqual(refusal.status, 429)
        self.assertNotIn(one.namespace, f"{refusal.headers}{refusal.body}")
        status = one.object()["status"]
        [ancestor] = status["ancestors"]
        self.assertEqual((ancestor["ancestorRef"]["name"], ancestor["ancestorRef"]["namespace"]), ("public", scene.namespace))
        for conditions in (ancestor["conditions"], status["conditions"]):
            found = {it["type"]: (it["status"], it["observedGeneration"]) for it in conditions}
            self.assertEqual({kind: found.get(kind) for kind in ("Accepted", "Programmed")}, dict.fromkeys(("Accepted", "Programmed"), ("True", 1)))
        self.assertIn("2 of 2 pods", one.condition("Programmed")["message"])
        # A change continues the usage, and no rule of another policy changes anything.
        one.policy(limit(4))
        other.policy(limit(2))
        one.programmed()
        other.programmed()
        for at in (0, 1):
            self.assertEqual((one.admitted(5, at), other.admitted(5, at), scene.admitted(5, at)), (1, 2, 5))
        self.assertRegex(one.kubectl("get", "limitpolicy"), r"limits +\[?\"?shop\"?\]? +True +Accepted +True +\d+s")
        one.remove()
        for at in (0, 1):
            self.assertEqual((one.admitted(5, at), other.admitted(2, at)), (5, 0))

    def test_a_typo_is_refused_when_it_is_applied(self):
        [team] = self.teams(1)
        self.assertIn(".spec.limits[0].rules[0].burts", team.policy(limit(3, burts=5), fails=True))
        self.assertIn(".spec.limits[0].match[0].route", team.policy([{**limit(3)[0], "match": [{"route": ["a"]}]}], fails=True))
        for wrong, says in (
            (limit("three"), "spec.limits[0].rules[0].rpu"),
            (limit(3, scope="fleet"), 'Unsupported value: "fleet"'),
            ([{"rules": limit(3)[0]["rules"]}], "spec.limits[0]"),
        ):
            self.assertIn(says, team.policy(wrong, fails=True))
        self.assertIn("not found", team.kubectl("get", "limitpolicy", "limits", fails=True))
        # As the page has it: Helm 3 drops the key.
        chart = Path(self.scene.cluster.folder, team.namespace)
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("{apiVersion: v2, name: team, version: 0.1.0}")
        (chart / "templates/policy.yaml").write_text(json.dumps(team.manifest(limit(3, burts=5))))
        for helm, says in (("helm4", "field not declared in schema"), ("helm", "unknown field")):
            self.assertIn(says, self.scene.cluster.run(helm, "upgrade", "--install", helm, chart, "-n", team.namespace, fails=True))
        self.assertNotIn("burts", json.dumps(team.object()["spec"]))

    def test_a_policy_that_becomes_wrong_keeps_its_last_good_form(self):
        [team] = self.teams(1)
        with argo_cd(PAGE, "LimitPolicy") as health:
            self.assertEqual(health({**team.manifest([]), "metadata": {"generation": 1}}), "Progressing")
            team.policy(limit(3))
            team.programmed()
            self.assertEqual(health(team.object()), "Healthy")
            # A burst belongs to another algorithm, which only the companion knows.
            team.policy(limit(1, burst=2))
            self.assertIn("spec.limits[0].rules[0].burst", team.refused("Invalid"))
            self.assertEqual(health(team.object()), "Degraded")
        self.assertEqual(team.object()["status"]["inForce"]["generation"], 1)
        for at in (0, 1):
            self.assertEqual(team.admitted(5, at), 3)
        team.policy(limit(5))
        team.programmed()
        for at in (0, 1):
            self.assertEqual(team.admitted(5, at), 2)

    def test_what_the_platform_does_not_allow(self):
        one, other = self.teams(2)
        [stranger] = self.teams(1, labels={})
        stranger.policy(limit(0))
        self.assertIn("namespace", stranger.refused("NotAllowed"))
        for wrong, says in (
            (limit(0, over={"mark": "x-over", "value": "1"}), "over"),
            (limit(0, quota={"accounts": 1000}), "quota"),
            (limit(0, scope="global"), "scope: global"),
            (limit(0, replaces=["firm"]), "allowed: default"),
            ([it for number in range(6) for it in limit(0, name=f"r{number}")], "5 rules"),
        ):
            one.policy(wrong)
            self.assertIn(says, one.refused("NotAllowed"), wrong)
        one.policy(limit(0), target="nothing")
        self.assertIn("nothing", one.refused("TargetNotFound"))
        # The route of another namespace.
        other.route(name="own")
        one.policy(limit(0), target="own")
        self.assertIn("own", one.refused("TargetNotFound"))
        one.policy(limit(1, path="/defaults", replaces=["default"], actor="account"), name="first")
        one.programmed("first")
        one.policy(limit(1, path="/defaults", replaces=["default"], actor="account"), name="second")
        self.assertIn("first", one.refused("Conflicted", "second"))
        for team in (other, stranger):
            self.assertEqual(team.admitted(3), 3)
        # The platform's rule counts on both routes, and is replaced on one of them.
        account = f"account-{next(NUMBERS)}"
        self.assertEqual(one.admitted(3, path="/defaults", x_account_id=account), 1)
        self.assertEqual(other.admitted(11, path="/defaults", x_account_id=account), 9)

    def test_no_policy_changes_a_decision_on_another_route(self):
        victim, attacker = self.teams(2)
        account = f"account-{next(NUMBERS)}"
        victim.policy(limit(3, actor="account") + limit(2, name="all", path="/all"))
        victim.programmed()
        # The same names of rules, hosts, paths and callers; and a path on the victim's host, which leads to a route of the attacker.
        attacker.route(name=f"{victim.namespace}.shop")
        attacker.route(name="beside", hosts=[victim.host], rule={"matches": [{"path": {"type": "PathPrefix", "value": "/beside"}}]})
        hosts = {"match": [{"hosts": [victim.host]}]}
        attacker.policy(limit(1, actor="account") + [{**limit(1, name="all", path="/all")[0], **hosts}])
        attacker.policy(limit(1), name="dotted", target=f"{victim.namespace}.shop")
        attacker.policy([{**limit(1)[0], **hosts}], name="beside", target="beside")
        attacker.policy([{**limit(9)[0], "except": {"hosts": [victim.host], "paths": ["/"]}}], name="exempt")
        for name in ("limits", "dotted", "beside", "exempt"):
            attacker.programmed(name)
        for at in (0, 1):
            self.assertEqual(attacker.admitted(3, at, x_account_id=account), 1)
            self.assertEqual(victim.admitted(3, at, path="/beside"), 1)
            self.assertEqual(victim.admitted(5, at, x_account_id=account), 3)
            self.assertEqual(victim.admitted(5, at, path="/all/"), 2)
            self.assertEqual(self.scene.admitted(3, at, x_account_id=account), 3)
        self.forge(victim, attacker)

    def test_a_policy_that_is_too_large_takes_nothing_from_others(self):
        one, other = self.teams(2)
        one.policy(limit(3))
        one.programmed()
        [entry] = limit(0, name="large")
        del entry["url"]
        other.policy([{**entry, "urls": [f"/{number:06}/{'long' * 20}" for number in range(9000)]}], name="large")
        other.refused_or_programmed("large")
        for at in (0, 1):
            self.assertEqual((one.admitted(5, at), other.admitted(3, at)), (3, 3))

    def test_limits_hold_while_everything_restarts(self):
        scene, (one, other) = self.scene, self.teams(2)
        one.policy(limit(0))
        one.programmed()
        companions = lambda: scene.ready(**scene.companions())  # noqa: E731
        with Watcher(one) as client:
            lost = companions()[0]["metadata"]["name"]
            scene.kubectl("delete", "pod", lost)
            scene.wait(lambda: len(now := companions()) == 2 and lost not in [it["metadata"]["name"] for it in now], "a new companion is ready")
            # Good and bad changes of the other team.
            other.policy(limit(3))
            other.programmed()
            other.policy(limit(3, burst=2))
            other.refused("Invalid")
            scene.kubectl("rollout", "restart", "deployment/diana-companion")
            scene.kubectl("rollout", "status", "deployment/diana-companion", "--timeout=10m")
            other.remove()
            scene.restart()
            scene.wait(lambda: len(scene.pods()) == 2, "the gateway has no other pods")
            one.programmed()
            other.policy(limit(3))
            other.programmed()
        self.assertEqual(client.bad, [])
        self.assertGreater(client.count, 100)
        self.assertEqual([other.admitted(5, at) for at in (0, 1)], [3, 3])

    def test_without_rights_limits_stay(self):
        scene, [team] = self.scene, self.teams(1)
        team.policy(limit(0))
        team.programmed()
        binding = scene.cluster.run("kubectl", "get", "clusterrolebinding", "-l", "app.kubernetes.io/component=companion", "-o", "name").split()
        with Watcher(team) as client:
            scene.cluster.run("kubectl", "delete", *binding)
            scene.kubectl("rollout", "restart", "deployment/diana-companion")
            which = scene.companions()
            scene.wait(lambda: len(pods := scene.pods(**which)) > 2 and len(scene.ready(**which)) == 2 and pods, "a new companion is not ready")
            scene.wait(lambda: scene.says("forbidden", **which), "its log has the reason")
            # Helm brings the rights back.
            self.install()
            scene.wait(lambda: len(scene.pods(**which)) == len(scene.ready(**which)) == 2, "both companions are ready")
            team.programmed()
        self.assertEqual(client.bad, [])

    def test_helms_test_knows_policies(self):
        [team] = self.teams(1)
        team.policy(limit(3))
        team.programmed()
        self.scene.helm("test", config=CONFIG, values=VALUES)
        self.assertIn(f"{self.scene.address()} has the document of this release", self.scene.kubectl("logs", "diana-test"))

    def test_times_until_a_limit_holds(self):
        """Prints the times, and does not judge them."""
        [team] = self.teams(1)
        took = {
            "`kubectl apply` of a LimitPolicy to the first refusal": refused_after(self.scene, lambda: team.policy(limit(0)), host=team.host),
            "there to `Programmed`": seconds(team.programmed),
        }
        team.policy(limit(10**9))
        team.programmed()
        took["a change of the LimitPolicy"] = refused_after(self.scene, lambda: team.policy(limit(0)), host=team.host)
        took["`kubectl apply` of a typo to its refusal"] = seconds(lambda: team.policy(limit(3, burts=5), fails=True))
        for what, time_taken in (took | self.own_limit()).items():
            print(f"\n{self.plane.NAME}: {time_taken:4.1f} s from {what}", flush=True)

    def own_limit(self):
        return {}


def seconds(action):
    began = time.monotonic()
    action()
    return time.monotonic() - began


class OnIstio(Policies, unittest.TestCase):
    plane = Istio

    @classmethod
    def define(cls, scene):
        """By Helm."""
        scene.cluster.run("helm", "upgrade", "--install", "diana-crds", CRDS, "-n", "default")

    def forge(self, victim, attacker):
        forged, half = f"{victim.namespace}.shop.0", f"{victim.namespace}.shop"
        for kind in ("HTTPRoute", "GRPCRoute"):
            self.assertIn("has a dot", attacker.route("forged", kind, rule={"name": forged}, fails=True))
        to = {"route": [{"destination": {"host": f"upstream.{self.scene.namespace}.svc.cluster.local"}}]}
        for route in ({"name": forged}, {"name": half, "match": [{"name": "0"}]}, {"match": [{"name": forged}]}):
            spec = {"hosts": [attacker.host], "http": [{**to, **route}]}
            metadata = {"name": "forged", "namespace": attacker.namespace}
            told = attacker.apply({"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": metadata, "spec": spec}, fails=True)
            self.assertIn("has two dots", told, route)
        # Any other name of a rule is the name of a route, too, and so are those of two kinds.
        attacker.route("named", rule={"name": "cart"})
        attacker.policy(limit(0), name="named", target="named")
        self.assertIn("remove the names", attacker.refused("NotAllowed", "named"))
        attacker.route("both")
        attacker.route("both", "GRPCRoute")
        attacker.policy(limit(0), name="both", target="both")
        self.assertIn("rename one of them", attacker.refused("NotAllowed", "both"))


class OnEnvoyGateway(Policies, unittest.TestCase):
    plane = EnvoyGateway

    def test_merged_gateways_and_the_dynamic_module(self):
        scene = Scene(Merged, replicas=2)
        let_teams_attach(scene)
        gateways = {"envoyGateway": {"gateways": [{"class": scene.namespace, "listeners": [f"{scene.namespace}/public/http"]}]}}
        wanted = {"controllerName": f"limits.diana.internal/{scene.namespace}-diana-companion"}
        for more in ({}, {"native": {"sha256": library()}}):
            with self.subTest(more):
                filter = {**VALUES["filter"], **more}
                scene.helm("upgrade", "--install", "--wait", "--timeout=10m", config=CONFIG, values={**VALUES, **gateways, "filter": filter})
                scene.wait(lambda: all(("DynamicModuleFilter" in scene.listeners(pod)) == bool(more) for pod in scene.ready()), "the gateways have the module")  # noqa: B023
                [team] = self.teams(1, scene=scene)
                team.policy(limit(3))
                team.programmed()
                for at in (0, 1):
                    self.assertEqual((team.admitted(5, at), scene.admitted(5, at)), (3, 5))
                [ancestor] = [it for it in team.object()["status"]["ancestors"] if wanted.items() <= it.items()]
                self.assertEqual(ancestor["ancestorRef"]["namespace"], scene.namespace)
                self.assertIn("in force on 2 of 2 pods", team.condition("Programmed")["message"])
        scene.end()
        scene.cluster.run("kubectl", "delete", "gatewayclass", scene.namespace)

    @classmethod
    def define(cls, scene):
        """By server-side apply, twice."""
        definition = scene.cluster.run("helm", "template", "diana-crds", CRDS)
        for _ in range(2):
            scene.cluster.run("kubectl", "apply", "--server-side", "-f", "-", given=definition)

    def forge(self, victim, attacker):
        self.assertIn("may not contain '/'", attacker.route(f"{victim.namespace}/shop", fails=True))

    def own_limit(self):
        """That of Envoy Gateway, in the same cluster."""
        if VERSION == "oldest":
            # Kubernetes 1.36 accepts no limit of Envoy Gateway 1.8: the greatest number of requests is too great for its format.
            return {}
        scene, typo = self.scene, OWN_LIMIT.replace("limit: {", "limit: {burts: 5, ")

        def apply(requests):
            scene.apply(OWN_LIMIT.replace("REQUESTS", str(requests)))

        def apply_typo():
            scene.cluster.run("kubectl", "apply", "--server-side", "-f", "-", given=typo.replace("NAMESPACE", scene.namespace).replace("REQUESTS", "1"), fails=True)

        took = {"`kubectl apply` of a BackendTrafficPolicy to the first refusal": refused_after(scene, lambda: apply(1))}
        apply(10**9)
        scene.wait(lambda: all((it := scene.get("/limited")) and it.upstream for _ in range(ASKED)), "the limit is not in force")
        took["a change of the BackendTrafficPolicy"] = refused_after(scene, lambda: apply(1))
        took["`kubectl apply` of a typo in it to its refusal"] = seconds(apply_typo)
        scene.kubectl("delete", "backendtrafficpolicy", "own")
        return took


if __name__ == "__main__":
    unittest.main()
