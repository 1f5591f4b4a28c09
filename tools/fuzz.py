"""Runs the fuzz targets under tests/fuzz for some time each, with libFuzzer on stable Rust."""

import argparse
import contextlib
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

# libFuzzer observes the branches and the comparisons of a program.
COVERAGE = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
COVERAGE += " -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# The most time of an input, the most memory of all inputs together, the longest input.
LIMITS = ["-timeout=10", "-rss_limit_mb=1024", "-max_len=4096"]


def build():
    """Builds the program with all targets."""
    needs.cargo()
    needs.program("c++")
    needs.program("redis-server")
    host = output(["rustc", "--print", "host-tuple"]) or die("rustc does not name the host; install Rust 1.88 or later from https://rustup.rs")
    command = ["cargo", "build", "--quiet", "--release", "--manifest-path", FOLDER / "Cargo.toml"]
    # With --target, build scripts are not instrumented.
    run([*command, "--target", host, "--target-dir", BUILD], env={**os.environ, "RUSTFLAGS": COVERAGE})
    return BUILD / host / "release/diana-fuzz"


def fuzz(program, target, inputs, *options):
    """Runs one target. Returns true if it found nothing."""
    findings = BUILD / "findings" / target
    findings.mkdir(parents=True, exist_ok=True)
    words = [program, *LIMITS, f"-artifact_prefix={findings}/", *options, *inputs]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+", errors="replace") as log:
        environment = {**os.environ, "DIANA_FUZZ": target, "TMPDIR": folder}
        process = subprocess.Popen(words, env=environment, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        try:
            held = process.wait() == 0
        finally:
            # Some targets start a Redis, which would survive a crash.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        log.seek(0)
        lines = log.read().splitlines()
    say(f"test fuzz::{target} ... {'ok' if held else 'FAILED'} ({' '.join(line for line in lines if line.startswith('Done '))})")
    if not held:
        say("\n".join(lines[-60:]))
        say(f"The input is in {relative(findings)}; `DIANA_FUZZ={target} {relative(program)} FILE` runs it again.")
        say(f"Once the target passes, add the file to {relative(FOLDER / 'regressions' / target)}.")
    return held


def main():
    known = sorted(file.stem for file in (FOLDER / "src/targets").glob("*.rs"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="the targets to run; all by default")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--anew", action="store_true", help="begin with the seeds, not with earlier findings, and try the same inputs each time")
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(known):
        die(f"no target is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    program, failed, chosen = build(), 0, arguments.targets or known
    with tempfile.TemporaryDirectory() as fresh:
        for target in chosen:
            corpus = (Path(fresh) if arguments.anew else BUILD) / "corpus" / target
            corpus.mkdir(parents=True, exist_ok=True)
            folders = (FOLDER / kind / target for kind in ("seeds", "regressions"))
            inputs = [corpus, *(folder for folder in folders if folder.is_dir())]
            failed += not fuzz(program, target, inputs, f"-max_total_time={arguments.seconds}", f"-seed={int(arguments.anew)}")
    # In the words of Rust's tests, which `make test` counts.
    say(f"test result: {'FAILED' if failed else 'ok'}. {len(chosen) - failed} passed; {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
