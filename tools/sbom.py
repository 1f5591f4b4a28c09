"""The bill of materials of the module or of the command, as CycloneDX: the crates that it is linked from, with the checksums of the lock file."""

import hashlib
import json
import tomllib
import uuid

import needs
from console import ROOT, die, output

TREE = ["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}|{l}"]


def linked(package, target):
    """Names, versions and licenses of the crates of a program, our own included."""
    lines = output([needs.cargo(), *TREE, "--package", package, "--target", target]).splitlines() or die("`cargo tree` prints nothing; is Cargo.lock up to date?")
    # After the version, cargo prints the path of our own crates, and (*) for repeated ones.
    parts = (line.replace(" (*)", "").partition("|") for line in lines)
    return sorted({(*package.split()[:2], license) for package, _, license in parts})


def component(name, version, license, checksums):
    version = version.removeprefix("v")
    purl = f"pkg:cargo/{name}@{version}"
    part = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if license:
        part["licenses"] = [{"expression": license.replace("/", " OR ")}]
    if (name, version) in checksums:
        part["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    return part


def of(data, version, name="diana.wasm", package="diana", target="wasm32-wasip1"):
    """The bill of materials of these bytes; the same bytes have the same one."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(it["name"], it["version"]): it["checksum"] for it in lock if "checksum" in it}
    sha256 = hashlib.sha256(data).hexdigest()
    subject = {"type": "application", "bom-ref": name, "name": name, "version": version}
    subject |= {"licenses": [{"license": {"id": "Apache-2.0"}}], "hashes": [{"alg": "SHA-256", "content": sha256}]}
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, sha256)}", "version": 1}
    bill |= {"metadata": {"component": subject}, "components": [component(*crate, checksums) for crate in linked(package, target)]}
    return json.dumps(bill, indent=1, sort_keys=True).encode() + b"\n"
