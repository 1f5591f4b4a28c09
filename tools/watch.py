"""Starts a gateway with envoy/watch.yaml, callers, a Prometheus with watch/rules.yaml, and a page with
watch/dashboard.json. Ctrl-C stops them all."""

import itertools
import os
import random
import secrets
import shutil
import signal
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from subprocess import Popen

import envoy
import local
import needs
import redis_node
from console import ROOT, TARGET, die, say

CONFIG = "envoy/watch.yaml"
FOLDER = TARGET / "watch"
# The ports in the files.
PORTS = {"gateway": 10000, "admin": 9901, "redis": 16379, "centre": 18080, "prometheus": 9090, "page": 8088}
# The files of the page. No other file is served.
PAGE = {"/": "watch/page.html", "/dashboard.json": "watch/dashboard.json", "/docs/runbook.md": "docs/runbook.md"}
TYPES = {"html": "text/html", "json": "application/json", "md": "text/plain"}
# Requests per second, and maximum concurrent requests, since some are held.
PACE, AT_ONCE = 60, 24


def write(name, ports):
    """A copy of a file with these ports in place of the original ones."""
    text = (ROOT / name).read_text()
    for what, port in PORTS.items():
        text = text.replace(f"port_value: {port} ", f"port_value: {ports[what]} ").replace(f"127.0.0.1:{port}", f"127.0.0.1:{ports[what]}")
    path = FOLDER / name.rsplit("/", 1)[-1]
    path.write_text(text)
    return path


def start(processes, binary, ports):
    """Starts all processes except the callers. They are added to `processes`, to be ended."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "centre").mkdir(parents=True)
    shutil.copy(ROOT / "watch/limits.yaml", FOLDER / "centre/rules.yaml")
    local.files(ports["centre"], FOLDER / "centre")
    local.serve(ports["page"], page(ports["prometheus"]))
    password = secrets.token_hex(16)
    processes["Redis"] = redis_node.spawn(ports["redis"], [], f"requirepass {password}", 'save ""')
    environment = {**os.environ, "DIANA_REDIS_PASSWORD": password}
    processes["Envoy"] = local.envoy(binary, write(CONFIG, ports), environment)
    write("watch/rules.yaml", ports)
    processes["Prometheus"] = Popen([
        needs.program("prometheus"), f"--config.file={write('watch/prometheus.yaml', ports)}",
        f"--storage.tsdb.path={FOLDER / 'data'}", f"--web.listen-address=127.0.0.1:{ports['prometheus']}", "--log.level=error",
    ])  # fmt: skip


def page(prometheus):
    """Serves the page, which queries the Prometheus at this port."""

    class Page(local.Silent):
        def do_GET(self):
            name = PAGE.get(self.path)
            if not name:
                return self.send_error(404)
            text = (ROOT / name).read_text().replace("PROMETHEUS", f"http://127.0.0.1:{prometheus}")
            self.send_response(200)
            self.send_header("content-type", TYPES[name.rsplit(".", 1)[-1]] + "; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

    return Page


def callers():
    """Endless requests as path and account: some are admitted, others are refused, banned, hot, or held."""
    for turn in itertools.count():
        yield "/items?id=7", "reader"
        yield f"/items?id={random.randrange(1000)}", "reader"
        yield "/line", "worker"
        yield "/hello", "greedy" if turn % 3 else f"polite-{turn % 30}"


class Load:
    """Calls a gateway until it is stopped."""

    def __init__(self, port):
        self.port, self.ended = port, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for path, account in callers():
                pool.submit(self.call, path, account)
                if self.ended.wait(1 / PACE):
                    return pool.shutdown(cancel_futures=True)

    def call(self, path, account):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"x-account-id": account})
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except OSError:
            # Refused, as some are expected to be. Or the gateway has ended, which the main thread
            # detects.
            pass

    def end(self):
        self.ended.set()
        self.thread.join()


def stop(processes):
    for process in processes.values():
        process.kill()
        process.wait()


def told(ports, processes):
    return f"""
http://127.0.0.1:{ports["page"]} shows the panels of watch/dashboard.json, which Grafana imports as it is, and the alerts that fire.
Prometheus: http://127.0.0.1:{ports["prometheus"]}/alerts · gateway: http://127.0.0.1:{ports["gateway"]} · admin: http://127.0.0.1:{ports["admin"]}

Let an alert fire: break the rules in the centre, and put them right again

  echo nonsense >> target/watch/centre/rules.yaml
  sed -i '/nonsense/d' target/watch/centre/rules.yaml

or stop Redis, and let it go on

  kill -STOP {processes["Redis"].pid}
  kill -CONT {processes["Redis"].pid}

Ctrl-C stops everything.
"""


def main():
    binary, processes, load = envoy.path(*sys.argv[1:2]), {}, None
    needs.program("prometheus")
    for port in PORTS.values():
        local.free(port, CONFIG)
    for sent in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent, lambda *_: sys.exit(0))
    try:
        start(processes, binary, PORTS)
        while not local.ready(PORTS["admin"]):
            if processes["Envoy"].poll() is not None:
                die("Envoy has ended, see above")
            time.sleep(0.1)
        load = Load(PORTS["gateway"])
        say(told(PORTS, processes))
        while all(processes[name].poll() is None for name in ("Envoy", "Prometheus")):
            time.sleep(0.2)
        die("Envoy or Prometheus has ended, see above")
    except KeyboardInterrupt:
        pass
    finally:
        if load:
            load.end()
        stop(processes)


if __name__ == "__main__":
    main()
