"""Builds the library for Envoy's own process, target/libdiana.so."""

import os
import re
import sys

import needs
from build import without_paths
from console import CARGO_TARGET, ROOT, TARGET, relative, run, say

# A profile of Cargo.toml.
PROFILE = "native"
LIBRARY = TARGET / "libdiana.so"


def build():
    flags = f"{without_paths()} {os.environ.get('RUSTFLAGS', '')}".strip()
    run([needs.cargo(), "build", "--package", "diana-native", "--profile", PROFILE], env={**os.environ, "RUSTFLAGS": flags})
    TARGET.mkdir(exist_ok=True)
    # Written and renamed, so that an Envoy never reads half a library.
    part = LIBRARY.with_suffix(".part")
    part.write_bytes((CARGO_TARGET / PROFILE / "libdiana_native.so").read_bytes())
    part.replace(LIBRARY)
    say(f"{relative(LIBRARY)}: {LIBRARY.stat().st_size:,} bytes")


def build_faulty():
    """Builds a library for tests that panics in the hook which a file names, target/faults/libdiana.so."""
    run([needs.cargo(), "build", "--package", "diana-native", "--features", "faults"])
    library = TARGET / "faults/libdiana.so"
    library.parent.mkdir(exist_ok=True)
    library.write_bytes((CARGO_TARGET / "debug/libdiana_native.so").read_bytes())


def rewritten(text):
    """The text of an Envoy configuration in which the library takes the place of the wasm module."""
    filter_of = re.compile(
        r'(?P<indent> *)"@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm\n'
        r" *config:\n(?:.*\n)*?(?P<inner> *)configuration:\n(?P<rules>(?:(?P=inner) .*\n|\n)*)"
    )

    def native(found):
        indent, inner = found["indent"], found["inner"]
        rules = "".join(line[len(inner) - len(indent) :] if line.strip() else line for line in found["rules"].splitlines(True))
        kind = "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter"
        module = "{ name: diana, do_not_close: true, metrics_namespace: diana }"
        lines = [f'"@type": {kind}', f"dynamic_module_config: {module}", "filter_name: diana", "filter_config:"]
        return "".join(f"{indent}{line}\n" for line in lines) + rules

    return filter_of.sub(native, text)


def written(config):
    """Writes a configuration with the library in place of the wasm module into the target folder, and returns its path."""
    path = TARGET / "native.yaml"
    path.write_text(rewritten((ROOT / config).read_text()))
    return path


if __name__ == "__main__":
    build_faulty() if sys.argv[1:] == ["faults"] else build()
