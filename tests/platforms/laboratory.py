"""The cluster of these tests, and scenes in it: a namespace with a gateway, a route, an upstream and releases of Diana's chart."""

import contextlib
import functools
import hashlib
import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/platforms")]

import building  # noqa: E402
import planes  # noqa: E402
from cluster import Cluster  # noqa: E402
from kubelet import Image  # noqa: E402

CHART = ROOT / "charts/diana"
MODULE = ROOT / "target/diana.wasm"
VERSION = os.environ.get("DIANA_PLATFORMS", "newest")
NUMBERS = itertools.count(1)
EXPLAIN = {"header": "x-diana-explain", "token_env": "DIANA_TOKEN"}
UPSTREAM = """
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: upstream, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: upstream}}
  template:
    metadata: {labels: {app: upstream}}
    spec:
      containers:
      - name: upstream
        image: lab/upstream
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: upstream, namespace: NAMESPACE}
spec:
  selector: {app: upstream}
  ports: [{name: http, port: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: NAMESPACE}
spec:
  parentRefs: [{name: public}]
  rules: [{backendRefs: [{name: upstream, port: 8080}], timeouts: {request: 0s}}]
"""
# A variable of the proxies, which a filter may read.
TOKEN = "of-the-laboratory"
ISTIO_GATEWAY = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: own, namespace: NAMESPACE}}
data:
  deployment: |
    spec:
      replicas: REPLICAS
      template: {{spec: {{containers: [{{name: istio-proxy, env: [{{name: DIANA_TOKEN, value: {TOKEN}}}, {{name: WASM_INSECURE_REGISTRIES, value: "*"}}]}}]}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: public, namespace: NAMESPACE}}
spec:
  gatewayClassName: istio
  infrastructure: {{parametersRef: {{group: "", kind: ConfigMap, name: own}}}}
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
"""
ENVOY_GATEWAY = f"""
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyProxy
metadata: {{name: own, namespace: NAMESPACE}}
spec:
  provider:
    type: Kubernetes
    kubernetes:
      envoyDeployment:
        replicas: REPLICAS
        container: {{env: [{{name: DIANA_TOKEN, value: {TOKEN}}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: public, namespace: NAMESPACE}}
spec:
  gatewayClassName: eg
  infrastructure: {{parametersRef: {{group: gateway.envoyproxy.io, kind: EnvoyProxy, name: own}}}}
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
"""
REDIS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: redis, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: redis}}
  template:
    metadata: {labels: {app: redis}}
    spec:
      containers:
      - name: redis
        image: lab/redis
        args: [--bind, 0.0.0.0, --protected-mode, "no", --save, "", --dir, /tmp]
        readinessProbe: {tcpSocket: {port: 6379}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: redis, namespace: NAMESPACE}
spec:
  selector: {app: redis}
  ports: [{name: redis, port: 6379}]
"""


@functools.cache
def cluster():
    """Started by the first test."""
    made = Cluster(os.environ["DIANA_CLUSTER"])
    images = made.node.images
    images["upstream"] = Image([sys.executable, str(ROOT / "tests/platforms/echo.py")])
    images["registry"] = Image([str(building.TOOLS / "crane/crane"), "registry", "serve"])
    images["redis"] = Image(["redis-server"])
    images["busybox"] = Image(["sh"])
    images["diana-companion"] = Image(["/diana"], files={"/diana": ROOT / "target/release/diana", f"/modules/{sha256()}.wasm": MODULE})
    # Its chart has the definitions of the Gateway API, which Istio needs too.
    planes.envoy_gateway(made, VERSION)
    return made


@functools.cache
def with_istio():
    planes.istio(cluster(), VERSION)


@functools.cache
def sha256():
    return hashlib.sha256(MODULE.read_bytes()).hexdigest()


def rule(count, name="all", **more):
    """One limit for all requests of a path. A sliding window of a day returns no permits during a test."""
    return {"limits": [{"Url": "/limited", "rules": [{"name": name, "actor": "all", "unit": "day", "rpu": count, "algo": "SW", **more}]}]}


class Istio:
    NAME, GATEWAY, PORT, ADMIN = "istio", ISTIO_GATEWAY, 80, 15000
    VALUES = {
        "controlPlane": "istio",
        "istio": {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "public"}]},
    }

    @staticmethod
    def place(namespace):
        """The namespace of the proxies, and the labels of those of the gateway."""
        return namespace, "gateway.networking.k8s.io/gateway-name=public"


class EnvoyGateway:
    NAME, GATEWAY, PORT, ADMIN = "envoy-gateway", ENVOY_GATEWAY, 10080, 19000
    VALUES = {"controlPlane": "envoy-gateway", "envoyGateway": {"gateways": [{"name": "public", "listeners": ["http"]}]}}

    @staticmethod
    def place(namespace):
        labels = f"gateway.envoyproxy.io/owning-gateway-namespace={namespace},gateway.envoyproxy.io/owning-gateway-name=public"
        return "envoy-gateway-system", labels


class Answer:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()

    def __repr__(self):
        return f"{self.status}{' upstream' if self.upstream else ''}"

    @property
    def upstream(self):
        return self.headers.get("x-upstream") == "here"

    @property
    def refused(self):
        """Whether Diana has refused the request."""
        return not self.upstream and self.status in (429, 503) and "retry-after" in self.headers


def ask(address, port, path="/", **headers):
    link = http.client.HTTPConnection(address, port, timeout=60)
    with contextlib.closing(link):
        link.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return Answer(link.getresponse())


def get(address, port, path="/", **headers):
    """The answer; `None` if nothing answers."""
    try:
        return ask(address, port, path, **headers)
    except (OSError, http.client.HTTPException):
        return None


class Scene:
    """A namespace with a gateway of one control plane."""

    def __init__(self, plane, replicas=1, helm="helm"):
        self.plane, self.cluster, self.program = plane, cluster(), helm
        if plane is Istio:
            with_istio()
        self.namespace = f"scene-{next(NUMBERS)}"
        self.proxies, self.labels = plane.place(self.namespace)
        self.apply((UPSTREAM + "---" + plane.GATEWAY).replace("REPLICAS", str(replicas)))
        self.wait(lambda: len(self.ready()) == replicas, "the gateway is ready")
        self.wait(
            lambda: all((answer := get(*place)) and answer.upstream for place in ((self.address(), plane.PORT), (self.service(), 80))),
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
        given = {"filter": {"sha256": sha256(), "env": ["DIANA_TOKEN"], "settings": {"explain": EXPLAIN}}}
        given = merged({**self.plane.VALUES, **given}, {"companion": {"image": "lab/diana-companion"}, "test": {"image": "lab/busybox"}})
        given = yaml.safe_dump(merged(given, {"config": config or {"limits": []}, **(values or {})}))
        chart = [CHART, "--values=-"] if verb in ("install", "upgrade") else []
        return self.cluster.run(self.program, verb, name, *chart, "-n", self.namespace, *words, given=given, fails=fails)

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

    def address(self, at=0):
        return self.ready()[at]["status"]["podIP"]

    def service(self):
        """The address of the gateway's service, at port 80."""
        return self.cluster.api.list(f"/api/v1/namespaces/{self.proxies}/services?labelSelector={self.labels}")[0]["spec"]["clusterIP"]

    def get(self, path="/", at=0, **headers):
        """The answer of one pod of the gateway."""
        pods = self.ready()
        return get(pods[at]["status"]["podIP"], self.plane.PORT, path, **headers) if at < len(pods) else None

    def explained(self, path="/", at=0):
        """What Diana says about each rule; empty without Diana."""
        answer = self.get(path, at, x_diana_explain=TOKEN)
        return json.loads(answer.headers.get("x-diana-explain", "[]")) if answer else []

    def knows(self, *names, at=0):
        """Whether every worker has exactly these rules. Each connection may reach another one."""
        return all({it["rule"] for it in self.explained(at=at)} == set(names) for _ in range(20))

    def have(self, *names, at=0):
        self.wait(lambda: self.knows(*names, at=at), f"the rules {names} are in force")

    def admitted(self, count, at=0):
        """How many of this many requests, sent in turn, reach the upstream. Each other one must be refused by Diana."""
        answers = [self.get("/limited", at) for _ in range(count)]
        if bad := [it for it in answers if not it or not (it.upstream or it.refused)]:
            raise AssertionError(f"neither the upstream nor Diana answered: {bad}")
        return sum(it.upstream for it in answers)

    def admin(self, path, pod=None):
        """The answer of a proxy's admin listener, which only its own pod reaches."""
        pod = (pod or self.ready()[0])["metadata"]["uid"]
        ask = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())"
        url = f"http://127.0.0.1:{self.plane.ADMIN}{path}"
        command = ["nsenter", f"--net=/run/netns/{pod}", sys.executable, "-c", ask, url]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def listeners(self):
        """All listeners of a proxy, with their times and versions."""
        return self.admin("/config_dump?resource=dynamic_listeners")

    def configuration(self):
        """Listeners and clusters of a proxy, without times and versions."""
        found = json.loads(self.admin("/config_dump"))["configs"]
        kept = [plain(it) for it in found if any(kind in it["@type"] for kind in ("Listeners", "Clusters", "Ecds"))]
        return json.dumps(kept, sort_keys=True, indent=1)

    def fetches(self, pod=None):
        """Whether a proxy waits for the module, with a new listener or with its first ones."""
        try:
            told = self.admin("/stats?filter=remote_load_(cache_misses|fetch_successes)", pod)
        except (subprocess.CalledProcessError, IndexError):
            return False
        counts = dict(line.rsplit(": ", 1) for line in told.splitlines())
        return counts.get("wasm.remote_load_cache_misses") == "1" and counts.get("wasm.remote_load_fetch_successes") == "0"

    def restart(self, ready=True):
        """Replaces the pods of the gateway, as a rollout does."""
        old = {it["metadata"]["uid"] for it in self.pods()}
        self.cluster.run("kubectl", "-n", self.proxies, "rollout", "restart", f"deployment/{self.deployments()[0]}")
        if ready:
            self.wait(lambda: (now := self.ready()) and not old & {it["metadata"]["uid"] for it in now}, "new pods are ready")

    def says(self, text, **which):
        """Whether the log of a pod contains this text."""
        logs = self.cluster.folder / "logs"
        return any(text in path.read_text() for pod in self.pods(**which) for path in logs.glob(f"*.{pod['metadata']['name']}.*"))

    def end(self):
        for release in self.cluster.run("helm", "list", "-q", "-n", self.namespace).split():
            self.cluster.run("helm", "uninstall", release, "-n", self.namespace)
        # The next scene begins without its services, which Istio tells to every proxy.
        self.kubectl("delete", "namespace", self.namespace, "--timeout=10m")


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


class Steady:
    """A client that sends 50 requests a second to the service of a gateway, until the block ends."""

    def __init__(self, scene):
        self.address, self.seen, self.over = scene.service(), Counter(), threading.Event()

    def run(self):
        began = time.monotonic()
        while not self.over.wait(0.02):
            try:
                answer = ask(self.address, 80)
                what = "upstream" if answer.upstream else "refused" if answer.refused else f"{answer} {answer.body}"
            except (OSError, http.client.HTTPException) as error:
                what = f"{time.monotonic() - began:.1f} s: {error!r}"
            self.seen[what] += 1

    def __enter__(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def bad(self):
        """What neither the upstream nor Diana has answered."""
        return {what: count for what, count in self.seen.items() if what not in ("upstream", "refused")}


class Stream:
    """A response that is open: server-sent events, or an upgraded connection."""

    def __init__(self, scene, path):
        self.socket, self.path = socket.create_connection((scene.address(), scene.plane.PORT), timeout=60), path
        upgrade = (
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        )
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nhost: lab\r\n{upgrade if path == '/ws' else ''}\r\n".encode())
        self.head = self.read(b"\r\n\r\n")

    def read(self, end):
        found = b""
        while end not in found:
            if not (data := self.socket.recv(4096)):
                raise AssertionError(f"{self.path} was closed after {found}")
            found += data
        return found

    def lives(self):
        """Whether something passes now."""
        if self.path == "/ws":
            self.socket.sendall(b"still here?")
            return b"still here?" in self.read(b"here?")
        with contextlib.suppress(BlockingIOError):
            self.socket.setblocking(False)
            while self.socket.recv(65536):
                pass
        self.socket.setblocking(True)
        return b"tick" in self.read(b"tick\n\n")


def seconds(action):
    began = time.monotonic()
    action()
    return time.monotonic() - began
