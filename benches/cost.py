#!/usr/bin/env python3
"""The cost of a request in Envoy, in instructions of a worker beyond those of a listener without a filter; and the cost of a
decision in the core alone. Unlike times, they hardly depend on other work on the machine."""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import envoy
import local
import needs
from build import MODULE
from callgrind import counted
from configuration import ROUTE, USED, bootstrap, diana, entry, local_ratelimit, native, of_others, of_route, ratelimit, rule
from console import TARGET
from native import LIBRARY

# The number of counts of each row, whose median is taken, since a timer fires during some; the requests of each count.
TIMES, REQUESTS, WARM_UP = 5, 200, 400
CALLERS = 10_000
ACCOUNT = "x-account-id"
# A row may take 3 % more than before.
MARGIN = 1.03
# Accepted requests report their limits.
X_RATE_LIMIT = {"accepted": {"headers": True}, "response": {"fields": "x-ratelimit"}}
# Cases of `benches/core`, and the instructions of a decision when they were last counted.
CORE = [("TB: 1 rule, all", 841), ("TB: 1 rule, header", 1_460), ("TB: 3 rules, two by header", 2_610)]
# The instructions of a dynamic module that does nothing.
EMPTY = 4_500
# As many VMs of V8 as find room in the addresses that valgrind leaves.
AT_ONCE = 4


class Row(NamedTuple):
    """A kind of request, and its instructions when it was last counted: in wasm, and in the dynamic module."""

    name: str
    limits: list
    before: int
    native: int
    callers: int = 1
    # Whether `make test-all` counts it.
    guards: bool = False
    # Keys of the document besides the limits.
    settings: dict | None = None


def rows():
    """The rows of the table. Only the last limit is reached."""
    header, address, everybody = rule("account"), rule("address"), rule("all")
    shared = rule("account", scope="gateway")
    # So slow a refill that no caller expires.
    rare = rule("account", unit="day", rpu=1000, scope="gateway")
    by_path = {"actors": {"item": [{"path_param": "id"}]}}
    return [
        Row("`all`", [entry("/", everybody)], 15_550, 6_000, guards=True),
        Row("by header", [entry("/", header)], 28_900, 7_750, guards=True),
        Row("by address", [entry("/", address)], 28_250, 7_100),
        Row("`all` on `/svc`", [entry("/svc", everybody)], 26_850, 6_900, guards=True),
        Row("by header on `/svc`", [entry("/svc", header)], 29_950, 8_600),
        # In wasm a pattern costs no more than a path, and a part of the path no more than a header.
        Row("`all` on `/svc/{id}`", [entry("/svc/{id}", everybody)], 26_850, 7_200),
        Row("by `{id}` on `/svc/{id}`", [entry("/svc/{id}", rule("item"))], 29_450, 9_100, settings=by_path),
        Row("three rules: `all`, two by header", [entry("/", everybody, header, rule("account", algo="W"))], 30_850, 8_950),
        Row("two rules: by header, by address", [entry("/", header, address)], 42_400, 9_400),
        Row("`gateway`, by header", [entry("/", shared)], 28_800, 8_000),
        Row(f"`gateway`, by header, {CALLERS:,} callers in turn", [entry("/", rare)], 45_850, 8_100, CALLERS, guards=True),
        Row("by header, `W` by the month in a time zone", [entry("/", rule("account", unit="month", algo="W"))], 28_800, 7_850, settings={"time_zone": "Europe/Berlin"}),
        Row("by header on a route", [of_route(ROUTE, header)], 41_170, 8_330),
        Row("by header, beside an entry of another route", [*of_others(1), entry("/", header)], 40_950, 8_390),
        Row("by header, beside 1,000 entries of other routes", [*of_others(1_000), entry("/", header)], 41_260, 8_520),
        Row("by header, refused", [entry("/", rule("account", unit="day", rpu=1))], 60_700, 18_900),
        Row("by header, accepted with `x-ratelimit-*`", [entry("/", header)], 51_900, 21_900, settings=X_RATE_LIMIT),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guard", action="store_true", help="count the most important rows only")
    parser.add_argument("--native", action="store_true", help="count the rows of the dynamic module only")
    arguments = parser.parse_args()
    guard, only_native = arguments.guard, arguments.native
    for program in ("cc", "valgrind"):
        needs.program(program)
    chosen = [row for row in rows() if row.guards or not guard]
    table = count_native(chosen)
    if not only_native:
        table = count_wasm(chosen) + table
    others = [] if guard else count_local()
    if not guard and not only_native:
        forwarded, asking = count_forwarded()
        table += [*forwarded, *((f"core alone: {name}", cost, before) for (name, before), cost in zip(CORE, core()))]
        others += asking
    over = [name for name, cost, before in table if cost > before * MARGIN]
    print("| one rule, unless it says more | instructions | before | |\n| --- | ---: | ---: | --- |")
    for name, cost, before in table:
        print(f"| {name} | {cost:,.0f} | {before:,} | {'OVER' if name in over else ''} |")
    for name, cost in others:
        print(f"| {name} | {cost:,.0f} | | |")
    if over:
        sys.exit(f"too many instructions: {', '.join(over)}")


def count_wasm(rows):
    """The rows of the wasm module."""
    costs = []
    for begin in range(0, len(rows), AT_ONCE):
        group = rows[begin : begin + AT_ONCE]
        costs += count([(diana(MODULE, f"row-{number}", row.limits, settings=row.settings), row.callers) for number, row in enumerate(group)])
    return [(row.name, cost, row.before) for row, cost in zip(rows, costs)]


def count_native(rows):
    """The rows of the dynamic module, and of one that does nothing. They share a process."""
    folder = TARGET / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("empty.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", source, "-o", folder / "libempty.so"], check=True)
    shutil.copy(LIBRARY, folder / "libdiana.so")
    filters = [(native("empty", ""), 1)]
    filters += [(diana(None, f"row-{number}", row.limits, settings=row.settings), row.callers) for number, row in enumerate(rows)]
    empty, *costs = count(filters, {"ENVOY_DYNAMIC_MODULES_SEARCH_PATH": str(folder)})
    table = [("a dynamic module that does nothing", empty, EMPTY)]
    return table + [
        (f"native: {row.name}", cost, row.native) for row, cost in zip(rows, costs)
    ]


