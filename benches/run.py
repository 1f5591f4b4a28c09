#!/usr/bin/env python3
"""The cost of Diana in Envoy, compared with no filter, a filter that does nothing, and Envoy's own limiter.

Every round starts a new Envoy with one worker and loads all variants in turn. Throughput is measured in requests per
second of the worker's CPU time, so that other processes have little effect.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from bootstrap import bootstrap
from contention import contention
from measure import measure
from noop_module import build_noop
from redis import fleet
from server import Envoy, pins
from shards import shards
from table import noise, table
from variant import variants

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MODULE = ROOT / "target/diana.wasm"


def main():
    args = arguments()
    if not shutil.which("wrk"):
        sys.exit("wrk is missing: apt-get install wrk")
    if not MODULE.exists():
        sys.exit(f"{MODULE} is missing: make build")
    # So that a `with` ends its processes even if the bench is terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found = variants(build_noop(), MODULE)
    met = in_envoy(found, *((3, 1) if args.quick else (7, 3)))
    met &= contention(envoy(), MODULE, *((3, 1) if args.quick else (5, 2)))
    met &= fleet(envoy(), MODULE, *((3, 1) if args.quick else (5, 2)), pins())
    shards(envoy(), MODULE, *((3, 1) if args.quick else (5, 2)), pins())
    met &= core()
    if args.check and not met:
        sys.exit("a budget is missed")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--check", action="store_true", help="fail if a budget is missed")
    return parser.parse_args()


def in_envoy(found, rounds, seconds):
    """Prints the table of the variants. Returns True if they meet their budgets."""
    binary, (pin_envoy, pin_load), runs = envoy(), pins(), []
    for n in range(rounds):
        with Envoy(binary, bootstrap(found), pin_envoy) as server:
            runs.append(measure(server, found, seconds, pin_load))
        print(f"round {n + 1} of {rounds} done", file=sys.stderr)
    text, met = table(found, runs)
    print(f"\n{rounds} rounds, {seconds} s per variant in each. {noise(runs)}\n\n{text}\n", flush=True)
    return met


def core():
    """Prints the table of decisions without a host. Returns True if it meets its budgets."""
    command = ["cargo", "bench", "--bench", "core"]
    text = subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
    print(text)
    return "MISSED" not in text


def envoy():
    """The path of the stock binary, in the last line of the tool's output."""
    tool = [sys.executable, ROOT / "tools/envoy.py"]
    said = subprocess.run(tool, check=True, text=True, stdout=subprocess.PIPE).stdout
    return said.splitlines()[-1]


if __name__ == "__main__":
    main()
