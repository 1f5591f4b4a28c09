"""Writes the parts of a release into target/dist: the module, the image, the chart, the bill of materials, the changes,
and checksums. They only depend on the module."""

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
        die(f"the tag is {tag}, but Cargo.toml says {version}")
    notes = changes(version)
    image.main([])
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    shutil.copy(image.MODULE, RELEASE / f"diana-{version}.wasm")
    shutil.copy(image.SBOM, RELEASE / f"diana-{version}.cdx.json")
    (RELEASE / f"diana-image-{version}.tar.gz").write_bytes(packed(image.IMAGE, "image"))
    (RELEASE / f"diana-chart-{version}.tgz").write_bytes(packed(ROOT / "charts/diana", "diana"))
    (RELEASE / "NOTES.md").write_text(notes)
    files = sorted(path for path in RELEASE.iterdir())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (RELEASE / "SHA256SUMS").write_text("".join(lines))
    say(f"{relative(RELEASE)}: {', '.join(path.name for path in files)}, SHA256SUMS")


if __name__ == "__main__":
    main(*sys.argv[1:2])
