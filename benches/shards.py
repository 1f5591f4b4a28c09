"""The cost of rare callers in Redis: with direct calls, and through Envoy's proxy to several shards."""

import json
import sys
from contextlib import ExitStack
from statistics import median

from bootstrap import bootstrap
from filters import wasm
from measure import measure
from redis import Redis, counter
from server import Envoy
from table import rate
from to_proxy import with_shards
from to_redis import CLUSTER, with_redis
from variant import ACTORS, Variant, entry, rule

# The connection, the number of Redis, and of shards in keys. There are as many of the latter as of
# the largest number of Redis, so that the calls of the script are alike.
WAYS = (("direct", 1, 1), ("proxied", 1, 1), ("proxied", 1, 4), ("proxied", 2, 4), ("proxied", 4, 4))
CONNECTIONS = 128  # connections of the load
SLICE = 0.5  # seconds
NAMESPACE = "shards"
HEAD = [
    "way", "Redis", "parts", "requests/s of a worker", "asks/request", "asks/call of the script", "Redis, µs/ask (min … max)",
    "of one Redis",
]


def shards(binary, module, rounds, seconds, pins):
    """Prints the table."""
    seen = {way: [] for way in WAYS}
    for n in range(rounds):
        for way in WAYS:
            seen[way].append(run(binary, module, way, seconds, pins))
        print(f"shards, round {n + 1} of {rounds} done", file=sys.stderr)
    rows = [HEAD, ["---"] + ["---:"] * (len(HEAD) - 1)]
    for how, count, parts in WAYS:
        rows.append(row(how, count, parts, seen[how, count, parts], seen[how, 1, parts]))
    print("\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n", flush=True)


def run(binary, module, way, seconds, pins):
    """Requests per second of a worker, questions per request, questions per call of the script, microseconds of Redis
    per question."""
    (how, count, parts), (pin_envoy, pin_load) = way, pins
    found = variant(module, how, parts)
    # Only the Redis in use, since an idle one also takes a thousandth of a processor.
    with ExitStack() as stack:
        servers = [stack.enter_context(Redis()) for _ in range(count)]
        configuration = bootstrap([found])
        if how == "direct":
            configuration = with_redis(configuration, servers[0].port)
        else:
            ports = [servers[part * count // parts].port for part in range(parts)]
            configuration = with_shards(configuration, CLUSTER, NAMESPACE, ports)
        before = spent(servers)
        with Envoy(binary, configuration, pin_envoy) as server:
            [result] = measure(server, [found], seconds, pin_load, SLICE)
            served, asks = server.served()[0], counter(server, f"{NAMESPACE}.fleet.asks")
        cpu, calls = (now - then for now, then in zip(spent(servers), before))
    return rate(result), asks / served, asks / calls, 1e6 * cpu / asks


def row(how, count, parts, seen, one):
    rates, asks, calls, costs = zip(*seen)
    ratios = [cost / base for cost, (*_, base) in zip(costs, one)]
    return [
        how,
        str(count),
        str(parts),
        f"{median(rates):,.0f}",
        f"{median(asks):.2f}",
        f"{median(calls):.1f}",
        f"{median(costs):.1f} ({min(costs):.1f} … {max(costs):.1f})",
        f"{median(ratios):.2f}",
    ]


def variant(module, how, parts):
    """A limit that is never reached by accounts in turn, so that each request requires Redis."""
    proxied = {"proxied": True, "parts": parts} if how == "proxied" else {}
    configuration = {
        "limits": [entry("/", rule("account", scope="global", rpu=10))],
        "actors": ACTORS,
        "namespace": NAMESPACE,
        "keys": 200_000,
        # Long enough for a machine that also generates the load.
        "redis": {"cluster": CLUSTER, "timeout": "1s", **proxied},
    }
    filter_ = wasm(module, how, json.dumps(configuration))
    return Variant(how, "keys", filter_, connections=CONNECTIONS)


def spent(servers):
    """Processor seconds of several Redis, and calls of the script."""
    cpu = calls = 0
    for server in servers:
        info = server.info()
        cpu += sum(float(info[f"used_cpu_{what}_main_thread"]) for what in ("user", "sys"))
        called = info.get("cmdstat_evalsha", "calls=0,")
        calls += int(called.split("=")[1].split(",")[0])
    return cpu, calls
