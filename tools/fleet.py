"""Starts two gateways, a Redis and a configuration centre with envoy/fleet.yaml; Ctrl-C stops them all."""

import functools
import http.server
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time

import envoy
import local
import needs
from console import ROOT, TARGET, die, relative, say

CONFIG = "envoy/fleet.yaml"
FOLDER = TARGET / "fleet"
REDIS, CENTRE = 16379, 18080
# The ports of a gateway and of its admin interface; those of the first stand in the file.
GATEWAYS = {"first": (10000, 9901), "second": (10010, 9911)}
RULES = FOLDER / "centre/rules.yaml"

class Centre(http.server.SimpleHTTPRequestHandler):
    """A plain file server that keeps silent: it is asked all the time."""

    def log_message(self, *_):
        pass


def start_centre():
    RULES.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "envoy/fleet-rules.yaml", RULES)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", CENTRE), functools.partial(Centre, directory=RULES.parent)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()


def start_redis(binary, password):
    # By its standard input, so that the list of processes does not show the password.
    config = f'bind 127.0.0.1\nport {REDIS}\nrequirepass {password}\nsave ""\nappendonly no\n'
    redis = subprocess.Popen([binary, "-"], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    redis.stdin.write(config)
    redis.stdin.close()
    return redis


def start_gateway(binary, name, password):
    """The same file on every machine; on one machine each gateway needs ports of its own."""
    config = (ROOT / CONFIG).read_text()
    for port, own in zip(GATEWAYS["first"], GATEWAYS[name]):
        config = config.replace(f"port_value: {port} ", f"port_value: {own} ")
    path = FOLDER / f"{name}.yaml"
    path.write_text(config)
    return local.envoy(binary, path, {**os.environ, "DIANA_REDIS_PASSWORD": password}, f"{name} ")


def serve(processes):
    """Until all gateways go by the centre's rules; then tells what to try, and waits until one of them ends."""
    while not all(is_ready(admin) for _, admin in GATEWAYS.values()):
        watch(processes, processes)
        time.sleep(0.1)
    say(told(processes["Redis"].pid))
    while True:
        # Whoever ends Redis wants to see what the gateways do about it.
        watch(processes, GATEWAYS)
        time.sleep(0.2)


def is_ready(admin):
    """Whether a gateway serves, and each of its workers goes by the centre's rules, as its main thread does."""
    workers = local.stat(admin, "envoy_server_concurrency") if local.ready(admin) else None
    return workers is not None and local.stat(admin, "diana_remote_in_force") == workers + 1


def watch(processes, names):
    for name in names:
        if processes[name].poll() is not None:
            die(f"{name} has ended, see above")


def told(redis):
    """What to try."""
    return f"""
Two gateways are ready at http://127.0.0.1:10000 and http://127.0.0.1:10010 (admin: 9901 and 9911). They count together
in the Redis at 127.0.0.1:{REDIS}, by the rules that http://127.0.0.1:{CENTRE}/rules.yaml serves. In another terminal, try:

  hello() {{ for port in 10000 10010; do for i in 1 2 3 4 5 6 7; do
    curl -s -o /dev/null -w '%{{http_code}} ' http://127.0.0.1:$port/hello; done; echo; done; }}
  hello

Ten of the fourteen pass. Now change the rules in the centre, and see that what was used stays used:

  sed -i 's/burst: 10/burst: 20/' {relative(RULES)}; sleep 3; hello

Break them, and see that the last good ones stay; then put them right again:

  echo nonsense >> {relative(RULES)}; sleep 3; hello
  sed -i '/nonsense/d' {relative(RULES)}

Stop Redis, and see that no request fails and each gateway limits by itself; then let it go on:

  kill -STOP {redis}; hello; kill -CONT {redis}
  curl -s http://127.0.0.1:9901/stats/prometheus | grep -E '^diana_(mode|rule|remote)'

Each line of the log below begins with the gateway that it comes from. Ctrl-C stops everything.
"""


def main():
    binary = envoy.path(*sys.argv[1:2])
    redis = needs.program("redis-server")
    for port in (REDIS, CENTRE, *sum(GATEWAYS.values(), ())):
        local.free(port, CONFIG)
    password = secrets.token_hex(16)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    processes = {}
    try:
        start_centre()
        processes["Redis"] = start_redis(redis, password)
        for name in GATEWAYS:
            processes[name] = start_gateway(binary, name, password)
        serve(processes)
    except KeyboardInterrupt:
        pass
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
