"""The Helm chart, rendered by Helm's SDK from the package helm-python-sdk, and its filter in an Envoy."""

import contextlib
import copy
import functools
import hashlib
import http.server
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import zlib
from pathlib import Path

import yaml
from servers import ROOT, free_port, listens, server, wait_for

sys.path.insert(0, str(ROOT / "tools"))
import keys  # noqa: E402
from image import version  # noqa: E402

CHART = ROOT / "charts/diana"
MODULE = ROOT / "target/diana.wasm"
LIBRARY = ROOT / "target/libdiana.so"
FILE = "/etc/diana/libdiana.so"
PUBLIC = {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "public"}]}
RULES = {"limits": [{"Url": "/", "rules": [{"name": "a-few", "actor": "all", "unit": "day", "rpu": 3, "algo": "SW"}]}]}
# In a separate process, since Helm's library has a Go runtime.
RENDER = """
import json, sys
import helm_python as helm
asked = json.load(sys.stdin)
with helm.Chart.load(asked["chart"]) as chart:
    try:
        chart.validate_schema(asked["values"])
        told = chart.render(asked["values"], name=asked["name"], namespace=asked["namespace"])
    except helm.HelmError as error:
        sys.exit(str(error))
json.dump(told, sys.stdout)
"""
# The end of the name of the filter whose metrics show which listeners have Diana.
PRESENCE = "_presence"
MANAGER = "envoy.filters.network.http_connection_manager"


