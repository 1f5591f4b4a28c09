"""What the output of a command tells about its tests."""

import re

# How the test runners of cargo, wasm-bindgen, Python's unittest and Node.js report.
RUST = re.compile(r"^test result: .*?(\d+) passed; (\d+) failed", re.MULTILINE)
PYTHON = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
PYTHON_FAILED = re.compile(r"(?:failures|errors)=(\d+)")
NODE = re.compile(r"^# (pass|fail|cancelled) (\d+)$", re.MULTILINE)
NAMES = re.compile(r"^test (\S+) .*FAILED$", re.MULTILINE)
TOLD = re.compile(r"^---- (\S+) stdout ----$(.*?)(?=^---- \S+ stdout ----$|^failures:$|\Z)", re.MULTILINE | re.DOTALL)

# Marks a failure such as a limit that was exceeded; as in tests/envoy/harness/trials.rs.
NO_EXCUSE = "no delay of the machine excuses this"


def count(text, succeeded, has_tests):
    """How many tests passed and failed. A command without tests counts as one; one that should have run some and ran
    none has failed, as has one that ended badly."""
    if not has_tests:
        return (1, 0) if succeeded else (0, 1)
    passed = failed = 0
    for good, bad in RUST.findall(text):
        passed, failed = passed + int(good), failed + int(bad)
    for ran in PYTHON.findall(text):
        bad = sum(map(int, PYTHON_FAILED.findall(text)))
        passed, failed = passed + int(ran) - bad, failed + bad
    for outcome, ran in NODE.findall(text):
        passed, failed = (passed + int(ran), failed) if outcome == "pass" else (passed, failed + int(ran))
    if failed == 0 and not (succeeded and passed):
        failed = 1
    return passed, failed


def failures(text):
    """The names of the tests that failed, and what each of them told."""
    told = dict(TOLD.findall(text))
    return {name: told.get(name, "") for name in NAMES.findall(text)}


def times(text):
    """From lines `begin end name` in microseconds: when each test ran, in seconds."""
    rows = (line.split(" ", 2) for line in text.splitlines())
    return {name: (int(begin) / 1e6, int(end) / 1e6) for begin, end, name in rows}


def excused(failed, ran, still, longest):
    """The tests whose failure says nothing: the machine stood still for `still` seconds in the time that the test
    itself ran, as `longest(begin, end)` tells, and the failure is not one that nothing excuses."""
    return [
        name
        for name, told in failed.items()
        if NO_EXCUSE not in told and name in ran and longest(*ran[name]) >= still
    ]
