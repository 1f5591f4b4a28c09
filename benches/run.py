#!/usr/bin/env python3
"""The throughput of Envoy with Diana, beside no filter, a filter that does nothing, and Envoy's own limiter.

Every round starts a fresh Envoy and gives all listeners load in turn. Throughput is requests per second of the workers' CPU, so
other work on the machine matters little.
"""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import envoy
import local
import needs
import redis
from build import MODULE
from configuration import bootstrap, diana, entry, local_ratelimit, rule, wasm
from load import measure
from server import Envoy

BASELINES = ("no filter", "no-op filter", "local_ratelimit")
REDIS = 26379


def filters():
    """What is compared: names, loads and filters."""
    folder = ROOT / "target/noop"
    command = ["cargo", "build", "--release", "--locked", "--target", "wasm32-wasip1", "--target-dir", folder]
    subprocess.run(command, cwd=ROOT / "benches/noop", check=True)
    noop = folder / "wasm32-wasip1/release/noop.wasm"
    # A cost that the response reports, after a reservation of one permit.
    used = {"response": {"header": "x-tokens-used"}, "reserve": 1, "max": 2}
    # So slow a refill that each account stays alive.
    rare = {"unit": "day", "rpu": 1000}
    limits = {
        ("one", "no rule"): [],
        ("one", "all"): [entry("/", rule("all"))],
        ("one", "header"): [entry("/", rule("account"))],
        ("one", "address"): [entry("/", rule("address"))],
        ("one", "all, path"): [entry("/svc", rule("all"))],
        ("one", "3 rules"): [entry("/", rule("all", algo="W"), rule("account")), entry("/svc", rule("account", algo="SW"))],
        ("one", "50 entries"): [entry(f"/svc/{number}", rule("all")) for number in range(50)],
        ("one", "cost of the response"): [entry("/", rule("account", algo="W", cost=used))],
        ("one", "outcomes that count"): [entry("/", rule("account", algo="W", count={"status": [401]}))],
        ("one", "in flight"): [entry("/", {"actor": "account", "in_flight": 1_000_000, "scope": "local"})],
        **{("one", f"header, {scope}"): [entry("/", rule("account", scope=scope))] for scope in ("gateway", "global")},
        **{("keys", f"header, {scope}"): [entry("/", rule("account", scope=scope, **rare))] for scope in ("local", "gateway", "global")},
    }
    for load in ("one", "keys"):
        yield from zip(BASELINES, [load] * 3, (None, wasm(noop, "noop", ""), local_ratelimit()))
        for number, ((of, name), each) in enumerate(limits.items()):
            if of == load:
                yield name, load, diana(MODULE, f"bench-{number}", each, redis="global" in name)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--workers", type=int, default=1, help="of Envoy")
    given = parser.parse_args()
    needs.program("wrk")
    count, seconds = (3, 1) if given.quick else (7, 3)
    compared, rounds = list(filters()), []
    cores = sorted(os.sched_getaffinity(0))
    # One worker has a core to itself; several share all cores with the load.
    parts = (cores[:1], cores[1:] or cores) if given.workers == 1 else (cores, cores)
    pin, pin_load = (lambda part=part: os.sched_setaffinity(0, part) for part in parts)
    with local.processes() as processes:
        processes.append(redis.spawn(REDIS, 'save ""'))
        # Each `with` ends its processes, also if the bench is interrupted.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        for number in range(count):
            with Envoy(envoy.path(), bootstrap([each for *_, each in compared], REDIS), pin, given.workers) as server:
                rounds.append(measure(server, [load for _, load, _ in compared], seconds, pin_load))
                served = sum(server.served().values())
                calls = sum(server.stats(r"^wasmcustom\.diana\..*\.fleet\.trips$").values())
            print(f"round {number + 1} of {count} done, {served:,} requests, {calls:,} calls to Redis", file=sys.stderr)
        print(f"\n{count} rounds, {seconds} s for each filter in each, {given.workers} workers.\n")
        table(compared, rounds)


def table(compared, rounds):
    """Prints medians, and ratios of two filters in the same round."""
    print(f"| load | filter | µs/request | {' | '.join(f'of {name} (min … max)' for name in BASELINES)} |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for number, (name, load, _) in enumerate(compared):
        bases = [(base, load) for base in BASELINES]
        places = [next(at for at, other in enumerate(compared) if other[:2] == base) for base in bases]
        ratios = [[rates[number] / rates[place] for rates in rounds] for place in places]
        cells = [f"{median(each):.3f} ({min(each):.3f} … {max(each):.3f})" for each in ratios]
        print(f"| {load} | {name} | {1e6 / median(rates[number] for rates in rounds):.2f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
