"""`make image`: the companion's image goes through a registry, and its command runs from an empty file system."""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

from servers import ROOT
from test_image import copy, images, registry

sys.path.insert(0, str(ROOT / "tools"))
import companion  # noqa: E402
import native  # noqa: E402
from build import MODULE  # noqa: E402
from layout import version  # noqa: E402

COMMANDS = {"amd64": b"\x7fELF amd64", "arm64": b"\x7fELF arm64"}
LIBRARIES = {"amd64": b"\x7fELF library", "arm64": b"\x7fELF other library"}
MODULES = [b"\0asm now", b"\0asm before"]


class Image(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.layout = self.folder / "companion"
        self.digest = companion.write(self.layout, COMMANDS, LIBRARIES, MODULES)

    def test_the_same_files_make_the_same_bytes(self):
        def files(folder):
            return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

        again = self.folder / "again"
        self.assertEqual(companion.write(again, dict(reversed(COMMANDS.items())), LIBRARIES, MODULES), self.digest)
        self.assertEqual(files(again), files(self.layout))
        self.assertNotEqual(companion.write(again, COMMANDS, LIBRARIES, MODULES[:1]), self.digest)

    def test_all_platforms_come_back_from_a_registry(self):
        with registry() as remote:
            pushed = copy(f"oci:{self.layout}:{version()}", f"{remote}:1", "--all")
            self.assertEqual(pushed.returncode, 0, pushed.stderr)
            back = self.folder / "back"
            pulled = copy(f"{remote}@{self.digest}", f"oci:{back}:1", "--all")
            self.assertEqual(pulled.returncode, 0, pulled.stderr)
        for folder in (self.layout, back):
            found = images(folder)
            self.assertEqual(set(found), {"amd64", "arm64"})
            for platform, (config, archive) in found.items():
                files = {it.name: (archive.extractfile(it).read(), it.mode) for it in archive}
                served = {f"modules/{hashlib.sha256(it).hexdigest()}.wasm": (it, 0o644) for it in MODULES}
                served |= {f"modules/{hashlib.sha256(it).hexdigest()}.so": (it, 0o644) for it in LIBRARIES.values()}
                own = {"diana": (COMMANDS[platform], 0o755), native.versioned(): (LIBRARIES[platform], 0o644)}
                self.assertEqual(files, {**own, **served})
                self.assertEqual((config["architecture"], config["os"]), (platform, "linux"))
                self.assertEqual((config["config"]["User"], config["config"]["Entrypoint"]), ("65532:65532", ["/diana"]))


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        companion.main()

    def test_serves_from_an_empty_file_system(self):
        # Its own platform.
        platform = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        config, archive = images(companion.COMPANION)[platform]
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            root.chmod(0o755)
            archive.extractall(root, filter="data")
            (root / "etc/diana").mkdir(parents=True)
            (root / "etc/diana/rules.yaml").write_text("limits: []\n")
            user = config["config"]["User"]
            words = ["chroot", f"--userspec={user}", root, *config["config"]["Entrypoint"], *config["config"]["Cmd"], "--listen", "127.0.0.1:0"]
            with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
                try:
                    lines = []
                    while not (lines and "listening" in lines[-1]):
                        lines.append(process.stderr.readline() or self.fail(lines))
                    address = re.search(r"http://\S+", lines[-1])[0]
                    library = native.library(os.uname().machine).read_bytes()
                    modules = [(f"/{companion.served(it)}", it) for it in (MODULE.read_bytes(), library)]
                    for path, wanted in (("/ready", b"ready\n"), *modules):
                        with urllib.request.urlopen(address + path) as answer:
                            self.assertEqual(answer.read(), wanted)
                    status = Path(f"/proc/{process.pid}/status").read_text()
                    self.assertIn("Uid:\t65532\t65532\t65532\t65532", status)
                finally:
                    process.terminate()
            self.assertEqual(process.returncode, 0)

    def test_copies_its_library_into_a_volume(self):
        platform = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        _, archive = images(companion.COMPANION)[platform]
        with tempfile.TemporaryDirectory() as folder:
            archive.extractall(folder, filter="data")
            volume = Path(folder, "etc/diana")
            volume.mkdir(parents=True)
            subprocess.run(["chroot", folder, "/diana", "copy", f"/{native.versioned()}", "/etc/diana"], check=True)
            self.assertEqual({it.name: it.read_bytes() for it in volume.iterdir()}, {native.versioned(): native.LIBRARY.read_bytes()})

    def test_names_no_folder_of_this_machine(self):
        for platform, (_, archive) in images(companion.COMPANION).items():
            for name in ("diana", native.versioned()):
                program = archive.extractfile(name).read()
                for folder in (ROOT, Path.home()):
                    self.assertNotIn(str(folder).encode() + b"/", program, (platform, name))


if __name__ == "__main__":
    unittest.main()
