"""`make release`: all parts of a release, reproducible."""

import hashlib
import json
import subprocess
import sys
import tarfile
import unittest

import yaml
from servers import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import image  # noqa: E402
import release  # noqa: E402


class Release(unittest.TestCase):
    def test_has_all_parts_and_their_checksums(self):
        version = image.version()
        release.main(f"v{version}")
        sums = dict(reversed(line.split()) for line in (release.RELEASE / "SHA256SUMS").read_text().splitlines())
        files = {path.name: path.read_bytes() for path in release.RELEASE.iterdir() if path.name != "SHA256SUMS"}
        self.assertEqual(sums, {name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
        self.assertEqual(files[f"diana-{version}.wasm"], image.MODULE.read_bytes())
        bill = json.loads(files[f"diana-{version}.cdx.json"])
        self.assertEqual(bill["metadata"]["component"]["hashes"][0]["content"], sums[f"diana-{version}.wasm"])
        with tarfile.open(release.RELEASE / f"diana-chart-{version}.tgz") as chart:
            self.assertEqual(yaml.safe_load(chart.extractfile("diana/Chart.yaml"))["version"], version)
            values = yaml.safe_load(chart.extractfile("diana/values.yaml"))
        self.assertEqual(values["filter"]["sha256"], sums[f"diana-{version}.wasm"])
        release.main(f"v{version}")
        self.assertEqual(files, {name: (release.RELEASE / name).read_bytes() for name in files})

    def test_a_tag_that_does_not_fit_is_refused(self):
        with self.assertRaises(SystemExit):
            release.main("v9.9.9")

    def test_the_version_is_the_same_everywhere(self):
        manifests = subprocess.run(["git", "grep", "-hoE", r"diana:[0-9]+\.[0-9]+\.[0-9]+", "--", "charts", "docs", "envoy"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(set(manifests.stdout.split()), {f"diana:{image.version()}"})


if __name__ == "__main__":
    unittest.main()
