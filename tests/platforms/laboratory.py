"""The cluster of these tests, and scenes in it: a namespace with a gateway, a route, an upstream and releases of Diana's chart."""

import contextlib
import functools
import hashlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import yaml
from clients import Steady, get
from objects import ENVOY_GATEWAY, ISTIO_GATEWAY, NEWER_KEY, TOKEN, UPSTREAM

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/platforms")]

import building  # noqa: E402
import native  # noqa: E402
import planes  # noqa: E402
from cluster import Cluster, output_of  # noqa: E402
from console import CARGO_TARGET  # noqa: E402
from kubelet import NODE, Image  # noqa: E402, F401

TESTS = ROOT / "tests/platforms"
CHART = ROOT / "charts/diana"
MODULE = ROOT / "target/diana.wasm"
VERSION = os.environ.get("DIANA_PLATFORMS", "newest")
NUMBERS = itertools.count(1)
EXPLAIN = {"header": "x-diana-explain", "token_env": "DIANA_TOKEN"}
# Each connection reaches any worker of a proxy, which may have one for each processor: among this many each is reached.
ASKED = 10 * (os.cpu_count() or 1)
RELEASE = "app.kubernetes.io/instance=diana"
# A digest that no companion has.
NO_DIGEST = "f" * 64
# What `helm test` and the pods of these tests run of busybox.
APPLETS = ["sh", "wget", "nslookup", "timeout", "sha256sum", "cut", "sed", "sort", "grep", "date", "sleep"]


@functools.cache
def modules():
    """Two modules by their digests: this one, and one of a newer version, which has a key of another name."""
    newer, module = Path(os.environ["DIANA_CLUSTER"]) / "newer.wasm", MODULE.read_bytes()
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    for old, new in {version: f"{version.rpartition('.')[0]}.9", **NEWER_KEY}.items():
        assert old.encode() in module and len(old) == len(new), old
        module = module.replace(old.encode(), new.encode())
    newer.write_bytes(module)
    return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in (MODULE, newer)}


def library():
    """The SHA-256 of the dynamic module."""
    return hashlib.sha256(native.LIBRARY.read_bytes()).hexdigest()


def sha256(at=0):
    return list(modules())[at]


def stand_in(kind):
    """A program in place of the companion's."""
    path = Path(os.environ["DIANA_CLUSTER"]) / kind
    # The probe of readiness runs it, too.
    path.write_text(f'#!/bin/sh\n[ "$1" = ready ] || exec {sys.executable} {TESTS}/companions.py {kind}\n')
    path.chmod(0o755)
    return path


@functools.cache
def cluster():
    """Started by the first test."""
    made = Cluster(os.environ["DIANA_CLUSTER"])
    served = {f"/modules/{digest}.wasm": path for digest, path in modules().items()}
    first = dict(list(served.items())[:1])
    mounted = {f"/{native.versioned()}": native.LIBRARY}
    python, diana = sys.executable, {"/diana": CARGO_TARGET / "debug/diana"}
    made.node.images |= {
        "upstream": Image([python, str(TESTS / "echo.py")]),
        "grpc": Image([python, str(TESTS / "grpc_echo.py")]),
        "registry": Image([str(building.TOOLS / "crane/crane"), "registry", "serve"]),
        "redis": Image(["redis-server"]),
        "busybox": Image(["sh"], {name: "/bin/busybox" for name in APPLETS}),
        # To be mounted.
        "diana": Image([], files={"/plugin.wasm": MODULE} | mounted),
        # The companion with one module and the library, and with two modules.
        "diana-companion": Image(["/diana"], files=diana | first | mounted | {f"/modules/{library()}.so": native.LIBRARY}),
        "diana-next": Image(["/diana"], files=diana | served),
        # Servers in its place that never answer, answer late, or check nothing.
        **{kind: Image(["/diana"], files={"/diana": stand_in(kind)} | served) for kind in ("hanging", "slow", "unchecked")},
    }
    planes.gateway_api(made, VERSION)
    return made


