"""How `make test` counts tests, and what it repeats of those that failed."""

import contextlib
import io
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from check import Progress, check, count  # noqa: E402
from stages import step  # noqa: E402

FAILED = "test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s\n"
NONE = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s\n"
GOOD = "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"


class Count(unittest.TestCase):
    def test_adds_up_what_runners_report(self):
        self.assertEqual(count(GOOD + GOOD, True, True), (14, 0))
        self.assertEqual(count(FAILED, False, True), (1, 3))
        self.assertEqual(count("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n", False, True), (3, 2))

        self.assertEqual(count("# tests 5\n# pass 3\n# fail 1\n# cancelled 1\n# skipped 0\n", False, True), (3, 2))

    def test_a_command_that_ran_no_test_has_failed(self):
        self.assertEqual(count(NONE, True, True), (0, 1))
        self.assertEqual(count("", True, True), (0, 1))
        self.assertEqual(count("Ran 0 tests in 0.000s\n\nOK\n", True, True), (0, 1))
        self.assertEqual(count("error: could not compile\n", False, True), (0, 1))

    def test_a_crash_between_tests_is_a_failure(self):
        self.assertEqual(count(GOOD + "error: process didn't exit successfully\n", False, True), (7, 1))

    def test_a_command_without_tests_counts_as_one(self):
        self.assertEqual(count("", True, False), (1, 0))
        self.assertEqual(count("", False, False), (0, 1))

    def test_repeats_why_a_step_failed(self):
        steps = [step("sh", "-c", "echo good"), step("sh", "-c", "seq 1000; echo why >&2; false")]
        with contextlib.redirect_stdout(io.StringIO()):
            passed, failed, _, reason = check("a", steps, True)
            self.assertEqual(check("b", "`x` is missing", True)[::3], (0, "`x` is missing"))
        self.assertEqual((passed, failed), (1, 1))
        self.assertIn("$ sh -c 'seq 1000;", reason)
        self.assertEqual(reason.splitlines()[-1], "why")
        self.assertNotIn("good", reason)

    def test_says_what_runs_and_what_is_to_come(self):
        progress = Progress(["a", "b", "c"], {"a": 100})
        with progress.of("a"), progress.of("b"):
            self.assertRegex(progress.line(), r"\Arunning: a \(\d+:\d\d, last time 1:40\), b \(\d+:\d\d\); then: c\Z")
        with progress.of("c"):
            self.assertRegex(progress.line(), r"\Arunning: c \(\d+:\d\d\)\Z")


if __name__ == "__main__":
    unittest.main()
