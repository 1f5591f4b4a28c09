"""Writes a release to target/dist: module, image, chart, bill of materials, release notes and checksums. The same module gives the same files."""

import hashlib
import re
import shutil
import sys

import image
from console import ROOT, TARGET, die, relative, say

RELEASE = TARGET / "dist"


def changes(version):
    """The section of a version in CHANGELOG.md."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S)
    return found[1].strip() + "\n" if found else die(f"CHANGELOG.md has no section of {version}")


def packed(folder, prefix):
    """A folder as .tar.gz."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return image.zipped(image.tarred({f"{prefix}/{path.relative_to(folder)}": path.read_bytes() for path in files}))


def main(tag=None):
    version = image.version()
    if tag not in (None, f"v{version}"):
        die(f"the tag is {tag}, but the version in Cargo.toml is {version}")
    notes = changes(version)
    image.main()
    files = {
        f"diana-{version}.wasm": image.MODULE.read_bytes(),
        f"diana-{version}.cdx.json": image.SBOM.read_bytes(),
        f"diana-image-{version}.tar.gz": packed(image.IMAGE, "image"),
        f"diana-chart-{version}.tgz": packed(ROOT / "charts/diana", "diana"),
        "NOTES.md": notes.encode(),
    }
    files["SHA256SUMS"] = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())).encode()
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    for name, data in files.items():
        (RELEASE / name).write_bytes(data)
    say(f"{relative(RELEASE)}: {', '.join(files)}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