def count_local():
    """Envoy's `local_ratelimit`."""
    rows = [
        ("`local_ratelimit`, one bucket", local_ratelimit(), 1),
        ("`local_ratelimit`, by header", local_ratelimit(header=ACCOUNT), 1),
        (f"`local_ratelimit`, by header, {CALLERS:,} callers in turn", local_ratelimit(header=ACCOUNT), CALLERS),
        ("`local_ratelimit`, by header, refused", local_ratelimit(tokens=1, header=ACCOUNT), 1),
    ]
    return [(name, cost) for (name, *_), cost in zip(rows, count([row for _, *row in rows]))]


def count_forwarded():
    """Requests that an upstream answers, with their cost in a header; and those of Envoy's `ratelimit`, whose service has its own process."""
    command = [needs.python_with_grpc(), Path(__file__).with_name("ratelimit_service.py")]
    limits = [entry("/", rule("account", algo="W", cost={"response": {"header": USED}, "reserve": 1, "max": 2}))]
    filters = [(ratelimit(ACCOUNT), 1), (diana(MODULE, "used", limits), 1), (diana(None, "used", limits), 1)]
    with local.processes() as processes:
        processes.append(service := subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        folder = {"ENVOY_DYNAMIC_MODULES_SEARCH_PATH": str(LIBRARY.parent)}
        asking, in_wasm, in_native = count(filters, folder, service=int(service.stdout.readline()))
    name = "by header, with the cost of the response"
    return [(name, in_wasm, 69_500), (f"native: {name}", in_native, 16_200)], [("`ratelimit`, by header, without its service", asking)]


def core():
    """The instructions of a decision without a host, for each case of `CORE`."""
    build = ["cargo", "bench", "--quiet", "--bench", "core", "--no-run", "--message-format=json"]
    lines = subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    (bench,) = [found for line in lines if (found := json.loads(line).get("executable"))]
    return [(decisions(bench, name, 2_000) - decisions(bench, name, 1_000)) / 1_000 for name, _ in CORE]


def decisions(bench, name, number):
    """The instructions of this number of decisions."""
    counting = ["valgrind", "--tool=callgrind", "--toggle-collect=core::Bench::verdict", "--callgrind-out-file=/dev/null"]
    run = subprocess.run([*counting, bench, "count", name, str(number)], check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", run.stderr).group(1))


def count(group, environment={}, service=None):
    """The instructions per request of these filters and callers, beyond those of a listener without a filter."""
    filters, callers = zip((None, 1), *group)
    with counted(envoy.path(), bootstrap(filters, service=service), environment) as worker:
        bare, *costs = [a_request(worker, listener, count) for listener, count in enumerate(callers)]
    print(f"a listener without a filter takes {bare:,.0f} instructions a request", file=sys.stderr, flush=True)
    return [cost - bare for cost in costs]


def a_request(worker, listener, callers):
    """The instructions per request, of callers in turn."""
    worker.warm_up(listener, requests(0, max(WARM_UP, callers), callers))
    begins = range(0, TIMES * REQUESTS + 1, REQUESTS)
    # The first time, code is translated for callgrind.
    _, *times = [worker.instructions(listener, requests(begin, REQUESTS, callers)) for begin in begins]
    return median(times) / REQUESTS


def requests(first, count, callers):
    """Requests of callers in turn. Envoy adds five headers to these."""
    for number in range(first, first + count):
        account = f"account-{number % callers:06}"
        yield (
            "GET /svc/25/items/7?page=2 HTTP/1.1\r\nhost: localhost\r\nuser-agent: cost\r\naccept: */*\r\n"
            f"accept-encoding: identity\r\nx-account-id: {account}\r\n\r\n"
        ).encode()


if __name__ == "__main__":
    main()
