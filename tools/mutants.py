"""Breaks the core in every way that cargo-mutants knows, and sees whether its own tests find out.

All mutants are compiled at once, each behind a switch, so that one costs no more than the tests that reach it. Those
that no switch can reach, in what the compiler works out, are built one by one with --rest.
"""

import argparse
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

import needs
from console import CARGO_TARGET, ROOT, die, output, run, say

VERSION = "27.1.0"
PARSER = ["tree-sitter==0.26.1", "tree-sitter-rust==0.24.2"]

# The adapter is judged by the suites on the finished module and on real Envoys.
ALL = ["src/core/**", "src/config/**", "src/worker/**"]

OUTCOMES = CARGO_TARGET / "mutants/outcomes.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="those to break, such as src/core/hot/*.rs; by default all")
    parser.add_argument("--shard", help="a part of the work, such as 1/8 (counted from 0)")
    parser.add_argument("--list", action="store_true", help="name the mutants only")
    parser.add_argument("--go-on", action="store_true", help="leave out those that the last run has tried")
    parser.add_argument("--rest", action="store_true", help="those that no switch can reach; some 20 seconds each")
    arguments = parser.parse_args()
    folder = needs.virtual_env("mutants-python", PARSER)
    if Path(sys.prefix) != folder:
        os.execv(folder / "bin/python", [folder / "bin/python", *sys.argv])
    tool = needs.cargo_tool("cargo-mutants", "cargo-mutants", VERSION)
    # Which features are built, which tests run and what is left out stands in .cargo/mutants.toml.
    command = [tool, "mutants", "--dir", ROOT, "--no-shuffle"]
    command += [word for file in arguments.files or ALL for word in ("--file", file)]
    command += ["--shard", arguments.shard] if arguments.shard else []
    if arguments.list:
        return run([*command, "--list"])
    # The parser that `switches` needs is in the environment only.
    from switched import Tree

    listed = json.loads(output([*command, "--list", "--json"]) or "[]")
    tree = Tree([{**mutant, "number": number} for number, mutant in enumerate(listed, 1)])
    if arguments.rest:
        return one_by_one(tool, tree.rest)
    report(try_all(tree, arguments.go_on), tree)


def try_all(tree, go_on):
    import trials

    program = tree.build()
    say("which tests reach which mutants")
    tests = trials.cover(program)
    if not go_on:
        OUTCOMES.unlink(missing_ok=True)
    say(f"{len(tree.switched)} mutants, {len(tests)} tests")
    return trials.judge(program, tree.switched, tests, OUTCOMES)


def report(found, tree):
    ends = Counter(found[mutant["name"]][0] for mutant in tree.switched)
    say(", ".join(f"{count} {end}" for end, count in ends.most_common()))
    say(f"{len(tree.unfit)} do not compile, {len(tree.rest)} have no switch: see --rest")
    if ends["missed"]:
        die("what is missed is to be caught by a test, or argued in .cargo/mutants.toml")


def one_by_one(tool, mutants):
    """Has cargo-mutants build and try each."""
    if mutants:
        names = "|".join(re.escape(mutant["name"]) for mutant in mutants)
        command = [tool, "mutants", "--dir", ROOT, "--output", CARGO_TARGET, "--no-shuffle", "--build-timeout", "600"]
        # Without their files, those of all others would be tried, too.
        command += [word for file in sorted({mutant["file"] for mutant in mutants}) for word in ("--file", file)]
        run([*command, "--timeout-multiplier", "5", "--minimum-test-timeout", "30", "--re", f"^({names})$"])


if __name__ == "__main__":
    main()
