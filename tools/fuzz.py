"""Runs each fuzz target under tests/fuzz for a while."""

import os
import shutil
import sys

import needs
from console import die, output, run

FOLDER = "tests/fuzz"


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    if not shutil.which("cargo-fuzz"):
        run([needs.cargo(), "install", "cargo-fuzz"])
    # The sanitizers that cargo-fuzz asks for are unstable options; this allows them on a stable compiler.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    targets = output(["cargo", "fuzz", "list", "--fuzz-dir", FOLDER]).split()
    if not targets:
        die(f"cargo-fuzz finds no targets in {FOLDER}")
    for target in targets:
        command = ["cargo", "fuzz", "run", "--fuzz-dir", FOLDER, target, "--", f"-max_total_time={seconds}"]
        run(command, env=environment)


if __name__ == "__main__":
    main()
