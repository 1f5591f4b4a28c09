"""Builds the book with mdBook, with the playground and copies of the examples that its pages link to."""

import shutil

import needs
import playground
from console import ROOT, TARGET, relative, run, say

BOOK = TARGET / "book"
# What pages link to outside of the book.
BESIDE = ["ARCHITECTURE.md", "CHANGELOG.md", "charts", "envoy", "watch"]


def mdbook():
    return needs.cargo_tool("mdbook", "mdbook", "0.5.2", "--no-default-features", "--features", "search")


def main():
    shutil.rmtree(BOOK, ignore_errors=True)
    run([mdbook(), "build", "docs"])
    for name in BESIDE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, BOOK / name)
    playground.build()
    shutil.copytree(playground.PAGE.parent, BOOK / "playground")
    say(f"open {relative(BOOK / 'docs/index.html')}")


if __name__ == "__main__":
    main()
