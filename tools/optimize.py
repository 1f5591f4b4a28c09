"""Reduces the linked module by a tenth, with wasm-opt of the npm package `binaryen`."""

import hashlib
import shutil
import subprocess

import needs
from console import TARGET, say

VERSION = "132.0.0"

# The default features of rustc, and no others, so that the V8 of any Envoy supports them.
FEATURES = [
    "bulk-memory",
    "bulk-memory-opt",
    "call-indirect-overlong",
    "extended-const",
    "multivalue",
    "mutable-globals",
    "nontrapping-float-to-int",
    "reference-types",
    "sign-ext",
]
OPTIONS = ["-Oz", "--memory-packing", "--gufa-optimizing", "--merge-similar-functions", "--reorder-functions", "--reorder-globals", "-Oz"]
OPTIONS += ["--coalesce-locals-learning", "-Oz", "--strip-debug", "--strip-producers", "--strip-target-features"]

KEPT = TARGET / "optimized"


def optimize(linked):
    """The module to ship, made from the linked one. None if wasm-opt is not available."""
    options = [*OPTIONS, *(f"--enable-{feature}" for feature in FEATURES)]
    made_of = hashlib.sha256(linked.read_bytes() + " ".join([VERSION, *options]).encode()).hexdigest()
    made = KEPT / f"{made_of}.wasm"
    if made.is_file():
        return made.read_bytes()
    if not (shutil.which("npm") and shutil.which("node")):
        say("`npm` is missing, so the module stays as it was linked, larger by a tenth; install Node.js to have wasm-opt")
        return None
    program = needs.npm_package("binaryen", VERSION) / "bin/wasm-opt"
    # Removes files of earlier builds.
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(parents=True)
    say("optimizing the module with wasm-opt, which takes some seconds")
    part = made.with_suffix(".part")
    if subprocess.run(["node", program, *options, linked, "-o", part]).returncode != 0:
        say("wasm-opt failed, see above; the module stays as it was linked")
        return None
    part.replace(made)
    return made.read_bytes()
