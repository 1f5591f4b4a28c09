"""One node: runs pods as processes of this machine, each pod in a network namespace, each container in a root folder."""

import contextlib
import datetime
import http.client
import itertools
import os
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import network
from api import Refused
from console import ROOT
from network import note
from volumes import Contents, Missing, expanded, lay

NODE = "lab"
# The API server did not answer, or not as asked.
UNANSWERED = (OSError, http.client.HTTPException, Refused)
UNVERIFIED = ssl._create_unverified_context()
# A probe waits ten times as long as in the pod: everything here shares the processors of one machine.
SLOWER = 10
# Files and folders of this machine that each container sees.
SEEN = ["/usr", "/proc", "/dev", "/sys", str(ROOT), sys.base_prefix]
OF_ETC = ["passwd", "group", "nsswitch.conf", "protocols", "services", "ssl", "ld.so.cache", "ld.so.conf", "alternatives"]
SEEN += [f"/etc/{name}" for name in OF_ETC if Path("/etc", name).exists()]


class Image(NamedTuple):
    """What runs for an image: its programs by their paths in the container, its other files, its entry point, and its variables."""

    command: list
    programs: dict = {}
    files: dict = {}
    variables: dict = {}


def short(image):
    """The name of an image here: without registry, tag and digest."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0]


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Probe:
    """Asks as often as the pod says, and more often until it succeeds: tests need not wait for that. `good` is `None` until the first
    success, or until there were as many failures as the pod allows."""

    def __init__(self, kind, spec, container):
        self.kind, self.spec, self.container, self.good, self.failures, self.told = kind, spec, container, None, 0, None
        self.period, self.allowed = spec.get("periodSeconds", 10), spec.get("failureThreshold", 3)
        self.due = self.counts = time.monotonic() + spec.get("initialDelaySeconds", 0)

    def run(self):
        """Asks if it is time to; `good` may change."""
        if (began := time.monotonic()) < self.due:
            return
        answered, before = self.ask(), self.good
        now = time.monotonic()
        if answered:
            self.good, self.failures = True, 0
        elif began >= self.counts:
            self.failures, self.counts = self.failures + 1, now + self.period
            if self.failures >= self.allowed:
                self.good = False
        self.due = now + (self.period if answered else min(1, self.period))
        if self.good != before or now - began > 0.5 or (before and not answered):
            note(f"{self.container.title}: a probe {'succeeds' if answered else 'fails'} after {now - began:.2f} s: good is {self.good}")

    def ask(self):
        patience = SLOWER * self.spec.get("timeoutSeconds", 1)
        try:
            if "exec" in self.spec:
                done = self.container.execute(self.spec["exec"]["command"], patience)
                if done.returncode != 0:
                    self.tell(done.stdout)
                return done.returncode == 0
            return called(self.container, self.spec.get("httpGet"), self.spec.get("tcpSocket"), patience)
        except (OSError, http.client.HTTPException, subprocess.TimeoutExpired):
            return False

    def tell(self, output):
        """Writes what a failed command says into an event of the pod. A kubelet counts equal ones."""
        if output == self.told:
            return
        self.told, pod, since = output, self.container.pod, now()
        event = {"type": "Warning", "reason": "Unhealthy", "message": f"{self.kind.capitalize()} probe failed: {output}", "count": 1}
        event |= {"metadata": {"generateName": f"{pod.name}.", "namespace": pod.namespace}, "firstTimestamp": since, "lastTimestamp": since}
        event["involvedObject"] = {"kind": "Pod", "apiVersion": "v1", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        with contextlib.suppress(*UNANSWERED):
            pod.node.api("POST", f"/api/v1/namespaces/{pod.namespace}/events", event)


def called(container, get, tcp, patience):
    """Whether a request succeeds, or a connection."""
    address, it = container.pod.address, get or tcp
    port = container.port(it["port"])
    if not get:
        network.socket.create_connection((it.get("host", address), port), timeout=patience).close()
        return True
    secure = get.get("scheme", "HTTP") == "HTTPS"
    options = {"timeout": patience, **({"context": UNVERIFIED} if secure else {})}
    link = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(get.get("host", address), port, **options)
    with contextlib.closing(link):
        link.request("GET", get.get("path", "/"), headers={it["name"]: it["value"] for it in get.get("httpHeaders", [])})
        return 200 <= link.getresponse().status < 400


class Container:
    """A container of a pod, which starts again when it ends, if the pod says so."""

    def __init__(self, pod, spec):
        self.pod, self.spec, self.name = pod, spec, spec["name"]
        self.ready = self.started = False
        self.process = self.waits = self.code = self.thread = None
        self.restarts = 0
        self.root = pod.folder / "roots" / self.name
        self.title = f"{pod.namespace}.{pod.name}.{self.name}"
        self.log = pod.node.folder / "logs" / f"{self.title}.log"

    def port(self, given):
        return (
            given if isinstance(given, int) else next(it["containerPort"] for it in self.spec.get("ports", []) if it.get("name") == given)
        )

    def begin(self):
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()

    def live(self):
        # An init container that has ended well runs no more.
        policy = self.spec.get("restartPolicy", "OnFailure" if self in self.pod.first else self.pod.spec.get("restartPolicy", "Always"))
        while not self.pod.ending.is_set():
            try:
                self.run()
            except Missing as missing:
                self.waits = f"CreateContainerConfigError: {missing} is missing"
            except UNANSWERED as error:
                self.waits = f"CreateContainerConfigError: {error}"
            self.ready = self.started = False
            if policy == "Never" or (policy == "OnFailure" and self.code == 0):
                return
            if not self.waits:
                self.restarts += 1
            self.pod.ending.wait(1 if self.waits else min(10, self.restarts))

    def run(self):
        """Runs the program once, until it ends or a probe ends it."""
        if not (image := self.pod.node.images.get(short(self.spec["image"]))):
            self.waits = f"ImagePullBackOff: there is no image {self.spec['image']}"
            return
        variables = {**image.variables, **self.pod.contents.environment(self.spec)}
        words = self.spec.get("command", image.command if "command" not in self.spec else []) + self.spec.get("args", [])
        command = self.inside(image, [expanded(word, variables) for word in words])
        self.waits, self.code = None, None
        with open(self.log, "ab") as log:
            # Programs open it again, as /dev/stdout, whoever they are.
            self.log.chmod(0o666)
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            self.process = subprocess.Popen(
                command, env={"PATH": os.environ["PATH"], "HOME": "/tmp", **variables}, start_new_session=True, **pipes
            )
        note(f"{self.title}: starts at {self.pod.address}")
        probes = {
            kind: Probe(kind, self.spec[f"{kind}Probe"], self) for kind in ("startup", "readiness", "liveness") if f"{kind}Probe" in self.spec
        }
        while self.process.poll() is None and not self.pod.ending.wait(0.1):
            self.probe(probes)
        if self.pod.ending.is_set():
            self.before_end()
        self.end(self.pod.grace)
        self.code = self.process.returncode
        note(f"{self.title}: has ended with {self.code}")

    def probe(self, probes):
        startup, readiness, liveness = (probes.get(kind) for kind in ("startup", "readiness", "liveness"))
        if startup and not self.started:
            startup.run()
            if startup.good is False:
                self.end(self.pod.spec.get("terminationGracePeriodSeconds", 30))
        self.started = self.started or not startup or startup.good is True
        if not self.started:
            return
        if liveness:
            liveness.run()
            if liveness.good is False:
                self.end(self.pod.spec.get("terminationGracePeriodSeconds", 30))
        if readiness:
            readiness.run()
        self.ready = not readiness or readiness.good is True

    def before_end(self):
        hook = self.spec.get("lifecycle", {}).get("preStop", {})
        with contextlib.suppress(OSError, http.client.HTTPException, subprocess.TimeoutExpired):
            if "httpGet" in hook:
                called(self, hook["httpGet"], None, self.pod.grace or 1)
            elif "exec" in hook:
                self.execute(hook["exec"]["command"], self.pod.grace)
            elif "sleep" in hook:
                time.sleep(min(hook["sleep"]["seconds"], self.pod.grace))

    def end(self, grace):
        """Asks the program to end, and kills it with its children after the time that it has."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(grace)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def inside(self, image, words):
        """The command that runs these words in a fresh root folder."""
        shutil.rmtree(self.root, ignore_errors=True)
        mounts = [(path, path) for path in SEEN]
        for name in ("bin", "sbin", "lib", "lib64", "lib32"):
            if Path("/", name).is_symlink():
                self.root.mkdir(parents=True, exist_ok=True)
                (self.root / name).symlink_to(f"usr/{name}")
        for folder in ("tmp", "etc", "var/lib", "run", "root"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        # The image of Envoy Gateway has a folder in the latter that any user may write.
        for folder in ("tmp", "var/lib"):
            (self.root / folder).chmod(0o777)
        (self.root / "var/run").symlink_to("../run")
        search = " ".join(f"{prefix}{network.DOMAIN}" for prefix in (f"{self.pod.namespace}.svc.", "svc.", ""))
        (self.root / "etc/resolv.conf").write_text(f"nameserver {network.HOST}\nsearch {search}\noptions ndots:5\n")
        (self.root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{self.pod.address} {self.pod.name}\n")
        mounts += [(source, path) for path, source in image.files.items()]
        if image.programs:
            programs = self.pod.folder / "programs" / self.name
            shutil.rmtree(programs, ignore_errors=True)
            programs.mkdir(parents=True)
            mounts.append((programs, "/usr/local/bin"))
            for name, path in image.programs.items():
                (programs / name).touch()
                mounts.append((path, f"/usr/local/bin/{name}"))
        # A mount inside another one comes after it.
        for mount in sorted(self.spec.get("volumeMounts", []), key=lambda it: it["mountPath"]):
            mounts.append((self.pod.volume(mount["name"]) / mount.get("subPath", ""), mount["mountPath"]))
        lines = ["set -e"]
        for source, path in mounts:
            # `/var/run` is a link.
            target = self.root / path.lstrip("/").replace("var/run", "run", 1)
            file = Path(source).is_file()
            source, target, folder = (shlex.quote(str(it)) for it in (source, target, target.parent if file else target))
            if not path.startswith("/usr/"):
                lines.append(f"mkdir -p {folder}" + f"; touch {target}" * file)
            lines.append(f"mount --bind {source} {target}")
        # Envoys of several pods would share memory in that of this machine.
        lines.append(f"mount -t tmpfs -o mode=1777 tmpfs {self.root}/dev/shm")
        lines.append(f"exec chroot {self.user()} {self.root} {shlex.join(words)}")
        return [*self.pod.enter(), "unshare", "--mount", "sh", "-c", "\n".join(lines)]

    def user(self):
        """The option of `chroot` for the user and the group that the pod gives. A sidecar's requests are known by its user."""
        given = self.pod.spec.get("securityContext", {}) | self.spec.get("securityContext", {})
        user = given.get("runAsUser", 0)
        return f"--userspec={user}:{given.get('runAsGroup', user)}"

    def execute(self, words, patience):
        """A command that has ended inside of the running container, with its output."""
        command = ["nsenter", f"--target={self.process.pid}", "--net", "--mount", "chroot", self.root, *words]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience)

    def status(self):
        state = {"waiting": dict(zip(("reason", "message"), self.waits.split(": ", 1)))} if self.waits else {"running": {}}
        if self.code is not None and not self.thread.is_alive():
            state = {"terminated": {"exitCode": self.code, "reason": "Error" if self.code else "Completed"}}
        told = {"name": self.name, "image": self.spec["image"], "imageID": "", "restartCount": self.restarts}
        return {**told, "ready": self.ready, "started": self.started, "state": state}


class Pod:
    def __init__(self, node, it):
        self.node, self.spec = node, it["spec"]
        self.namespace, self.name, self.uid = (it["metadata"][key] for key in ("namespace", "name", "uid"))
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.folder = node.folder / "pods" / self.uid
        self.folder.mkdir(parents=True)
        self.address = next(network.ADDRESSES)
        self.contents = Contents(node.api, it, self.address)
        self.ending, self.grace, self.told = threading.Event(), 0, None
        self.began = now()
        self.first = [Container(self, spec) for spec in self.spec.get("initContainers", [])]
        self.containers = [Container(self, spec) for spec in self.spec["containers"]]
        threading.Thread(target=self.live, daemon=True).start()

    def enter(self):
        return ["nsenter", f"--net=/run/netns/{self.uid}"]

    def volume(self, name):
        return self.folder / "volumes" / name

    def lay_volumes(self):
        for it in self.spec.get("volumes", []):
            once = self.has_token(it) or "image" in it
            files = self.files(it) if not once or not self.volume(it["name"]).exists() else None
            self.volume(it["name"]).mkdir(parents=True, exist_ok=True)
            self.volume(it["name"]).chmod(0o777)
            if files is not None:
                lay(self.volume(it["name"]), files)

    def files(self, volume):
        """The files of a volume; `None` if the pod itself writes them."""
        if "image" not in volume:
            return self.contents.files(volume)
        if not (image := self.node.images.get(short(volume["image"]["reference"]))):
            raise Missing(f"image {volume['image']['reference']}")
        return {path.lstrip("/"): Path(source).read_bytes() for path, source in image.files.items()}

    @staticmethod
    def has_token(volume):
        return any("serviceAccountToken" in it for it in volume.get("projected", {}).get("sources", []))

    def live(self):
        network.add_pod(self.uid, self.address)
        waits = None
        while not self.ending.is_set():
            try:
                self.lay_volumes()
                break
            except Missing as missing:
                waits = f"ContainerCreating: {missing} is missing"
            except UNANSWERED as error:
                waits = f"ContainerCreating: {error}"
            for container in self.containers:
                container.waits = waits
            self.tell()
            self.ending.wait(0.5)
        self.begin([*self.first, *self.containers])
        for turn in itertools.count():
            if self.ending.wait(0.3):
                break
            self.tell()
            # A kubelet updates the files of Secrets and ConfigMaps once a minute; we need not wait for it.
            if turn % 5 == 4:
                with contextlib.suppress(Missing, *UNANSWERED):
                    self.lay_volumes()
        for container in [*self.containers, *self.first]:
            if container.thread:
                container.thread.join()
        network.remove_pod(self.uid)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.node.forget(self.namespace, self.name, self.uid)
        self.node.pods.pop(self.uid, None)

    def begin(self, containers):
        """Starts the init containers one after the other, then all others."""
        for container in containers:
            if self.ending.is_set():
                return
            container.begin()
            if container in self.first and container.spec.get("restartPolicy") != "Always":
                while container.thread.is_alive() and container.code != 0 and not self.ending.wait(0.1):
                    self.tell()

    def tell(self):
        """Writes the status, if it changed."""
        over = all(it.thread and not it.thread.is_alive() for it in self.containers)
        failed = over and any(it.code for it in self.containers)
        phase = "Failed" if failed else "Succeeded" if over else "Running" if any(it.process for it in self.containers) else "Pending"
        ready = not over and all(it.ready for it in self.containers)
        conditions = {"PodScheduled": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
        told = {"phase": phase, "podIP": self.address, "podIPs": [{"ip": self.address}], "hostIP": network.HOST}
        told["containerStatuses"] = [it.status() for it in self.containers]
        if (told, ready) == self.told:
            return
        self.told = (dict(told), ready)
        since = now()
        told["startTime"] = self.began
        told["conditions"] = [{"type": kind, "status": str(it), "lastTransitionTime": since} for kind, it in conditions.items()]
        with contextlib.suppress(*UNANSWERED):
            self.node.api.patch(f"{self.path}/status", {"status": told})


class Node:
    """Schedules all pods to this machine, runs them, and keeps names and addresses of services."""

    def __init__(self, api, folder):
        self.api, self.folder, self.images, self.pods = api, folder, {}, {}
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        self.names, self.services = network.Names(), network.Services()
        resources = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        self.api("POST", "/api/v1/nodes", {"kind": "Node", "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}}})
        status = {"capacity": resources, "allocatable": resources, "addresses": [{"type": "InternalIP", "address": network.HOST}]}
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "Runs", "lastTransitionTime": now()}]
        self.api.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})
        threading.Thread(target=self.live, daemon=True).start()

    def live(self):
        while True:
            try:
                self.run_pods()
                self.serve()
            except UNANSWERED as error:
                print(f"node: {error}", file=sys.stderr)
            time.sleep(0.3)

    def run_pods(self):
        found = self.api.list("/api/v1/pods")
        for it in found:
            metadata = it["metadata"]
            pod = self.pods.get(metadata["uid"])
            if not it["spec"].get("nodeName") and "deletionTimestamp" not in metadata:
                binding = {"kind": "Binding", "metadata": {"name": metadata["name"]}, "target": {"kind": "Node", "name": NODE}}
                self.api("POST", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding", binding)
            elif pod and "deletionTimestamp" in metadata and not pod.ending.is_set():
                pod.grace = metadata.get("deletionGracePeriodSeconds", 30)
                note(f"{pod.namespace}.{pod.name}: is to end within {pod.grace} s")
                pod.ending.set()
            elif not pod and it["spec"].get("nodeName") and "deletionTimestamp" in metadata:
                # It was deleted before it began.
                self.forget(metadata["namespace"], metadata["name"], metadata["uid"])
            elif not pod and it["status"].get("phase") in ("Pending", "Running") and "deletionTimestamp" not in metadata:
                self.pods[metadata["uid"]] = Pod(self, it)
        for uid in set(self.pods) - {it["metadata"]["uid"] for it in found}:
            if pod := self.pods.get(uid):
                pod.ending.set()

    def forget(self, namespace, name, uid):
        """Tells the API server that nothing of a pod runs any more."""
        with contextlib.suppress(*UNANSWERED):
            path = f"/api/v1/namespaces/{namespace}/pods/{name}"
            self.api("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    def serve(self):
        ready = {}
        for it in self.api.list("/apis/discovery.k8s.io/v1/endpointslices"):
            service = (it["metadata"]["namespace"], it["metadata"].get("labels", {}).get("kubernetes.io/service-name"))
            every = it.get("endpoints") or []
            # As kube-proxy does: without any that is ready, those that end and still serve.
            chosen = [one for one in every if one["conditions"].get("ready")] or [one for one in every if one["conditions"].get("serving")]
            for port in it.get("ports") or []:
                places = [(address, port["port"]) for one in chosen for address in one["addresses"]]
                ready.setdefault((*service, port.get("name", "")), []).extend(places)
        names, endpoints = {}, {}
        for it in self.api.list("/api/v1/services"):
            namespace, name, address = it["metadata"]["namespace"], it["metadata"]["name"], it["spec"].get("clusterIP")
            pods = {pod for port in it["spec"].get("ports", []) for pod, _ in ready.get((namespace, name, port.get("name", "")), [])}
            names[f"{name}.{namespace}.svc.{network.DOMAIN}"] = [address] if address not in (None, "None") else sorted(pods)
            if address not in (None, "None"):
                endpoints |= {
                    (address, port["port"]): ready.get((namespace, name, port.get("name", ""))) for port in it["spec"].get("ports", [])
                }
            if it["spec"].get("type") == "LoadBalancer" and not it["status"]["loadBalancer"]:
                status = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
                self.api.patch(f"/api/v1/namespaces/{namespace}/services/{name}/status", status)
        self.names.table = names
        self.services.update(endpoints)