@functools.cache
def plane(name):
    {"istio": planes.istio, "envoy-gateway": planes.envoy_gateway}[name](cluster(), VERSION)
    if name == "istio":
        # As mounted by a volume.
        cluster().node.images["proxyv2"].files["/etc/diana/plugin.wasm"] = MODULE


def rule(count, name="all", path="/limited", **more):
    """One limit for all requests of a path. A sliding window of a day returns no permits during a test."""
    return {"limits": [{"Url": path, "rules": [{"name": name, "actor": "all", "unit": "day", "rpu": count, "algo": "SW", **more}]}]}


class Istio:
    NAME, GATEWAY, LABELS, PORT, ADMIN = "istio", ISTIO_GATEWAY, "{}", 80, 15000
    VALUES = {
        "controlPlane": "istio",
        "istio": {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "public"}]},
    }

    @staticmethod
    def place(namespace):
        """The namespace of the proxies, and the labels of those of the gateway."""
        return namespace, "gateway.networking.k8s.io/gateway-name=public"


class EnvoyGateway:
    NAME, GATEWAY, LABELS, PORT, ADMIN = "envoy-gateway", ENVOY_GATEWAY, "{}", 10080, 19000
    VALUES = {"controlPlane": "envoy-gateway", "envoyGateway": {"gateways": [{"name": "public", "listeners": ["http"]}]}}

    @staticmethod
    def place(namespace):
        labels = f"gateway.envoyproxy.io/owning-gateway-namespace={namespace},gateway.envoyproxy.io/owning-gateway-name=public"
        return "envoy-gateway-system", labels


