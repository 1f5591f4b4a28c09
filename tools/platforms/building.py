"""Builds a cluster's programs and two control planes from pinned Go modules, once, into target/tools."""

import os
import re
import shutil
from pathlib import Path

import envoy
import needs
from console import TARGET, die, output, run, say

MODULES = Path(__file__).parent / "modules"
TOOLS = TARGET / "tools"
# The newest control planes and the oldest ones, with the line of Envoy that each ships.
VERSIONS = {
    "newest": {"envoy-gateway": ("envoy-gateway", "1.39.3"), "istio": ("istio", "1.39.3")},
    "oldest": {"envoy-gateway": ("envoy-gateway-oldest", envoy.OLDEST), "istio": ("istio-oldest", envoy.OLDEST)},
}
# What each kind of module needs beside its programs: folders of its source, by their names here.
FOLDERS = {
    "github.com/envoyproxy/gateway": {"charts/gateway-helm": "chart"},
    "istio.io/istio": {"manifests/charts": "charts", "tools/packaging/common": "packaging"},
}
# Programs say their versions to each other: Helm asks the API server, an EnvoyFilter the proxy.
KUBERNETES, ISTIO = "k8s.io/component-base/version", "istio.io/istio/pkg/version.buildVersion"
# `helm template` asks no API server.
HELM = "helm.sh/helm/v3/pkg/chartutil"
STAMPS = {
    "kubernetes": [f"{KUBERNETES}.gitVersion=v1.36.3", f"{KUBERNETES}.gitMajor=1", f"{KUBERNETES}.gitMinor=36"],
    "helm3": [f"{HELM}.k8sVersionMajor=1", f"{HELM}.k8sVersionMinor=36"],
    "istio": [f"{ISTIO}=1.31.0"],
    "istio-oldest": [f"{ISTIO}=1.30.0"],
}


def check_go():
    """Go from 1.21 on fetches the version that the modules need, unless it may not."""
    needed = re.search(r"^go ([0-9.]+)$", (MODULES / "istio/go.mod").read_text(), re.M)[1]
    remedy = f"install Go {needed} or later from https://go.dev/dl"
    if not shutil.which("go"):
        die(f"`go` is missing, which builds the control planes; {remedy}")
    found = output(["env", "-C", MODULES / "istio", "go", "env", "GOVERSION"])
    if numbers(found) < numbers(needed):
        die(f"`go` is of version {found.removeprefix('go')}, too old to build the control planes; {remedy}")


def numbers(version):
    return [int(number) for number in re.findall(r"\d+", version)]


def programs(name):
    """The folder with the programs of a module. Its `go.mod` names them as tools."""
    source, folder = MODULES / name, TOOLS / name
    stamps = STAMPS.get(name, [])
    needed = "\n".join([(source / "go.mod").read_text(), *stamps])

    def install():
        # A build that was killed leaves its work there.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        flags = " ".join(["-s -w", *(f"-X {stamp}" for stamp in stamps)])
        # Linking needs some gigabytes, which a small /tmp has not.
        variables = {**os.environ, "GOTMPDIR": str(folder)}
        run(["go", "-C", source, "build", "-p", "2", "-ldflags", flags, "-o", f"{folder}/", "tool"], env=variables)
        for module, wanted in FOLDERS.items():
            if re.search(rf"^\s*{re.escape(module)} v", needed, re.M):
                found = Path(output(["go", "-C", source, "list", "-m", "-f", "{{.Dir}}", module]))
                for inner, called in wanted.items():
                    shutil.copytree(found / inner, folder / called, copy_function=shutil.copyfile)

    return needs.once(folder, needed, install)


def all_programs(versions):
    """Builds everything for these versions: one module after the other, so that two processors suffice."""
    common = ["etcd", "kubernetes", "helm3", "helm4", "crane"]
    for name in [*common, *(module for version in versions for module, _ in VERSIONS[version].values())]:
        programs(name)
    for line in {line for version in versions for _, line in VERSIONS[version].values()}:
        envoy.path(line)
    say("everything is built")
