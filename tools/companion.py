"""Writes target/companion, an OCI layout with the image of the companion: the static command `diana`, the modules that it serves, and the
library that it copies, for amd64 and arm64. Its arguments are further modules, such as those of the version before. The same source and
modules make the same bytes."""

import hashlib
import os
import sys
from pathlib import Path

import native
import needs
from build import MODULE, without_paths
from console import CARGO_TARGET, TARGET, relative, run, say
from layout import PLATFORMS, Layout, labels, tarred, version

COMPANION = TARGET / "companion"
COMMAND, MODULES = "diana", "modules"
# The beginning of a wasm module.
WASM = b"\0asm"
# No user of any machine.
USER = "65532:65532"


def target(architecture):
    return f"{architecture}-unknown-linux-musl"


def command(architecture):
    """Builds the command for an architecture without any library of the system. Returns its bytes."""
    triple = target(architecture)
    needs.rust("target", triple)
    # For the C and assembler of the crate `ring`, which need no C library, and for linking.
    compiler = needs.program(f"{architecture}-linux-gnu-gcc")
    name = triple.replace("-", "_")
    flags = {f"CC_{name}": compiler, f"CARGO_TARGET_{name.upper()}_LINKER": compiler, f"CARGO_TARGET_{name.upper()}_RUSTFLAGS": without_paths()}
    run([needs.cargo(), "build", "--locked", "--release", "--package", "diana-cli", "--features", "policies", "--target", triple], env={**os.environ, **flags})
    return (CARGO_TARGET / triple / "release" / COMMAND).read_bytes()


def served(module):
    """The path of a module in the image: its content, as in URLs."""
    return f"{MODULES}/{hashlib.sha256(module).hexdigest()}.{'wasm' if module.startswith(WASM) else 'so'}"


def write(folder, commands, libraries, modules):
    """Writes the layout, of commands and libraries by platform, and of modules. Returns the digest of the image for all platforms."""
    layout = Layout(folder)
    about = labels("diana-companion", "Serves rules and modules of the rate limiter Diana to gateways")
    # A companion on one platform serves gateways on all of them.
    files = {served(module): module for module in (*modules, *libraries.values())}
    start = {"Entrypoint": [f"/{COMMAND}"], "Cmd": ["serve", "--rules", "/etc/diana/rules.yaml", "--modules", f"/{MODULES}"]}
    own = {platform: {COMMAND: binary, native.versioned(): libraries[platform]} for platform, binary in commands.items()}
    archives = {platform: tarred({**files, **more}, executable=[COMMAND]) for platform, more in own.items()}
    index = layout.images(archives, {**start, "User": USER, "Labels": about}, about)
    layout.tag({version(): index})
    return index["digest"]


def main(*more):
    modules = [MODULE.read_bytes(), *(Path(path).read_bytes() for path in more)]
    commands = {platform: command(architecture) for platform, architecture in PLATFORMS.items()}
    libraries = native.libraries()
    digest = write(COMPANION, commands, libraries, modules)
    digests = "".join(f"  {'sha256':<16} {hashlib.sha256(data).hexdigest()}  of its library for {platform}, for `filter.native.sha256`\n" for platform, data in libraries.items())
    say(f"""
{relative(COMPANION)}  an OCI layout
  {version():<16} {digest}  the companion, for {" and ".join(commands)}, with {len(modules)} {"module" if len(modules) == 1 else "modules"}
  {"sha256":<16} {hashlib.sha256(modules[0]).hexdigest()}  of this version's module, for the chart's `filter.sha256`
{digests}""")


if __name__ == "__main__":
    main(*sys.argv[1:])
