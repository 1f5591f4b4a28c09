"""Starts a gateway with envoy/watch.yaml, callers, a Prometheus with watch/rules.yaml, and a page that shows watch/dashboard.json;
Ctrl-C stops them all."""

import contextlib
import itertools
import os
import random
import secrets
import shutil
import sys
import threading
import urllib.request
from pathlib import Path
from subprocess import Popen

import envoy
import local
import needs
import redis
from console import ROOT, TARGET, say

CONFIG = "envoy/watch.yaml"
FOLDER = TARGET / "watch"
# As the files name them.
PORTS = {"gateway": 10000, "admin": 9901, "redis": 16379, "centre": 18080, "prometheus": 9090, "page": 8088}
# Requests per second, and the number of callers: some of them are held.
PACE, CALLERS = 60, 24


# The files that the page consists of, as the browser asks for them.
PAGE = {"watch/page.html": "page/index.html", "watch/dashboard.json": "page/dashboard.json", "docs/runbook.md": "page/docs/runbook.md"}


def write(name, ports, place=None):
    """Copies a file to target/watch, with these ports in place of its own."""
    text = (ROOT / name).read_text().replace("PROMETHEUS", f"http://127.0.0.1:{ports['prometheus']}")
    for what, port in PORTS.items():
        text = text.replace(f"port_value: {port} ", f"port_value: {ports[what]} ").replace(f"127.0.0.1:{port}", f"127.0.0.1:{ports[what]}")
    path = FOLDER / (place or Path(name).name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def start(processes, binary, ports):
    """Starts everything but the callers, and adds the processes to the list."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "centre").mkdir(parents=True)
    shutil.copy(ROOT / "watch/limits.yaml", FOLDER / "centre/rules.yaml")
    local.files(ports["centre"], FOLDER / "centre")
    for name, place in PAGE.items():
        write(name, ports, place)
    local.files(ports["page"], FOLDER / "page")
    password = secrets.token_hex(16)
    processes.append(redis.spawn(ports["redis"], f"requirepass {password}", 'save ""'))
    processes.append(local.envoy(binary, write(CONFIG, ports), {**os.environ, "DIANA_REDIS_PASSWORD": password}))
    write("watch/rules.yaml", ports)
    options = [f"--config.file={write('watch/prometheus.yaml', ports)}", f"--storage.tsdb.path={FOLDER / 'data'}"]
    options += [f"--web.listen-address=127.0.0.1:{ports['prometheus']}", "--log.level=error"]
    processes.append(Popen([needs.program("prometheus"), *options]))


def load(port):
    """Starts callers; returns the event that ends them."""
    ended = threading.Event()
    for _ in range(CALLERS):
        threading.Thread(target=call, args=(port, ended), daemon=True).start()
    return ended


def call(port, ended):
    """Sends requests, of which some are admitted, others refused, banned, hot, or held."""
    requests = ((turn, at) for turn in itertools.count(random.randrange(30)) for at in range(4))
    while not ended.wait(random.uniform(0, 2 * CALLERS / PACE)):
        turn, at = next(requests)
        greedy = "greedy" if turn % 3 else f"polite-{turn % 30}"
        path, account = [("/items?id=7", "reader"), (f"/items?id={random.randrange(1000)}", "reader"), ("/line", "worker"), ("/hello", greedy)][at]
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"x-account-id": account})
        with contextlib.suppress(OSError):
            urllib.request.urlopen(request, timeout=10).close()


def main(*version):
    binary = envoy.path(*version)
    for port in PORTS.values():
        local.free(port, CONFIG)
    with local.processes() as processes:
        start(processes, binary, PORTS)
        local.wait(lambda: local.ready(PORTS["admin"]), processes)
        load(PORTS["gateway"])
        say(f"""
http://127.0.0.1:{PORTS["page"]} shows the panels of watch/dashboard.json, which Grafana imports as it is, and the alerts that fire.
Prometheus: http://127.0.0.1:{PORTS["prometheus"]}/alerts · gateway: http://127.0.0.1:{PORTS["gateway"]} · admin: http://127.0.0.1:{PORTS["admin"]}
docs/guides/watching.md has how to make an alert fire. Ctrl-C stops everything.
""")
        local.wait(lambda: False, processes)


if __name__ == "__main__":
    main(*sys.argv[1:])
