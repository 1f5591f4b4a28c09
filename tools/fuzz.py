"""Runs the fuzz targets under tests/fuzz for a while each, with libFuzzer and stable Rust."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import needs
from console import CARGO_TARGET, ROOT, die, output, relative, run, say

FOLDER = ROOT / "tests/fuzz"
BUILD = CARGO_TARGET / "fuzz"

# The instrumentation for libFuzzer: branches and comparisons.
COVERAGE = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
]

# Limits: the time of an input, and the memory of all together.
LIMITS = ["-timeout=10", "-rss_limit_mb=1024", "-max_len=4096"]


def targets():
    return sorted(file.stem for file in (FOLDER / "src/targets").glob("*.rs"))


def build():
    """Builds the program with all targets."""
    needs.cargo()
    needs.program("c++")
    needs.program("redis-server")
    host = [line[6:] for line in output(["rustc", "-vV"]).splitlines() if line.startswith("host: ")]
    if not host:
        die("`rustc -vV` does not name the host; install Rust 1.88 or later from https://rustup.rs")
    # With --target, so that build scripts are not instrumented.
    command = ["cargo", "build", "--quiet", "--release", "--manifest-path", FOLDER / "Cargo.toml"]
    command += ["--target", host[0], "--target-dir", BUILD]
    run(command, env={**os.environ, "RUSTFLAGS": " ".join(COVERAGE)})
    return BUILD / host[0] / "release/diana-fuzz"


def fuzz(program, target, seconds, corpus, replay=None, seed=0):
    """Runs one target, which stores interesting inputs in `corpus`, or replays an input. Returns True if it passed.
    With a seed other than 0 it tries the same inputs in the same order each time."""
    known = [FOLDER / kind / target for kind in ("seeds", "regressions")]
    corpus.mkdir(parents=True, exist_ok=True)
    findings = BUILD / "findings" / target
    findings.mkdir(parents=True, exist_ok=True)
    words = [program, *LIMITS, f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={findings}/"]
    words += [replay] if replay else [corpus, *(folder for folder in known if folder.is_dir())]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+", errors="replace") as log:
        environment = {**os.environ, "DIANA_FUZZ": target, "TMPDIR": folder}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": log}
        process = subprocess.Popen(words, env=environment, start_new_session=True, **streams)
        try:
            held = process.wait() == 0
        finally:
            # Together with the Redis that some targets start, even after a crash.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        log.seek(0)
        lines = log.read().splitlines()
    runs = [line for line in lines if line.startswith("Done ")]
    say(f"test fuzz::{target} ... {'ok' if held else 'FAILED'} ({' '.join(runs)})")
    if not held:
        say("\n".join(lines[-60:]))
        say(f"What it choked on lies in {relative(findings)}; tools/fuzz.py {target} --replay <file> tries it again.")
        say(f"Once it holds, keep the file in {relative(FOLDER / 'regressions' / target)}.")
    return held


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="those to run; by default all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--anew", action="store_true", help="begin with the seeds, not with what was found before")
    parser.add_argument("--replay", type=Path, help="an input for the one target that is named")
    arguments = parser.parse_args()
    known = targets()
    if unknown := set(arguments.targets) - set(known):
        die(f"no target is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    program = build()
    replay = arguments.replay and arguments.replay.resolve()
    failed = 0
    chosen = arguments.targets or known
    with tempfile.TemporaryDirectory() as fresh:
        for target in chosen:
            corpus = (Path(fresh) if arguments.anew else BUILD) / "corpus" / target
            failed += not fuzz(program, target, arguments.seconds, corpus, replay, seed=int(arguments.anew))
    # In the format of Rust's tests, which `make test` counts.
    say(f"test result: {'FAILED' if failed else 'ok'}. {len(chosen) - failed} passed; {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
