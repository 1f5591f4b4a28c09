"""Runs the stages of `make test`, all stages, or those named on the command line; the last line is `N passed, N failed`."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from console import ROOT, TARGET, die, end, relative, say
from stages import ALONE, FIRST, GATE, NEED_MODULE, STAGES

# How many stages run side by side: each command uses one processor or two.
AT_ONCE = 2
# Seconds until the first line of progress, and between two of them.
FIRST_LINE, EVERY = 1, 30
# The seconds of each stage in the latest run that had no failure in it.
TIMES = TARGET / "stages.json"


def count(text, succeeded, has_tests):
    """The numbers of tests that passed and failed, by the output of cargo, wasm-bindgen, Python's unittest or Node.js. A command
    without tests counts as one; a command that ends badly has a failure, as has one that runs no test but should."""
    if not has_tests:
        return (1, 0) if succeeded else (0, 1)
    passed = sum(map(int, re.findall(r"^(?:test result: .*?|# pass )(\d+)(?: passed;|$)", text, re.M)))
    failed = sum(map(int, re.findall(r"(?:^test result: .* passed; |^# fail |^# cancelled |failures=|errors=)(\d+)", text, re.M)))
    if ran := re.findall(r"^Ran (\d+) tests? in", text, re.M):
        passed += sum(map(int, ran)) - failed
    return (passed, failed) if failed or (succeeded and passed) else (passed, 1)


def run(step, write):
    """Runs one command, and writes its output as it comes. Returns the numbers of tests that passed and failed, and what to read if one
    failed."""
    words = [str(word) for word in step.command]
    title = "\n$ " + shlex.join(relative(word) for word in words) + "\n"
    write(title)
    environment = {**os.environ, **{name: str(value) for name, value in step.variables.items()}}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    process, lines = subprocess.Popen(words, cwd=ROOT, env=environment, **pipes), []
    for line in process.stdout:
        write(line)
        lines.append(line)
    text = "".join(lines)
    passed, failed = count(text, process.wait() == 0, step.has_tests)
    return passed, failed, title + end(text) if failed else ""


def check(stage, steps, is_alone):
    """Runs the commands of a stage, and prints their output: as it comes if nothing else runs, else in one piece. Returns the numbers
    of tests that passed and failed, the seconds, and what to read."""
    began, text = time.monotonic(), []
    write = (lambda line: print(line, end="", flush=True)) if is_alone else text.append
    write(f"\n=== {stage}\n")
    results = [(0, 1, steps)] if isinstance(steps, str) else [run(step, write) for step in steps]
    say("".join(text))
    passed, failed, reasons = zip(*results)
    return sum(passed), sum(failed), time.monotonic() - began, "\n".join(filter(None, reasons))


def check_at_once(stages, at_once=AT_ONCE, usual=None):
    """Runs stages side by side, at most `at_once` of them. `usual` has the seconds of each in an earlier run."""
    at_once, progress = min(at_once, len(stages)) or 1, Progress(stages, usual or {})

    def one(stage, steps):
        with progress.of(stage):
            return check(stage, steps, at_once == 1)

    with progress.shown(at_once > 1), ThreadPoolExecutor(at_once) as pool:
        running = {stage: pool.submit(one, stage, steps) for stage, steps in stages.items()}
    return {stage: result.result() for stage, result in running.items()}


def minutes(seconds):
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f}"


class Progress:
    """Says regularly what runs, for how long, and what is still to come: the output of stages that run side by side comes at their
    end."""

    def __init__(self, stages, usual):
        self.waiting, self.running, self.usual = list(stages), {}, usual

    @contextlib.contextmanager
    def of(self, stage):
        self.waiting.remove(stage)
        self.running[stage] = time.monotonic()
        yield
        del self.running[stage]

    def line(self):
        def name(stage, began):
            usual = f", last time {minutes(self.usual[stage])}" if stage in self.usual else ""
            return f"{stage} ({minutes(time.monotonic() - began)}{usual})"

        running = ", ".join(name(stage, began) for stage, began in list(self.running.items()))
        return f"running: {running}" + (f"; then: {', '.join(self.waiting)}" if self.waiting else "")

    @contextlib.contextmanager
    def shown(self, is_wanted):
        ended = threading.Event()

        def show():
            wait = FIRST_LINE
            while not ended.wait(wait):
                if self.running:
                    say(self.line())
                wait = EVERY

        if is_wanted:
            threading.Thread(target=show, daemon=True).start()
        yield
        ended.set()


def prepare(stage):
    """The steps of a stage, or why it cannot be run."""
    try:
        return list(STAGES[stage]())
    except SystemExit as missing:
        say(f"the stage {stage} cannot be run: {missing}")
        return str(missing)


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
    """Runs first what others need, then what may run side by side, and at the end, one by one, what measures."""
    prepared = {stage: prepare(stage) for stage in names}
    usual = json.loads(TIMES.read_text()) if TIMES.is_file() else {}
    if not usual:
        say("The first run also compiles everything: half an hour or more on two processors. Later ones take some minutes.")
    results = check_at_once({stage: prepared.pop(stage) for stage in names if stage in FIRST}, usual=usual)
    if "module" in results and results["module"][1]:
        # An old module must not pass for the current one.
        prepared.update({stage: "there is no new module" for stage in prepared if stage in NEED_MODULE})
    results |= check_at_once({stage: steps for stage, steps in prepared.items() if stage not in ALONE}, usual=usual)
    results |= check_at_once({stage: steps for stage, steps in prepared.items() if stage in ALONE}, at_once=1)
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps(usual | {stage: seconds for stage, (_, failed, seconds, _) in results.items() if not failed}))
    return {stage: results[stage] for stage in names}


def main():
    results = check_all(chosen(sys.argv[1:]))
    say("")
    # Repeated, since other stages print after it.
    for stage, (_, failed, _, reason) in results.items():
        if failed:
            say(f"=== {stage} has failed\n{reason}\n")
    for stage, (passed, failed, seconds, _) in results.items():
        say(f"{stage:8} {passed:5} passed {failed:3} failed {seconds:6.0f} s")
    passed, failed = (sum(result[part] for result in results.values()) for part in (0, 1))
    say(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
