"""Starts Envoy with envoy/envoy.yaml in the foreground; Ctrl-C stops it."""

import os
import signal
import sys
import time

import envoy
import local
from console import die, say

CONFIG = "envoy/envoy.yaml"
GATEWAY, UPSTREAM, ADMIN = 10000, 10001, 9901

READY = f"""
Diana is ready at http://127.0.0.1:{GATEWAY} (admin: http://127.0.0.1:{ADMIN}). In another terminal, try:

  for i in 1 2 3 4 5 6 7; do curl -s -o /dev/null -w '%{{http_code}} ' http://127.0.0.1:{GATEWAY}/hello; done; echo
  curl -i http://127.0.0.1:{GATEWAY}/hello
  for i in 1 2 3; do curl -s -o /dev/null -w '%{{http_code}} after %{{time_total}} s\\n' http://127.0.0.1:{GATEWAY}/slow & done; wait
  for i in 1 2 3; do curl -i -H 'x-account-id: ada' http://127.0.0.1:{GATEWAY}/share/qq; done
  sleep 1; curl -s http://127.0.0.1:{ADMIN}/stats/prometheus | grep ^diana

The log below names the rule that refused a request. Ctrl-C stops Envoy.
"""


def main():
    binary = envoy.path(*sys.argv[1:2])
    for port in (GATEWAY, UPSTREAM, ADMIN):
        local.free(port, CONFIG)
    process = local.envoy(binary, CONFIG, os.environ)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while process.poll() is None and not local.ready(ADMIN):
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
