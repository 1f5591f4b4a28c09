"""The contents of a pod's volumes and of its environment."""

import base64
import json
import os
import re
import shutil

from network import HOST

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
# What this node has, for pods without a limit.
NODE = {"cpu": "2", "memory": "8Gi"}


class Missing(Exception):
    """A Secret or a ConfigMap that the pod needs does not exist yet."""


def quantity(text):
    """The number that Kubernetes puts into a variable: whole processors, bytes."""
    if text.endswith("m"):
        return -(-int(text[:-1]) // 1000)
    number, unit = re.fullmatch(r"([0-9.]+)(\w*)", text).groups()
    return int(float(number) * UNITS[unit])


class Contents:
    """Reads what a pod refers to."""

    def __init__(self, api, pod, address):
        self.api, self.pod, self.address = api, pod, address
        self.namespace, self.name = pod["metadata"]["namespace"], pod["metadata"]["name"]

    def object(self, kind, name, optional):
        found = self.api.find(f"/api/v1/namespaces/{self.namespace}/{kind}/{name}")
        if not found and not optional:
            raise Missing(f"{kind} {name}")
        return found or {}

    def data(self, kind, name, optional=False):
        """The files of a Secret or a ConfigMap."""
        found = self.object(kind, name, optional)
        binary = found.get("data", {}) if kind == "secrets" else found.get("binaryData", {})
        texts = {} if kind == "secrets" else found.get("data", {})
        return {key: base64.b64decode(text) for key, text in binary.items()} | {key: text.encode() for key, text in texts.items()}

    def files(self, source):
        """The files of a volume; `None` if the pod itself writes them."""
        if "secret" in source:
            it = source["secret"]
            return chosen(it, self.data("secrets", it.get("secretName") or it["name"], it.get("optional")))
        if "configMap" in source:
            it = source["configMap"]
            return chosen(it, self.data("configmaps", it["name"], it.get("optional")))
        if "downwardAPI" in source:
            return {it["path"]: self.field(it).encode() for it in source["downwardAPI"]["items"]}
        if "serviceAccountToken" in source:
            return {source["serviceAccountToken"]["path"]: self.token(source["serviceAccountToken"])}
        if "projected" in source:
            return {path: text for it in source["projected"]["sources"] for path, text in self.files(it).items()}
        return None

    def token(self, wanted):
        spec = {
            "expirationSeconds": wanted.get("expirationSeconds", 3600),
            "audiences": [wanted["audience"]] if "audience" in wanted else [],
        }
        spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": self.name, "uid": self.pod["metadata"]["uid"]}
        account = self.pod["spec"].get("serviceAccountName", "default")
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return self.api("POST", path, asked)["status"]["token"].encode()

    def field(self, source, container=None):
        """The value of a `fieldRef` or a `resourceFieldRef`."""
        if "resourceFieldRef" in source:
            part, _, resource = source["resourceFieldRef"]["resource"].partition(".")
            given = (container or {}).get("resources", {}).get(part, {}).get(resource)
            return str(quantity(given or NODE.get(resource, "0")))
        path = source["fieldRef"]["fieldPath"]
        if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
            return self.pod["metadata"].get(found[1], {}).get(found[2], "")
        if path in ("metadata.labels", "metadata.annotations"):
            every = self.pod["metadata"].get(path.split(".")[1], {})
            return "\n".join(f"{key}={json.dumps(value)}" for key, value in every.items())
        if path in ("status.podIP", "status.podIPs"):
            return self.address
        if path == "status.hostIP":
            return HOST
        part, _, key = path.partition(".")
        return str(self.pod[part].get(key, ""))

    def environment(self, container):
        found = {"KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": "6443", "HOSTNAME": self.name}
        for source in container.get("envFrom", []):
            for kind, ref in (("secrets", "secretRef"), ("configmaps", "configMapRef")):
                if it := source.get(ref):
                    found |= {
                        source.get("prefix", "") + key: text.decode()
                        for key, text in self.data(kind, it["name"], it.get("optional")).items()
                    }
        for variable in container.get("env", []):
            value = self.variable(variable, container)
            if value is not None:
                found[variable["name"]] = expanded(value, found)
        return found

    def variable(self, variable, container):
        source = variable.get("valueFrom")
        if not source:
            return variable.get("value", "")
        for kind, ref in (("secrets", "secretKeyRef"), ("configmaps", "configMapKeyRef")):
            if it := source.get(ref):
                text = self.data(kind, it["name"], it.get("optional")).get(it["key"])
                if text is None and not it.get("optional"):
                    raise Missing(f"{it['key']} of {kind} {it['name']}")
                return text and text.decode()
        return self.field(source, container)


def chosen(source, data):
    """With `items`, only those, below their paths."""
    return {it["path"]: data[it["key"]] for it in source["items"] if it["key"] in data} if "items" in source else data


def expanded(text, variables):
    """Replaces `$(NAME)`."""
    return re.sub(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", lambda found: variables.get(found[1], found[0]), text)


def lay(folder, files):
    """Writes files so that readers see either all old or all new ones, as a kubelet does."""
    link = folder / "..data"
    before = os.readlink(link) if link.is_symlink() else ""
    if before and read(folder / before) == files:
        return
    after = f"..{int(before[2:] or 0) + 1}" if before else "..1"
    for path, text in files.items():
        (folder / after / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / after / path).write_bytes(text)
    (folder / after).mkdir(exist_ok=True)
    (folder / "..new").symlink_to(after)
    (folder / "..new").rename(link)
    for name in {path.split("/")[0] for path in files}:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    for entry in folder.iterdir():
        if not entry.name.startswith("..") and not entry.exists():
            entry.unlink()
    if before:
        shutil.rmtree(folder / before)


def read(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
