"""Runs the commands of the book that are marked `kind`: they need a cluster with nodes, and the control plane that is named here.

A block is ```sh kind, or ```console kind with outputs, and may name its control plane besides. The blocks of a page run in one shell."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/install"))

from test_console import MARK, commands, pattern, plain  # noqa: E402

# In this order: the first two install the chart.
PAGES = ["guides/istio", "guides/envoy-gateway", "runbook", "guides/companion"]
BLOCK = re.compile(r"^```(sh|console) kind(?: (istio|envoy-gateway))?\n(.*?)^```$", re.M | re.S)


def steps(page, plane):
    """Commands, with their documented outputs or `None`."""
    for kind, only, text in BLOCK.findall(page.read_text()):
        if only in ("", plane):
            yield from commands(text) if kind == "console" else [(text, None)]


def run(told):
    """The exit status and the output of each command, in one shell."""
    script = "".join(f"{command}\necho \"{MARK} $?\"\n" for command, _ in told)
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    parts = re.split(rf"{MARK} (\d+)\n", done.stdout)
    return list(zip(map(int, parts[1::2]), parts[0::2]))


class Pages(unittest.TestCase):
    maxDiff = None

    def test_each_command_does_what_its_page_says(self):
        plane = os.environ["DIANA_PLANE"]
        for name in PAGES:
            told = list(steps(ROOT / f"docs/{name}.md", plane))
            for (command, output), (status, found) in zip(told, run(told), strict=True):
                print(f"$ {command}\n{found}", flush=True)
                with self.subTest(page=name, command=command):
                    self.assertEqual(status, 0, found)
                    if output is not None:
                        self.assertRegex(plain(found), rf"\A{pattern(output)}\Z")


if __name__ == "__main__":
    unittest.main()
