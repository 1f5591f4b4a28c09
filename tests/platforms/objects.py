"""The objects of scenes."""

import base64
import json

# A variable of the proxies, which a filter may read.
TOKEN = "of-the-laboratory"


def server(name, port, serves=None, service=None, pod=None, annotations=None, **container):
    """A Deployment with one container, which is ready while its port is open, and its Service. `serves` are more fields of that port."""
    metadata, labels = {"name": name, "namespace": "NAMESPACE", "labels": {"app": name}}, {"app": name}
    container = {"name": name, "image": f"lab/{name}", "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1}, **container}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": {"containers": [container], **(pod or {})}}
    spec = {"selector": labels, "ports": [{"name": "http", "port": port, **(serves or {})}], **(service or {})}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    deployment["spec"] = {"selector": {"matchLabels": labels}, "template": template}
    return "\n---\n".join(map(json.dumps, (deployment, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})))


# Its sidecar, if it has one, has the variable.
SIDECAR = {"proxy.istio.io/config": json.dumps({"proxyMetadata": {"DIANA_TOKEN": TOKEN}})}
UPSTREAM = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: NAMESPACE, labels: LABELS}}
---
{server("upstream", 8080, annotations=SIDECAR)}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: all, namespace: NAMESPACE}}
spec:
  parentRefs: [{{name: public}}]
  rules: [{{backendRefs: [{{name: upstream, port: 8080}}], timeouts: {{request: 0s}}}}]
"""
ISTIO_GATEWAY = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: own, namespace: NAMESPACE}}
data:
  deployment: |
    spec:
      replicas: REPLICAS
      template: {{spec: {{containers: [{{name: istio-proxy, env: [{{name: DIANA_TOKEN, value: {TOKEN}}}, {{name: DIANA_REDIS_PASSWORD, value: {TOKEN}}}, {{name: WASM_INSECURE_REGISTRIES, value: "*"}}]}}]}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: public, namespace: NAMESPACE}}
spec:
  gatewayClassName: istio
  infrastructure: {{parametersRef: {{group: "", kind: ConfigMap, name: own}}}}
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
"""
# Pods of both have a label of their Gateways.
ISTIO_TWO_GATEWAYS = ISTIO_GATEWAY.replace("REPLICAS", "1").replace("infrastructure: {", "infrastructure: {labels: {fleet: both}, ") + """
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: NAMESPACE, labels: {istio.io/rev: canary}}
spec:
  gatewayClassName: istio
  infrastructure: {labels: {fleet: both}, parametersRef: {group: "", kind: ConfigMap, name: own}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other, namespace: NAMESPACE}
spec:
  parentRefs: [{name: other}]
  rules: [{backendRefs: [{name: upstream, port: 8080}], timeouts: {request: 0s}}]
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
        container: {{env: [{{name: DIANA_TOKEN, value: {TOKEN}}}, {{name: DIANA_REDIS_PASSWORD, value: {TOKEN}}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: public, namespace: NAMESPACE}}
spec:
  gatewayClassName: eg
  infrastructure: {{parametersRef: {{group: gateway.envoyproxy.io, kind: EnvoyProxy, name: own}}}}
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
"""
# A key of this version by its name in a newer one.
NEWER_KEY = {"week_starts": "moon_starts"}
# Documents of a newer version, by the key or the value that this version does not know.
NEWER = {
    "moon_starts": "{moon_starts: monday, limits: [{Url: /limited, rules: [{name: newer, actor: all, unit: day, rpu: 3, algo: SW}]}]}",
    "fairness": "limits: [{Url: /limited, rules: [{name: newer, actor: all, unit: day, rpu: 3, algo: SW, fairness: equal}]}]",
    "lucky bucket": "limits: [{Url: /limited, rules: [{name: newer, actor: all, unit: day, rpu: 3, algo: lucky bucket}]}]",
}
TYPO = "limits: [{Url: /limited, rules: [{name: typo, actor: all, unit: day, rpu: 5, burts: 5}]}]"
REDIS_WORDS = ["--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--dir", "/tmp"]
REDIS_WORDS += ["--user", "diana", "on", f">{TOKEN}", "~*", "&*", "+@all"]
REDIS = server("redis", 6379, serves={"name": "redis"}, args=REDIS_WORDS)
# A server of rules that is no companion.
CENTRE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: centre, namespace: NAMESPACE}
data: {rules.yaml: "limits: [{Url: /limited, rules: [{name: remote, actor: all, unit: day, rpu: 2, algo: SW}]}]"}
---
""" + server(
    "config-centre",
    8080,
    serves={"port": 80, "targetPort": 8080},
    pod={"volumes": [{"name": "rules", "configMap": {"name": "centre"}}]},
    image="lab/unchecked",
    volumeMounts=[{"name": "rules", "mountPath": "/etc/diana"}],
)
# Its own port, with a route.
GRPC = server("grpc", 8081, serves={"name": "grpc", "appProtocol": "kubernetes.io/h2c"}) + """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: grpc, namespace: NAMESPACE}
spec:
  parentRefs: [{name: public}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /lab.Echo}}]
    backendRefs: [{name: grpc, port: 8081}]
    timeouts: {request: 0s}
