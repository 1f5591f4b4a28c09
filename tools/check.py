"""Runs all checks, or the stages named on the command line; the last line reads `N passed, N failed`."""

import os
import re
import shlex
import subprocess
import sys
import time

from console import ROOT, die, relative, say
from stages import NEED_MODULE, REAL_TIME, STAGES
from stall import Watch

# How cargo's test runner, wasm-bindgen's and Python's unittest report.
RUST = re.compile(r"^test result: .*?(\d+) passed; (\d+) failed", re.MULTILINE)
PYTHON = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
PYTHON_FAILED = re.compile(r"(?:failures|errors)=(\d+)")
NAMES = re.compile(r"^test (\S+) .*FAILED$", re.MULTILINE)


def count(text, succeeded):
    """How many tests passed and failed; a command without tests counts as one."""
    passed = failed = 0
    for good, bad in RUST.findall(text):
        passed, failed = passed + int(good), failed + int(bad)
    for ran in PYTHON.findall(text):
        bad = sum(map(int, PYTHON_FAILED.findall(text)))
        passed, failed = passed + int(ran) - bad, failed + bad
    if succeeded and passed == 0:
        return 1, 0
    return (passed, failed) if succeeded or failed else (passed, 1)


def run(command, variables):
    """Runs one command, showing its output while it comes, and counts its tests."""
    words = [str(word) for word in command]
    say("\n$ " + shlex.join(relative(word) for word in words))
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    lines = []
    for line in process.stdout:
        sys.stdout.write(line)
        lines.append(line)
    text = "".join(lines)
    return *count(text, process.wait() == 0), NAMES.findall(text)


def run_in_real_time(command, variables):
    """Runs tests that judge by the clock. On a machine that stood still meanwhile their failures say nothing: those
    that failed are run once more, alone. A second failure counts, and so does one on a machine that did not."""
    with Watch() as watch:
        passed, failed, names = run(command, variables)
    if failed == 0 or len(names) != failed or not watch.stood_still:
        return passed, failed
    say(f"\nThe machine stood still for up to {watch.longest * 1000:.0f} ms; once more, alone: {', '.join(names)}")
    words = command[: command.index("--")] if "--" in command else command
    again, failed, _ = run([*words, "--", "--exact", "--test-threads=1", *names], variables)
    return passed + again, failed


def check(stage):
    """Runs a stage; a program that it needs and that cannot be had is one failure."""
    passed = failed = 0
    try:
        for command, variables in STAGES[stage]():
            good, bad = run_in_real_time(command, variables) if stage in REAL_TIME else run(command, variables)[:2]
            passed, failed = passed + good, failed + bad
    except SystemExit:
        failed += 1
    return passed, failed


def chosen(names):
    if unknown := [name for name in names if name not in STAGES]:
        die(f"no stage is called {', '.join(unknown)}; there are {', '.join(STAGES)}")
    wanted = set(names or STAGES)
    if wanted & NEED_MODULE:
        wanted.add("module")
    return [stage for stage in STAGES if stage in wanted]


def main():
    results = {}
    for stage in chosen(sys.argv[1:]):
        say(f"\n=== {stage}")
        began = time.monotonic()
        if stage in NEED_MODULE and results["module"][1]:
            say("not run: the module could not be built")
            good, bad = 0, 1
        else:
            good, bad = check(stage)
        results[stage] = good, bad, time.monotonic() - began
    say("")
    for stage, (good, bad, seconds) in results.items():
        say(f"{stage:8} {good:5} passed {bad:3} failed {seconds:6.0f} s")
    passed, failed = (sum(result[part] for result in results.values()) for part in (0, 1))
    say(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
