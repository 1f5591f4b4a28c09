"""Runs the laws with fresh seeds, and the fuzz targets, until the time is over or one fails; the failure names its seed."""

import os
import sys
import time

import needs
from console import run, say

LAWS = ["cargo", "test", "--test", "sim", "--test", "it", "--test", "redis", "--test", "abi"]


def main():
    needs.cargo()
    needs.program("redis-server")
    minutes = int(sys.argv[1]) if sys.argv[1:] else 60
    end = time.monotonic() + 60 * minutes
    rounds = 0
    while time.monotonic() < end:
        run(LAWS, env={**os.environ, "DIANA_SEED": "fresh"})
        run([sys.executable, "tools/fuzz.py", "--seconds", "10"])
        rounds += 1
        say(f"{rounds} rounds held")


if __name__ == "__main__":
    main()
