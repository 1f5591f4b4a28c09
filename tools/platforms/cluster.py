"""A Kubernetes without nodes but ours: etcd, the API server, and the controllers of deployments, jobs and endpoints."""

import logging
import os
import subprocess
import time
from pathlib import Path

import building
import kubelet
import logs
import network
from api import Api, Refused

TOKEN = "of-the-laboratory"
# Seconds after which something is never going to happen.
NEVER = 600
CONTROLLERS = ["deployment", "replicaset", "endpointslice", "job", "serviceaccount", "root-ca-certificate-publisher"]
CONTROLLERS += ["garbage-collector", "namespace", "disruption"]


def output_of(*words, given=None, fails=False, **options):
    """The output of a command; with `fails` its errors too, whatever its exit code."""
    done = subprocess.run([str(word) for word in words], input=given, capture_output=True, text=True, **options)
    if done.returncode != 0 and not fails:
        raise RuntimeError(f"{' '.join(done.args)}: {done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if fails else "")


class Cluster:
    """Runs until this process and its namespaces end. `folder` holds its data and logs."""

    def __init__(self, folder):
        self.folder, self.started = Path(folder), []
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        logging.basicConfig(filename=self.folder / "logs/node.log", level=logging.INFO, format="%(asctime)s %(message)s")
        logging.Formatter.converter = time.gmtime
        network.begin()
        etcd, kubernetes = building.TOOLS / "etcd/server", building.TOOLS / "kubernetes"
        self.start("etcd", etcd, f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", "--log-level=error")
        keys, key, tokens = self.folder / "keys", self.folder / "key.pem", self.folder / "tokens.csv"
        output_of("openssl", "genrsa", "-out", key, "2048")
        tokens.write_text(f"{TOKEN},admin,admin,system:masters\n")
        self.kubeconfig = self.folder / "kubeconfig"
        self.start(
            "kube-apiserver",
            kubernetes / "kube-apiserver",
            "--etcd-servers=http://127.0.0.1:2379",
            *(f"--bind-address={network.HOST}", f"--advertise-address={network.HOST}", "--secure-port=6443", f"--cert-dir={keys}"),
            *("--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}"),
            *(f"--service-account-signing-key-file={key}", f"--token-auth-file={tokens}", "--authorization-mode=RBAC"),
            *(f"--service-cluster-ip-range={network.SERVICES}", "--endpoint-reconciler-type=none", "--allow-privileged=true"),
        )
        self.api = Api(network.HOST, 6443, TOKEN)
        self.wait(self.answers, "the API server answers")
        self.write_kubeconfig()
        self.start(
            "kube-controller-manager",
            kubernetes / "kube-controller-manager",
            *(
                f"--kubeconfig={self.kubeconfig}",
                "--leader-elect=false",
                f"--controllers={','.join(f'{it}-controller' for it in CONTROLLERS)}",
            ),
            *(
                f"--service-account-private-key-file={key}",
                f"--root-ca-file={keys}/apiserver.crt",
                "--kube-api-qps=200",
                "--kube-api-burst=400",
            ),
        )
        self.wait(lambda: self.api.find("/api/v1/namespaces/default/serviceaccounts/default"), "controllers work")
        logs.serve(self.folder / "logs", keys)
        self.node = kubelet.Node(self.api, self.folder)

    def start(self, name, *words):
        with open(self.folder / f"logs/{name}.log", "ab") as log:
            self.started.append(subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, cwd=self.folder))

    def wait(self, condition, what):
        """Returns the first true result. How long it takes is no verdict: the bound is for what never happens."""
        until = time.monotonic() + NEVER
        while not (found := condition()):
            if ended := [it.args[0] for it in self.started if it.poll() is not None]:
                raise RuntimeError(f"{ended[0]} has ended")
            if time.monotonic() > until:
                raise RuntimeError(f"waited in vain until {what}")
            time.sleep(0.1)
        return found

    def answers(self):
        try:
            return self.api.get("/readyz") == b"ok"
        except (OSError, Refused):
            return False

    def write_kubeconfig(self):
        server = f"https://{network.HOST}:6443"
        self.kubeconfig.write_text(
            f"""apiVersion: v1
kind: Config
clusters: [{{name: lab, cluster: {{server: "{server}", insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: {TOKEN}}}}}]
contexts: [{{name: lab, context: {{cluster: lab, user: admin}}}}]
current-context: lab
"""
        )

    def run(self, program, *words, given=None, fails=False):
        """The output of kubectl or helm; with `fails` its errors too, whatever its exit code."""
        return output_of(*self.command(program, *words), given=given, fails=fails)

    def command(self, program, *words):
        """A command of kubectl or helm for this cluster."""
        places = {"kubectl": "kubernetes/kubectl", "helm": "helm3/helm", "helm4": "helm4/helm", "crane": "crane/crane"}
        return ["env", f"HOME={self.folder}", f"KUBECONFIG={self.kubeconfig}", building.TOOLS / places[program], *words]

    def apply(self, *manifests):
        """Applies the text of manifests, as `kubectl apply` does."""
        return self.run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", given="\n---\n".join(manifests))
