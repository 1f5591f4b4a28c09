"""Runs these tests as `python -m unittest` does, but tells how long each takes, and each failure when it happens: the tests take
minutes."""

import time
import unittest


class Result(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok, {time.monotonic() - self.began:.0f} s")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.stream.writeln(self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self.stream.writeln(self.errors[-1][1])


unittest.main(module=None, testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2, warnings="ignore"))
