"""The contents of the module in CycloneDX: its crates from the lock file with their checksums."""

import hashlib
import json
import tomllib
import uuid

import needs
from console import ROOT, die, output

TREE = ["tree", "--locked", "--package", "diana", "--target", "wasm32-wasip1", "--edges", "normal", "--prefix", "none"]


def linked():
    """Names, versions and licenses of the crates in the module, including our own."""
    lines = output([needs.cargo(), *TREE, "--format", "{p}|{l}"]).splitlines()
    if not lines:
        die("`cargo tree` says nothing; is Cargo.lock up to date?")
    found = set()
    for line in lines:
        # A line of our own crates ends with their path, and a repeated one with (*).
        package, _, license = line.replace(" (*)", "").partition("|")
        name, number = package.split()[:2]
        found.add((name, number.removeprefix("v"), license))
    return sorted(found)


def component(name, version, license, checksums):
    purl = f"pkg:cargo/{name}@{version}"
    told = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if license:
        told["licenses"] = [{"expression": license.replace("/", " OR ")}]
    if (name, version) in checksums:
        told["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    return told


def of(module, version):
    """The bill of materials of these bytes, reproducible."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(it["name"], it["version"]): it["checksum"] for it in lock if "checksum" in it}
    sha256 = hashlib.sha256(module).hexdigest()
    subject = {
        "type": "application",
        "bom-ref": "diana.wasm",
        "name": "diana.wasm",
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "hashes": [{"alg": "SHA-256", "content": sha256}],
    }
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, sha256)}",
        "version": 1,
        "metadata": {"component": subject},
        "components": [component(*crate, checksums) for crate in linked()],
    }
    return json.dumps(bill, indent=1, sort_keys=True).encode() + b"\n"
