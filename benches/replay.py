#!/usr/bin/env python3
"""Lines of an access log that `diana replay` reads per second of processor time, by format: without an applicable rule,
and with a token bucket and a sliding window of 100,000 callers in the gateway."""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIANA = ROOT / "target/release/diana"
LOG = ROOT / "tools/access_log.py"

# No path of the log is below this one, so the log is only read.
NONE = "limits: [{Url: /nothing, rules: [{name: none, actor: all, unit: second, rpu: 1, algo: W}]}]"
RULES = """
limits:
  - Url: /
    rules: [{name: account, actor: account, unit: minute, rpu: 600, algo: TB}]
  - Url: /api
    rules: [{name: api, actor: address, unit: minute, rpu: 300, algo: SW}]
"""

# The formats, the command that converts a log to each, and the guaranteed minimum of lines per
# second.
CASES = [
    ("Envoy's own format", "envoy", None, 1_000_000),
    ("combined", "combined", None, 1_000_000),
    ("JSON", "json", None, 300_000),
    ("Envoy's own format, gzip", "envoy", ["gzip", "-c"], 300_000),
    ("JSON, gzip", "json", ["gzip", "-c"], 300_000),
]
SETS = {"envoy": ["--set", "header:x-account-id=14"], "combined": ["--set", "header:x-account-id=3"], "json": []}


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(rules, log, form, times):
    """Seconds of processor time in the best of some runs, since other processes may disturb a run."""
    best = None
    for _ in range(times):
        before = spent()
        subprocess.run([DIANA, "replay", rules, log, *SETS[form], "--format", "json"], check=True, stdout=subprocess.DEVNULL)
        took = spent() - before
        best = took if best is None else min(best, took)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rules = folder / "rules.yaml"
        rules.write_text(RULES)
        none = folder / "none.yaml"
        none.write_text(NONE)
        for name, form, pack, promised in CASES:
            log = folder / form
            if not log.exists():
                with log.open("w") as file:
                    command = [sys.executable, LOG, "--format", form, "--lines", str(given.lines)]
                    subprocess.run(command, check=True, stdout=file)
            if pack:
                packed = folder / f"{form}.packed"
                with packed.open("wb") as file:
                    subprocess.run([*pack, log], check=True, stdout=file)
                log = packed
            took = [measure(by, log, form, given.times) for by in (none, rules)]
            size = os.path.getsize(log) / given.lines
            rows.append([name, f"{size:.0f}", *(f"{given.lines / each:,.0f}" for each in took), f"{promised:,}"])
    head = ["log", "bytes a line", "lines a second, only read", "judged by two rules", "aim"]
    for row in [head, ["---", "---:", "---:", "---:", "---:"], *rows]:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
