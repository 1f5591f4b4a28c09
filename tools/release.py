"""Writes a release to target/dist: module, image, chart, bill of materials, release notes and checksums. The same module gives the same files."""

import hashlib
import re
import shutil
import sys

import companion
import image
from console import ROOT, TARGET, die, relative, say
from layout import tarred, version, zipped

RELEASE = TARGET / "dist"


def changes(version):
    """The section of a version in CHANGELOG.md."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S)
    return found[1].strip() + "\n" if found else die(f"CHANGELOG.md has no section of {version}")


def contents(folder, prefix):
    """The files of a folder by their names in an archive."""
    return {f"{prefix}/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def packed(files):
    """Files as .tar.gz."""
    return zipped(tarred(files))


def chart(module):
    """The files of the chart. Its values have the digest of the module."""
    files, digest = contents(ROOT / "charts/diana", "diana"), hashlib.sha256(module).hexdigest()
    files["diana/values.yaml"] = files["diana/values.yaml"].replace(b'sha256: ""', f'sha256: "{digest}"'.encode())
    return files


def main(tag="", *before):
    """Writes a release. `before` are modules of earlier versions, which the companion serves, too."""
    present = version()
    if tag not in ("", f"v{present}"):
        die(f"the tag is {tag}, but the version in Cargo.toml is {present}")
    notes = changes(present)
    image.main()
    companion.main(*before)
    files = {
        f"diana-{present}.wasm": image.MODULE.read_bytes(),
        f"diana-{present}.cdx.json": image.SBOM.read_bytes(),
        f"diana-image-{present}.tar.gz": packed(contents(image.IMAGE, "image")),
        f"diana-companion-image-{present}.tar.gz": packed(contents(companion.COMPANION, "image")),
        f"diana-chart-{present}.tgz": packed(chart(image.MODULE.read_bytes())),
        "NOTES.md": notes.encode(),
    }
    files["SHA256SUMS"] = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())).encode()
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    for name, data in files.items():
        (RELEASE / name).write_bytes(data)
    say(f"{relative(RELEASE)}: {', '.join(files)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
