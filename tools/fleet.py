"""Starts two gateways, a configuration server and one or several Redis, with envoy/fleet.yaml or a file of
envoy/redis/. Ctrl-C stops them all."""

import os
import re
import secrets
import shutil
import signal
import sys
import time

import envoy
import local
import redis_cluster
import redis_node
import redis_one
import redis_sentinel
import redis_shards
from console import ROOT, die, relative, say
from redis_node import FOLDER

CENTRE = 18080
# The setups of Redis. A new setup is a module and a line here.
WAYS = {"one": redis_one, "cluster": redis_cluster, "shards": redis_shards, "sentinel": redis_sentinel}
# The ports of a gateway: for its clients, for its operators, and of its admin interface. Those of
# the first gateway are in the file.
GATEWAYS = {"first": (10000, 10002, 9901), "second": (10010, 10012, 9911)}
# The operators' token, a new one at each start.
TOKEN = secrets.token_hex(16)
# The socket of a gateway's Redis proxy, if it has one.
SOCKET = "target/redis.sock"
RULES = FOLDER / "centre/rules.yaml"


def start_centre():
    RULES.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "envoy/fleet-rules.yaml", RULES)
    local.files(CENTRE, RULES.parent)


def start_gateway(binary, name, way, password):
    """The file is the same on every machine. On one machine each gateway needs separate ports and a separate socket."""
    config = (ROOT / way.CONFIG).read_text().replace(SOCKET, relative(socket(name)))
    for port, own in zip(GATEWAYS["first"], GATEWAYS[name]):
        config = config.replace(f"port_value: {port} ", f"port_value: {own} ")
    # Tests on a busy machine need longer timeouts than in the files.
    if timeout := os.environ.get("REDIS_TIMEOUT"):
        config = re.sub(r"timeout: \d+ms(?= +# the longest that a request waits for Redis)", f"timeout: {timeout}", config)
    path = FOLDER / f"{name}.yaml"
    path.write_text(config)
    secret = {"DIANA_REDIS_PASSWORD": password, "DIANA_TOKEN": TOKEN}
    return local.envoy(binary, path, {**os.environ, **secret}, f"{name} ")


def socket(name):
    return FOLDER / f"{name}.sock"


def serve(processes, way, password):
    """Waits until all gateways are ready, prints commands to try, and waits until a gateway ends."""
    while not (way.is_ready(password) and all(is_ready(name, way.KEYS) for name in GATEWAYS)):
        watch(processes, processes)
        time.sleep(0.1)
    say(told(way, processes))
    while True:
        # Redis may end, so that users can observe the gateways.
        watch(processes, GATEWAYS)
        time.sleep(0.2)


def is_ready(name, keys):
    """Returns True if a gateway serves requests, all its workers and its main thread apply the remote rules, and its
    proxy reaches Redis with these keys."""
    *_, admin = GATEWAYS[name]
    workers = local.stat(admin, "envoy_server_concurrency") if local.ready(admin) else None
    if workers is None or local.stat(admin, "diana_remote_in_force") != workers + 1:
        return False
    return all(redis_node.ask_gateway(socket(name), "EVAL", "return 1", 1, key) == "1" for key in keys)


def watch(processes, names):
    for name in names:
        if processes[name].poll() is not None:
            die(f"{name} has ended, see above")


def told(way, processes):
    """The commands to try."""
    return f"""
Two gateways are ready at http://127.0.0.1:10000 and http://127.0.0.1:10010 (admin: 9901 and 9911). They count together
{way.WHERE}, by the rules that http://127.0.0.1:{CENTRE}/rules.yaml serves. In another terminal, try:

  hello() {{ for port in 10000 10010; do for i in 1 2 3 4 5 6 7; do
    curl -s -o /dev/null -w '%{{http_code}} ' http://127.0.0.1:$port/hello; done; echo; done; }}
  hello

Ten of the fourteen pass. Now change the rules in the centre, and see that what was used stays used:

  sed -i 's/burst: 10/burst: 20/' {relative(RULES)}; sleep 3; hello

Break them, and see that the last good ones stay; then put them right again:

  echo nonsense >> {relative(RULES)}; sleep 3; hello
  sed -i '/nonsense/d' {relative(RULES)}
{way.told(processes)}
{operators(way)}See how each gateway counts, and what has failed:

  curl -s http://127.0.0.1:9901/stats/prometheus | grep -E '^diana_(mode|rule|remote|fleet_failed)'

Each line of the log below begins with the gateway that it comes from. Ctrl-C stops everything.
"""


def operators(way):
    """The commands for operators."""
    if way is not redis_one:
        return ""
    return f"""Lift through the one gateway what was used through both (this token is good until they stop):

  curl -H 'authorization: Bearer {TOKEN}' 'http://127.0.0.1:10002/.diana/usage?rule=hello'
  curl -H 'authorization: Bearer {TOKEN}' -X POST 'http://127.0.0.1:10012/.diana/reset?rule=hello'; sleep 1; hello

"""


def chosen(way="one", *version):
    if way not in WAYS:
        die(f"REDIS={way} is not known; there are {', '.join(WAYS)}")
    return WAYS[way], envoy.path(*version)


def start(processes, way, binary, password):
    start_centre()
    way.start(processes, password)
    for name in GATEWAYS:
        processes[name] = start_gateway(binary, name, way, password)


def main():
    way, binary = chosen(*sys.argv[1:3])
    for port in (*way.PORTS, CENTRE, *sum(GATEWAYS.values(), ())):
        local.free(port, way.CONFIG)
    password = secrets.token_hex(16)
    redis_node.keep(password)
    for sent in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent, lambda *_: sys.exit(0))
    processes = {}
    try:
        start(processes, way, binary, password)
        serve(processes, way, password)
    except KeyboardInterrupt:
        pass
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
