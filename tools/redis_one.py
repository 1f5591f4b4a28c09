"""A single Redis for `make fleet`."""

import redis_node

CONFIG = "envoy/fleet.yaml"
PORTS = [16379]
# Gateways authenticate themselves.
KEYS = []
WHERE = "in the Redis at 127.0.0.1:16379"


def start(processes, password):
    # The default user needs the password, too.
    processes["Redis"] = redis_node.spawn(PORTS[0], [], f"requirepass {password}", 'save ""')


def is_ready(password):
    return redis_node.cli(["-p", PORTS[0], "PING"], {"REDISCLI_AUTH": password}) == "PONG"


def told(processes):
    redis = processes["Redis"].pid
    return f"""
Stop Redis, and see that no request fails and each gateway limits by itself; then let it go on:

  kill -STOP {redis}; hello; kill -CONT {redis}
"""
