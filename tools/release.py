"""Writes a release to target/dist: module, library, command, images, charts, playground, bills of materials, release notes and checksums; and target/IMAGES,
the digests and names of the images and the charts in a registry. The same modules and command give the same files."""

import hashlib
import os
import re
import shutil
import sys

import companion
import image
import native
import playground
import sbom
from console import ROOT, TARGET, die, relative, say
from layout import PLATFORMS, Layout, encoded, labels, repository, tags, tarred, version, zipped

RELEASE = TARGET / "dist"
# The charts, and their names in a registry and in an archive.
CHARTS = {TARGET / "chart-crds": "diana-crds", TARGET / "chart": "diana"}
IMAGES = TARGET / "IMAGES"
# The layouts of a release, and their names in a registry behind that of the project.
LAYOUTS = {image.IMAGE: "", companion.COMPANION: "-companion", **{folder: f"/charts/{name}" for folder, name in CHARTS.items()}}
# The companion in the values of the chart, until there is a registry.
UNPUBLISHED = "registry.example.com/diana-companion"

HELM_CONFIG = "application/vnd.cncf.helm.config.v1+json"
HELM_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

# Below the changes of a version in the notes of its release.
STEPS = """
## Install

The command, for every Linux:

```sh
VERSION={version}
RELEASE=https://github.com/{repository}/releases/download/v$VERSION
FILE=diana-$VERSION-$(uname -m)-unknown-linux-musl.tar.gz
curl -fsSL --remote-name-all "$RELEASE/$FILE" "$RELEASE/SHA256SUMS"
sha256sum --check --ignore-missing SHA256SUMS
tar xzf "$FILE" diana
./diana --version
```

The chart. First the definition of LimitPolicy, only for limits of teams, with server-side apply: it is too large for an annotation. The values of the chart name the image of the companion by digest, and have the SHA-256 of the module: leave `companion.image` and `filter.sha256` out of yours.

```sh
helm template diana-crds oci://{registry}/charts/diana-crds --version {version} | kubectl apply --server-side -f -
helm install diana oci://{registry}/charts/diana --version {version} -n $NS -f values.yaml --wait
```

The images are `{registry}:{version}` (the module), `{registry}:{version}-native` (both modules, to be mounted) and `{registry}-companion:{version}`.

## Check where it comes from

The workflow `release.yaml` signs without a key: the certificate names this workflow and the tag. cosign checks the signatures, `gh` the record of the build:

```sh
WORKFLOW=https://github.com/{repository}/.github/workflows/release.yaml@refs/tags/v{version}
ISSUER=https://token.actions.githubusercontent.com
cosign verify-blob --bundle SHA256SUMS.sigstore.json --certificate-identity $WORKFLOW --certificate-oidc-issuer $ISSUER SHA256SUMS
cosign verify --certificate-identity $WORKFLOW --certificate-oidc-issuer $ISSUER {registry}-companion:{version}
gh attestation verify diana-{version}.wasm --repo {repository}
gh attestation verify oci://{registry}-companion:{version} --repo {repository}
```
"""


def check(tag):
    """Fails unless the tag fits the version, and the project is at its address."""
    if tag not in ("", f"v{version()}"):
        die(f"the tag is {tag}, but the version in Cargo.toml is {version()}")
    here, named = os.environ.get("GITHUB_REPOSITORY", repository()), repository()
    if here != named:
        die(f"this is {here}, but Cargo.toml, pages and manifests name {named}: git grep -l {named} | xargs sed -i 's|{named}|{here}|g'")


