#!/usr/bin/env python3
"""The cost of a request in Envoy: a worker's instructions above those of a listener without a filter.

Unlike times, they hardly depend on other processes.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import envoy
import needs
import size
from bootstrap import bootstrap
from callgrind import counted
from filters import wasm
from variant import ACTORS, Variant, entry, rule

# Each row is counted this number of times. The median excludes those with timer ticks.
TIMES, REQUESTS, WARM_UP = 5, 200, 400
CALLERS = 10_000
# A row may take 3 % more than before.
MARGIN = 1.03
# Number of V8 VMs that fit into the address space under valgrind.
AT_ONCE = 4


class Row(NamedTuple):
    """A kind of request, and its instructions in the last count, which must not increase."""

    what: str
    limits: list
    reached: int
    callers: int = 1
    # Whether `make test-all` counts it.
    guards: bool = False


def rows():
    """The counted rows. Requests only reach the limits of the last one."""
    header, address, everybody = rule("account"), rule("address"), rule("all")
    shared = rule("account", scope="gateway")
    # The refill is so slow that no caller expires in between.
    rare = rule("account", unit="day", rpu=1000, scope="gateway")
    return [
        Row("`all`", [entry("/", everybody)], 15_600, guards=True),
        Row("by header", [entry("/", header)], 28_950, guards=True),
        Row("by address", [entry("/", address)], 28_300),
        Row("`all` on `/svc`", [entry("/svc", everybody)], 26_850, guards=True),
        Row("by header on `/svc`", [entry("/svc", header)], 30_050),
        Row("three rules: `all`, two by header", [entry("/", everybody, header, rule("account", algo="W"))], 31_500),
        Row("two rules: by header, by address", [entry("/", header, address)], 42_950),
        Row("`gateway`, by header", [entry("/", shared)], 28_800),
        Row(f"`gateway`, by header, {CALLERS:,} callers in turn", [entry("/", rare)], 46_600, CALLERS, guards=True),
        Row("by header, refused", [entry("/", rule("account", unit="day", rpu=1))], 61_150),
    ]


def main():
    args = arguments()
    for program in ("cc", "valgrind", "callgrind_control"):
        needs.program(program)
    if not size.MODULE.is_file():
        sys.exit(f"{size.MODULE} is missing: make build")
    missed = measure([row for row in rows() if row.guards or not args.guard])
    if missed:
        sys.exit(f"too many instructions: {', '.join(missed)}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guard", action="store_true", help="count the most important rows only")
    return parser.parse_args()


def measure(chosen):
    """Counts and prints rows. Returns those that exceed their bound."""
    costs = count({row.what: (diana(row.what, row.limits), row.callers) for row in chosen})
    print("| one rule, unless it says more | instructions | before | |\n| --- | ---: | ---: | --- |")
    missed = [row.what for row in chosen if costs[row.what] > row.reached * MARGIN]
    for row in chosen:
        print(f"| {row.what} | {costs[row.what]:,.0f} | {row.reached:,} | {'OVER' if row.what in missed else ''} |")
    return missed


def diana(name, limits):
    """The filter with these limits."""
    return wasm(size.MODULE, name, json.dumps({"limits": limits, "actors": ACTORS}))


def count(kinds):
    """Instructions per request of each kind, above those of a listener without a filter. A kind is a filter and its
    number of callers, which take turns."""
    found, names = {}, list(kinds)
    for begin in range(0, len(names), AT_ONCE):
        group = names[begin : begin + AT_ONCE]
        variants = [Variant("bare", "", None), *(Variant(name, "", kinds[name][0]) for name in group)]
        callers = [1, *(kinds[name][1] for name in group)]
        with counted(envoy.path(), bootstrap(variants)) as worker:
            bare, *costs = [a_request(worker, listener, several) for listener, several in enumerate(callers)]
        print(f"a listener without a filter takes {bare:,.0f} instructions a request", file=sys.stderr, flush=True)
        found |= {name: cost - bare for name, cost in zip(group, costs)}
    return found


def a_request(worker, listener, callers):
    """Instructions per request of callers that take turns."""
    worker.warm_up(listener, requests(0, max(WARM_UP, callers), callers))
    begins = range(0, TIMES * REQUESTS + 1, REQUESTS)
    # The first run includes callgrind's translation of code.
    _, *times = [worker.instructions(listener, requests(begin, REQUESTS, callers)) for begin in begins]
    return median(times) / REQUESTS


def requests(first, count, callers):
    """Requests of callers that take turns. Envoy adds five headers to these."""
    for number in range(first, first + count):
        account = f"account-{number % callers:06}"
        yield (
            "GET /svc/25/items/7?page=2 HTTP/1.1\r\nhost: localhost\r\nuser-agent: cost\r\naccept: */*\r\n"
            f"accept-encoding: identity\r\nx-account-id: {account}\r\n\r\n"
        ).encode()


if __name__ == "__main__":
    main()
