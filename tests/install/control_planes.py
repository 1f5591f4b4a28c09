"""The conversion of manifests by Istio and Envoy Gateway to Envoy's configuration, as far as the manifests use it.

From istio/istio (pilot/pkg/networking/core/envoyfilter, pilot/pkg/model/extensions.go, pkg/wasm/convert.go) and
envoyproxy/gateway (internal/xds/translator/wasm.go and jsonpatch.go, internal/xds/bootstrap). Any other content of a
manifest is an error here, so that it does not count as tested.
"""

import copy
import json
import re

import yaml

TYPE = "type.googleapis.com/"
WASM = TYPE + "envoy.extensions.filters.http.wasm.v3.Wasm"
MANAGER = TYPE + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
STRING = TYPE + "google.protobuf.StringValue"
SHA256 = re.compile("[0-9a-f]{64}")


class Unknown(Exception):
    """The manifest has content that this module does not support."""


def wasm_filter(config):
    return {"@type": WASM, "config": config}


def merged(into, more):
    """Merges like protobuf messages: fields individually, lists by concatenation."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merged(into[key], value)
        elif isinstance(value, list):
            into[key] = into.get(key, []) + value
        else:
            into[key] = value
    return into


def gateway(port, admin, name, per_route=None):
    """An Envoy with one listener that responds itself, as both create for an empty gateway."""
    route = {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "hello\n"}}}
    router = {"@type": TYPE + "envoy.extensions.filters.http.router.v3.Router"}
    manager = {
        "@type": MANAGER,
        "stat_prefix": name,
        "use_remote_address": True,
        "normalize_path": True,
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
        "route_config": {"name": name, "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}

    def on(number):
        return {"socket_address": {"address": "127.0.0.1", "port_value": number}}

    listener = {"name": name, "address": on(port), "filter_chains": [chain]}
    static = {"listeners": [listener], "clusters": []}
    return {"node": {"id": name, "cluster": "gateways"}, "static_resources": static, "admin": {"address": on(admin)}}


def managers(bootstrap, name):
    """The connection managers of a listener."""
    for listener in bootstrap["static_resources"]["listeners"]:
        for chain in listener["filter_chains"]:
            for each in chain["filters"]:
                if listener["name"] == name and each["typed_config"]["@type"] == MANAGER:
                    yield each["typed_config"]


class Istio:
    """A gateway of Istio. `extensions` has the results of extension discovery by name."""

    NAME = "0.0.0.0_8080"

    def __init__(self, port, admin, module):
        self.bootstrap, self.module, self.extensions = gateway(port, admin, self.NAME), module, {}
        # Part of Istio's own bootstrap since 1.16.
        internal = TYPE + "envoy.extensions.bootstrap.internal_listener.v3.InternalListener"
        extension = {"name": "envoy.bootstrap.internal_listener", "typed_config": {"@type": internal}}
        self.bootstrap["bootstrap_extensions"] = [extension]

    def apply(self, *manifests):
        for manifest in sorted(manifests, key=lambda it: it.get("spec", {}).get("priority", 0)):
            {"EnvoyFilter": self.filter, "WasmPlugin": self.plugin, "ConfigMap": self.override}[manifest["kind"]](manifest)
        return self

    def override(self, manifest):
        """The annotation sidecar.istio.io/bootstrapOverride."""
        merged(self.bootstrap, json.loads(manifest["data"]["custom_bootstrap.json"]))

    def filter(self, manifest):
        for patch in copy.deepcopy(manifest["spec"]["configPatches"]):
            kind, operation, value = patch["applyTo"], patch["patch"]["operation"], patch["patch"]["value"]
            if patch["match"]["context"] != "GATEWAY":
                raise Unknown(patch["match"])
            static = self.bootstrap["static_resources"]
            if (kind, operation) == ("LISTENER", "ADD"):
                static["listeners"].append(value)
            elif (kind, operation) == ("CLUSTER", "ADD"):
                static["clusters"].append(value)
            elif (kind, operation) == ("EXTENSION_CONFIG", "ADD"):
                self.extension(value["name"], value["typed_config"])
            elif (kind, operation) == ("HTTP_FILTER", "INSERT_FIRST"):
                for manager in managers(self.bootstrap, self.NAME):
                    manager["http_filters"].insert(0, self.local(value))
            elif (kind, operation) == ("NETWORK_FILTER", "MERGE"):
                for manager in managers(self.bootstrap, self.NAME):
                    merged(manager, value["typed_config"])
            else:
                raise Unknown(f"{kind} {operation}")

    def plugin(self, manifest):
        """A WasmPlugin: a filter with a discovered configuration, without `vm_id`."""
        spec, name = manifest["spec"], "{namespace}.{name}".format(**manifest["metadata"])
        hosts = [it["name"] for it in spec.get("vmConfig", {}).get("env", []) if it["valueFrom"] == "HOST"]
        scheme, _, where = spec["url"].partition("://")
        remote = {"remote": {"http_uri": {"uri": spec["url"]}, "sha256": spec.get("sha256", "")}}
        config = {
            "name": name,
            "root_id": spec["pluginName"],
            "failure_policy": spec["failStrategy"],
            "configuration": {"@type": STRING, "value": json.dumps(spec["pluginConfig"])},
            "vm_config": {
                "runtime": "envoy.wasm.runtime.v8",
                "code": {"local": {"filename": where}} if scheme == "file" else remote,
                "environment_variables": {"host_env_keys": hosts},
            },
        }
        self.extension(name, wasm_filter(config))
        found = {"config_source": {"ads": {}}, "type_urls": [WASM]}
        for manager in managers(self.bootstrap, self.NAME):
            manager["http_filters"].insert(0, {"name": name, "config_discovery": found})

    def extension(self, name, typed_config):
        """The configuration after the proxy's agent has fetched the module."""
        self.extensions[name] = self.local({"typed_config": typed_config})["typed_config"]

    def local(self, entry):
        """With the module of this test, in place of a mounted file or an image, which has a digest as its name."""
        if "config_discovery" in entry:
            return entry
        code = entry["typed_config"]["config"]["vm_config"]["code"]
        if "remote" in code:
            remote = code["remote"]
            if not remote["http_uri"]["uri"].startswith("oci://") or not SHA256.fullmatch(remote["sha256"]):
                raise Unknown(remote)
        entry["typed_config"]["config"]["vm_config"]["code"] = {"local": {"filename": str(self.module)}}
        return entry

    def write(self, folder):
        """The text of the bootstrap, with files in place of the discovery service."""
        bootstrap = copy.deepcopy(self.bootstrap)
        for manager in managers(bootstrap, self.NAME):
            for entry in manager["http_filters"]:
                if "config_discovery" in entry:
                    entry["config_discovery"] = copy.deepcopy(entry["config_discovery"])
                    path = folder / f"{entry['name']}.json"
                    kind = TYPE + "envoy.config.core.v3.TypedExtensionConfig"
                    found = {"@type": kind, "name": entry["name"], "typed_config": self.extensions[entry["name"]]}
                    path.write_text(json.dumps({"resources": [found]}))
                    entry["config_discovery"]["config_source"] = {"path_config_source": {"path": str(path)}}
        return json.dumps(bootstrap)

    def documents(self):
        """The position of Diana's configuration."""
        filters = [it for manager in managers(self.bootstrap, self.NAME) for it in manager["http_filters"]]
        found = [it["typed_config"] for it in filters if it.get("typed_config", {}).get("@type") == WASM]
        return [it["config"] for it in [*found, *self.extensions.values()]]


