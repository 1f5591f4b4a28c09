"""Builds the book with mdBook, with the playground and a copy of the linked examples."""

import shutil

import needs
import playground
from console import ROOT, TARGET, relative, run, say

VERSION = "0.5.2"
BOOK = TARGET / "book"
# Files outside the book that its pages may link to.
BESIDE = ["ARCHITECTURE.md", "CHANGELOG.md", "charts", "envoy", "watch"]


def mdbook():
    return needs.cargo_tool("mdbook", "mdbook", VERSION, features=["search"])


def main():
    shutil.rmtree(BOOK, ignore_errors=True)
    run([mdbook(), "build", "docs"])
    for name in BESIDE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, BOOK / name)
    playground.build()
    shutil.copytree(playground.MADE, BOOK / "playground")
    say(f"open {relative(BOOK / 'docs/index.html')}")


if __name__ == "__main__":
    main()