"""
# A token of `lab` is signed with this key.
KEY = b"of-the-laboratory-and-long-enough"
KEYS = json.dumps({"keys": [{"kty": "oct", "alg": "HS256", "k": base64.urlsafe_b64encode(KEY).decode().rstrip("=")}]})
ISTIO_SECURITY = f"""
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {{name: team, namespace: NAMESPACE}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: public}}]
  jwtRules: [{{issuer: lab, jwks: '{KEYS}', forwardOriginalToken: true}}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: team, namespace: NAMESPACE}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: public}}]
  action: DENY
  rules: [{{from: [{{source: {{notRequestPrincipals: ["*"]}}}}], to: [{{operation: {{methods: [GET]}}}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: all, namespace: NAMESPACE}}
spec:
  parentRefs: [{{name: public}}]
  rules:
  - filters: [{{type: CORS, cors: {{allowOrigins: ["https://shop.example.com"], allowMethods: [GET]}}}}]
    backendRefs: [{{name: upstream, port: 8080}}]
    timeouts: {{request: 0s}}
"""
GATEWAY_SECURITY = f"""
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {{name: team, namespace: NAMESPACE}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: all}}]
  cors: {{allowOrigins: ["https://shop.example.com"], allowMethods: [GET]}}
  jwt: {{providers: [{{name: lab, issuer: lab, localJWKS: {{type: Inline, inline: '{KEYS}'}}}}]}}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: {{name: team, namespace: NAMESPACE}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: public}}]
  healthCheck: {{path: /limited/healthz}}
"""
# Envoy Gateway's own limit.
OWN_LIMIT = """
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: own, namespace: NAMESPACE}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: all}]
  rateLimit: {type: Local, local: {rules: [{limit: {requests: REQUESTS, unit: Hour}}]}}
"""
# A class with an EnvoyProxy, which the Gateway itself has not.
ENVOY_GATEWAY_CLASS = f"""
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyProxy
metadata: {{name: own, namespace: NAMESPACE}}
spec:
  mergeGateways: MERGED
  provider:
    type: Kubernetes
    kubernetes:
      envoyDeployment:
        replicas: REPLICAS
        container: {{env: [{{name: DIANA_TOKEN, value: {TOKEN}}}, {{name: DIANA_REDIS_PASSWORD, value: {TOKEN}}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: NAMESPACE}}
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
  parametersRef: {{group: gateway.envoyproxy.io, kind: EnvoyProxy, name: own, namespace: NAMESPACE}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: public, namespace: NAMESPACE}}
spec:
  gatewayClassName: NAMESPACE
  listeners: [{{name: http, port: 80, protocol: HTTP}}]
"""
# Of two host names on one port with TLS.
HOSTS = ["a.example.com", "b.example.com"]
TLS_LISTENERS = [
    {
        "name": host[0], "port": 443, "protocol": "HTTPS", "hostname": host,
        "tls": {"certificateRefs": [{"name": "certificate"}]}
    } for host in HOSTS
]
HTTP3 = """
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: {name: http3, namespace: NAMESPACE}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public}]
  http3: {}
"""
LISTENER_SET = """
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more, namespace: NAMESPACE}
spec:
  parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: public}
  listeners: [{name: extra, port: 8082, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: more, namespace: NAMESPACE}
spec:
  parentRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: more}]
  rules: [{backendRefs: [{name: upstream, port: 8080}]}]
"""
