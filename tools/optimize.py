"""Makes the linked module smaller by a tenth and quicker, with wasm-opt of the npm package `binaryen`."""

import hashlib
import shutil
import subprocess

import needs
from console import TARGET, say

VERSION = "132.0.0"

# The features that rustc compiles to by default. The V8 of an Envoy may not support more.
FEATURES = "bulk-memory bulk-memory-opt call-indirect-overlong extended-const multivalue mutable-globals nontrapping-float-to-int reference-types sign-ext"
OPTIONS = "-Oz --memory-packing --gufa-optimizing --merge-similar-functions --reorder-functions --reorder-globals -Oz"
OPTIONS += " --coalesce-locals-learning -Oz --strip-debug --strip-producers --strip-target-features"
# Otherwise the work that few requests need would become a part of the function that each one calls, which then begins slower.
OPTIONS += " --one-caller-inline-max-function-size=300"

# The callbacks of the SDK that the filter does not need: for each request, the host calls all that a module exports, also empty ones.
# Not `delete`: without it the SDK never drops a stream's context.
UNNEEDED = "done log vm_start queue_ready new_connection *stream_* *_body request_trailers grpc_* foreign_function"

CACHE = TARGET / "optimized"


def optimize(linked):
    """The optimized bytes of the linked module; `None` without wasm-opt."""
    options = [*(f"--remove-exports=proxy_on_{name}" for name in UNNEEDED.split()), *OPTIONS.split()]
    options += [f"--enable-{feature}" for feature in FEATURES.split()]
    key = hashlib.sha256(linked.read_bytes() + " ".join([VERSION, *options]).encode()).hexdigest()
    made = CACHE / f"{key}.wasm"
    if made.is_file():
        return made.read_bytes()
    if not (shutil.which("npm") and shutil.which("node")):
        say("`npm` is missing, so the module stays as it was linked, larger and slower; install Node.js for wasm-opt")
        return None
    program = needs.npm_package("binaryen", VERSION) / "bin/wasm-opt"
    # Earlier builds would only take space.
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)
    say("optimizing the module with wasm-opt, which takes some seconds")
    part = made.with_suffix(".part")
    if subprocess.run(["node", program, *options, linked, "-o", part]).returncode != 0:
        say("wasm-opt failed, see above; the module stays as it was linked")
        return None
    part.replace(made)
    return made.read_bytes()
