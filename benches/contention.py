"""The cost of scope `gateway` relative to `local` for increasing numbers of workers: the contention curve."""

import json
import os
import sys
import time
from statistics import median

from bootstrap import bootstrap
from filters import wasm
from measure import measure
from server import Envoy
from table import rate
from variant import ACTORS, Variant, entry, rule

WORKERS = (1, 2, 4, 8)
LOADS = ("one", "10,000 keys")
BUDGET = 0.95  # of `local`, with one hot key
HEAD = [
    "workers", "load", "local, µs/request", "gateway, µs/request", "gateway of local (min … max)",
    "writes/request", "writes lost", "budget",
]


def contention(binary, module, rounds, seconds):
    """Prints the table. Returns True if the budget is met."""
    found = [variant(module, load, scope) for load in LOADS for scope in ("local", "gateway")]
    rows, met = [HEAD, ["---:", "---"] + ["---:"] * 5 + ["---"]], True
    for workers in WORKERS:
        runs, shared = [], {}
        for n in range(rounds):
            with Envoy(binary, bootstrap(found), spread, workers) as server:
                runs.append(measure(server, found, seconds, spread))
                shared = settled(server)
                served = server.served()
            print(f"{workers} workers, round {n + 1} of {rounds} done", file=sys.stderr)
        for at, load in enumerate(LOADS):
            local, gateway = ([rate(run[2 * at + scope]) for run in runs] for scope in (0, 1))
            ratios = [g / l for g, l in zip(gateway, local)]
            counts = shared.get(namespace(load, "gateway"), {})
            writes = counts.get("writes", 0)
            ok = load != "one" or median(ratios) >= BUDGET
            met &= ok
            rows.append([
                str(workers),
                load,
                f"{1e6 / median(local):.2f}",
                f"{1e6 / median(gateway):.2f}",
                f"{median(ratios):.3f} ({min(ratios):.3f} … {max(ratios):.3f})",
                f"{writes / served[2 * at + 1]:.4f}",
                f"{counts.get('conflicts', 0) / max(writes, 1):.2%}",
                f"≥ {BUDGET} {'met' if ok else 'MISSED'}" if load == "one" else "",
            ])
    print("\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n", flush=True)
    return met


def variant(module, load, scope):
    """A limit that is never reached, so that every request is admitted and counted."""
    name = namespace(load, scope)
    configuration = {
        "limits": [entry("/", rule("account", scope=scope))],
        "actors": ACTORS,
        "namespace": name,
    }
    return Variant(name, load, wasm(module, name, json.dumps(configuration)))


def namespace(load, scope):
    return f"{scope}-{'one' if load == 'one' else 'keys'}"


def settled(server):
    """The counts, after counting has stopped."""
    before = None
    while (now := server.shared()) != before:
        before = now
        time.sleep(0.5)
    return now


def spread():
    """Envoy and the load use all cores."""
    os.sched_setaffinity(0, os.sched_getaffinity(0))
