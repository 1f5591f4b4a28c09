"""Writes target/image, an OCI layout with the module in both forms that Istio and Envoy Gateway fetch, and its SBOM.

The digests depend only on the module, the version and the lock file, so builds are reproducible.
"""

import gzip
import hashlib
import io
import json
import shutil
import struct
import sys
import tarfile
import tomllib
import zlib
from pathlib import Path

import sbom
from console import ROOT, TARGET, die, relative, say
from size import MODULE

IMAGE = TARGET / "image"
SBOM = TARGET / "diana.cdx.json"
# The only file of the image. The wasm image specification of Istio and Envoy Gateway requires its
# name.
PLUGIN = "plugin.wasm"

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
WASM_CONFIG = "application/vnd.module.wasm.config.v1+json"
WASM_LAYER = "application/vnd.module.wasm.content.layer.v1+wasm"
# Maximum number of bytes in an uncompressed block of deflate.
BLOCK = 65535


def encoded(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def labels():
    return {
        "org.opencontainers.image.title": "diana",
        "org.opencontainers.image.description": "A rate-limit filter for Envoy and Istio, a proxy-wasm module",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version(),
    }


def tarred(files):
    """An archive of files by name, without owners and times."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(data), 0o644
            tar.addfile(file, io.BytesIO(data))
    return buffer.getvalue()


def zipped(data):
    """In gzip format without compression, since compressed bytes depend on the version of zlib."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    out = bytearray(b"\x1f\x8b\x08" + b"\0" * 6 + b"\xff")
    for at, block in enumerate(blocks):
        out += struct.pack("<BHH", at + 1 == len(blocks), len(block), len(block) ^ 0xFFFF) + block
    return bytes(out + struct.pack("<II", zlib.crc32(data), len(data)))


class Layout:
    """A folder in the form of an OCI layout."""

    def __init__(self, folder):
        self.folder, self.manifests = folder, []
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "blobs/sha256").mkdir(parents=True)

    def blob(self, kind, data):
        """Stores the bytes, and returns their descriptor for a manifest."""
        name = digest(data)
        (self.folder / "blobs" / name.replace(":", "/")).write_bytes(data)
        return {"mediaType": kind, "digest": name, "size": len(data)}

    def manifest(self, tag, config, layers, annotations):
        """Adds an image under a tag, and returns its digest."""
        told = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        entry = self.blob(MANIFEST, encoded({**told, "annotations": {**labels(), **annotations}}))
        self.manifests.append({**entry, "annotations": {"org.opencontainers.image.ref.name": tag}})
        return entry["digest"]

    def close(self):
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": self.manifests}
        (self.folder / "index.json").write_bytes(encoded(index))
        (self.folder / "oci-layout").write_bytes(encoded({"imageLayoutVersion": "1.0.0"}))


def write(folder, module):
    """Writes the layout. Returns the digests of the image and of the artifact."""
    layout, tar = Layout(folder), tarred({PLUGIN: module})
    root = {"type": "layers", "diff_ids": [digest(tar)]}
    config = {"architecture": "wasm", "os": "wasip1", "config": {"Labels": labels()}, "rootfs": root}
    image = layout.manifest(
        version(),
        layout.blob(CONFIG, encoded(config)),
        [layout.blob(LAYER, zipped(tar))],
        {"module.wasm.image/variant": "compat"},
    )
    # An artifact has exactly two layers. The first names the runtime of the second.
    about = layout.blob(WASM_CONFIG, encoded({"name": "diana", "type": "envoy_proxy", "abiVersions": ["v0_2_1"]}))
    artifact = layout.manifest(version() + "-artifact", about, [about, layout.blob(WASM_LAYER, module)], {})
    layout.close()
    return image, artifact


def unpacked(folder, tag):
    """The module in a layout, extracted like the fetchers do from the image or the artifact with this tag."""
    index = json.loads((folder / "index.json").read_bytes())

    def blob(entry):
        data = (folder / "blobs" / entry["digest"].replace(":", "/")).read_bytes()
        if digest(data) != entry["digest"]:
            die(f"{relative(folder)}: {entry['digest']} has other bytes")
        return data

    tags = {entry.get("annotations", {}).get("org.opencontainers.image.ref.name"): entry for entry in index["manifests"]}
    if tag not in tags:
        die(f"{relative(folder)} has no {tag}; there are {', '.join(map(str, tags))}")
    layers = json.loads(blob(tags[tag]))["layers"]
    if layers[-1]["mediaType"] == LAYER:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layers[-1])))) as tar:
            return tar.extractfile(PLUGIN).read()
    return blob(next(layer for layer in layers if layer["mediaType"] == WASM_LAYER))


def told(image, artifact):
    tag = version()
    sha256 = image.removeprefix("sha256:")
    return f"""
{relative(IMAGE)}  an OCI layout
  {tag:<16} {image}  an image with {PLUGIN}, for Istio and Envoy Gateway
  {tag + "-artifact":<16} {artifact}  the same as an artifact
{relative(SBOM)}  what is in the module (CycloneDX)

Push it, for example with skopeo or oras, to a registry of yours:
  skopeo copy --preserve-digests oci:{relative(IMAGE)}:{tag} docker://registry.example.com/diana:{tag}

Istio 1.30 or later, in a WasmPlugin (or envoy/istio/image.yaml):
  url: oci://registry.example.com/diana:{tag}
  sha256: {sha256}

Envoy Gateway 1.8 or later, in an EnvoyExtensionPolicy:
  code:
    type: Image
    image: {{url: registry.example.com/diana:{tag}, sha256: {sha256}}}
"""


def main(arguments):
    module = Path(arguments[0]) if arguments else MODULE
    if not module.is_file():
        die(f"{relative(module)} is not there; make build builds it")
    digests = write(IMAGE, module.read_bytes())
    SBOM.write_bytes(sbom.of(module.read_bytes(), version()))
    say(told(*digests))


if __name__ == "__main__":
    main(sys.argv[1:])