class Scene:
    """A namespace with a gateway of one control plane."""

    def __init__(self, of, replicas=1, helm="helm"):
        self.plane, self.cluster, self.program, self.replicas = of, cluster(), helm, replicas
        plane(of.NAME)
        self.namespace = f"scene-{next(NUMBERS)}"
        self.proxies, self.labels = of.place(self.namespace)
        self.apply((UPSTREAM.replace("LABELS", of.LABELS) + "---" + of.GATEWAY).replace("REPLICAS", str(replicas)))
        self.wait(lambda: len(self.ready()) == replicas, "the gateway is ready")
        self.wait(
            lambda: all((answer := get(*place)) and answer.upstream for place in ((self.address(), of.PORT), self.service())),
            "the route works",
        )

    def wait(self, condition, what):
        return self.cluster.wait(condition, f"{what} in {self.namespace}")

    def kubectl(self, *words, fails=False):
        return self.cluster.run("kubectl", "-n", self.namespace, *words, fails=fails)

    def apply(self, text):
        return self.cluster.apply(text.replace("NAMESPACE", self.namespace))

    def helm(self, verb, *words, name="diana", config=None, values=None, fails=False):
        """Runs Helm, and returns what it says."""
        chart = [CHART, "--values=-"] if verb in ("install", "upgrade", "template") else []
        given = self.values(config, values or {})
        return self.cluster.run(self.program, verb, name, *chart, "-n", self.namespace, *words, given=given, fails=fails)

    def values(self, config, more):
        """The text of the values of a release."""
        given = {"filter": {"sha256": sha256(), "env": ["DIANA_TOKEN"], "settings": {"explain": EXPLAIN}}}
        given = merged({**self.plane.VALUES, **given}, {"companion": {"image": "lab/diana-companion"}, "test": {"image": "lab/busybox"}})
        rules = {} if "rulesText" in more else {"config": config or {"limits": []}}
        return yaml.safe_dump(merged(given, {**rules, **more})).replace("NAMESPACE", self.namespace)

    def install(self, count=3, **options):
        """Installs or repairs the release, with a rule that has never counted anything. Returns its name."""
        name = f"rule-{next(NUMBERS)}"
        self.helm("upgrade", "--install", config=rule(count, name), **options)
        self.have(name)
        self.wait(lambda: len(self.ready(**self.companions())) == len(self.pods(**self.companions())) == 2, "both companions are ready")
        self.wait(lambda: len(self.ready()) == len(self.pods()) > 0, "the gateway has no other pods")
        return name

    def repair(self):
        """What the page gives for objects that kubectl changed."""
        manifest = self.cluster.run(self.program, "get", "manifest", "diana", "-n", self.namespace)
        apply = ("apply", "--server-side", "--force-conflicts", "--field-manager=helm", "-f", "-")
        self.cluster.run("kubectl", *apply, given=manifest)

    def deployments(self):
        told = self.cluster.run("kubectl", "-n", self.proxies, "get", "deployments", "-l", self.labels, "-o", "name")
        return [line.partition("/")[2] for line in told.splitlines()]

    def pods(self, labels=None, namespace=None):
        found = self.cluster.api.list(f"/api/v1/namespaces/{namespace or self.proxies}/pods?labelSelector={labels or self.labels}")
        return [it for it in found if "deletionTimestamp" not in it["metadata"]]

    def ready(self, **which):
        return [it for it in self.pods(**which) if is_ready(it)]

    def companions(self, name="diana"):
        return {"labels": f"app.kubernetes.io/instance={name},app.kubernetes.io/component=companion", "namespace": self.namespace}

    def scale_companions(self, count, *releases):
        self.kubectl("scale", f"--replicas={count}", *(f"deployment/{name}-companion" for name in releases or ("diana",)))
        if not count:
            # Until all have ended: a companion that ends still serves for some seconds.
            every = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=app.kubernetes.io/component=companion"
            self.wait(lambda: not self.cluster.api.list(every), "the companions are gone")

    def address(self, at=0):
        return self.ready()[at]["status"]["podIP"]

    def service(self):
        """The address and the port of the gateway's service."""
        spec = self.cluster.api.list(f"/api/v1/namespaces/{self.proxies}/services?labelSelector={self.labels}")[0]["spec"]
        return spec["clusterIP"], next(it["port"] for it in spec["ports"] if it["port"] in (80, 8080))

    def get(self, path="/", at=0, port=None, **more):
        """The answer of one pod of the gateway."""
        pods = self.ready()
        return get(pods[at]["status"]["podIP"], port or self.plane.PORT, path, **more) if at < len(pods) else None

    def explained(self, path="/", at=0):
        """What Diana says about each rule; empty without Diana."""
        return explanation(self.get(path, at, x_diana_explain=TOKEN))

    def envoy(self):
        """The version of the proxies."""
        return building.VERSIONS[VERSION][self.plane.NAME][1]

    def knows(self, *names, at=0):
        """Whether every worker has exactly these rules."""
        return all({it.get("rule") for it in self.explained(at=at)} == set(names) for _ in range(ASKED))

    def explain_all(self, path, **what):
        """Whether every worker says this about the first rule."""
        return all(what.items() <= (self.explained(path) or [{}])[0].items() for _ in range(ASKED))

    def have(self, *names, at=0):
        self.wait(lambda: self.knows(*names, at=at), f"the rules {names} are in force")

    def admitted(self, count, at=0, path="/limited", **headers):
        """How many of this many requests, sent in turn, reach the upstream. Each other one must be refused by Diana."""
        answers = [self.get(path, at, **headers) for _ in range(count)]
        if bad := [it for it in answers if not it or not (it.upstream or it.refused)]:
            raise AssertionError(f"neither the upstream nor Diana answered: {bad}")
        return sum(it.upstream for it in answers)

    def admin(self, path, pod=None):
        """The answer of a proxy's admin listener, which only its own pod reaches."""
        pod = (pod or self.ready()[0])["metadata"]["uid"]
        ask = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())"
        url = f"http://127.0.0.1:{self.plane.ADMIN}{path}"
        return output_of("nsenter", f"--net=/run/netns/{pod}", sys.executable, "-c", ask, url)

    def listeners(self, pod=None):
        """All active listeners of a proxy, with their times and versions."""
        found = json.loads(self.admin("/config_dump?resource=dynamic_listeners", pod))["configs"]
        return json.dumps([it.get("active_state") for it in found], sort_keys=True)

    def configuration(self):
        """Listeners and clusters of a proxy, without times and versions."""
        found = json.loads(self.admin("/config_dump"))["configs"]
        kept = [plain(it) for it in found if any(kind in it["@type"] for kind in ("Listeners", "Clusters", "Ecds"))]
        return json.dumps(kept, sort_keys=True, indent=1)

    def warms(self, pod=None):
        """Whether a listener of a proxy waits for the module: a changed one, or the first ones of a new proxy."""
        try:
            stats = self.admin("/stats?filter=wasm.remote_load|total_listeners_warming", pod)
        except (RuntimeError, IndexError):
            return False
        counts = {name: int(count) for name, count in (line.rsplit(": ", 1) for line in stats.splitlines())}
        asked, had = (counts.get(f"wasm.remote_load_{name}", 0) for name in ("cache_misses", "fetch_successes"))
        return asked > 0 and (had == 0 or counts["listener_manager.total_listeners_warming"] > 0)

    def restart(self, ready=True):
        """Replaces the pods of the gateway, as a rollout does. Returns the first new one, which may not be ready."""
        old = {it["metadata"]["uid"] for it in self.pods()}
        self.cluster.run("kubectl", "-n", self.proxies, "rollout", "restart", f"deployment/{self.deployments()[0]}")
        if ready:
            self.wait(lambda: (now := self.ready()) and not old & {it["metadata"]["uid"] for it in now}, "new pods are ready")
        return self.wait(lambda: [it for it in self.pods() if it["metadata"]["uid"] not in old], "a new pod is there")[0]

    def drop(self, drops=True):
        """Drops what gateways send to their companion, as a network policy does; the addresses of services are those of this host."""
        verb = "--insert" if drops else "--delete"
        to = ["--destination", "10.96.0.0/16", "--protocol", "tcp", "--dport", "8080"]
        subprocess.run(["iptables", verb, "INPUT", *to, "--jump", "DROP"], check=True)

    def keys_in_redis(self):
        """How many keys the Redis of this scene has; none if it is not ready."""
        for pod in self.ready(labels="app=redis", namespace=self.namespace):
            with socket.create_connection((pod["status"]["podIP"], 6379)) as redis:
                redis.sendall(b"DBSIZE\r\n")
                return int(redis.recv(100)[1:])
        return 0

    def log(self, **which):
        """The logs of pods."""
        logs = self.cluster.folder / "logs"
        return "".join(path.read_text() for pod in self.pods(**which) for path in logs.glob(f"*.{pod['metadata']['name']}.*"))

    def says(self, text, **which):
        """Whether the log of a pod contains this text."""
        return text in self.log(**which)

    def probes_say(self, *texts):
        """Whether the probes of a pod that is not ready have said all of these, by its events."""
        told = self.kubectl("get", "events", "--field-selector=reason=Unhealthy", "-o", "jsonpath={.items[*].message}")
        return all(text in told for text in texts)

    def lay_certificate(self, chain_and_key):
        """Writes a certificate and its key into the Secret `certificate`."""
        data = {"tls.crt": chain_and_key[0], "tls.key": chain_and_key[1]}
        metadata = {"name": "certificate", "namespace": self.namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "stringData": data}
        self.cluster.apply(json.dumps(secret))

    def stop(self, pod):
        """Stops the programs of a pod, which then hang."""
        for container in self.cluster.node.pods[pod["metadata"]["uid"]].containers:
            container.process.send_signal(signal.SIGSTOP)

    def end(self):
        for release in self.cluster.run("helm", "list", "-q", "-n", self.namespace).split():
            self.cluster.run("helm", "uninstall", release, "-n", self.namespace)
        # The next scene begins without its services, which Istio tells to every proxy.
        self.kubectl("delete", "namespace", self.namespace, "--timeout=10m")


