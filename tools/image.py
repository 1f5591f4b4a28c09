"""Writes target/image, an OCI layout with the module in both forms that Istio and Envoy Gateway fetch, and its bill of materials.
The result depends on the module, the version and the lock file only: the same build has the same digests."""

import hashlib
import io
import json
import shutil
import struct
import tarfile
import tomllib
import zlib

import sbom
from build import MODULE
from console import ROOT, TARGET, relative, say

IMAGE = TARGET / "image"
SBOM = TARGET / "diana.cdx.json"
# The only file of the image, as the wasm image specification of Istio's and Envoy Gateway's fetchers names it.
PLUGIN = "plugin.wasm"

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
WASM_CONFIG = "application/vnd.module.wasm.config.v1+json"
WASM_LAYER = "application/vnd.module.wasm.content.layer.v1+wasm"
# The most bytes of an uncompressed block of deflate.
BLOCK = 65535


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def labels():
    title = "org.opencontainers.image."
    about = "A rate-limit filter for Envoy and Istio, a proxy-wasm module"
    return {title + "title": "diana", title + "description": about, title + "licenses": "Apache-2.0", title + "version": version()}


def tarred(files):
    """An archive of files by their names, without owner and time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(data), 0o644
            tar.addfile(file, io.BytesIO(data))
    return buffer.getvalue()


def zipped(data):
    """The data as gzip without compression, whose result would depend on the version of zlib."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    out = bytearray(b"\x1f\x8b\x08" + b"\0" * 6 + b"\xff")
    for at, block in enumerate(blocks):
        out += struct.pack("<BHH", at + 1 == len(blocks), len(block), len(block) ^ 0xFFFF) + block
    return bytes(out + struct.pack("<II", zlib.crc32(data), len(data)))


def write(folder, module):
    """Writes the layout. Returns the digests of the image and of the artifact."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "blobs/sha256").mkdir(parents=True)

    def encoded(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    def blob(kind, data):
        """Writes a blob. Returns its entry for a manifest."""
        digest = hashlib.sha256(data).hexdigest()
        (folder / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    def manifest(tag, config, layers, annotations):
        """Writes an image. Returns its entry for the index."""
        about = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        entry = blob(MANIFEST, encoded({**about, "annotations": {**labels(), **annotations}}))
        return {**entry, "annotations": {"org.opencontainers.image.ref.name": tag}}

    tar = tarred({PLUGIN: module})
    root = {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]}
    config = {"architecture": "wasm", "os": "wasip1", "config": {"Labels": labels()}, "rootfs": root}
    about = blob(WASM_CONFIG, encoded({"name": "diana", "type": "envoy_proxy", "abiVersions": ["v0_2_1"]}))
    manifests = [
        manifest(version(), blob(CONFIG, encoded(config)), [blob(LAYER, zipped(tar))], {"module.wasm.image/variant": "compat"}),
        # An artifact has exactly two layers; the first describes the second.
        manifest(version() + "-artifact", about, [about, blob(WASM_LAYER, module)], {}),
    ]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
    (folder / "index.json").write_bytes(encoded(index))
    (folder / "oci-layout").write_bytes(encoded({"imageLayoutVersion": "1.0.0"}))
    return tuple(entry["digest"] for entry in manifests)


def main():
    image, artifact = write(IMAGE, MODULE.read_bytes())
    SBOM.write_bytes(sbom.of(MODULE.read_bytes(), version()))
    say(f"""
{relative(IMAGE)}  an OCI layout
  {version():<16} {image}  an image with {PLUGIN}, for Istio and Envoy Gateway
  {version() + "-artifact":<16} {artifact}  the same as an artifact
{relative(SBOM)}  what is in the module (CycloneDX)
docs/guides/image.md has how to push it, and the manifests in which its digest belongs.
""")


if __name__ == "__main__":
    main()
