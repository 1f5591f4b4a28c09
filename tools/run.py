"""Starts Envoy with a configuration that has the ports of envoy/envoy.yaml; Ctrl-C stops it."""

import os
import secrets
import sys

import envoy
import local
import native
from console import say

CONFIG = "envoy/envoy.yaml"
GATEWAY, UPSTREAM, OPERATOR, ADMIN = 10000, 10001, 10002, 9901


def main(config=CONFIG, *version):
    binary, token = envoy.path(*version), os.environ.get("DIANA_TOKEN") or secrets.token_hex(16)
    used = native.written(config) if os.environ.get("NATIVE") else config
    for port in (GATEWAY, UPSTREAM, OPERATOR, ADMIN):
        local.free(port, config)
    with local.processes() as processes:
        processes.append(local.envoy(binary, used, {**os.environ, "DIANA_TOKEN": token}))
        local.wait(lambda: local.ready(ADMIN), processes)
        say(f"\nDiana is ready at http://127.0.0.1:{GATEWAY} (admin: http://127.0.0.1:{ADMIN}). Ctrl-C stops Envoy.")
        if config == CONFIG:
            say(f"""
In another terminal, be refused, see why, read the caller's usage and reset it (this token is valid until Envoy stops):

  for i in 1 2 3; do curl -i -H 'x-account-id: ada' http://127.0.0.1:{GATEWAY}/share/qq; done
  curl -i -H 'x-diana-explain: {token}' -H 'x-account-id: ada' http://127.0.0.1:{GATEWAY}/share/qq
  curl -H 'authorization: Bearer {token}' 'http://127.0.0.1:{OPERATOR}/.diana/usage?rule=share-qq&actor.account=ada'
  curl -H 'authorization: Bearer {token}' -X POST 'http://127.0.0.1:{OPERATOR}/.diana/reset?rule=share-qq&actor.account=ada'
""")
        local.wait(lambda: False, processes)


if __name__ == "__main__":
    main(*sys.argv[1:])
