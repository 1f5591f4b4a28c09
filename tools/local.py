"""Servers on this machine: Envoys, files over HTTP, their ports, and their end."""

import contextlib
import functools
import http.server
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from console import ROOT, die


@contextlib.contextmanager
def processes():
    """Yields a list. The processes in it are killed at the end of the block, by Ctrl-C or by a signal."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    # A shell that has started this program in the background has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    started = []
    try:
        yield started
    except KeyboardInterrupt:
        pass
    finally:
        kill(started)


def kill(started):
    for process in started:
        process.kill()
        process.wait()


def wait(is_ready, started):
    """Waits until `is_ready` returns true. Ends the tool if one of the processes ends before."""
    while not is_ready():
        if ended := [process.args[0] for process in started if process.poll() is not None]:
            die(f"{ended[0]} has ended, see above")
        time.sleep(0.1)


def envoy(binary, config, environment, name="", reads_log=False):
    """Starts Envoy; `name` begins each line of its log. With `reads_log`, the process has its log as a file of text."""
    command = [binary, "-c", config, "--disable-hot-restart", "--file-flush-interval-msec", "100", "--log-format", f"{name}[%l] %v"]
    command += ["-l", "warning", "--component-log-level", "main:error,wasm:info,dynamic_modules:info"]
    # Without it, Envoy's timers follow the kernel's tick, and held requests leave some milliseconds late.
    log = {"stderr": subprocess.PIPE, "text": True} if reads_log else {}
    return subprocess.Popen(command, cwd=ROOT, env={**environment, "EVENT_PRECISE_TIMER": "1"}, **log)


class Files(http.server.SimpleHTTPRequestHandler):
    """A file server without a log, which has browsers show Markdown as text."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".md": "text/plain; charset=utf-8"}

    def log_message(self, *_):
        pass


def files(port, folder):
    """Serves the files of a folder at a port of loopback, as long as this program runs."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Files, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()


def free(port, config):
    """Ends the tool unless a port of loopback is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            die(f"port {port} of 127.0.0.1 is in use; {config} needs it")


def get(admin, path):
    """The reply of the Envoy with this admin port; empty if it does not answer with 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}{path}", timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def ready(admin):
    """Returns true if the Envoy with this admin port serves."""
    return bool(get(admin, "/ready"))


def stat(admin, name):
    """The value of a metric with any labels; `None` if the Envoy with this admin port has none."""
    found = [line.split()[-1] for line in get(admin, "/stats/prometheus").splitlines() if line.startswith(f"{name}{{")]
    return int(found[0]) if found else None