def changes(version):
    """The section of a version in CHANGELOG.md."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S)
    return found[1].strip() + "\n" if found else die(f"CHANGELOG.md has no section of {version}")


def steps(version):
    """How to install a release, and to check where it comes from."""
    return STEPS.format(version=version, repository=repository(), registry=registry())


def contents(folder, prefix):
    """The files of a folder by their names in an archive."""
    return {f"{prefix}/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def packed(files, executable=()):
    """Files as .tar.gz."""
    return zipped(tarred(files, executable))


def registry():
    """Where a release is published. Names in registries have no capitals."""
    return f"ghcr.io/{repository().lower()}"


def chart(name, module):
    """A chart as an archive. Values have the digest of the module, and the companion by name and digest."""
    files, digest = contents(ROOT / "charts" / name, name), hashlib.sha256(module).hexdigest()
    [(tag, index)] = tags(companion.COMPANION).items()
    # Not the empty digest of the dynamic module, which is beside others in its line.
    changed = {'\n  sha256: ""\n': f'\n  sha256: "{digest}"\n', f"{UNPUBLISHED}:{tag}": f"{registry()}-companion:{tag}@{index}"}
    for path, data in files.items():
        if path.endswith("/values.yaml"):
            for old, new in changed.items():
                data = files[path] = data.replace(old.encode(), new.encode())
    return packed(files)


def lay_chart(folder, name, archive):
    """Writes a chart as a layout, as Helm pushes and pulls it."""
    facts = re.findall(r'^(\w+): "?([^\[\n"]+)"?$', (ROOT / "charts" / name / "Chart.yaml").read_text(), flags=re.M)
    layout = Layout(folder)
    config = layout.blob(HELM_CONFIG, encoded(dict(facts)))
    layout.tag({version(): layout.manifest(config, [layout.blob(HELM_LAYER, archive)], labels(name, dict(facts)["description"]))})


def commands():
    """The command for each architecture, and its bill of materials."""
    for architecture in PLATFORMS.values():
        binary, target = companion.command(architecture), companion.target(architecture)
        name = f"diana-{version()}-{target}"
        yield f"{name}.tar.gz", packed({"diana": binary, "LICENSE": (ROOT / "LICENSE").read_bytes()}, ["diana"])
        yield f"{name}.cdx.json", sbom.of(binary, version(), "diana", "diana-cli", target)


def libraries():
    """The library for each architecture, and its bill of materials."""
    for architecture in PLATFORMS.values():
        library, name = native.library(architecture).read_bytes(), f"libdiana-{version()}-{architecture}"
        yield f"{name}.so", library
        yield f"{name}.cdx.json", sbom.of(library, version(), "libdiana.so", "diana-native", f"{architecture}-unknown-linux-gnu")


def main(tag="", *before):
    """Writes a release. `before` are modules of earlier versions, which the companion serves, too."""
    check(tag)
    present = version()
    notes = changes(present) + steps(present)
    image.main()
    companion.main(*before)
    playground.build()
    module = image.MODULE.read_bytes()
    archives = {name: chart(name, module) for name in CHARTS.values()}
    for folder, name in CHARTS.items():
        lay_chart(folder, name, archives[name])
    files = {
        f"diana-{present}.wasm": module,
        f"diana-{present}.cdx.json": image.SBOM.read_bytes(),
        f"diana-image-{present}.tar.gz": packed(contents(image.IMAGE, "image")),
        f"diana-companion-image-{present}.tar.gz": packed(contents(companion.COMPANION, "image")),
        **{f"{name}-chart-{present}.tgz": archive for name, archive in archives.items()},
        f"diana-playground-{present}.html": playground.PAGE.read_bytes(),
        "NOTES.md": notes.encode(),
        **dict(commands()),
        **dict(libraries()),
    }
    files["SHA256SUMS"] = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())).encode()
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    for name, data in files.items():
        (RELEASE / name).write_bytes(data)
    digests = [(digest, name) for folder, name in LAYOUTS.items() for digest in tags(folder).values()]
    IMAGES.write_text("".join(f"{digest.removeprefix('sha256:')}  {registry()}{name}\n" for digest, name in digests))
    say(f"{relative(RELEASE)}: {', '.join(files)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
