"""Builds the filter that does nothing."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def build_noop():
    """The path of its module."""
    folder = TARGET / "noop"
    command = ["cargo", "build", "--release", "--locked", "--target", "wasm32-wasip1", "--target-dir", folder]
    subprocess.run(command, cwd=ROOT / "benches/noop", check=True)
    return folder / "wasm32-wasip1/release/noop.wasm"
