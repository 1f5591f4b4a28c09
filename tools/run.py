"""Starts Envoy with envoy/envoy.yaml in the foreground; Ctrl-C stops it."""

import signal
import socket
import subprocess
import sys
import time
import urllib.request

import envoy
from console import ROOT, die, say

GATEWAY, UPSTREAM, ADMIN = 10000, 10001, 9901

READY = f"""
Diana is ready at http://127.0.0.1:{GATEWAY} (admin: http://127.0.0.1:{ADMIN}). In another terminal, try:

  for i in 1 2 3 4 5 6 7; do curl -s -o /dev/null -w '%{{http_code}} ' http://127.0.0.1:{GATEWAY}/hello; done; echo
  curl -i http://127.0.0.1:{GATEWAY}/hello
  for i in 1 2 3; do curl -i -H 'x-account-id: ada' http://127.0.0.1:{GATEWAY}/share/qq; done
  sleep 1; curl -s http://127.0.0.1:{ADMIN}/stats/prometheus | grep ^diana

The log below names the rule that refused a request. Ctrl-C stops Envoy.
"""


def command(binary):
    # One worker, since a `local` rule counts in each worker by itself.
    return [
        binary, "-c", "envoy/envoy.yaml", "--concurrency", "1", "--disable-hot-restart",
        "--file-flush-interval-msec", "100", "--log-format", "[%l] %v",
        "-l", "warning", "--component-log-level", "main:error,wasm:info",
    ]  # fmt: skip


def free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            die(f"port {port} of 127.0.0.1 is in use; envoy/envoy.yaml needs it")


def ready():
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{ADMIN}/ready", timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


def main():
    binary = envoy.path(*sys.argv[1:2])
    for port in (GATEWAY, UPSTREAM, ADMIN):
        free(port)
    process = subprocess.Popen(command(binary), cwd=ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while process.poll() is None and not ready():
            time.sleep(0.1)
        if process.poll() is None:
            say(READY)
        code = process.wait()
    except KeyboardInterrupt:
        # The terminal has sent the signal to Envoy too.
        code = process.wait()
    finally:
        process.kill()
    if code:
        die(f"Envoy ended with code {code}, see above")


if __name__ == "__main__":
    main()
