"""Sends requests of a million new addresses, without a host and through a real Envoy: every earlier ban must
persist."""

import os
import sys

import build
import envoy
import needs
from console import run

TEST = ["test", "--test"]


def main():
    run([needs.cargo(), *TEST, "it", "bans::flood::"])
    build.build()
    environment = {**os.environ, "DIANA_ENVOY": str(envoy.path(*sys.argv[1:2]))}
    run([needs.cargo(), *TEST, "envoy", "load::bans::"], env=environment)


if __name__ == "__main__":
    main()
