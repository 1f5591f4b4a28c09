"""Installs Envoy Gateway and Istio from their own charts. Their proxies run with the Envoy of their line."""

import json
from pathlib import Path

import building
import envoy
from kubelet import Image

# Replaced in the values of Envoy Gateway's chart when it is released.
RELEASED = {
    "${GatewayImage}": "docker.io/envoyproxy/gateway:lab",
    "${GatewayImagePullPolicy}": "IfNotPresent",
    "${ImageRegistry}": "docker.io/envoyproxy",
}
GATEWAY_CLASS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
"""
# A stock Envoy lacks the filters that Istio's own build has.
ISTIO = """
global: {hub: docker.io/istio, tag: lab, istioNamespace: istio-system}
autoscaleEnabled: false
telemetry: {enabled: false}
env: {PILOT_ENABLE_METADATA_EXCHANGE: "false", PILOT_ENABLE_ALPN_FILTER: "false"}
meshConfig: {enableAutoMtls: false}
"""


def proxy(line):
    """The program of an Envoy. That of the Python package is started by a script, which needs its folder."""
    path = Path(envoy.path(line))
    return next(path.parents[1].glob("lib/*/site-packages/envoy/_bin/envoy"), path)


def helm(cluster, name, chart, namespace, *words, values="{}"):
    cluster.run("helm", "upgrade", "--install", name, chart, "-n", namespace, "--create-namespace", *words, "--values=-", given=values)


def wait(cluster, namespace, deployment):
    """Waits for a rollout with the bound of what never happens."""
    cluster.run("kubectl", "-n", namespace, "rollout", "status", f"deployment/{deployment}", "--timeout=10m")


def gateway_api(cluster, version="newest"):
    """The definitions of the Gateway API, which are part of Envoy Gateway's chart."""
    folder = building.TOOLS / building.VERSIONS[version]["envoy-gateway"][0]
    cluster.apply((folder / "chart/charts/crds/crds/gatewayapi-crds.yaml").read_text())


def envoy_gateway(cluster, version="newest", patches=True, flags=()):
    """Envoy Gateway, with or without EnvoyPatchPolicies, with these runtime flags, and the class `eg`."""
    name, line = building.VERSIONS[version]["envoy-gateway"]
    folder = building.TOOLS / name
    programs = {"envoy-gateway": folder / "envoy-gateway", "envoy": proxy(line)}
    cluster.node.images |= {"gateway": Image(["envoy-gateway"], programs), "envoy": Image(["envoy"], programs)}
    text = (folder / "chart/values.tmpl.yaml").read_text()
    for given, put in RELEASED.items():
        text = text.replace(given, put)
    (folder / "chart/values.yaml").write_text(text)
    settings = {"extensionApis": {"enableEnvoyPatchPolicy": patches}, "runtimeFlags": {"enabled": list(flags)}}
    values = json.dumps({"config": {"envoyGateway": settings}})
    runs = cluster.api.find("/apis/apps/v1/namespaces/envoy-gateway-system/deployments/envoy-gateway")
    helm(cluster, "eg", folder / "chart", "envoy-gateway-system", values=values)
    if runs:
        # It reads its configuration when it starts.
        cluster.run("kubectl", "-n", "envoy-gateway-system", "rollout", "restart", "deployment/envoy-gateway")
    wait(cluster, "envoy-gateway-system", "envoy-gateway")
    cluster.apply(GATEWAY_CLASS)


def istio(cluster, version="newest"):
    """istiod, after the definitions of the Gateway API."""
    name, line = building.VERSIONS[version]["istio"]
    folder = building.TOOLS / name
    cluster.node.images["pilot"] = Image(["pilot-discovery"], {"pilot-discovery": folder / "pilot-discovery"})
    programs = {"pilot-agent": folder / "pilot-agent", "envoy": proxy(line)}
    bootstrap = {"/var/lib/istio/envoy/envoy_bootstrap_tmpl.json": folder / "packaging/envoy_bootstrap.json"}
    cluster.node.images["proxyv2"] = Image(["pilot-agent"], programs, bootstrap)
    helm(cluster, "base", folder / "charts/base", "istio-system")
    istiod(cluster, version)


def istiod(cluster, version, revision=""):
    chart = building.TOOLS / building.VERSIONS[version]["istio"][0] / "charts/istio-control/istio-discovery"
    name = f"istiod-{revision}".rstrip("-")
    helm(cluster, name, chart, "istio-system", values=f"{ISTIO}\nrevision: {revision!r}")
    wait(cluster, "istio-system", name)
