"""Writes target/companion, an OCI layout with the image of the companion: the static command `diana` and the modules that it serves, for
amd64 and arm64. Its arguments are further modules, such as the one of the version before. The same source and modules make the same bytes."""

import hashlib
import os
import sys
from pathlib import Path

import needs
from build import MODULE, without_paths
from console import CARGO_TARGET, TARGET, relative, run, say
from layout import Layout, labels, tarred, version

COMPANION = TARGET / "companion"
# The names of a platform in images, and in Rust and GCC.
PLATFORMS = {"amd64": "x86_64", "arm64": "aarch64"}
COMMAND, MODULES = "diana", "modules"
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
    run([needs.cargo(), "build", "--locked", "--release", "--package", "diana-cli", "--target", triple], env={**os.environ, **flags})
    return (CARGO_TARGET / triple / "release" / COMMAND).read_bytes()


def write(folder, commands, modules):
    """Writes the layout, of commands by platform and of modules. Returns the digest of the image for all platforms."""
    layout = Layout(folder)
    about = labels("diana-companion", "Serves rules and modules of the rate limiter Diana to gateways")
    # By their content, as they are served.
    served = {f"{MODULES}/{hashlib.sha256(module).hexdigest()}.wasm": module for module in modules}
    start = {"Entrypoint": [f"/{COMMAND}"], "Cmd": ["serve", "--rules", "/etc/diana/rules.yaml", "--modules", f"/{MODULES}"]}
    images = []
    for platform, binary in sorted(commands.items()):
        config = {"architecture": platform, "os": "linux", "config": {**start, "User": USER, "Labels": about}}
        image = layout.image(config, tarred({COMMAND: binary, **served}, executable=[COMMAND]), about)
        images.append({**image, "platform": {"architecture": platform, "os": "linux"}})
    index = layout.index(images, about)
    layout.tag({version(): index})
    return index["digest"]


def main(*more):
    modules = [MODULE.read_bytes(), *(Path(path).read_bytes() for path in more)]
    commands = {platform: command(architecture) for platform, architecture in PLATFORMS.items()}
    digest = write(COMPANION, commands, modules)
    say(f"""
{relative(COMPANION)}  an OCI layout
  {version():<16} {digest}  the companion, for {" and ".join(commands)}, with {len(modules)} {"module" if len(modules) == 1 else "modules"}
  {"sha256":<16} {hashlib.sha256(modules[0]).hexdigest()}  of this version's module, for the chart's `filter.sha256`
""")


if __name__ == "__main__":
    main(*sys.argv[1:])
