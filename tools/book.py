"""Builds the book with mdBook, with the playground and copies of the examples that its pages link to."""

import html
import shutil

import needs
import playground
from console import ROOT, TARGET, relative, run, say

BOOK = TARGET / "book"
# What pages link to outside of the book.
BESIDE = ["ARCHITECTURE.md", "CHANGELOG.md", "MEASURED.md", "charts", "envoy", "watch"]
# A page outside of the book, as it was written.
PLAIN = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>:root {{ color-scheme: light dark; }} pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}</style>
<pre>{text}</pre>
"""


def mdbook():
    return needs.cargo_tool("mdbook", "mdbook", "0.5.2", "--no-default-features", "--features", "search")


def main():
    shutil.rmtree(BOOK, ignore_errors=True)
    run([mdbook(), "build", "docs"])
    for name in BESIDE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, BOOK / name)
        else:
            # mdBook makes each link to a `.md` one to a `.html`, also outside of the book.
            (BOOK / name).with_suffix(".html").write_text(PLAIN.format(title=name, text=html.escape((ROOT / name).read_text())))
    playground.build()
    shutil.copytree(playground.PAGE.parent, BOOK / "playground")
    say(f"open {relative(BOOK / 'docs/index.html')}")


if __name__ == "__main__":
    main()
