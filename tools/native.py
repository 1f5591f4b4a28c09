"""Builds the library for Envoy's own process, target/libdiana.so; with the name of another processor, such as `aarch64`, the one in
target/<processor>."""

import os
import platform
import re
import subprocess
import sys

import needs
from build import without_paths
from console import CARGO_TARGET, ROOT, TARGET, die, relative, run, say
from layout import PLATFORMS, version

# A profile of Cargo.toml.
PROFILE = "native"
LIBRARY = TARGET / "libdiana.so"
# Zig links for this glibc on any machine, for both processors, and puts the code that unwinds panics into the library. Envoy itself
# needs glibc 2.30.
GLIBC = (2, 28)
ZIG = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"]
# Parts of glibc, which Envoy needs itself. Slim images lack libgcc_s, which rustc would link.
PARTS_OF_GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}


def library(processor):
    return LIBRARY if processor == platform.machine() else TARGET / processor / LIBRARY.name


def build(processor=platform.machine()):
    flags = f"{without_paths()} {os.environ.get('RUSTFLAGS', '')}".strip()
    built, path = linked(processor, PROFILE, RUSTFLAGS=flags), library(processor)
    if problems := foreign(needed(built), versions(built)):
        die(f"{relative(built)} cannot be loaded everywhere: {', '.join(problems)}")
    path.parent.mkdir(exist_ok=True, parents=True)
    # Written and renamed, so that an Envoy never reads half a library.
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(built.read_bytes())
    part.replace(path)
    say(f"{relative(path)}: {path.stat().st_size:,} bytes, for glibc {'.'.join(map(str, GLIBC))} and later")


def libraries():
    """Builds the library for each platform of images. Returns the libraries by platform."""
    for processor in PLATFORMS.values():
        build(processor)
    return {platform: library(processor).read_bytes() for platform, processor in PLATFORMS.items()}


def versioned():
    """The name of the library's file where gateways load it. Envoy does not load other code under the name of a loaded file."""
    return f"libdiana-{version()}.so"


def readelf(option, file):
    return subprocess.run([needs.program("readelf"), "-W", option, file], check=True, capture_output=True, text=True).stdout


def needed(file):
    """The libraries that the dynamic linker loads with the file."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", readelf("-d", file))


def versions(file):
    """The versions of symbols that the file needs."""
    needs_of_file = readelf("-V", file).partition(".gnu.version_r")[2]
    return sorted(set(re.findall(r"Name: (\S+)", needs_of_file)))


def foreign(libraries, versions):
    """What a system with the oldest glibc lacks."""
    linker = re.compile(r"ld-linux[a-z0-9_-]*\.so\.\d")
    others = [name for name in libraries if name not in PARTS_OF_GLIBC and not linker.fullmatch(name)]
    number = {name: tuple(map(int, found[1].split("."))) for name in versions if (found := re.fullmatch(r"GLIBC_([\d.]+)", name))}
    return others + [name for name in versions if name not in number or number[name] > GLIBC]


def build_faulty(processor=platform.machine()):
    """Builds a library for tests that panics in the hook which a file names, in the folder `faults`, linked in the same way."""
    path = library(processor).parent / "faults" / LIBRARY.name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(linked(processor, "dev", "--features", "faults").read_bytes())


def linked(processor, profile, *options, **variables):
    """Links the library for a processor, and returns its path."""
    zig = needs.virtual_env("zig", ZIG) / "bin"
    target = f"{processor}-unknown-linux-gnu"
    needs.rust("target", target)
    words = ["--package", "diana-native", "--crate-type", "cdylib", "--profile", profile, "--target", f"{target}.{'.'.join(map(str, GLIBC))}", *options]
    run([zig / "cargo-zigbuild", "rustc", *words], env={**os.environ, **variables, "PATH": f"{zig}:{os.environ['PATH']}"})
    return CARGO_TARGET / target / ("debug" if profile == "dev" else profile) / "libdiana_native.so"


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
        module = f"{{ module: {{ local: {{ filename: {relative(LIBRARY)} }} }}, do_not_close: true, metrics_namespace: diana }}"
        lines = [f'"@type": {kind}', f"dynamic_module_config: {module}", "filter_name: diana", "filter_config:"]
        return "".join(f"{indent}{line}\n" for line in lines) + rules

    return filter_of.sub(native, text)


def written(config):
    """Writes a configuration with the library in place of the wasm module into the target folder, and returns its path."""
    path = TARGET / "native.yaml"
    path.write_text(rewritten((ROOT / config).read_text()))
    return path


if __name__ == "__main__":
    build_faulty(*sys.argv[2:]) if sys.argv[1:2] == ["faults"] else build(*sys.argv[1:])
