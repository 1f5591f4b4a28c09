"""Lets a million new addresses come, in the core and in front of a real Envoy: every earlier ban has to hold."""

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
