"""Two independent Redis servers, for `make fleet`."""

import redis_node

CONFIG = "envoy/redis/shards.yaml"
PORTS = [17001, 17002]
# The keys that gateways must reach before they are ready, one for each shard.
KEYS = ["diana:{2:fleet:0:0}:ready", "diana:{2:fleet:1:0}:ready"]
WHERE = "in two shards at 127.0.0.1:17001 and 17002"


def start(processes, password):
    for port in PORTS:
        processes[f"Redis {port}"] = redis_node.start(port, password)


def is_ready(password):
    return all(redis_node.ask(port, password, "PING") == "PONG" for port in PORTS)


def told(processes):
    stopped = processes["Redis 17001"].pid
    return f"""
Stop a shard, and see that no request fails; who is counted there is limited by each gateway itself, and nobody else. Then let
it go on:

  kill -STOP {stopped}; hello; kill -CONT {stopped}
"""
