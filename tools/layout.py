"""Writes images as OCI layouts: folders that skopeo, oras and crane push. The same files make the same bytes."""

import hashlib
import io
import json
import shutil
import struct
import tarfile
import tomllib
import zlib

from console import ROOT

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
# The names of a platform in images, and in Rust and GCC.
PLATFORMS = {"amd64": "x86_64", "arm64": "aarch64"}
# The most bytes of an uncompressed block of deflate.
BLOCK = 65535


def about():
    """What Cargo.toml says about all crates."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


def version():
    return about()["version"]


def repository():
    """The owner and the name of the project's repository."""
    return about()["repository"].removeprefix("https://github.com/")


def labels(title, description):
    facts = {"title": title, "description": description, "licenses": "Apache-2.0", "version": version(), "source": about()["repository"]}
    return {f"org.opencontainers.image.{name}": fact for name, fact in facts.items()}


def tarred(files, executable=()):
    """An archive of files by their names, without owner and time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(data), 0o755 if name in executable else 0o644
            tar.addfile(file, io.BytesIO(data))
    return buffer.getvalue()


def zipped(data):
    """The data as gzip without compression, whose result would depend on the version of zlib."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    out = bytearray(b"\x1f\x8b\x08" + b"\0" * 6 + b"\xff")
    for at, block in enumerate(blocks):
        out += struct.pack("<BHH", at + 1 == len(blocks), len(block), len(block) ^ 0xFFFF) + block
    return bytes(out + struct.pack("<II", zlib.crc32(data), len(data)))


def encoded(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Layout:
    """A layout in a folder, which is written anew."""

    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "blobs/sha256").mkdir(parents=True)

    def blob(self, kind, data):
        """Writes a blob. Returns its entry for a manifest."""
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    def manifest(self, config, layers, annotations):
        """Writes the manifest of an image. Returns its entry."""
        about = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers, "annotations": annotations}
        return self.blob(MANIFEST, encoded(about))

    def image(self, config, tar, annotations):
        """Writes an image of one layer. Returns its entry."""
        root = {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]}
        about = self.blob(CONFIG, encoded({**config, "rootfs": root}))
        return self.manifest(about, [self.blob(LAYER, zipped(tar))], annotations)

    def images(self, archives, config, annotations):
        """Writes an image for each platform, of archives by platform. Returns the entry of their index."""
        images = []
        for platform, tar in sorted(archives.items()):
            place = {"architecture": platform, "os": "linux"}
            images.append({**self.image({**place, "config": config}, tar, annotations), "platform": place})
        return self.index(images, annotations)

    def index(self, manifests, annotations):
        """Writes the index of the images of several platforms. Returns its entry."""
        about = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": annotations}
        return self.blob(INDEX, encoded(about))

    def tag(self, tagged):
        """Completes the layout with the names of its images."""
        manifests = [{**entry, "annotations": {"org.opencontainers.image.ref.name": tag}} for tag, entry in tagged.items()]
        (self.folder / "index.json").write_bytes(encoded({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}))
        (self.folder / "oci-layout").write_bytes(encoded({"imageLayoutVersion": "1.0.0"}))


def tags(folder):
    """The digests of the images in a layout, by their tags."""
    entries = json.loads((folder / "index.json").read_bytes())["manifests"]
    return {entry["annotations"]["org.opencontainers.image.ref.name"]: entry["digest"] for entry in entries}
