#!/usr/bin/env python3
"""The CPU time of a request in Envoy with Diana, beside no filter, a filter that does nothing, and Envoy's own limiter.

Every round starts a fresh Envoy, and gives its listeners load by wrk in turn, for slices so short that other work on the machine
affects all alike.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import envoy
import local
import needs
import redis
from build import MODULE
from configuration import bootstrap, diana, entry, local_ratelimit, native, rule, wasm
from native import LIBRARY
from server import running

BASELINES = ("no filter", "no-op filter", "local_ratelimit")
REDIS = 26379
# Seconds.
SLICE = 0.1
WRK = ["wrk", "-t1", "-c64", "-d1h"]
URL = "http://127.0.0.1:{}/svc/25/items/7?page=2"
# The same account each time, or accounts in turn; for the memory of callers, many.
LOADS = {"one": ["-H", "x-account-id: account-0000001"], "in turn": ["-s", ROOT / "benches/accounts.lua"]}
ACCOUNTS, MANY = 10_000, 1_000_000
# These rules are also measured in the dynamic module.
IN_PROCESS = ("all", "header", "address", "all, path", "3 rules", "cost of the response", "header, local", "header, gateway", "header, global")
MODULES = {"ENVOY_DYNAMIC_MODULES_SEARCH_PATH": str(LIBRARY.parent)}


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
        **{("in turn", f"header, {scope}"): [entry("/", rule("account", scope=scope, **rare))] for scope in ("local", "gateway", "global")},
    }
    for load in LOADS:
        yield from zip(BASELINES, [load] * 3, (None, wasm(noop, "noop", ""), local_ratelimit()))
        for number, ((of, name), each) in enumerate(limits.items()):
            if of == load:
                yield name, load, diana(MODULE, f"bench-{number}", each, redis="global" in name)
                if name in IN_PROCESS:
                    yield f"native: {name}", load, diana(None, f"native-{number}", each, redis="global" in name)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--workers", type=int, default=1, help="of Envoy")
    given = parser.parse_args()
    needs.program("wrk")
    count, seconds = (3, 1) if given.quick else (7, 3)
    compared, rounds = list(filters()), []
    cores = [str(core) for core in sorted(os.sched_getaffinity(0))]
    # One worker has a core to itself; several share all cores with the load.
    of_envoy, of_load = (cores[:1], cores[1:] or cores) if given.workers == 1 else (cores, cores)
    command = [*pinned(of_envoy), envoy.path(), "--concurrency", str(given.workers)]
    with local.processes() as processes:
        processes.append(redis.spawn(REDIS, 'save ""'))
        for number in range(count):
            with running(command, bootstrap([each for *_, each in compared], REDIS), MODULES) as server:
                rounds.append(measure(server, [*pinned(of_load), *WRK], [load for _, load, _ in compared], seconds))
                calls = sum(server.stats(r"diana.*fleet.trips").values())
            print(f"round {number + 1} of {count} done, {calls:,} calls to Redis", file=sys.stderr)
        print(f"\n{count} rounds, {seconds} s for each filter in each, {given.workers} workers.\n")
        table(compared, rounds)
        if not given.quick:
            memory(command, [*pinned(of_load), *WRK])


def asking(wrk, load, port, accounts):
    """The command that sends requests of accounts."""
    return [*wrk, *LOADS[load], URL.format(port), "--", str(accounts)]


def memory(command, wrk):
    """Prints the memory of Envoy for each of many live callers of a rule."""
    rare, keys = {"unit": "day", "rpu": 1000}, {"keys": 2 * MANY}
    compared = {"local_ratelimit": local_ratelimit(header="x-account-id", callers=2 * MANY)}
    for scope in ("local", "gateway"):
        limits = [entry("/", rule("account", scope=scope, **rare))]
        for name, module in (("", MODULE), ("native: ", None)):
            compared[f"{name}header, {scope}"] = diana(module, "memory", limits, settings=keys)
    print(f"\n| filter | bytes of Envoy for each of {MANY:,} live callers |\n| --- | ---: |")
    for name, each in compared.items():
        with running(command, bootstrap([each]), MODULES) as server, local.processes() as processes:
            before = server.memory()
            processes.append(subprocess.Popen(asking(wrk, "in turn", server.ports()[0], MANY), stdout=subprocess.DEVNULL))
            local.wait(lambda: server.served(0) > MANY, processes)
            print(f"| {name} | {(server.memory() - before) / MANY:.0f} |", flush=True)


def pinned(cores):
    return ["taskset", "-c", ",".join(cores)]


def measure(server, wrk, loads, seconds):
    """The seconds of Envoy's CPU for a request to each listener."""
    ports, running, spent = server.ports(), [], [0.0] * len(loads)
    try:
        for listener, load in enumerate(loads):
            running.append(subprocess.Popen(asking(wrk, load, ports[listener], ACCOUNTS), stdout=subprocess.DEVNULL))
            # Before it is measured, each account comes once.
            local.wait(lambda: server.served(listener) > ACCOUNTS, running)
            running[-1].send_signal(signal.SIGSTOP)
        before = [server.served(listener) for listener in range(len(loads))]
        for _ in range(round(seconds / SLICE)):
            for listener, process in enumerate(running):
                began = server.spent()
                process.send_signal(signal.SIGCONT)
                time.sleep(SLICE)
                process.send_signal(signal.SIGSTOP)
                # Envoy answers the last requests.
                time.sleep(SLICE / 20)
                spent[listener] += server.spent() - began
        if any(server.stats(r"^http\.\d+\.downstream_rq_[1345]xx$").values()):
            raise RuntimeError("Envoy refused a request")
        return [spent[listener] / (server.served(listener) - before[listener]) for listener in range(len(loads))]
    finally:
        local.kill(running)


def table(compared, rounds):
    """Prints medians, and the throughput of a filter as a part of another's in the same round."""
    print(f"| load | filter | µs/request | {' | '.join(f'of {name} (min … max)' for name in BASELINES)} |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for number, (name, load, _) in enumerate(compared):
        cells = []
        for base in BASELINES:
            place = next(at for at, other in enumerate(compared) if other[:2] == (base, load))
            ratios = [times[place] / times[number] for times in rounds]
            cells.append(f"{median(ratios):.3f} ({min(ratios):.3f} … {max(ratios):.3f})")
        print(f"| {load} | {name} | {1e6 * median(times[number] for times in rounds):.2f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
