"""Passes ten midnights under load in a real Envoy whose clock is shifted."""

import os
import sys

import envoy
import needs
from console import run


def midnight():
    command = [needs.cargo(), "test", "-q", "--test", "envoy", "midnight::each"]
    found = {"DIANA_ENVOY": str(envoy.path(*sys.argv[1:2])), "MIDNIGHTS": "10"}
    run([*command, "--", "--nocapture"], env={**os.environ, **found})


if __name__ == "__main__":
    midnight()
