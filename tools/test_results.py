import unittest

from console import ROOT
from results import NO_EXCUSE, count, excused, failures, times

FAILED = f"""
running 4 tests
test fleet::fine ... ok
test fleet::late ... FAILED
test fleet::over ... FAILED
test fleet::timeless ... FAILED

failures:

---- fleet::late stdout ----
thread 'fleet::late' panicked at tests/envoy/fleet.rs:1:1:
too late

---- fleet::over stdout ----
thread 'fleet::over' panicked at tests/envoy/fleet.rs:2:1:
41 in window 3, limit 40; {NO_EXCUSE}

---- fleet::timeless stdout ----
too late

failures:
    fleet::late
    fleet::over
    fleet::timeless

test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
"""
NONE = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s\n"
GOOD = "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
TIMES = "100000000 110000000 fleet::late\n100000000 110000000 fleet::over\n"


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


class Excused(unittest.TestCase):
    def excused(self, stalls):
        longest = lambda begin, end: max((long for at, long in stalls if begin <= at < end), default=0.0)
        return excused(failures(FAILED), times(TIMES), 0.1, longest)

    def test_what_failed_while_the_machine_stood_still(self):
        self.assertEqual(self.excused([(105, 0.2)]), ["fleet::late"])

    def test_nothing_on_a_machine_that_ran(self):
        self.assertEqual(self.excused([]), [])
        self.assertEqual(self.excused([(105, 0.05)]), [])

    def test_nothing_by_what_happened_in_the_time_of_others(self):
        self.assertEqual(self.excused([(99, 5.0), (111, 5.0)]), [])

    def test_the_mark_is_the_one_of_the_tests(self):
        text = (ROOT / "tests/envoy/harness/trials.rs").read_text()
        self.assertIn(f'pub const NO_EXCUSE: &str = "{NO_EXCUSE}";', text)


if __name__ == "__main__":
    unittest.main()
