"""`make release` and what follows: all parts of a release, reproducible, and in a registry by the digests that are signed."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import yaml
from servers import ROOT, free_port, server
from test_image import copy, registry

sys.path.insert(0, str(ROOT / "tools"))
import companion  # noqa: E402
import image  # noqa: E402
import layout  # noqa: E402
import native  # noqa: E402
import publish  # noqa: E402
import release  # noqa: E402


def repository(name):
    return mock.patch.dict(os.environ, GITHUB_REPOSITORY=name)


def described(bill):
    """The SHA-256 of what a bill of materials is about."""
    return json.loads(bill)["metadata"]["component"]["hashes"][0]["content"]


class Release(unittest.TestCase):
    def test_has_all_parts_and_their_checksums(self):
        version = image.version()
        with repository(layout.repository()):
            release.main(f"v{version}")
        sums = dict(reversed(line.split()) for line in (release.RELEASE / "SHA256SUMS").read_text().splitlines())
        files = {path.name: path.read_bytes() for path in release.RELEASE.iterdir() if path.name != "SHA256SUMS"}
        self.assertEqual(sums, {name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
        self.assertEqual(files[f"diana-{version}.wasm"], image.MODULE.read_bytes())
        self.assertEqual(described(files[f"diana-{version}.cdx.json"]), sums[f"diana-{version}.wasm"])
        for architecture in layout.PLATFORMS.values():
            name = f"diana-{version}-{companion.target(architecture)}"
            with tarfile.open(release.RELEASE / f"{name}.tar.gz") as archive:
                command = archive.extractfile("diana").read()
                self.assertEqual((archive.getnames(), archive.getmember("diana").mode), (["LICENSE", "diana"], 0o755))
            self.assertEqual(described(files[f"{name}.cdx.json"]), hashlib.sha256(command).hexdigest())
            library = f"libdiana-{version}-{architecture}"
            self.assertEqual(files[f"{library}.so"], native.library(architecture).read_bytes())
            self.assertEqual(described(files[f"{library}.cdx.json"]), sums[f"{library}.so"])
        with tarfile.open(release.RELEASE / f"diana-crds-chart-{version}.tgz") as chart:
            self.assertEqual(yaml.safe_load(chart.extractfile("diana-crds/Chart.yaml"))["version"], version)
            definition = yaml.safe_load(chart.extractfile("diana-crds/templates/limitpolicies.yaml"))
        self.assertEqual(definition["metadata"]["annotations"]["limits.diana.internal/version"], version)
        with tarfile.open(release.RELEASE / f"diana-chart-{version}.tgz") as chart:
            self.assertEqual(yaml.safe_load(chart.extractfile("diana/Chart.yaml"))["version"], version)
            values = yaml.safe_load(chart.extractfile("diana/values.yaml"))
        self.assertEqual((values["filter"]["sha256"], values["filter"]["native"]["sha256"]), (sums[f"diana-{version}.wasm"], ""))
        [index] = layout.tags(companion.COMPANION).values()
        self.assertEqual(values["companion"]["image"], f"{release.registry()}-companion:{version}@{index}")
        release.main()
        self.assertEqual(files, {name: (release.RELEASE / name).read_bytes() for name in files})
        self.published()
        self.unpacked(version)

    def published(self):
        """A registry has everything under the digests that the release signs, and Helm's form of the charts."""
        signed = [line.split() for line in release.IMAGES.read_text().splitlines()]
        self.assertEqual(len(signed), 6)
        with registry() as remote, tempfile.TemporaryDirectory() as folder:
            publish.main(remote.removeprefix("docker://"), "--dest-tls-verify=false", "--insecure-policy")
            for digest, name in signed:
                found = f"{remote}{name.removeprefix(release.registry())}@sha256:{digest}"
                pulled = copy(found, f"oci:{folder}/{digest}:it", "--all")
                self.assertEqual(pulled.returncode, 0, pulled.stderr)
                self.assertEqual(layout.tags(Path(folder, digest)), {"it": f"sha256:{digest}"})
                if name.rpartition("/")[2] in release.CHARTS.values():
                    self.is_chart(Path(folder, digest, "blobs/sha256"), digest, name.rpartition("/")[2])

    def is_chart(self, blobs, digest, name):
        manifest = json.loads((blobs / digest).read_bytes())
        config = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_bytes())
        facts = yaml.safe_load((ROOT / f"charts/{name}/Chart.yaml").read_text())
        self.assertEqual(config, {key: fact for key, fact in facts.items() if isinstance(fact, str)})
        archive = (release.RELEASE / f"{name}-chart-{image.version()}.tgz").read_bytes()
        self.assertEqual([layer["digest"] for layer in manifest["layers"]], [f"sha256:{hashlib.sha256(archive).hexdigest()}"])

    def unpacked(self, version):
        """The command for this machine runs after the steps of the notes."""
        [steps] = re.findall(r"^```sh\n(VERSION=.*?)^```$", (release.RELEASE / "NOTES.md").read_text(), flags=re.M | re.S)
        port = free_port()
        steps = steps.replace(f"https://github.com/{layout.repository()}/releases/download/v$VERSION", f"http://127.0.0.1:{port}")
        files = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(release.RELEASE), str(port)]
        with server(files, port), tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["bash", "-euc", steps], cwd=folder, capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines()[-1:], [f"diana {version}"], done.stderr)

    def test_a_tag_or_an_address_that_does_not_fit_is_refused(self):
        with repository(layout.repository()), self.assertRaises(SystemExit):
            release.check("v9.9.9")
        with repository("someone/else"), self.assertRaises(SystemExit):
            release.check(f"v{image.version()}")

    def test_the_address_is_the_same_everywhere(self):
        found = subprocess.run(["git", "grep", "-hoE", r"(github\.com|ghcr\.io)/[^/ ]+/diana\b", "--", "*.md", "charts", "envoy", "tools"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual({re.sub(r".*?/", "", it, count=1) for it in found.stdout.split()} - {layout.repository()}, set())

    def test_the_version_is_the_same_everywhere(self):
        manifests = subprocess.run(["git", "grep", "-hoE", r"(diana:|libdiana-)[0-9]+\.[0-9]+\.[0-9]+", "--", "charts", "docs", "envoy"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(set(manifests.stdout.split()), {f"diana:{image.version()}", f"libdiana-{image.version()}"})


if __name__ == "__main__":
    unittest.main()
