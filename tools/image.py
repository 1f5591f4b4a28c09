"""Writes target/image, an OCI layout with the module in both forms that Istio and Envoy Gateway fetch, an image of files with the dynamic
module, and the module's bill of materials. The result depends on the modules, the version and the lock file only: the same build has the same
digests."""

import native
import sbom
from build import MODULE
from console import TARGET, relative, say
from layout import Layout, encoded, labels, tarred, version

IMAGE = TARGET / "image"
SBOM = TARGET / "diana.cdx.json"
# The only file of the image, as the wasm image specification of Istio's and Envoy Gateway's fetchers names it.
PLUGIN = "plugin.wasm"

WASM_CONFIG = "application/vnd.module.wasm.config.v1+json"
WASM_LAYER = "application/vnd.module.wasm.content.layer.v1+wasm"


def write(folder, module, libraries):
    """Writes the layout, with libraries by platform. Returns the digests of the image, the artifact, and the image with the library."""
    layout = Layout(folder)
    about = labels("diana", "A rate-limit filter for Envoy and Istio, a proxy-wasm module")
    config = {"architecture": "wasm", "os": "wasip1", "config": {"Labels": about}}
    image = layout.image(config, tarred({PLUGIN: module}), {**about, "module.wasm.image/variant": "compat"})
    # An artifact has exactly two layers; the first describes the second.
    plugin = layout.blob(WASM_CONFIG, encoded({"name": "diana", "type": "envoy_proxy", "abiVersions": ["v0_2_1"]}))
    artifact = layout.manifest(plugin, [plugin, layout.blob(WASM_LAYER, module)], about)
    # To be mounted: the files are at the root.
    files = {platform: tarred({PLUGIN: module, native.versioned(): library}) for platform, library in libraries.items()}
    mounted = layout.images(files, {"Labels": about}, about)
    layout.tag({version(): image, version() + "-artifact": artifact, version() + "-native": mounted})
    return image["digest"], artifact["digest"], mounted["digest"]


def main():
    libraries = native.libraries()
    image, artifact, mounted = write(IMAGE, MODULE.read_bytes(), libraries)
    SBOM.write_bytes(sbom.of(MODULE.read_bytes(), version()))
    say(f"""
{relative(IMAGE)}  an OCI layout
  {version():<16} {image}  an image with {PLUGIN}, for Istio and Envoy Gateway
  {version() + "-artifact":<16} {artifact}  the same as an artifact
  {version() + "-native":<16} {mounted}  an image to mount, with {PLUGIN} and {native.versioned()}, for {" and ".join(libraries)}
{relative(SBOM)}  what is in the module (CycloneDX)
docs/guides/image.md has how to push it, and the manifests in which its digest belongs.
""")


if __name__ == "__main__":
    main()
