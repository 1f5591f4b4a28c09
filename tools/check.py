"""Runs the stages of `make test`, all stages, or those named on the command line. The last line reads `N passed, N
failed`."""

import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from console import ROOT, die, relative, say
from results import count
from stages import ALONE, FIRST, GATE, NEED_MODULE, STAGES

# Number of concurrent stages: each command uses one processor, and some of them two.
AT_ONCE = 2


class Result(NamedTuple):
    passed: int
    failed: int
    seconds: float = 0.0


def run(step, tell):
    """Runs one command and prints its output as it arrives. Returns the numbers of its passed and failed tests."""
    words = [str(word) for word in step.command]
    tell("\n$ " + shlex.join(relative(word) for word in words) + "\n")
    environment = {**os.environ, **{name: str(value) for name, value in step.variables.items()}}
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    lines = []
    for line in process.stdout:
        tell(line)
        lines.append(line)
    text = "".join(lines)
    return count(text, process.wait() == 0, step.has_tests)


def check(stage, steps, tell):
    """Runs the commands of a stage. A missing stage is one failure."""
    began = time.monotonic()
    tell(f"\n=== {stage}\n")
    passed = failed = 0
    for step in steps or []:
        good, bad = run(step, tell)
        passed, failed = passed + good, failed + bad
    if steps is None:
        tell("not run, see above\n")
        failed = 1
    return Result(passed, failed, time.monotonic() - began)


def check_side_by_side(stages):
    """Runs stages concurrently, and prints the output of each at its end."""
    results = {}

    def quietly(stage, steps):
        said = []
        return stage, check(stage, steps, said.append), "".join(said)

    say(f"\nside by side: {', '.join(stages)}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in as_completed([pool.submit(quietly, *stage) for stage in stages.items()]):
            stage, results[stage], said = done.result()
            say(said)
    return results


def prepare(stage):
    """The commands of a stage. None if a required program is not available."""
    try:
        return list(STAGES[stage]())
    except SystemExit:
        say(f"the stage {stage} cannot be run")
        return None


def chosen(names):
    if names == ["--all"]:
        return list(STAGES)
    if unknown := [name for name in names if name not in STAGES]:
        die(f"no stage is called {', '.join(unknown)}; there are {', '.join(STAGES)}")
    wanted = set(names or GATE)
    if wanted & NEED_MODULE:
        wanted.add("module")
    return [stage for stage in STAGES if stage in wanted]


def check_all(names):
    """First the stages that others need, then concurrent ones, and at last measurements, one at a time."""
    prepared = {stage: prepare(stage) for stage in names}
    results = check_side_by_side({stage: prepared.pop(stage) for stage in names if stage in FIRST})
    if "module" in results and results["module"].failed:
        # Avoids results of an outdated module.
        prepared.update({stage: None for stage in prepared if stage in NEED_MODULE})
    beside = {stage: prepared.pop(stage) for stage in names if stage in prepared and stage not in ALONE}
    results |= check_side_by_side(beside) if beside else {}
    for stage, steps in prepared.items():
        results[stage] = check(stage, steps, lambda text: print(text, end="", flush=True))
    return {stage: results[stage] for stage in names}


def main():
    results = check_all(chosen(sys.argv[1:]))
    say("")
    for stage, (passed, failed, seconds) in results.items():
        say(f"{stage:8} {passed:5} passed {failed:3} failed {seconds:6.0f} s")
    passed, failed = (sum(result[part] for result in results.values()) for part in (0, 1))
    say(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