class Authority:
    """A certificate authority."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(dir=os.environ["DIANA_CLUSTER"]))
        self.request("/CN=authority", "-x509", "-days", "3650", "-keyout", "ca.key", "-out", "ca.crt")
        self.text = (self.folder / "ca.crt").read_text()

    def request(self, subject, *words):
        output_of("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, *words, cwd=self.folder)

    def issue(self, *hosts, days=30):
        """A certificate for these names, and its key."""
        names = ",".join(f"DNS:{host}" for host in hosts)
        self.request("/CN=lab", "-addext", f"subjectAltName={names}", "-keyout", "key", "-out", "request")
        sign = ["-req", "-in", "request", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy"]
        output_of("openssl", "x509", *sign, "-days", days, "-out", "chain", cwd=self.folder)
        return (self.folder / "chain").read_text(), (self.folder / "key").read_text()


@contextlib.contextmanager
def movable_clocks(name):
    """Proxies that start in this block run with clocks that the given function moves ahead, by seconds."""
    folder, image = Path(os.environ["DIANA_CLUSTER"]), {"istio": "proxyv2", "envoy-gateway": "envoy"}[name]
    library, file, images = folder / "moved-clock.so", folder / "moved-clock", cluster().node.images
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", TESTS / "moved_clock.c", "-o", library], check=True)
    file.write_bytes(bytes(8))
    plane(name)
    before = images[image]
    images[image] = before._replace(variables={"LD_PRELOAD": str(library), "MOVED_CLOCK": str(file)})
    try:
        # Written in place, since the process has mapped the file.
        yield lambda seconds: os.pwrite(os.open(file, os.O_WRONLY), seconds.to_bytes(8, "little"), 0)
    finally:
        images[image] = before


class Shared:
    """Tests of one control plane that share a scene, in which each finds a good release with a rule of its own, `self.rule`. A test
    that fails may leave anything, so the next one gets another scene."""

    plane, helm, current = None, "helm", None

    def run(self, result=None):
        bad = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > bad:
            type(self).current = None
        return result

    def setUp(self):
        type(self).current = self.scene = self.current or Scene(self.plane, helm=self.helm)
        self.rule = self.scene.install()

    @classmethod
    def tearDownClass(cls):
        if cls.current:
            cls.current.end()
            cls.current = None

    def steady(self, place=None):
        return steady(self, self.scene, place)

    def check_test_fails(self, says):
        """`helm test` fails, and its pod tells why."""
        which = {"labels": f"{RELEASE},app.kubernetes.io/component=test", "namespace": self.scene.namespace}
        self.assertIn("failed", self.scene.helm("test", fails=True))
        self.assertTrue(self.scene.says(says, **which))


@contextlib.contextmanager
def steady(test, scene, place=None):
    """A client that sends requests all the time, by default to the service of the gateway: nothing but the upstream and Diana may
    answer. It begins when the service has an address of a pod, which is after the pod is ready."""
    place = place or scene.service()
    scene.wait(lambda: get(*place), "the service answers")
    with Steady(place) as client:
        yield client
    if bad := client.bad():
        test.fail("\n".join(bad))


def explanation(answer):
    """What Diana says about each rule in an answer."""
    return json.loads(answer.headers.get("x-diana-explain", "[]")) if answer else []


def merged(one, other):
    both = dict(one)
    for key, value in other.items():
        both[key] = merged(both[key], value) if isinstance(value, dict) and isinstance(both.get(key), dict) else value
    return both


def plain(it):
    """Without the fields that change at every update."""
    if isinstance(it, dict):
        return {key: plain(value) for key, value in it.items() if key not in ("last_updated", "version_info")}
    return sorted(map(plain, it), key=lambda one: json.dumps(one, sort_keys=True)) if isinstance(it, list) else it


def is_ready(pod):
    return any(it["type"] == "Ready" and it["status"] == "True" for it in pod["status"].get("conditions", []))
