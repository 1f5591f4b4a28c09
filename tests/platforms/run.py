"""Runs these tests as `python -m unittest` does, but tells how long each takes, and each failure when it happens, with what the node did
before: the tests take minutes. It stops after some failures. A cluster that is broken would fail each test, after ten minutes each."""

import os
import time
import unittest
from pathlib import Path

MOST = 3
NODE = Path(os.environ["DIANA_CLUSTER"], "logs/node.log")


class Result(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok, {time.monotonic() - self.began:.0f} s")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.tell(self.failures)

    def addError(self, test, error):
        super().addError(test, error)
        self.tell(self.errors)

    def tell(self, found):
        test, text = found.pop()
        if NODE.exists():
            text = "\n".join([text, "the last lines of node.log:", *NODE.read_text().splitlines()[-30:]])
        found.append((test, text))
        self.stream.writeln(text)
        if len(self.failures) + len(self.errors) >= MOST:
            self.stop()


unittest.main(module=None, testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2, warnings="ignore"))
