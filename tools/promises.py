"""Tries everything that can happen in small worlds, then all other laws, and compares the numbers of worlds with docs/guarantees.md."""

import os
import re
import subprocess
import sys
import time

import needs
from console import ROOT, die, end, say

PAGE = ROOT / "docs/guarantees.md"
# The number of events in the worlds of the page.
DEPTH = 4


def main():
    depth = int(sys.argv[1]) if len(sys.argv) > 1 else DEPTH
    needs.cargo()
    began = time.monotonic()
    # The script is one question behind: Redis takes part in each.
    told = run(depth, "promises") + run(depth, "dynamic", "orders") + run(depth - 1, "redis", "small", "scopes")
    # Then all other laws and examples, and the simulator.
    run(depth, "dynamic", "--skip", "orders")
    run(depth, "redis", "--skip", "small", "--skip", "scopes")
    run(depth, "it")
    run(depth, "sim", "native")
    tried = {}
    for number, kind in re.findall(r"^tried: (\d+) (\w+)", told, re.M):
        tried[kind] = tried.get(kind, 0) + int(number)
    sizes = [f"{number:,} {kind}" for kind, number in sorted(tried.items())]
    say(f"{', '.join(sizes)} in {time.monotonic() - began:.0f} s")
    missing = [size for size in sizes if size not in PAGE.read_text(encoding="utf-8")]
    if depth == DEPTH and missing:
        die(f"docs/guarantees.md has other numbers; write {', '.join(missing)}")


def run(depth, test, *names):
    """Runs tests. Returns what they print."""
    command = ["cargo", "test", "--quiet", "--test", test, "--", *names, "--show-output"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "DIANA_DEPTH": str(depth)}, text=True, stdout=subprocess.PIPE)
    if done.returncode != 0:
        say(end(done.stdout))
        die("a promise is broken, see above")
    return done.stdout


main()
