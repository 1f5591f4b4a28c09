"""Local servers: Envoys, and their ports."""

import functools
import http.server
import socket
import subprocess
import threading
import urllib.request

from console import ROOT, die

# Otherwise Envoy's timers depend on the kernel's tick, and held requests leave some milliseconds
# late.
ENVIRONMENT = {"EVENT_PRECISE_TIMER": "1"}


def envoy(binary, config, environment, name=""):
    """Starts Envoy. `name` precedes each line of its log."""
    return subprocess.Popen(
        [
            binary, "-c", config, "--disable-hot-restart",
            "--file-flush-interval-msec", "100", "--log-format", f"{name}[%l] %v",
            "-l", "warning", "--component-log-level", "main:error,wasm:info",
        ],
        cwd=ROOT,
        env={**environment, **ENVIRONMENT},
    )  # fmt: skip


class Silent(http.server.SimpleHTTPRequestHandler):
    """A plain file server without a log, since it is polled continuously."""

    def log_message(self, *_):
        pass


def serve(port, handler):
    """Runs a server on a port of loopback, as long as this program runs."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def files(port, folder):
    """Serves the files of a folder."""
    serve(port, functools.partial(Silent, directory=folder))


def free(port, config):
    """Ends the tool unless a port of loopback is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            die(f"port {port} of 127.0.0.1 is in use; {config} needs it")


def ready(admin):
    """Returns True if the Envoy with this admin port serves requests."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/ready", timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


def stat(admin, name):
    """The sum of a metric over all labels, for the Envoy with this admin port. None if the metric does not exist."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/stats/prometheus", timeout=1) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return None
    found = [line.split()[-1] for line in lines if line.startswith(f"{name}{{")]
    return int(found[0]) if found else None
