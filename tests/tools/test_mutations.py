"""The mistakes of tests/promises/mutations.toml and the code that they change: a change of that code would stop the nightly run."""

import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Mistakes(unittest.TestCase):
    def test_each_is_at_one_place(self):
        listed = tomllib.loads((ROOT / "tests/promises/mutations.toml").read_text(encoding="utf-8"))["mutation"]
        self.assertGreater(len(listed), 50)
        self.assertIn(f"makes {len(listed)} mistakes", (ROOT / "docs/guarantees.md").read_text(encoding="utf-8"))
        for mistake in listed:
            around = mistake.get("in", mistake["old"])
            text = (ROOT / mistake["file"]).read_text(encoding="utf-8")
            counts = text.count(around), around.count(mistake["old"])
            self.assertEqual(counts, (1, 1), f"{mistake['law']}: `{around}` in {mistake['file']}")
