"""Prints the size of the finished module and fails if it exceeds its budget."""

from console import TARGET, die, relative, say

MODULE = TARGET / "diana.wasm"
LIMIT = 2 * 1024 * 1024


def tell():
    """Prints the size, and returns it."""
    if not MODULE.is_file():
        die(f"{relative(MODULE)} is missing; build it: make build")
    size = MODULE.stat().st_size
    say(f"{relative(MODULE)}: {size:,} of at most {LIMIT:,} bytes")
    return size


def check():
    size = tell()
    if size > LIMIT:
        die(f"the module is {size - LIMIT:,} bytes too big")


if __name__ == "__main__":
    check()