class EnvoyGateway:
    """A Gateway `eg` of the namespace `default` with one listener, `http`, and one route."""

    NAME = "default/eg/http"
    # These parts of a bootstrap must not change.
    OWN = ("dynamic_resources", "node", "admin")

    def __init__(self, port, admin, module):
        self.bootstrap, self.module = gateway(port, admin, self.NAME), module

    def apply(self, *manifests):
        order = ["EnvoyProxy", "EnvoyExtensionPolicy", "EnvoyPatchPolicy"]
        for manifest in sorted(manifests, key=lambda it: order.index(it["kind"])):
            spec = copy.deepcopy(manifest["spec"])
            [self.proxy, self.extension, self.patch][order.index(manifest["kind"])](spec, manifest["metadata"])
        return self

    def proxy(self, spec, _):
        if spec["bootstrap"]["type"] != "Merge":
            raise Unknown(spec["bootstrap"]["type"])
        value = yaml.safe_load(spec["bootstrap"]["value"])
        if refused := [key for key in self.OWN if key in value]:
            raise Unknown(f"the bootstrap may not change {refused}")
        merged(self.bootstrap, value)

    def extension(self, spec, metadata):
        for at, wasm in enumerate(spec["wasm"]):
            place = f"envoyextensionpolicy/{metadata['namespace']}/{metadata['name']}/wasm/{at}"
            image = wasm["code"]["image"]
            if wasm["code"]["type"] != "Image" or not SHA256.fullmatch(image["sha256"]):
                raise Unknown(wasm["code"])
            config = {
                "name": wasm["name"],
                "root_id": wasm["rootID"],
                "configuration": {"@type": STRING, "value": json.dumps(wasm["config"])},
                # Envoy fetches it from the control plane, which has pulled the image. Here it is a
                # file.
                "vm_config": {
                    "vm_id": place,
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": {"local": {"filename": str(self.module)}},
                    "environment_variables": {"host_env_keys": wasm.get("env", {}).get("hostKeys", [])},
                },
            }
            name = f"envoy.filters.http.wasm/{place}"
            entry = {"name": name, "disabled": True, "typed_config": wasm_filter(config)}
            enabled = {"@type": TYPE + "envoy.config.route.v3.FilterConfig", "config": {}}
            for manager in managers(self.bootstrap, self.NAME):
                manager["http_filters"].insert(-1, entry)
                for route in manager["route_config"]["virtual_hosts"][0]["routes"]:
                    route.setdefault("typed_per_filter_config", {})[name] = enabled

    def patch(self, spec, _):
        for patch in spec["jsonPatches"]:
            operation = patch["operation"]
            path = re.fullmatch(r"\.\.http_filters\[\?\(@\.name=='([^']+)'\)\]\.typed_config\.config", operation["jsonPath"])
            if operation["op"] != "add" or not path or not patch["type"].endswith(".Listener"):
                raise Unknown(patch)
            found = [
                entry
                for manager in managers(self.bootstrap, patch["name"])
                for entry in manager["http_filters"]
                if entry["name"] == path[1]
            ]
            if not found:
                raise Unknown(f"nothing to patch: {patch}")
            for entry in found:
                entry["typed_config"]["config"][operation["path"].removeprefix("/")] = operation["value"]

    def write(self, _):
        return json.dumps(self.bootstrap)

    def documents(self):
        filters = [it for manager in managers(self.bootstrap, self.NAME) for it in manager["http_filters"]]
        return [it["typed_config"]["config"] for it in filters if it["typed_config"]["@type"] == WASM]
