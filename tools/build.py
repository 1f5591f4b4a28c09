"""Builds the finished module, target/diana.wasm."""

import json
import os
from pathlib import Path

import needs
import size
from console import CARGO_TARGET, TARGET, output, run
from exports import without_unneeded
from optimize import optimize

WASM = "wasm32-wasip1"
# From Cargo.toml.
PROFILE = "module"

# By default, numbers that the linker fills in take five bytes each. Shortened, they save 28 KB.
SHORT_NUMBERS = "-C link-arg=--compress-relocations"


def without_paths():
    """Makes the compiler replace the folders of crates by `crates` in panic messages, so that the same source builds
    the same module on every machine."""
    packages = json.loads(output([needs.cargo(), "metadata", "--locked", "--format-version", "1"]) or '{"packages": []}')
    folders = {Path(it["manifest_path"]).parent.parent for it in packages["packages"] if it["source"]}
    return " ".join(f"--remap-path-prefix={folder}=crates" for folder in sorted(folders))


def build():
    needs.rust_target(WASM)
    flags = {"CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS": f"{without_paths()} {SHORT_NUMBERS}"}
    command = [needs.cargo(), "build", "--package", "diana", "--profile", PROFILE, "--target", WASM]
    run(command, env={**os.environ, **flags})
    linked = CARGO_TARGET / WASM / PROFILE / "diana.wasm"
    needed = linked.with_name("diana-needed.wasm")
    needed.write_bytes(without_unneeded(linked.read_bytes()))
    TARGET.mkdir(exist_ok=True)
    optimized = optimize(needed)
    # Written and renamed, so that an Envoy or a test never reads half a module.
    part = size.MODULE.with_suffix(".part")
    part.write_bytes(optimized or needed.read_bytes())
    part.replace(size.MODULE)
    # The budget applies to the shipped module.
    size.tell() if optimized is None else size.check()


if __name__ == "__main__":
    build()
