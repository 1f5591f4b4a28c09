"""Starts Envoy in the foreground with a configuration that takes the ports of envoy/envoy.yaml; Ctrl-C stops it."""

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
Diana is ready at http://127.0.0.1:{GATEWAY} (admin: http://127.0.0.1:{ADMIN}). Ctrl-C stops Envoy.
"""
# With envoy/envoy.yaml.
TRY = f"""In another terminal, try:

  for i in 1 2 3 4 5 6 7; do curl -s -o /dev/null -w '%{{http_code}} ' http://127.0.0.1:{GATEWAY}/hello; done; echo
  curl -i http://127.0.0.1:{GATEWAY}/hello
  for i in 1 2 3; do curl -s -o /dev/null -w '%{{http_code}} after %{{time_total}} s\\n' http://127.0.0.1:{GATEWAY}/slow & done; wait
  for i in 1 2 3; do curl -i -H 'x-account-id: ada' http://127.0.0.1:{GATEWAY}/share/qq; done
  sleep 1; curl -s http://127.0.0.1:{ADMIN}/stats/prometheus | grep ^diana

The log below names the rule that refused a request.
"""


def main():
    config, *version = sys.argv[1:] or [CONFIG]
    binary = envoy.path(*version)
    for port in (GATEWAY, UPSTREAM, ADMIN):
        local.free(port, config)
    process = local.envoy(binary, config, os.environ)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while process.poll() is None and not local.ready(ADMIN):
            time.sleep(0.1)
        if process.poll() is None:
            say(READY + (TRY if config == CONFIG else ""))
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
