"""Changes the code with cargo-mutants, one change at a time, and checks that its tests fail."""

import argparse

import needs
from console import CARGO_TARGET, ROOT, run

VERSION = "27.1.0"

# The adapter is tested by the suites for the finished module and real Envoys.
ROOMS = ["policy", "algorithm", "request", "store", "redis", "limiter", "config", "worker"]
ALL = [f"src/{room}/**" for room in ROOMS]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="those to break, such as src/store/hot/*.rs; by default all, which takes days")
    parser.add_argument("--shard", help="a part of the work, such as 1/8 (counted from 0)")
    parser.add_argument("--list", action="store_true", help="name the mutants only")
    arguments = parser.parse_args()
    tool = needs.cargo_tool("cargo-mutants", "cargo-mutants", VERSION)
    # .cargo/mutants.toml lists the tests to run, and mutants that may survive.
    command = [tool, "mutants", "--dir", ROOT, "--output", CARGO_TARGET, "--no-shuffle"]
    command += [word for file in arguments.files or ALL for word in ("--file", file)]
    command += ["--shard", arguments.shard] if arguments.shard else []
    command += ["--list"] if arguments.list else []
    run(command)


if __name__ == "__main__":
    main()
