"""Runs the laws with fresh seeds, and the fuzz targets, for a given time. Each failure prints its seed."""

import os
import subprocess
import sys
import time

import needs
from console import ROOT, die, say

LAWS = ["cargo", "test", "--no-fail-fast", "--test", "sim", "--test", "it", "--test", "redis", "--test", "abi"]
FUZZ = [sys.executable, "tools/fuzz.py", "--seconds", "10"]


def main():
    needs.cargo()
    needs.program("redis-server")
    minutes = int(sys.argv[1]) if sys.argv[1:] else 60
    end = time.monotonic() + 60 * minutes
    rounds = failed = 0
    while time.monotonic() < end:
        for command in (LAWS, FUZZ):
            environment = {**os.environ, "DIANA_SEED": "fresh"}
            failed += subprocess.run(command, cwd=ROOT, env=environment).returncode != 0
        rounds += 1
        say(f"{rounds} rounds, {failed} runs failed")
    if failed:
        die(f"{failed} runs failed; each failure above names its seed")


if __name__ == "__main__":
    main()
