"""`make image`: both forms are unchanged after a push to a registry and a pull."""

import contextlib
import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

from servers import ROOT, free_port, server

sys.path.insert(0, str(ROOT / "tools"))
import image  # noqa: E402
import layout  # noqa: E402
import native  # noqa: E402
import sbom  # noqa: E402

# More than one block of deflate.
MODULE = b"\0asm" + bytes(range(256)) * 700
LIBRARIES = {"amd64": b"\x7fELF" + MODULE, "arm64": b"\x7fELF other"}


@contextlib.contextmanager
def registry():
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yml"
        storage = {"filesystem": {"rootdirectory": folder}}
        config.write_text(json.dumps({"version": 0.1, "storage": storage, "http": {"addr": f"127.0.0.1:{port}"}}))
        with server(["docker-registry", "serve", config], port):
            yield f"docker://127.0.0.1:{port}/diana"


def copy(source, destination, *more):
    flags = ["--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false", "--insecure-policy"]
    return subprocess.run(["skopeo", *flags[3:], "copy", *flags[:3], *more, source, destination], capture_output=True, text=True)


def unpacked(folder, tag):
    """The module in a layout, as the fetchers extract it from the image or the artifact with this tag."""

    def blob(entry):
        data = (folder / "blobs" / entry["digest"].replace(":", "/")).read_bytes()
        if entry["digest"] != "sha256:" + hashlib.sha256(data).hexdigest():
            raise ValueError(f"{entry['digest']} has other bytes")
        return data

    index = json.loads((folder / "index.json").read_bytes())
    [found] = [entry for entry in index["manifests"] if entry["annotations"]["org.opencontainers.image.ref.name"] == tag]
    layers = json.loads(blob(found))["layers"]
    if layers[-1]["mediaType"] == layout.LAYER:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layers[-1])))) as tar:
            return tar.extractfile(image.PLUGIN).read()
    return blob(next(layer for layer in layers if layer["mediaType"] == image.WASM_LAYER))


def content(folder, entry):
    return (folder / "blobs" / entry["digest"].replace(":", "/")).read_bytes()


def images(folder):
    """The configuration and the archive of each platform of the only image in a layout."""
    [tagged] = json.loads((folder / "index.json").read_bytes())["manifests"]
    found = {}
    for entry in json.loads(content(folder, tagged))["manifests"]:
        manifest = json.loads(content(folder, entry))
        [layer] = manifest["layers"]
        archive = tarfile.open(fileobj=io.BytesIO(content(folder, layer)), mode="r:gz")
        found[entry["platform"]["architecture"]] = json.loads(content(folder, manifest["config"])), archive
    return found


class Image(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.layout = self.folder / "image"
        *self.digests, self.mounted = image.write(self.layout, MODULE, LIBRARIES)
        self.tags = [image.version(), image.version() + "-artifact"]

    def test_the_same_module_makes_the_same_bytes(self):
        def files(folder):
            return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

        again = self.folder / "elsewhere/again"
        self.assertEqual(image.write(again, MODULE, dict(reversed(LIBRARIES.items()))), (*self.digests, self.mounted))
        self.assertEqual(files(again), files(self.layout))
        for digest, other in zip((*self.digests, self.mounted), image.write(again, MODULE + b"\0", LIBRARIES)):
            self.assertNotEqual(digest, other)

    def test_both_forms_come_back_from_a_registry(self):
        with registry() as remote:
            for tag, digest in zip(self.tags, self.digests):
                with self.subTest(tag=tag):
                    pushed = copy(f"oci:{self.layout}:{tag}", f"{remote}:{tag}")
                    self.assertEqual(pushed.returncode, 0, pushed.stderr)
                    back = self.folder / tag
                    # By the printed digest, as in a manifest with `sha256`.
                    pulled = copy(f"{remote}@{digest}", f"oci:{back}:{tag}")
                    self.assertEqual(pulled.returncode, 0, pulled.stderr)
                    self.assertEqual(unpacked(back, tag), MODULE)

    def test_the_forms_are_those_that_the_fetchers_take(self):
        kinds = []
        for digest in self.digests:
            manifest = json.loads((self.layout / "blobs" / digest.replace(":", "/")).read_bytes())
            self.assertEqual(manifest["annotations"]["org.opencontainers.image.version"], image.version())
            kinds.append([layer["mediaType"] for layer in manifest["layers"]])
        # istio/istio and envoyproxy/gateway, imagefetcher.go: the last layer, and one of exactly
        # two.
        self.assertEqual(kinds[0], ["application/vnd.oci.image.layer.v1.tar+gzip"])
        wasm = "application/vnd.module.wasm"
        self.assertEqual(kinds[1], [f"{wasm}.config.v1+json", f"{wasm}.content.layer.v1+wasm"])

    def test_the_image_to_mount_has_files_for_each_platform(self):
        tag = image.version() + "-native"
        with registry() as remote:
            pushed = copy(f"oci:{self.layout}:{tag}", f"{remote}:{tag}", "--all")
            self.assertEqual(pushed.returncode, 0, pushed.stderr)
            pulled = copy(f"{remote}@{self.mounted}", f"oci:{self.folder / tag}:{tag}", "--all")
            self.assertEqual(pulled.returncode, 0, pulled.stderr)
        found = images(self.folder / tag)
        for platform, (config, archive) in found.items():
            files = {it.name: archive.extractfile(it).read() for it in archive}
            self.assertEqual(files, {image.PLUGIN: MODULE, native.versioned(): LIBRARIES[platform]})
            self.assertEqual(config["architecture"], platform)
        self.assertEqual(set(found), set(LIBRARIES))

    def test_what_cannot_be_fetched_says_why(self):
        away = copy(f"oci:{self.layout}:{self.tags[0]}", f"docker://127.0.0.1:{free_port()}/diana:1")
        self.assertIn("connection refused", away.stderr)
        with registry() as remote:
            copy(f"oci:{self.layout}:{self.tags[0]}", f"{remote}:1")
            other = "sha256:" + "0" * 64
            self.assertIn("manifest unknown", copy(f"{remote}@{other}", f"oci:{self.folder}/x:1").stderr)

    def test_bytes_that_do_not_fit_their_digest_are_refused(self):
        # The module in the artifact.
        blob = self.layout / "blobs/sha256" / hashlib.sha256(MODULE).hexdigest()
        blob.write_bytes(blob.read_bytes() + b"\0")
        with self.assertRaises(ValueError):
            for tag in self.tags:
                unpacked(self.layout, tag)


class Module(unittest.TestCase):
    def test_tells_nothing_of_who_built_it(self):
        module = image.MODULE.read_bytes()
        for folder in (ROOT, Path.home()):
            self.assertNotIn(str(folder).encode() + b"/", module)


class BillOfMaterials(unittest.TestCase):
    def test_names_what_the_module_is_linked_from(self):
        bill = json.loads(sbom.of(MODULE, "1.2.3"))
        components = {part["name"]: part for part in bill["components"]}
        self.assertLessEqual({"diana", "diana-limiter", "proxy-wasm", "hashbrown"}, set(components))
        # Only our own crates have no source.
        self.assertTrue(all("hashes" in part or name.startswith("diana") for name, part in components.items()))
        # Excludes dependencies of tests and build tools.
        self.assertFalse({"wasmi", "insta", "syn"} & set(components))
        self.assertEqual(sbom.of(MODULE, "1.2.3"), sbom.of(MODULE, "1.2.3"))


if __name__ == "__main__":
    unittest.main()
