"""Starts Envoy in the foreground with a configuration that has the ports of envoy/envoy.yaml. Ctrl-C stops it."""

import os
import secrets
import signal
import sys
import time

import envoy
import local
from console import die, say

CONFIG = "envoy/envoy.yaml"
GATEWAY, UPSTREAM, OPERATOR, ADMIN = 10000, 10001, 10002, 9901
# A new one at each start.
TOKEN = secrets.token_hex(16)

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

Why was it refused, how much has ada left, and lift it (this token is good until Envoy stops):

  curl -i -H 'x-diana-explain: {TOKEN}' -H 'x-account-id: ada' http://127.0.0.1:{GATEWAY}/share/qq
  curl -H 'authorization: Bearer {TOKEN}' 'http://127.0.0.1:{OPERATOR}/.diana/usage?rule=share-qq&actor.account=ada'
  curl -H 'authorization: Bearer {TOKEN}' -X POST 'http://127.0.0.1:{OPERATOR}/.diana/reset?rule=share-qq&actor.account=ada'
  curl -H 'authorization: Bearer {TOKEN}' http://127.0.0.1:{OPERATOR}/.diana/rules

The log below names the rule that refused a request.
"""


def main():
    config, *version = sys.argv[1:] or [CONFIG]
    binary = envoy.path(*version)
    for port in (GATEWAY, UPSTREAM, OPERATOR, ADMIN):
        local.free(port, config)
    process = local.envoy(binary, config, {**os.environ, "DIANA_TOKEN": TOKEN})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while process.poll() is None and not local.ready(ADMIN):
            time.sleep(0.1)
        if process.poll() is None:
            say(READY + (TRY if config == CONFIG else ""))
        code = process.wait()
    except KeyboardInterrupt:
        # The terminal has sent the signal to Envoy, too.
        code = process.wait()
    finally:
        process.kill()
    if code:
        die(f"Envoy ended with code {code}, see above")


if __name__ == "__main__":
    main()
