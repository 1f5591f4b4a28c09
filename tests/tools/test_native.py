"""The functions of Envoy that the native module uses, compared with those that each supported Envoy has."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import native  # noqa: E402

CRATE = ROOT / "src/native"
PREFIX = "envoy_dynamic_module_callback_"
RELEASES = ["1.38", "1.39", "1.40"]


def table():
    """The releases with each function."""
    lines = (CRATE / "callbacks.txt").read_text().splitlines()
    return {name: releases for name, *releases in (line.split() for line in lines if not line.startswith("#"))}


class Callbacks(unittest.TestCase):
    def setUp(self):
        self.text = (CRATE / "abi.rs").read_text()

    def test_linked_functions_exist_in_all_releases(self):
        linked = re.findall(rf"= {PREFIX}(\w+)\s*\(", self.text)
        self.assertGreater(len(linked), 30)
        for name in linked:
            self.assertEqual(table().get(name), RELEASES, f"{name}: Envoy does not load a library with an unknown function")

    def test_functions_that_are_looked_up_are_missing_somewhere(self):
        looked_up = re.findall(rf'c"{PREFIX}(\w+)"', self.text)
        self.assertGreater(len(looked_up), 3)
        for name in looked_up:
            self.assertIn(name, table())
            self.assertNotEqual(table()[name], RELEASES, f"{name}: every release has it")

    def test_each_function_is_declared_once(self):
        declared = re.findall(rf"{PREFIX}(\w+)", self.text)
        self.assertEqual(len(declared), len(set(declared)))


class Portability(unittest.TestCase):
    def test_parts_of_an_old_glibc_are_everywhere(self):
        libraries = ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"]
        self.assertEqual(native.foreign(libraries, ["GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.28"]), [])

    def test_newer_symbols_and_other_libraries_are_not(self):
        found = native.foreign(["libc.so.6", "libgcc_s.so.1"], ["GLIBC_2.4", "GLIBC_2.30", "GCC_3.0"])
        self.assertEqual(found, ["libgcc_s.so.1", "GLIBC_2.30", "GCC_3.0"])


if __name__ == "__main__":
    unittest.main()
