"""Counts tests in the output of a command."""

import re

# The result lines of cargo, wasm-bindgen, Python's unittest and Node.js.
RUST = re.compile(r"^test result: .*?(\d+) passed; (\d+) failed", re.MULTILINE)
PYTHON = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
PYTHON_FAILED = re.compile(r"(?:failures|errors)=(\d+)")
NODE = re.compile(r"^# (pass|fail|cancelled) (\d+)$", re.MULTILINE)


def count(text, succeeded, has_tests):
    """The numbers of passed and failed tests. A command without tests counts as one. It has failed if it should have
    run tests and ran none, or ended with an error."""
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
