"""The cost of scope `global` relative to `local`, its calls to Redis, and the wait of new callers."""

import http.client
import json
import shutil
import socket
import subprocess
import sys
import time
from statistics import median

from bootstrap import bootstrap
from filters import wasm
from measure import measure
from server import Envoy
from table import rate
from to_redis import CLUSTER, with_redis
from variant import ACTORS, Variant, entry, rule, settled

BUDGET = 0.95  # of `local`, with one hot key
HEAD = [
    "rule", "local, µs/request", "global, µs/request", "global of local (min … max)",
    "calls/1,000 requests", "budget",
]
NEWCOMERS = 2_000
# Seconds. A caller that pauses returns its lease, and begins again with a small one.
SLICE = 0.5


def fleet(binary, module, rounds, seconds, pins):
    """Prints the table. Returns True if the budget is met."""
    pin_envoy, pin_load = pins
    compared = rules()
    found = [
        variant(module, f"{name.replace(' ', '-')}-{scope}", {**limit, "scope": scope})
        for name, limit, _ in compared
        for scope in ("local", "global")
    ]
    runs, calls, waits = [], [], ""
    for n in range(rounds):
        with Redis() as redis:
            configuration = with_redis(bootstrap(found), redis.port)
            with Envoy(binary, configuration, pin_envoy) as server:
                runs.append(measure(server, found, seconds, pin_load, SLICE))
                served = server.served()
                trips = [counter(server, f"{each.name}.fleet.trips") for each in found]
                calls.append([trips[at] / served[at] for at in range(len(found))])
                waits = newcomers(*(server.ports()[at] for at in (0, 1)))
        print(f"Redis, round {n + 1} of {rounds} done", file=sys.stderr)
    rows, met = [HEAD, ["---"] + ["---:"] * 4 + ["---"]], True
    for at, (name, _, budget) in enumerate(compared):
        local, together = ([rate(run[2 * at + scope]) for run in runs] for scope in (0, 1))
        ratios = [t / l for t, l in zip(together, local)]
        ok = budget is None or median(ratios) >= budget
        met &= ok
        rows.append([
            name,
            f"{1e6 / median(local):.2f}",
            f"{1e6 / median(together):.2f}",
            f"{median(ratios):.3f} ({min(ratios):.3f} … {max(ratios):.3f})",
            f"{1000 * median(call[2 * at + 1] for call in calls):.2f}",
            f"≥ {budget} {'met' if ok else 'MISSED'}" if budget else "",
        ])
    print("\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows))
    print(f"\nA caller's first request waits for Redis: {waits}.\n", flush=True)
    return met


def rules():
    """Limits that are never reached, so that every request is admitted and counted: their names, the limits, and their
    budgets."""
    algorithms = [(algo, rule("account", algo=algo), BUDGET) for algo in ("TB", "W", "SW")]
    return algorithms + [(name, limit, None) for name, limit in settled()]


def variant(module, name, limit):
    """A listener with one rule."""
    configuration = {
        "limits": [entry("/", limit)],
        "actors": ACTORS,
        "namespace": name,
    }
    if limit["scope"] == "global":
        # Long enough for a machine that also generates the load.
        configuration["redis"] = {"cluster": CLUSTER, "timeout": "1s"}
    return Variant(name, "one", wasm(module, name, json.dumps(configuration)))


def newcomers(local, together):
    """The additional time of a caller's first request, compared with scope `local`."""
    connections = [http.client.HTTPConnection("127.0.0.1", port) for port in (local, together)]

    def request(connection, caller):
        began = time.perf_counter()
        connection.request("GET", "/", headers={"x-account-id": f"newcomer-{caller}"})
        connection.getresponse().read()
        return time.perf_counter() - began

    taken = ([request(each, caller) for each in connections] for caller in range(NEWCOMERS))
    added = sorted(second - first for first, second in taken)
    parts = (f"{part} % at most {1000 * added[NEWCOMERS * part // 100]:.2f} ms" for part in (50, 99))
    return ", ".join(parts)


def counter(server, name):
    text = server.get(f"/stats?filter=^wasmcustom.diana.{name}$")
    return int(text.split(": ")[1]) if text.strip() else 0


class Redis:
    """A Redis that runs until the end of a `with`."""

    def __init__(self):
        binary = shutil.which("redis-server")
        if not binary:
            sys.exit("redis-server is missing: apt-get install redis-server")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [
                binary, "--bind", "127.0.0.1", "--port", str(self.port),
                "--save", "", "--appendonly", "no",
            ],
            stdout=subprocess.DEVNULL,
        )

    def __enter__(self):
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("Redis does not start")

    def info(self):
        """The output of its command INFO."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"INFO everything\r\nQUIT\r\n")
            said = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
        return dict(line.split(":", 1) for line in said.splitlines() if ":" in line)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
