"""A copy of the project in which all mutants are compiled at once, each behind a switch."""

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import switches
from console import CARGO_TARGET, ROOT, die, output, say
from trials import Program

FOLDER = CARGO_TARGET / "mutants/tree"
CRATES = [word for name in ("core", "config", "worker") for word in ("-p", f"diana-{name}")]
CORE = "src/core/lib.rs"

# What a mutant makes of the code may look like a mistake, and is one.
ENVIRONMENT = {**os.environ, "CARGO_TARGET_DIR": str(FOLDER.parent / "target"), "RUSTFLAGS": "--cap-lints=allow"}


class Tree:
    def __init__(self, mutants):
        """`mutants` are as cargo-mutants lists them, each with a `number` of its own."""
        self.mutants = defaultdict(list)
        for mutant in mutants:
            self.mutants[mutant["file"]].append(mutant)
        self.copy()
        opaque = {mutant["number"] for mutant in mutants if is_opaque(mutant)}
        # Numbers of those with which nothing compiles.
        self.unfit = set()
        placed = self.write(opaque)
        while errors := check():
            faults = set().union(*(switches.at_fault(read(error), error) for error in errors))
            if not faults - self.unfit:
                die("not to be helped by leaving mutants out:\n" + errors[0]["rendered"])
            self.unfit |= faults
            placed = self.write(opaque)
        self.switched = [mutant for mutant in mutants if mutant["number"] in placed]
        self.rest = [mutant for mutant in mutants if mutant["number"] not in placed | self.unfit]

    def copy(self):
        """What git knows of, less the files that are to be broken."""
        names = output(["git", "ls-files", "--cached", "--others", "--exclude-standard"]).splitlines()
        for name in names:
            source, copy = ROOT / name, FOLDER / name
            if source.is_file() and name not in self.mutants and name != CORE:
                put(copy, source.read_bytes())
        known = {FOLDER / name for name in names}
        for copy in [path for path in FOLDER.rglob("*") if path.is_file() and path not in known]:
            copy.unlink()

    def write(self, opaque):
        """Writes the files with switches. The numbers of the mutants that have one."""
        placed = set()
        for name in {*self.mutants, CORE}:
            fit = [mutant for mutant in self.mutants[name] if mutant["number"] not in self.unfit | opaque]
            switch = "crate::mutant" if name.startswith("src/core/") else "diana_core::mutant"
            file = switches.File((ROOT / name).read_text(), fit, switch)
            text = file.written()
            placed |= file.placed
            self.unfit |= file.chained
            text += (ROOT / "tools/switch.rs").read_text() if name == CORE else ""
            put(FOLDER / name, text.encode())
        return placed

    def build(self):
        """The program of the tests."""
        command = ["cargo", "test", "-p", "diana-tests", "--test", "it", "--no-run"]
        done = cargo([*command, "--message-format=json"])
        for message in done:
            if message.get("executable") and message["target"]["name"] == "it":
                return Program(Path(message["executable"]), FOLDER / "tests")
        die("the tests do not compile beside the switches")


def is_opaque(mutant):
    """Whether a function returns what only its own body can be."""
    return mutant["genre"] == "FnValue" and "impl " in (mutant["function"]["return_type"] or "")


def check():
    """The errors of the compiler, each of which is in some file."""
    said = cargo(["cargo", "check", "--keep-going", *CRATES, "--message-format=json"])
    messages = [message["message"] for message in said if message.get("reason") == "compiler-message"]
    errors = [message for message in messages if message["level"] == "error" and message["spans"]]
    say(f"{len(errors)} errors of the compiler")
    return errors


def read(error):
    """The file in which an error is, of which alone it speaks then."""
    name = min(error["spans"], key=lambda span: not span["is_primary"])["file_name"]
    error["spans"] = [span for span in error["spans"] if span["file_name"] == name]
    return (FOLDER / name).read_text()


def cargo(command):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    done = subprocess.run(command, cwd=FOLDER, env=ENVIRONMENT, **streams)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def put(path, content):
    """Writes a file unless that is what it holds, so that cargo builds no more than it must."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
