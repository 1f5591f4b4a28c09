"""Every text of the project complies with .editorconfig."""

import subprocess
import unittest

import editorconfig
from servers import ROOT


def files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def strays(text, wanted):
    """The violations of its section in a text."""
    lines = text.split("\n")
    if wanted.get("end_of_line") == "lf" and "\r" in text:
        yield "a carriage return"
    if wanted.get("insert_final_newline") == "true" and text and not text.endswith("\n"):
        yield "no newline at its end"
    if wanted.get("trim_trailing_whitespace") == "true" and any(line != line.rstrip() for line in lines):
        yield "spaces at the end of a line"
    if wanted.get("indent_style") == "space" and any(line.lstrip(" ").startswith("\t") for line in lines):
        yield "a tab that indents"
    if wanted.get("indent_style") == "tab" and any(line.startswith(" ") for line in lines):
        yield "spaces that indent"


class EditorConfig(unittest.TestCase):
    def test_every_file_is_as_it_says(self):
        looked_at = 0
        for path in files():
            wanted = editorconfig.get_properties(str(path))
            if wanted.get("charset") != "utf-8":
                continue
            looked_at += 1
            with self.subTest(path=str(path.relative_to(ROOT))):
                self.assertEqual(list(strays(path.read_bytes().decode(), wanted)), [])
        self.assertGreater(looked_at, 500)

    def test_strays_are_found(self):
        wanted = {"end_of_line": "lf", "insert_final_newline": "true", "trim_trailing_whitespace": "true", "indent_style": "space"}
        self.assertEqual(list(strays("fine\n  so\n", wanted)), [])
        for text in ("a\r\n", "a", "a \n", "a\n\tb\n"):
            self.assertTrue(list(strays(text, wanted)), text)
        self.assertTrue(list(strays("a:\n  b\n", {"indent_style": "tab"})))


if __name__ == "__main__":
    unittest.main()
