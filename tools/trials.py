"""Runs the tests of a program that holds all mutants behind switches: of each those only that ask for its switch."""

import json
import os
import re
import resource
import signal
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from console import say

# Seconds of processor time up to which tests are run together. The first failure ends a trial, so quick ones go first.
STEPS = [0.03, 0.15, 0.6, 2, 5, float("inf")]

# A mutant that takes so many times the processor time of an undamaged program has hung; others that use the machine
# do not weigh on that. What waits for ever is ended by the clock.
PATIENCE, GRACE, CLOCK = 4, 3, 60

MEMORY = 4 << 30

# Not the number of a mutant: all switches are off, and what asks for one is noted.
COVER = 2**64 - 1


class Program(NamedTuple):
    """A program of tests, and the folder that cargo would run it in."""

    path: Path
    folder: Path


def run(program, tests, mutant, seconds, met=None):
    """Whether the tests "passed", "failed" (and which one) or hung ("timeout")."""
    # The library of tests can stop at the first failure, and says so to those only who ask for what is not stable.
    env = {"DIANA_MUTANT": str(mutant), "RUSTC_BOOTSTRAP": "1", "RUST_BACKTRACE": "0", "INSTA_UPDATE": "no"}
    env = os.environ | env | ({"DIANA_MET": str(met)} if met else {})
    command = [program.path, "-Zunstable-options", "--fail-fast", "--exact", "--test-threads=1", *tests]
    limit = int(PATIENCE * seconds + GRACE)

    def restrict():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile("w+", errors="replace") as log:
        try:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            code = subprocess.run(
                command, cwd=program.folder, env=env, preexec_fn=restrict, timeout=CLOCK + 20 * seconds, **streams
            ).returncode
        except subprocess.TimeoutExpired:
            return "timeout", ""
        log.seek(0)
        failed = re.findall(r"^test (\S+) .*\.\.\. FAILED$", log.read(), re.MULTILINE) if code else []
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "timeout", ""
    return ("failed", (failed or ["an abort"])[0]) if code else ("passed", "")


def cover(program):
    """Of each test, the processor time that it takes and the mutants whose switches it asks for."""
    listed = subprocess.run([program.path, "--list"], capture_output=True, text=True, check=True).stdout
    tests = {}
    with tempfile.TemporaryDirectory() as folder:
        for test in re.findall(r"^(.*): test$", listed, re.MULTILINE):
            met = Path(folder) / "met"
            met.write_text("")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            end, _ = run(program, [test], COVER, 600, met)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if end == "passed":
                seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                tests[test] = {"seconds": seconds, "met": [int(word) for word in met.read_text().split()]}
            else:
                say(f"`{test}` fails beside the switches, and judges no mutant")
    return tests


def judge(program, mutants, tests, outcomes):
    """Tries each mutant, and notes in the file `outcomes` what became of it: who caught it, if anybody did."""
    found = json.loads(outcomes.read_text()) if outcomes.is_file() else {}
    reach = defaultdict(dict)
    for test, known in tests.items():
        for number in known["met"]:
            reach[number][test] = known["seconds"]
    caught = defaultdict(Counter)
    for mutant in mutants:
        if mutant["name"] in found:
            continue
        of_file, reached = caught[mutant["file"]], reach[mutant["number"]]
        end, by = trial(program, mutant, reached, [test for test, _ in of_file.most_common(4)])
        of_file.update([by] if by in reached else [])
        found[mutant["name"]] = {"passed": "missed", "failed": "caught"}.get(end, end), by
        if end != "failed":
            say(f"{'MISSED ' if end == 'passed' else 'TIMEOUT'} {mutant['name']} ({len(reached)} tests reach it)")
        outcomes.write_text(json.dumps(found, indent=0))
    return found


def trial(program, mutant, reached, first):
    """Runs those tests that reach a mutant, those before that caught its neighbours, until one fails."""
    first = [test for test in first if reached.get(test, STEPS[-1]) < STEPS[-3]]
    groups, begin = [first], 0
    for end in STEPS:
        groups.append([test for test, seconds in reached.items() if begin <= seconds < end and test not in first])
        begin = end
    for group in filter(None, groups):
        end, by = run(program, group, mutant["number"], sum(reached[test] for test in group))
        if end != "passed":
            return end, by
    return "passed", ""
