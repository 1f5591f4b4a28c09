"""Runs these tests as `python -m unittest` does, but tells each failure when it happens: the tests take minutes."""

import unittest


class Result(unittest.TextTestResult):
    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.stream.writeln(self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self.stream.writeln(self.errors[-1][1])


unittest.main(module=None, testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2, warnings="ignore"))