def files(name="diana", namespace="default", **values):
    """The rendered text of each template, or Helm's error."""
    base = {"filter": {"sha256": "0" * 64}} | ({} if "rulesText" in values else {"config": RULES})
    for key, value in values.items():
        base[key] = {**base[key], **value} if key == "filter" else value
    asked = json.dumps({"chart": str(CHART), "name": name, "namespace": namespace, "values": base})
    done = subprocess.run([os.environ["DIANA_HELM_PYTHON"], "-c", RENDER], input=asked, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def render(**values):
    texts = files(**values)
    if isinstance(texts, str):
        raise AssertionError(texts)
    return [it for name, text in texts.items() if name.endswith(".yaml") for it in yaml.safe_load_all(text) if it]


def of_kind(kind, rendered):
    return [it for it in rendered if it["kind"] == kind]


def patches(rendered, kind):
    """The values of the patches of a kind for Istio."""
    [manifest] = of_kind("EnvoyFilter", rendered)
    values = [it["patch"]["value"] for it in manifest["spec"]["configPatches"] if it["applyTo"] == kind]
    return [it for it in values if not it.get("name", "").endswith(PRESENCE)]


def added(rendered):
    """What an EnvoyPatchPolicy adds: clusters and listeners by name, and the filter by listener."""
    [policy] = of_kind("EnvoyPatchPolicy", rendered)
    whole, filters = {}, {}
    for patch in policy["spec"]["jsonPatches"]:
        into = filters if "jsonPath" in patch["operation"] else whole
        if not patch["operation"]["value"]["name"].endswith(PRESENCE):
            into[patch["name"]] = patch["operation"]["value"]
    return whole, filters


def names(policy):
    """The listeners that an EnvoyPatchPolicy patches."""
    return list(dict.fromkeys(it["name"] for it in policy["spec"]["jsonPatches"] if "jsonPath" in it["operation"]))


def parts(rendered):
    """The filter, the clusters and the listeners that the chart adds to a proxy of either control plane."""
    if of_kind("EnvoyFilter", rendered):
        return [patches(rendered, kind) for kind in ("HTTP_FILTER", "CLUSTER", "LISTENER")]
    whole, filters = added(rendered)
    # Only listeners have filter chains.
    listeners = [it for it in whole.values() if "filter_chains" in it]
    return [list(filters.values())[:1], [it for it in whole.values() if it not in listeners], listeners]


@contextlib.contextmanager
def companion(port, rules, module, end="wasm"):
    """Serves the rules and the module by the paths of `diana serve`."""
    served = {"/rules.yaml": rules, f"/modules/{hashlib.sha256(module).hexdigest()}.{end}": module}

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = served.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("content-length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_):
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield served
    finally:
        running.shutdown()
        running.server_close()


def bootstrap(rendered, port, admin, companion_port):
    """An Envoy with the clusters, the listeners and the filter of the chart, before the router of a listener that answers itself."""
    text = (ROOT / "envoy/envoy.yaml").read_text()
    whole = yaml.safe_load(text)
    whole.pop("stats_config")
    whole["admin"]["address"]["socket_address"]["port_value"] = admin
    internal = "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener"
    whole["bootstrap_extensions"] = [{"name": "envoy.bootstrap.internal_listener", "typed_config": {"@type": internal}}]
    listener = whole["static_resources"]["listeners"][0]
    listener["address"]["socket_address"]["port_value"] = port
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    route = {"match": {"prefix": "/"}, "direct_response": {"status": 200}}
    manager["route_config"]["virtual_hosts"][0]["routes"] = [route]
    filters, clusters, listeners = copy.deepcopy(parts(rendered))
    manager["http_filters"] = [*filters, manager["http_filters"][-1]]
    address = clusters[0]["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    address.update(address="127.0.0.1", port_value=companion_port)
    whole["static_resources"] = {"listeners": [listener, *listeners], "clusters": clusters}
    return json.dumps(whole)


class Rendered(unittest.TestCase):
    def test_twice_gives_the_same_bytes(self):
        everything = {"redis": {"enabled": True, "proxied": True, "cluster": True}, "podMonitor": {"enabled": True}}
        for plane in ("istio", "envoy-gateway"):
            self.assertEqual(files(controlPlane=plane, **everything), files(controlPlane=plane, **everything))

    def test_document_is_the_text_and_its_number(self):
        text = "   # a comment\r\n   limits: []\n\n\n  # end \n\n"
        rendered = render(rulesText=text)
        [document] = [it["data"]["rules.yaml"] for it in of_kind("ConfigMap", rendered)]
        self.assertEqual(document, "   # a comment\n   limits: []\n\n\n  # end\n")
        number = str(zlib.adler32(document.encode()))
        [deployment] = of_kind("Deployment", rendered)
        self.assertEqual(deployment["spec"]["template"]["metadata"]["annotations"]["diana/document"], number)
        [data] = [it["data"] for it in of_kind("ConfigMap", rendered)]
        self.assertEqual((data["adler32"], data["sha256"]), (number, hashlib.sha256(document.encode()).hexdigest()))

    def test_only_what_has_the_rules_changes_with_them(self):
        for plane in ("istio", "envoy-gateway"):
            one, other = (render(controlPlane=plane, **rules) for rules in ({}, {"rulesText": "limits: []"}))
            changed = {it["kind"] for it, that in zip(one, other) if it != that}
            # A Pod cannot be changed, and each change of the filter drains listeners.
            self.assertEqual(changed, {"ConfigMap", "Deployment"})

    def test_ports_have_what_the_server_adds(self):
        def ports(tree):
            if isinstance(tree, dict):
                found = [tree] if {"port", "containerPort"} & tree.keys() and "name" in tree or tree.keys() == {"port", "protocol"} else []
                return found + [each for value in tree.values() for each in ports(value)]
            return [each for item in tree for each in ports(item)] if isinstance(tree, list) else []

        rendered = [it for kind in ("Deployment", "Service", "NetworkPolicy") for it in of_kind(kind, render(networkPolicy={"gateways": True}))]
        found = ports([{**it, "metadata": {}} for it in rendered])
        self.assertGreater(len(found), 4)
        self.assertEqual({it.get("protocol") for it in found}, {"TCP"})
        # The server leaves out empty lists.
        self.assertTrue(all(it["spec"].get("egress", ["some"]) for it in of_kind("NetworkPolicy", rendered)))

    def test_rules_before_the_first_document(self):
        def own(before, **values):
            [filter] = patches(render(filter={"before": before, "settings": {"namespace": "shop"}}, **values), "HTTP_FILTER")
            return yaml.safe_load(filter["typed_config"]["config"]["configuration"]["value"])

        self.assertEqual(own("none")["limits"], [])
        closed = own("closed")["limits"]
        self.assertEqual([(limit["Url"], [rule["rpu"] for rule in limit["rules"]]) for limit in closed], [("/", [0])])
        rules = {**RULES, "shadow": True, "limits": [{"Url": "/", "rules": [{**RULES["limits"][0]["rules"][0], "rpu": 1_000_000_000}]}]}
        for values in ({"config": rules}, {"rulesText": "# A comment.\n" + json.dumps(rules)}):
            release = own("release", **values)
            self.assertEqual({key: release.pop(key) for key in rules}, rules)
            self.assertEqual(release, {key: value for key, value in own("none").items() if key != "limits"})

    def test_large_numbers_stay_whole(self):
        rules = copy.deepcopy(RULES)
        rules["limits"][0]["rules"][0]["rpu"] = 1_000_000_000
        [document] = [it["data"]["rules.yaml"] for it in of_kind("ConfigMap", render(config=rules))]
        self.assertEqual(yaml.safe_load(document), rules)
        self.assertIn("rpu: 1000000000\n", document)

    def test_rules_do_not_reach_the_listener(self):
        for plane, kind in (("istio", "EnvoyFilter"), ("envoy-gateway", "EnvoyPatchPolicy")):
            one, other = (of_kind(kind, render(controlPlane=plane, **rules)) for rules in ({}, {"rulesText": "limits: []"}))
            self.assertEqual(one, other)
            self.assertTrue(one)

    def test_two_releases_share_no_name(self):
        for plane, kind in (("istio", "EnvoyFilter"), ("envoy-gateway", "EnvoyPatchPolicy")):
            values = {"controlPlane": plane, "redis": {"enabled": True, "proxied": True}, "networkPolicy": {"gateways": True}}
            names = []
            for release, namespace in (("diana", "default"), ("shop", "default"), ("diana", "other")):
                rendered = render(name=release, namespace=namespace, **values)
                [manifest] = of_kind(kind, rendered)
                text = json.dumps(manifest["spec"])
                found = set(re.findall(r"diana_[^\" ]*|/[^\" ]*\.sock|[a-z-]+\.[a-z-]+\.svc", text)) - {"diana_redis", "redis.default.svc"}
                names.append(found | {(it["kind"], it["metadata"]["namespace"], it["metadata"]["name"]) for it in rendered})
            self.assertGreater(len(names[0]), 8)
            self.assertFalse(names[0] & names[1] or names[0] & names[2] or names[1] & names[2])

    def test_the_filter_is_the_same_in_both(self):
        filters = added(render(controlPlane="envoy-gateway"))[1]
        [filter] = patches(render(), "HTTP_FILTER")
        self.assertEqual(filters, dict.fromkeys(filters, filter))

    def test_a_listener_has_the_presence_only_with_the_filter(self):
        """It is placed by the filter's name, so a listener without the filter cannot have it."""
        own = "diana_default_diana"
        *_, presence = of_kind("EnvoyFilter", render())[0]["spec"]["configPatches"]
        place = presence["match"]["listener"]["filterChain"]["filter"]["subFilter"], presence["patch"]["operation"]
        self.assertEqual(place, ({"name": own}, "INSERT_BEFORE"))
        for position in ("first", "last"):
            [policy] = of_kind("EnvoyPatchPolicy", render(controlPlane="envoy-gateway", filter={"position": position}))
            of_listeners = [it for it in policy["spec"]["jsonPatches"] if "jsonPath" in it["operation"]]
            for filter, after in zip(of_listeners[::2], of_listeners[1::2], strict=True):
                self.assertEqual((filter["name"], filter["operation"]["value"]["name"]), (after["name"], own))
                self.assertEqual(after["operation"]["jsonPath"], f"..http_filters[?(@.name=='{own}')]")
                self.assertEqual(after["operation"]["value"], presence["patch"]["value"])

    def test_a_pod_monitor_for_gateways_and_one_for_classes(self):
        gateways = [{"name": "a"}, {"name": "b", "namespace": "other"}, {"class": "eg"}]
        for given, wanted in ((gateways[:2], [""]), (gateways[2:], ["-classes"]), (gateways, ["", "-classes"])):
            rendered = render(controlPlane="envoy-gateway", podMonitor={"enabled": True}, envoyGateway={"gateways": given})
            monitors = {it["metadata"]["name"]: it["spec"]["selector"]["matchExpressions"] for it in of_kind("PodMonitor", rendered)[:-1]}
            self.assertEqual(list(monitors), [f"diana{end}" for end in wanted])
            for pod in [it["spec"]["selector"] for it in of_kind("Service", rendered)[1:]]:
                matches = [all(pod.get(it["key"]) in it["values"] for it in selector) for selector in monitors.values()]
                self.assertEqual(sum(matches), 1, pod)

    def test_an_alert_for_each_gateway_that_prometheus_does_not_read(self):
        """The labels of its targets are those of the alert."""
        refs = [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name} for name in ("one", "two")]
        gateways = [{"name": "a"}, {"name": "b", "namespace": "other"}, {"class": "eg"}]
        for values, wanted in (
            ({}, ["ingressgateway"]),
            ({"istio": {"selector": {"app": "shop", "version": "2"}}}, ["2/shop"]),
            ({"istio": {"targetRefs": refs}}, ["one", "two"]),
            ({"controlPlane": "envoy-gateway", "envoyGateway": {"gateways": gateways}}, ["default/a", "other/b", "eg"]),
            ({"controlPlane": "envoy-gateway", "envoyGateway": {"gateways": gateways[2:]}}, ["eg"]),
        ):
            rendered = render(podMonitor={"enabled": True, "labels": {"release": "prometheus"}}, **values)
            [alerts] = of_kind("PrometheusRule", rendered)
            self.assertEqual(alerts["metadata"]["labels"]["release"], "prometheus")
            found = []
            for pod in [it["spec"]["selector"] for it in of_kind("Service", rendered)[1:]]:
                [(job, rule)] = [
                    (f"{it['metadata']['namespace']}/{it['metadata']['name']}", it["spec"]["podMetricsEndpoints"][0]["relabelings"][0])
                    for it in of_kind("PodMonitor", rendered)[:-1]
                    if all(pod.get(one["key"]) in one["values"] for one in it["spec"]["selector"].get("matchExpressions", []))
                ]
                labels = {"__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", key): value for key, value in pod.items()}
                sources = rule.get("sourceLabels")
                found.append((job, rule.get("separator", ";").join(labels[it] for it in sources) if sources else rule["replacement"]))
            self.assertEqual([gateway for _, gateway in found], wanted)
            for alert, (job, gateway) in zip(alerts["spec"]["groups"][0]["rules"], found, strict=True):
                asked, own = re.fullmatch(r'absent\(up\{job=~"(.+)",gateway="(.+)"\} == 1\)', alert["expr"]).groups()
                self.assertTrue(re.fullmatch(asked, job), (asked, job))
                self.assertEqual((own, alert["labels"]["gateway"]), (gateway, gateway))

    def test_the_dynamic_module_takes_the_place_of_the_other(self):
        for plane, native in (("istio", {"file": FILE}), ("envoy-gateway", {"file": FILE}), ("envoy-gateway", {"sha256": "1" * 64})):
            with self.subTest(plane=plane, native=native):
                one = render(controlPlane=plane)
                other = render(controlPlane=plane, filter={"sha256": "", "native": native})
                [[wasm], *beside], [[dynamic], *others] = parts(one), parts(other)
                self.assertEqual(beside, others)
                config, module = dynamic["typed_config"], dynamic["typed_config"]["dynamic_module_config"]
                self.assertEqual((dynamic["name"], config["filter_name"]), (wasm["name"], wasm["typed_config"]["config"]["root_id"]))
                self.assertEqual((module["do_not_close"], module["metrics_namespace"]), (True, "wasmcustom_diana" if plane == "istio" else "diana"))
                if "file" in native:
                    self.assertEqual(module["module"], {"local": {"filename": FILE}})
                else:
                    code = json.dumps(wasm["typed_config"]["config"]["vm_config"]["code"])
                    self.assertEqual(json.dumps(module["module"]), code.replace("0" * 64 + ".wasm", "1" * 64 + ".so").replace("0" * 64, "1" * 64))
                # Rules that only the wasm module reads are refused by the companion.
                for rendered, wanted in ((one, False), (other, True)):
                    words = of_kind("Deployment", rendered)[0]["spec"]["template"]["spec"]["containers"][0]["args"]
                    self.assertEqual(" --host native" in " ".join(words), wanted)

    def test_the_dynamic_module_connects_to_a_listener_that_leads_to_redis(self):
        values = {"enabled": True, "username": "diana", "passwordEnv": "PASSWORD"}
        for plane, proxied in itertools.product(("istio", "envoy-gateway"), (True, False)):
            with self.subTest(plane=plane, proxied=proxied):
                redis = {**values, "proxied": proxied}
                wasm, rendered = (render(controlPlane=plane, redis=redis, filter={"native": native}) for native in ({}, {"file": FILE}))
                [filter], clusters, listeners = parts(rendered)
                configured = yaml.safe_load(filter["typed_config"]["filter_config"]["value"])["redis"]
                [listener] = listeners
                [[leads]] = [chain["filters"] for chain in listener["filter_chains"]]
                pipe = listener["address"]["pipe"]
                # Only the proxy's own user can open it.
                self.assertEqual((configured.pop("pipe"), 0o600), (pipe["path"], pipe["mode"]))
                [server] = [it for it in clusters if "redis" in it["name"]]
                self.assertNotIn("upstream_config", server)
                if proxied:
                    self.assertEqual(configured, {"proxied": True})
                    self.assertEqual(leads["typed_config"]["prefix_routes"]["catch_all_route"]["cluster"], server["name"])
                    # The same as for the wasm module, but for what only that one needs.
                    self.assertIn(server, parts(wasm)[1])
                    self.assertIn(listener, parts(wasm)[2])
                else:
                    self.assertEqual(configured, {"username_env": "DIANA_REDIS_USERNAME", "password_env": "PASSWORD"})
                    self.assertEqual((leads["name"], leads["typed_config"]["cluster"]), ("envoy.filters.network.tcp_proxy", server["name"]))

    def test_variables_that_pods_need_are_in_the_notes(self):
        redis = {"enabled": True, "username": "diana", "passwordEnv": "PASSWORD", "proxied": False}
        for native, wanted in (({}, ": TOKEN, PASSWORD.\n"), ({"file": FILE}, ": TOKEN, PASSWORD, DIANA_REDIS_USERNAME.\n")):
            [notes] = [text for name, text in files(redis=redis, filter={"env": ["TOKEN"], "native": native}).items() if name.endswith("NOTES.txt")]
            self.assertIn(wanted, notes)
            self.assertEqual("DIANA_WITHOUT_DOCUMENT=admit" in notes, bool(native))

    def test_notes_advise_a_status_for_load_balancers(self):
        def is_advised(**values):
            [notes] = [text for name, text in files(**values).items() if name.endswith("NOTES.txt")]
            return "config.response.status=429" in notes

        for response, wanted in (({}, True), ({"status": 429}, False), ({"status": 502}, True), ({"body": "no"}, True)):
            self.assertEqual(is_advised(config={**RULES, "response": response}), wanted, response)
        for text, wanted in (("limits: []", True), ("limits: []\nresponse: {status: 429}", False), ("limits: []\nresponse:", True), ("- {Url: /, rules: []}", True)):
            self.assertEqual(is_advised(rulesText=text), wanted, text)

    def test_position(self):
        def at(position):
            istio = of_kind("EnvoyFilter", render(filter={"position": position}))[0]["spec"]["configPatches"][-2]
            gateway = of_kind("EnvoyPatchPolicy", render(controlPlane="envoy-gateway", filter={"position": position}))[0]
            operation = gateway["spec"]["jsonPatches"][-2]["operation"]
            manager = istio["match"]["listener"]["filterChain"]["filter"]
            return istio["patch"]["operation"], manager, operation["jsonPath"], operation.get("path")

        router = {"name": MANAGER, "subFilter": {"name": "envoy.filters.http.router"}}
        self.assertEqual(at("last"), ("INSERT_BEFORE", router, "..http_filters[?(@.name=='envoy.filters.http.router')]", None))
        self.assertEqual(at("first"), ("INSERT_FIRST", {"name": MANAGER}, "..http_filters", "/0"))

    def test_gateways_and_merged_gateways(self):
        gateways = [
            {"name": "a", "listeners": ["http", "https-quic"], "ports": [80]},
            {"name": "b", "namespace": "other", "without": [443, 8080]},
            {"class": "eg", "listeners": ["default/eg/http"]},
        ]
        rendered = render(controlPlane="envoy-gateway", envoyGateway={"gateways": gateways})
        found = {}
        for policy in of_kind("EnvoyPatchPolicy", rendered):
            target = policy["spec"]["targetRef"]
            found[policy["metadata"]["namespace"], target["kind"], target["name"]] = names(policy)
        wanted = {
            ("default", "Gateway", "a"): ["default/a/http", "default/a/http-quic", "default/a/https-quic", "tcp-80", "udp-80"],
            ("other", "Gateway", "b"): [
                *(f"other/b/{it}" for it in ("http", "http-quic", "https", "https-quic")),
                *("tcp-80", "udp-80", "tcp-8443", "udp-8443"),
            ],
            ("default", "GatewayClass", "eg"): [
                *("default/eg/http", "default/eg/http-quic"),
                *(f"{protocol}-{port}" for port in (80, 443, 8080, 8443) for protocol in ("tcp", "udp")),
            ],
        }
        self.assertEqual(found, wanted)

    def test_changes_nothing_else_unless_asked(self):
        self.assertEqual(patches(render(), "NETWORK_FILTER"), [])
        self.assertFalse({"EnvoyProxy", "EnvoyExtensionPolicy", "PodMonitor"} & {it["kind"] for it in render(controlPlane="envoy-gateway")})
        [merged] = patches(render(istio={"holdTimeout": "30s", "rejectUnderscores": True}), "NETWORK_FILTER")
        self.assertEqual(merged["typed_config"]["stream_idle_timeout"], "30s")
        self.assertEqual(merged["typed_config"]["common_http_protocol_options"], {"headers_with_underscores_action": "REJECT_REQUEST"})

    def test_a_disabled_filter_is_in_no_listener(self):
        self.assertEqual(patches(render(filter={"disabled": True}), "HTTP_FILTER"), [])
        self.assertEqual(added(render(controlPlane="envoy-gateway", filter={"disabled": True}))[1], {})

    def test_patches_are_for_supported_proxies(self):
        [manifest] = of_kind("EnvoyFilter", render(redis={"enabled": True}))
        for patch in manifest["spec"]["configPatches"]:
            supported = re.compile(patch["match"]["proxy"]["proxyVersion"])
            for proxy, wanted in {"1.30.0": True, "1.31-alpha.5": True, "1.40.2": True, "1.29.9": False, "1.3.0": False}.items():
                self.assertEqual(bool(supported.match(proxy)), wanted, proxy)

    def test_labels_replace_the_default(self):
        for labels, wanted in [({}, {"istio": "ingressgateway"}), ({"app": "edge"}, {"app": "edge"})]:
            rendered = render(istio={"selector": labels})
            self.assertEqual(of_kind("EnvoyFilter", rendered)[0]["spec"]["workloadSelector"]["labels"], wanted)
            [peer] = [it["podSelector"]["matchLabels"] for it in of_kind("NetworkPolicy", rendered)[0]["spec"]["ingress"][0]["from"] if len(it) == 2]
            self.assertEqual(peer, wanted)

    def test_all_gateways_reach_the_companion_and_are_asked(self):
        both = [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name} for name in ("one", "two")]
        values = {"podMonitor": {"enabled": True}, "networkPolicy": {"gateways": True}}
        for plane in ({"istio": {"targetRefs": both}}, {"controlPlane": "envoy-gateway", "envoyGateway": {"gateways": [{"name": it["name"], "listeners": ["http"]} for it in both]}}):
            rendered = render(**plane, **values)
            companion, *gateways = of_kind("NetworkPolicy", rendered)
            peers = [it["podSelector"]["matchLabels"] for it in companion["spec"]["ingress"][0]["from"] if len(it) == 2]
            self.assertEqual([set(peer.values()) & {"one", "two"} for peer in peers], [{"one"}, {"two"}])
            self.assertEqual([it["spec"]["podSelector"]["matchLabels"] for it in gateways], peers)
            self.assertEqual([it["spec"]["selector"] for it in of_kind("Service", rendered)[1:]], peers)
        [monitor, _] = of_kind("PodMonitor", render(istio={"targetRefs": both}, **values))
        [expression] = monitor["spec"]["selector"]["matchExpressions"]
        self.assertEqual(expression["values"], ["one", "two"])

    def test_redis_as_in_the_examples(self):
        fleet = yaml.safe_load((ROOT / "envoy/fleet.yaml").read_text())["static_resources"]["clusters"][0]
        direct = patches(render(redis={"enabled": True, "proxied": False}), "CLUSTER")[1]
        self.assertEqual({**direct, "name": "diana_redis", "load_assignment": None}, {**fleet, "load_assignment": None})
        example = yaml.safe_load((ROOT / "envoy/redis/cluster.yaml").read_text())["static_resources"]
        values = {"enabled": True, "cluster": True, "username": "diana", "passwordEnv": "DIANA_REDIS_PASSWORD"}
        # The examples are for this timeout.
        rendered = render(redis={**values, "settings": {"timeout": "50ms"}})

        def plain(whole):
            """Without what differs by purpose: names, addresses and sockets."""
            text = re.sub(r"diana_default_diana_redis_server", "redis", json.dumps(whole))
            text = re.sub(r"diana_default_diana_redis_proxy", "redis_proxy", text)
            text = re.sub(r"diana_default_diana_redis", "diana_redis", text)
            whole = json.loads(re.sub(r'"[^"]*\.sock"', '"socket"', text))
            if whole["name"] == "redis":
                whole.pop("load_assignment")
            return whole

        for kind, there in (("CLUSTER", "clusters"), ("LISTENER", "listeners")):
            ours = {it["name"]: it for it in map(plain, patches(rendered, kind)) if "redis" in it["name"]}
            theirs = {it["name"]: it for it in map(plain, example[there]) if "redis" in it["name"]}
            self.assertEqual(ours, theirs)

    def test_envoys_proxy_of_redis_is_less_patient_than_diana(self):
        for timeout, patience in ((None, "0.012s"), ("1ms", "0.0006s"), ("0250ms", "0.15s"), ("1000ms", "0.6s"), ("1s", "0.6s")):
            rendered = render(redis={"enabled": True, "settings": {"timeout": timeout} if timeout else {}})
            [server] = [it for it in patches(rendered, "CLUSTER") if it["name"].endswith("_redis_server")]
            [proxy] = [it for it in patches(rendered, "LISTENER") if it["name"].endswith("_redis_proxy")]
            told = proxy["filter_chains"][0]["filters"][0]["typed_config"]["settings"]["op_timeout"]
            self.assertEqual((server["connect_timeout"], told), (patience, patience))

    def test_redis_reads_its_password_where_it_logs_in(self):
        values = {"enabled": True, "username": "diana", "passwordEnv": "PASSWORD"}
        for proxied in (True, False):
            [config] = [it["typed_config"]["config"] for it in patches(render(redis={**values, "proxied": proxied}, filter={"env": ["TOKEN"]}), "HTTP_FILTER")]
            redis = yaml.safe_load(config["configuration"]["value"])["redis"]
            variables = config["vm_config"]["environment_variables"]
            if proxied:
                self.assertEqual(redis, {"cluster": "diana_default_diana_redis", "proxied": True})
                self.assertEqual(variables["host_env_keys"], ["TOKEN"])
            else:
                wanted = {"cluster": "diana_default_diana_redis", "username_env": "DIANA_REDIS_USERNAME", "password_env": "PASSWORD"}
                self.assertEqual(redis, wanted)
                self.assertEqual(variables["host_env_keys"], ["TOKEN", "PASSWORD"])
                self.assertEqual(variables["key_values"]["DIANA_REDIS_USERNAME"], "diana")

    def test_the_companion_is_confined(self):
        rendered = render()
        [deployment] = of_kind("Deployment", rendered)
        pod = deployment["spec"]["template"]["spec"]
        [container] = pod["containers"]
        self.assertEqual(deployment["spec"]["replicas"], 2)
        self.assertEqual(deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0)
        self.assertFalse(pod["automountServiceAccountToken"])
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
        self.assertEqual(deployment["spec"]["template"]["metadata"]["labels"]["sidecar.istio.io/inject"], "false")
        [policy] = of_kind("NetworkPolicy", rendered)
        self.assertEqual((policy["spec"]["policyTypes"], policy["spec"].get("egress")), (["Ingress", "Egress"], None))
        self.assertEqual(of_kind("PodDisruptionBudget", rendered)[0]["spec"]["maxUnavailable"], 1)

    def test_further_fields_of_its_pods(self):
        pod = {"priorityClassName": "system-cluster-critical", "imagePullSecrets": [{"name": "pull"}]}
        [deployment] = of_kind("Deployment", render(companion={"pod": pod}))
        self.assertLessEqual(pod.items(), deployment["spec"]["template"]["spec"].items())

    def test_tls_of_the_companion(self):
        rendered = render(companion={"tls": {"secret": "companion", "ca": "PEM"}})
        [deployment], cluster = of_kind("Deployment", rendered), patches(rendered, "CLUSTER")[0]
        self.assertIn("--tls-cert", deployment["spec"]["template"]["spec"]["containers"][0]["args"])
        context = cluster["transport_socket"]["typed_config"]
        self.assertEqual(context["sni"], "diana-companion.default.svc")
        self.assertEqual(context["common_tls_context"]["validation_context"]["trusted_ca"], {"inline_string": "PEM"})

    def test_versions_agree(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual({chart["version"], chart["appVersion"]}, {version()})
        self.assertTrue(yaml.safe_load((CHART / "values.yaml").read_text())["companion"]["image"].endswith(":" + version()))


class Policies(unittest.TestCase):
    """Limits of teams, by the values `policies`."""

    # With TLS, since the companions ask each other.
    VALUES = {
        "istio": {"controlPlane": "istio", "istio": PUBLIC, "companion": {"tls": {"secret": "companion"}}},
        "envoy-gateway": {"controlPlane": "envoy-gateway", "envoyGateway": {"gateways": [{"name": "a"}, {"name": "b", "namespace": "other"}, {"class": "eg"}]}},
    }

    def rendered(self, plane, policies=None, **values):
        return render(**self.VALUES[plane], policies={"enabled": True, **(policies or {})}, **values)

    def file(self, plane, **values):
        """The decisions of the platform, as the companion reads them."""
        [data] = [it["data"] for it in of_kind("ConfigMap", self.rendered(plane, **values))]
        return yaml.safe_load(data["policies.yaml"])

    def test_disabled_change_nothing(self):
        for plane, values in self.VALUES.items():
            one = files(**values)
            self.assertEqual(one, files(**values, policies={"enabled": False, "rules": 7, "keys": ["name"], "memory": "1Gi"}))
            texts = "".join(text for name, text in one.items() if not name.endswith("NOTES.txt"))
            self.assertEqual([it for it in ("policies", "ServiceAccount", "Role", "egress:", "POD_", "Admission") if it in texts.replace("automountServiceAccountToken", "")], [])
            self.assertNotIn("LimitPolicy", "".join(one.values()))
            [pod] = [it["spec"]["template"]["spec"] for it in of_kind("Deployment", render(**values))]
            self.assertEqual((pod["automountServiceAccountToken"], "serviceAccountName" in pod), (False, False))

    def test_rights_are_these(self):
        reads = ["get", "list", "watch"]
        cluster = {
            ("limits.diana.internal", "limitpolicies"): reads,
            ("limits.diana.internal", "limitpolicies/status"): ["patch"],
            **{("gateway.networking.k8s.io", kind): reads for kind in ("gateways", "grpcroutes", "httproutes")},
            ("", "namespaces"): reads,
            ("apiextensions.k8s.io", "customresourcedefinitions", "limitpolicies.limits.diana.internal"): ["get"],
        }
        own = {("", "pods"): reads, ("coordination.k8s.io", "leases", "diana-companion"): ["get", "patch", "update"], ("coordination.k8s.io", "leases"): ["create"]}
        roles = {"default": own}
        services = {("networking.istio.io", "virtualservices"): reads}
        for plane, more, wanted in (("istio", services, roles), ("envoy-gateway", {}, {**roles, "envoy-gateway-system": {("", "pods"): reads}})):
            rendered = self.rendered(plane)

            def rights(role):
                return {
                    (group, resource, *name): rule["verbs"]
                    for rule in role["rules"]
                    for group, resource in itertools.product(rule["apiGroups"], rule["resources"])
                    for name in [[name] for name in rule.get("resourceNames", [])] or [[]]
                }

            [role] = of_kind("ClusterRole", rendered)
            self.assertEqual(rights(role), {**cluster, **more})
            self.assertEqual({it["metadata"]["namespace"]: rights(it) for it in of_kind("Role", rendered)}, wanted)
            [account] = of_kind("ServiceAccount", rendered)
            bindings = of_kind("ClusterRoleBinding", rendered) + of_kind("RoleBinding", rendered)
            self.assertEqual(len(bindings), 1 + len(wanted))
            for binding in bindings:
                self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": "default"}])
                self.assertEqual(binding["metadata"]["name"], binding["roleRef"]["name"])
            [pod] = [it["spec"]["template"]["spec"] for it in of_kind("Deployment", rendered)]
            self.assertEqual(pod["serviceAccountName"], account["metadata"]["name"])
            # No other pod has the token.
            self.assertEqual((pod["automountServiceAccountToken"], account["automountServiceAccountToken"]), (True, False))
            self.assertFalse(of_kind("Pod", rendered)[0]["spec"]["automountServiceAccountToken"])

    def test_two_releases_share_no_object(self):
        def objects(**values):
            return {(it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"]) for it in self.rendered(**values)}

        for plane in self.VALUES:
            one, two, three = (objects(plane=plane, name=name, namespace=namespace) for name, namespace in (("diana", "one"), ("two", "one"), ("diana", "three")))
            # A Gateway has one patch policy for each release, and here all releases name the same.
            self.assertEqual([it for it in one & two | one & three if it[0] != "EnvoyPatchPolicy"], [])

    def test_the_companion_reaches_the_api_server_and_its_other_pods(self):
        peer = [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
        for api, wanted in (({}, ([443, 6443], None)), ({"to": peer, "ports": [16443]}, ([16443], peer))):
            [policy] = of_kind("NetworkPolicy", self.rendered("istio", {"apiServer": api}))
            server, companions = policy["spec"]["egress"]
            self.assertEqual(([it["port"] for it in server["ports"]], server.get("to")), wanted)
            own = policy["spec"]["podSelector"]
            self.assertEqual((companions["to"], [it["port"] for it in companions["ports"]]), ([{"podSelector": own}], [8080]))
            self.assertIn({"podSelector": own}, policy["spec"]["ingress"][0]["from"])

    def test_pods_know_their_name_and_address(self):
        [deployment] = of_kind("Deployment", self.rendered("istio", {"memory": "1Gi"}))
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        fields = {it["name"]: it["valueFrom"]["fieldRef"]["fieldPath"] for it in container["env"]}
        self.assertEqual(fields, {"POD_NAME": "metadata.name", "POD_IP": "status.podIP"})
        self.assertIn("--policies /etc/diana/policies.yaml", " ".join(container["args"]))
        self.assertEqual(container["resources"], {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "1Gi"}})

    def test_changed_decisions_start_new_pods(self):
        def annotations(**policies):
            return of_kind("Deployment", self.rendered("istio", policies))[0]["spec"]["template"]["metadata"]["annotations"]

        one, other = annotations(), annotations(rules=7)
        self.assertEqual({key for key in one if one[key] != other[key]}, {"diana/policies"})

    def test_the_companion_reads_the_decisions(self):
        selector = {"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["test"]}]}
        policies = {"namespaces": selector, "rules": 0, "callers": 10_000_000, "scopes": ["global"], "keys": ["name", "rules"], "defaults": ["a-few"]}
        redis, settings = {"enabled": True}, {"namespace": "shop", "log": "refused"}
        for plane, gateways, pods, tls in (
            ("istio", [{"namespace": "default", "name": "public"}], ["default"], True),
            ("envoy-gateway", [{"namespace": "default", "name": "a"}, {"namespace": "other", "name": "b"}, {"class": "eg"}], ["envoy-gateway-system"] * 3, False),
        ):
            read = self.file(plane, policies=policies, redis=redis, filter={"settings": settings})
            self.assertEqual({key: read.pop(key) for key in policies}, policies)
            self.assertEqual((read.pop("controlPlane"), read.pop("gateways")), (plane, gateways))
            self.assertEqual([it["namespace"] for it in read["pods"]], pods)
            rendered = self.rendered(plane)
            self.assertEqual([it["labels"] for it in read.pop("pods")], [it["spec"]["selector"] for it in of_kind("Service", rendered)[1:]])
            [deployment] = of_kind("Deployment", rendered)
            companion = {"labels": deployment["spec"]["selector"]["matchLabels"], "port": 8080, "tls": tls}
            self.assertEqual((read.pop("lease"), read.pop("companion")), ("diana-companion", companion))
            # What the filter has, so that both read a document the same way.
            patches = [it for it in self.rendered(plane, policies, redis=redis, filter={"settings": settings}) if it["kind"] in ("EnvoyFilter", "EnvoyPatchPolicy")]
            filter = parts(patches[:1])[0][0]
            own = yaml.safe_load(filter["typed_config"]["config"]["configuration"]["value"])
            self.assertEqual(read.pop("settings"), {key: value for key, value in own.items() if key not in ("limits", "remote")})
            self.assertEqual(read, {})

    def test_each_key_of_a_policy_is_allowed_or_forbidden(self):
        """A new key of Diana is in neither list, and no policy can use it before somebody has decided."""
        # `over` and `hot` change requests of other routes; `quota` is a table of fixed size, `ask` and `on_failure` are about the platform's Redis.
        forbidden = {"over", "hot", "quota", "ask", "on_failure"}
        allowed = self.file("istio")["keys"]
        crd = yaml.safe_load((ROOT / "charts/diana-crds/templates/limitpolicies.yaml").read_text())
        [version] = crd["spec"]["versions"]
        entry = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["limits"]["items"]["properties"]
        every = entry.keys() | entry["rules"]["items"]["properties"].keys()
        self.assertEqual(sorted(allowed), sorted(every - forbidden))

    def test_istio_has_an_admission_policy(self):
        self.assertEqual(of_kind("ValidatingAdmissionPolicy", self.rendered("envoy-gateway")), [])
        [policy] = of_kind("ValidatingAdmissionPolicy", self.rendered("istio"))
        [binding] = of_kind("ValidatingAdmissionPolicyBinding", self.rendered("istio"))
        self.assertEqual((binding["spec"]["policyName"], binding["spec"]["validationActions"]), (policy["metadata"]["name"], ["Deny"]))
        self.assertEqual(policy["spec"]["failurePolicy"], "Fail")


class Refused(unittest.TestCase):
    def check(self, said, **values):
        with self.subTest(said=said):
            told = files(**values)
            self.assertIsInstance(told, str)
            self.assertIn(said, told)

    def test_a_redis_cluster_without_the_proxy(self):
        values = {"enabled": True, "cluster": True, "settings": {"parts": 6}}
        for native in ({}, {"file": FILE}):
            said = "set `redis.proxied: true`"
            self.check(said, controlPlane="envoy-gateway", redis=values, filter={"native": native})
            self.check(said, redis={**values, "proxied": False}, filter={"native": native})
            for plane in ("istio", "envoy-gateway"):
                render(controlPlane=plane, redis={**values, "proxied": True}, filter={"native": native})
            render(controlPlane="envoy-gateway", redis={**values, "enabled": False}, filter={"native": native})

    def test_values_without_a_meaning(self):
        self.check("sha256", filter={"sha256": ""})
        self.check("controlPlane", controlPlane="nginx")
        self.check("port", redis={"enabled": True, "port": "many"})
        self.check("redsi", redsi={"enabled": True})
        self.check("listeners", envoyGateway={"gateways": [{"name": "eg", "listeners": []}]})
        self.check("on_failure", redis={"settings": {"on_failure": "panic"}})
        self.check("timeout", redis={"settings": {"timeout": "2s"}})
        self.check("native", filter={"native": {"sha256": "short"}})

    def test_what_the_host_of_the_dynamic_module_cannot_do(self):
        native = {"file": FILE}
        self.check("mount it", filter={"native": {"sha256": "1" * 64}})
        self.check("set `sha256`, ", controlPlane="envoy-gateway", filter={"native": {"sha256": "1" * 64, **native}})

    def test_policies_that_could_not_hold(self):
        enabled = {"enabled": True}
        self.check("needs `istio.context: GATEWAY`", policies=enabled, istio={**PUBLIC, "context": "SIDECAR_INBOUND"})
        self.check("name the Gateways in `istio.targetRefs`", policies=enabled)
        self.check("has the kind Service", policies=enabled, istio={"targetRefs": [{"group": "", "kind": "Service", "name": "shop"}]})
        self.check("`global` needs `redis.enabled: true`", policies={**enabled, "scopes": ["local", "global"]}, istio=PUBLIC)
        for wrong in ({"keys": ["over"]}, {"keys": ["hot"]}, {"scopes": ["worker"]}, {"namespaces": {"matchLabel": {}}}, {"rule": 7}, {"memory": "256"}):
            self.check(next(iter(wrong)), policies={**enabled, **wrong}, istio=PUBLIC)

    def test_rules_with_a_mistake(self):
        rules = copy.deepcopy(RULES)
        rules["limits"][0]["rules"][0]["burts"] = 3
        self.check("burts", config=rules)

    def test_rules_in_none_or_two_places(self):
        self.check("one of both", config={})
        self.check("one of both", config=RULES, rulesText="limits: []")
        self.check("limits is missing", config={"shadow": True})

    def test_rules_that_a_filter_cannot_have_before_the_first_document(self):
        self.check("a mapping with `limits`", rulesText="- {Url: /, rules: []}", filter={"before": "release"})
        self.check("before", filter={"before": "open"})

    def test_keys_that_rules_cannot_change(self):
        self.check("namespace", config={**RULES, "namespace": "shop"})

    def test_schema_is_that_of_the_rules(self):
        self.assertEqual(keys.VALUES.read_text(), keys.values(), "`python3 tools/keys.py` writes it")


class Checked(unittest.TestCase):
    """`helm template … | diana check -`, the check before a change is applied."""

    FORMS = [
        {},
        {"redis": {"enabled": True, "proxied": False, "username": "diana", "passwordEnv": "PASSWORD", "settings": {"timeout": "50ms"}}},
        {"redis": {"enabled": True, "proxied": True, "cluster": True, "settings": {"parts": 6}, "tls": {"enabled": True}}},
        {"podMonitor": {"enabled": True}, "networkPolicy": {"gateways": True}, "companion": {"tls": {"secret": "companion", "ca": "PEM"}}},
        {"policies": {"enabled": True}, "istio": PUBLIC},
    ]  # fmt: skip

    def check(self, **values):
        texts = files(**values)
        self.assertIsInstance(texts, dict, texts)
        # As `helm template` prints them.
        whole = "".join(f"---\n# Source: {name}\n{text}\n" for name, text in sorted(texts.items()) if name.endswith(".yaml") and text.strip())
        return subprocess.run([os.environ["DIANA_COMMAND"], "check", "-"], input=whole, capture_output=True, text=True)

    def each(self):
        """The forms of the chart: both control planes and both modules, and each place of the rules."""
        for plane, native, form in itertools.product(("istio", "envoy-gateway"), ({}, {"file": FILE}, {"sha256": "1" * 64}), self.FORMS):
            if plane == "istio" and "sha256" in native:
                continue
            # A Redis needs a namespace.
            for settings in ([] if "redis" in form else [{}]) + [{"namespace": "shop", "log": "refused", "admin": {"path": "/.diana", "token_env": "TOKEN"}}]:
                for before in ("none", "release", "closed"):
                    # Behind a load balancer, 503 is advised against.
                    rules = {**RULES, "response": {"status": 429}}
                    yield {"controlPlane": plane, "config": rules, "filter": {"native": native, "settings": settings, "env": ["TOKEN"], "before": before}, **form}

    def test_of_valid_values_finds_no_problem(self):
        for values in self.each():
            with self.subTest(values=values):
                done = self.check(**values)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                # One rule of the document, and one of each filter.
                rules = "1 rule" if values["filter"]["before"] == "none" else "([2-9]|[1-9][0-9]+) rules"
                # A closed gateway answers 503, which is advised against behind a load balancer: there it is out of use indeed.
                advice = "[1-9][0-9]*" if values["filter"]["before"] == "closed" else "0"
                self.assertRegex(done.stdout, rf"(?m)^{rules} without problems, {advice} ")

    def test_of_wrong_rules_has_their_place(self):
        wrong = "limits:\n- Url: /\n  rules:\n  - {actor: all, unit: day, rpu: 3, burts: 2}\n"
        for plane in ("istio", "envoy-gateway"):
            for native in ({}, {"file": FILE}):
                done = self.check(controlPlane=plane, filter={"native": native}, rulesText=wrong)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("did you mean `burst`?", done.stdout)


class InEnvoy(unittest.TestCase):
    def validate(self, rendered):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(bootstrap(rendered, free_port(), free_port(), free_port()))
            file.flush()
            command = [os.environ["DIANA_ENVOY"], "--mode", "validate", "-l", "error", "-c", file.name]
            variables = {**os.environ, "PASSWORD": "any"}
            return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)

    def test_takes_every_form_of_redis(self):
        for form in ({"proxied": False}, {"cluster": True, "tls": {"enabled": True}}, {"username": "diana", "passwordEnv": "PASSWORD"}):
            for native in ({}, {"file": str(LIBRARY)}):
                redis = {"enabled": True, "settings": {"timeout": "50ms"}, **form}
                done = self.validate(render(redis=redis, filter={"native": native}))
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_waits_for_the_companion_then_limits(self):
        samples = self.samples({"sha256": hashlib.sha256(MODULE.read_bytes()).hexdigest()}, MODULE, "wasm")
        self.assertIn({"__name__": "diana_rule_refused", "namespace": "default_diana", "rule": "a_few"}, samples)
        self.assertIn({"__name__": "diana_remote_applied", "namespace": "default_diana"}, samples)

    def test_the_dynamic_module_waits_for_the_companion_then_limits(self):
        samples = self.samples({"native": {"sha256": hashlib.sha256(LIBRARY.read_bytes()).hexdigest()}}, LIBRARY, "so")
        self.assertIn({"__name__": "diana_rule_refused", "namespace": "default_diana", "rule": "a-few"}, samples)
        self.assertIn({"__name__": "diana_remote_applied", "namespace": "default_diana"}, samples)

    def test_a_library_that_envoy_cannot_keep_is_left_out(self):
        filter = {"native": {"sha256": hashlib.sha256(LIBRARY.read_bytes()).hexdigest()}}
        # No user may write there.
        with self.fetching(filter, LIBRARY, "so", kept_in="/proc") as (_, port, get, served):
            with served:
                wait_for(lambda: listens(port), "Envoy listens")
                self.assertEqual([self.status(port) for _ in range(9)], [200] * 9)
                self.assertRegex(get("stats?filter=remote_fetch_error"), r"^dynamic_modules\.remote_fetch_error\b.*: 1\n$")

    def samples(self, filter, module, end):
        """The metrics of an Envoy that gets its module, as Prometheus stores them. It does not listen before."""
        with self.fetching(filter, module, end) as (rendered, port, get, served):
            self.assertEqual(get("ready"), "INITIALIZING\n")
            self.assertFalse(listens(port))
            with served:
                wait_for(lambda: self.status(port) == 503, "the rules are in force in both workers")
                wait_for(lambda: re.search(r"_refused{.*} [1-9]", get("stats/prometheus")), "the refusal is counted")
                [monitor, _] = of_kind("PodMonitor", rendered)
                return [self.relabelled(monitor, line) for line in get("stats/prometheus").splitlines() if line[:1] not in ("#", "")]

    @contextlib.contextmanager
    def fetching(self, filter, module, end, kept_in="."):
        """An Envoy that has asked for its module in vain. Yields the chart, its port, what asks its admin interface, and the companion."""
        rendered = render(controlPlane="envoy-gateway", filter=filter, podMonitor={"enabled": True})
        [document] = [it["data"]["rules.yaml"] for it in of_kind("ConfigMap", rendered)]
        port, admin, serving = free_port(), free_port(), free_port()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "envoy.json"
            file.write_text(bootstrap(rendered, port, admin, serving))
            command = [os.environ["DIANA_ENVOY"], "-c", file, "--disable-hot-restart", "--concurrency", "2", "-l", "warning"]
            # Where Envoy keeps a fetched library.
            with server(command, admin, {"TMPDIR": str(Path(folder) / kept_in)}):
                get = functools.partial(self.get, admin)
                failed = "cluster.diana_default_diana_companion.upstream_cx_connect_fail: "
                wait_for(lambda: failed in get("stats") and failed + "0\n" not in get("stats"), "Envoy asks for the module")
                yield rendered, port, get, companion(serving, document.encode(), module.read_bytes(), end)

    def test_another_module_replaces_the_first(self):
        first = MODULE.read_bytes()
        second = first.replace(b"rate limit exceeded", b"RATE LIMIT EXCEEDED")
        self.assertNotEqual(first, second)
        port, admin, serving = free_port(), free_port(), free_port()
        with tempfile.TemporaryDirectory() as folder:
            file, listeners = Path(folder) / "envoy.json", Path(folder) / "listeners.json"

            def install(module):
                """Writes Envoy's listener with the chart's filter for a module. Returns the rest of the configuration, and the rules."""
                rendered = render(filter={"sha256": hashlib.sha256(module).hexdigest()})
                whole = json.loads(bootstrap(rendered, port, admin, serving))
                [listener] = whole["static_resources"].pop("listeners")
                listener["@type"] = "type.googleapis.com/envoy.config.listener.v3.Listener"
                new = listeners.with_suffix(".new")
                new.write_text(json.dumps({"resources": [listener]}))
                new.rename(listeners)
                whole["dynamic_resources"] = {"lds_config": {"path_config_source": {"path": str(listeners)}}}
                [document] = [it["data"]["rules.yaml"] for it in of_kind("ConfigMap", rendered)]
                return whole, document

            whole, document = install(first)
            file.write_text(json.dumps({"node": {"id": "n", "cluster": "c"}, **whole}))
            command = [os.environ["DIANA_ENVOY"], "-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "warning"]
            with companion(serving, document.encode(), first) as served, server(command, admin):
                wait_for(lambda: self.body(port) == "rate limit exceeded", "the first module limits")
                served[f"/modules/{hashlib.sha256(second).hexdigest()}.wasm"] = second
                install(second)
                answers = []
                wait_for(lambda: answers.append(self.body(port)) or answers[-1] == "RATE LIMIT EXCEEDED", "the second module limits")
        # The usage stays, so that nobody passes in between.
        self.assertEqual(set(answers), {"rate limit exceeded", "RATE LIMIT EXCEEDED"})

    def body(self, port):
        done = subprocess.run(["curl", "-s", f"http://127.0.0.1:{port}/"], capture_output=True, text=True)
        return done.stdout.strip()

    def get(self, admin, path):
        done = subprocess.run(["curl", "-s", f"http://127.0.0.1:{admin}/{path}"], capture_output=True, text=True)
        return done.stdout

    def status(self, port):
        done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://127.0.0.1:{port}/"], capture_output=True, text=True)
        return int(done.stdout)

    def relabelled(self, monitor, line):
        """The labels of a line of metrics, as Prometheus stores them."""
        name, _, rest = line.partition("{")
        labels = {"__name__": name, **dict(re.findall(r'(\w+)="([^"]*)"', rest))}
        for rule in monitor["spec"]["podMetricsEndpoints"][0]["metricRelabelings"]:
            source = ";".join(labels.get(it, "") for it in rule["sourceLabels"])
            if found := re.fullmatch(rule["regex"], source):
                labels[rule["targetLabel"]] = found.expand(re.sub(r"\$(\d)", r"\\g<\1>", rule["replacement"]))
        return labels


class Metrics(unittest.TestCase):
    def test_of_a_sidecar_are_those_of_what_it_receives(self):
        def dropped(**values):
            [monitor, _] = of_kind("PodMonitor", render(podMonitor={"enabled": True}, **values))
            return [it for it in monitor["spec"]["podMetricsEndpoints"][0]["metricRelabelings"] if it.get("action") == "drop"]

        self.assertEqual([it["regex"] for it in dropped(istio={"context": "SIDECAR_INBOUND"})], ["istio_requests_total;source"])
        self.assertEqual(dropped() + dropped(controlPlane="envoy-gateway"), [])

    def test_of_the_dynamic_module_lose_envoys_prefix(self):
        [monitor, _] = of_kind("PodMonitor", render(podMonitor={"enabled": True}))
        for prefix in ("envoy_diana_", "envoy_wasmcustom_diana_"):
            labels = InEnvoy().relabelled(monitor, f'{prefix}rule_refused{{namespace="shop",rule="a-b"}} 1')
            self.assertEqual(labels, {"__name__": "diana_rule_refused", "namespace": "shop", "rule": "a-b"})
        # It is Envoy's own, about the wasm filter `diana`.
        restarts = "envoy_wasm_diana_vm_reload_success"
        self.assertEqual(InEnvoy().relabelled(monitor, f"{restarts}{{}} 1"), {"__name__": restarts})

    def test_of_listeners_name_those_with_and_without_diana(self):
        """By the labels of Envoy Gateway, of Istio, and of an Envoy that makes none of the name."""
        cases = {
            'envoy_http_rbac_shadow_allowed{envoy_rbac_http_prefix="diana_default_diana_",envoy_http_conn_manager_prefix="http-10080"}': "http-10080",
            'envoy_http_rbac_diana_default_diana_{authz_dry_run_result="allowed",http_conn_manager_prefix="outbound_0.0.0.0_80"}': "outbound_0.0.0.0_80",
            'envoy_http_rbac_diana_default_diana_shadow_allowed{envoy_http_conn_manager_prefix="https-443"}': "",
            'envoy_http_rbac_shadow_allowed{envoy_rbac_http_prefix="diana_default_diana_two_",envoy_http_conn_manager_prefix="http-10080"}': None,
            'envoy_http_rbac_diana_default_diana_{authz_dry_run_result="denied",http_conn_manager_prefix="outbound_0.0.0.0_80"}': None,
        }
        for line, listener in cases.items():
            plane = "istio" if "outbound" in line else "envoy-gateway"
            given = {"controlPlane": plane, "envoyGateway": {"gateways": [{"name": "eg", "without": [443]}]}}
            [monitor, _] = of_kind("PodMonitor", render(podMonitor={"enabled": True}, **given))
            found = InEnvoy().relabelled(monitor, f"{line} 0")
            named = found["__name__"] == "diana_listener"
            self.assertEqual((named, found.get("namespace"), found.get("listener")), (listener is not None, "default_diana" if named else None, listener))
            prefix = line.partition("conn_manager_prefix=")[2]
            label = "http" if plane == "istio" else "envoy_http"
            found = InEnvoy().relabelled(monitor, f"envoy_http_downstream_cx_active{{{label}_conn_manager_prefix={prefix} 0")
            self.assertEqual(found["listener"], "" if "443" in line else prefix.split('"')[1])
            admin = InEnvoy().relabelled(monitor, f'envoy_http_downstream_cx_active{{{label}_conn_manager_prefix="admin"}} 0')
            self.assertFalse(admin.get("listener"))

    def test_of_rules_are_all_relabelled(self):
        [monitor, _] = of_kind("PodMonitor", render(podMonitor={"enabled": True}))
        text = monitor["spec"]["podMetricsEndpoints"][0]["metricRelabelings"][0]["regex"]
        page = (ROOT / "docs/reference/answers.md").read_text().partition("## Metrics")[2]
        rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `diana_rule_")]
        names = {name.removeprefix("diana_rule").strip("_") for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
        # `_cut` and its neighbours continue the first name of their row.
        known = re.search(r"\(allowed[^)]*", text)[0].strip("(").split("|")
        self.assertEqual({it for it in known if any(f"_{it}".endswith(f"_{name}") for name in names)}, set(known))
        self.assertEqual([name for name in names if not any(f"_{it}".endswith(f"_{name}") for it in known)], [])
        for name in known:
            found = re.fullmatch(text, f"diana_default_diana_rule_a_b_{name}")
            self.assertEqual(found and found.groups()[:2], ("a_b", name))


if __name__ == "__main__":
    unittest.main()
