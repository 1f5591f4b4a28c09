"""Builds the finished module, target/diana.wasm, and fails if it is larger than it may be."""

import json
import os
from pathlib import Path

import needs
from console import CARGO_TARGET, TARGET, check_size, output, run
from optimize import optimize

WASM = "wasm32-wasip1"
# A profile of Cargo.toml.
PROFILE = "module"
MODULE = TARGET / "diana.wasm"
LIMIT = 2 << 20

# By default the linker writes each relocated number in five bytes: the module would be 28 KB larger.
SHORT_NUMBERS = "-C link-arg=--compress-relocations"


def without_paths():
    """Compiler flags that replace the folders of this machine in panic messages by `crates`, so that the same source gives the same
    module everywhere."""
    packages = json.loads(output([needs.cargo(), "metadata", "--locked", "--format-version", "1"]) or '{"packages": []}')
    folders = {Path(it["manifest_path"]).parent.parent for it in packages["packages"] if it["source"]}
    return " ".join(f"--remap-path-prefix={folder}=crates" for folder in sorted(folders))


def build():
    needs.rust("target", WASM)
    flags = {"CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS": f"{without_paths()} {SHORT_NUMBERS}"}
    run([needs.cargo(), "build", "--package", "diana", "--profile", PROFILE, "--target", WASM], env={**os.environ, **flags})
    linked = CARGO_TARGET / WASM / PROFILE / "diana.wasm"
    TARGET.mkdir(exist_ok=True)
    # Written and renamed, so that an Envoy or a test never reads half a module.
    part = MODULE.with_suffix(".part")
    part.write_bytes(optimize(linked) or linked.read_bytes())
    part.replace(MODULE)
    check_size(MODULE, LIMIT)


if __name__ == "__main__":
    build()
