"""Starts two gateways, a configuration server and Redis, by envoy/fleet.yaml or a file of envoy/redis/; Ctrl-C stops them all."""

import os
import re
import secrets
import shutil
import sys

import envoy
import local
import redis
from console import ROOT, die, relative, say

CENTRE = 18080
# Each gateway's ports: for clients, for operators, for its admin interface. The configuration has those of the first.
GATEWAYS = {"first": (10000, 10002, 9901), "second": (10010, 10012, 9911)}
# The socket of a gateway's own Redis proxy, as the configuration names it.
SOCKET = "target/redis.sock"
RULES = redis.FOLDER / "centre/rules.yaml"


def start_gateway(binary, name, config, secret):
    """Starts Envoy with a copy of the configuration that has the gateway's own ports and socket."""
    text = (ROOT / config).read_text().replace(SOCKET, relative(socket(name)))
    for port, own in zip(GATEWAYS["first"], GATEWAYS[name]):
        text = text.replace(f"port_value: {port} ", f"port_value: {own} ")
    # Tests on a busy machine need a longer timeout than the file has.
    if timeout := os.environ.get("REDIS_TIMEOUT"):
        text = re.sub(r"timeout: \d+ms(?= +# the longest that a request waits for Redis)", f"timeout: {timeout}", text)
    path = redis.FOLDER / f"{name}.yaml"
    path.write_text(text)
    return local.envoy(binary, path, {**os.environ, **secret}, f"{name} ")


def socket(name):
    return redis.FOLDER / f"{name}.sock"


def is_ready(name, keys):
    """Returns true if all threads of a gateway apply the rules of the configuration server, and its proxy reaches these keys."""
    *_, admin = GATEWAYS[name]
    workers = local.stat(admin, "envoy_server_concurrency") if local.ready(admin) else None
    if workers is None or local.stat(admin, "diana_remote_in_force") != workers + 1:
        return False
    return all(redis.cli("-s", socket(name), "EVAL", "return 1", 1, key) == "1" for key in keys)


def main(setup="one", *version):
    if setup not in redis.SETUPS:
        die(f"REDIS={setup} is not known; there are {', '.join(redis.SETUPS)}")
    setup, binary = redis.SETUPS[setup], envoy.path(*version)
    for port in (*setup.ports, CENTRE, *sum(GATEWAYS.values(), ())):
        local.free(port, setup.config)
    password, token = secrets.token_hex(16), os.environ.get("DIANA_TOKEN") or secrets.token_hex(16)
    secret = {"DIANA_REDIS_PASSWORD": password, "DIANA_TOKEN": token}
    redis.write(redis.PASSWORD, password)
    with local.processes() as processes:
        RULES.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "envoy/fleet-rules.yaml", RULES)
        local.files(CENTRE, RULES.parent)
        for process in setup.start(password):
            processes.append(process)
        gateways = [start_gateway(binary, name, setup.config, secret) for name in GATEWAYS]
        processes += gateways
        local.wait(lambda: setup.is_ready(password) and all(is_ready(name, setup.keys) for name in GATEWAYS), processes)
        say(f"""
Two gateways are ready at http://127.0.0.1:10000 and http://127.0.0.1:10010 (admin: 9901 and 9911). They share limits through Redis
at {", ".join(f"127.0.0.1:{port}" for port in setup.ports)}, and take their rules from {relative(RULES)}.
The token of operators, for ports 10002 and 10012 until the gateways stop: {token}

docs/tutorial.md has what to try, docs/guides/redis.md how to let Redis fail. Each line of the log below begins with the
name of its gateway. Ctrl-C stops everything.
""")
        # Redis may end: that is one of the things to try.
        local.wait(lambda: False, gateways)


if __name__ == "__main__":
    main(*sys.argv[1:])
