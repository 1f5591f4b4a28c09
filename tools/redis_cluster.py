"""A Redis Cluster of three primaries with a replica each, for `make fleet`."""

import time

import redis_node

CONFIG = "envoy/redis/cluster.yaml"
PORTS = list(range(17001, 17007))
# The keys that gateways must reach before they are ready.
KEYS = ["diana:{2:fleet}:ready"]
WHERE = "in the Redis Cluster at 127.0.0.1:17001 … 17006"

SETTINGS = [
    "cluster-enabled yes",
    # A replica takes over after about two of these.
    "cluster-node-timeout 2000",
    # The other nodes serve their keys in the meantime.
    "cluster-require-full-coverage no",
]


def start(processes, password):
    for port in PORTS:
        processes[f"Redis {port}"] = redis_node.start(port, password, *SETTINGS)
    while not all(redis_node.ask(port, password, "PING") == "PONG" for port in PORTS):
        time.sleep(0.1)
    addresses = [f"127.0.0.1:{port}" for port in PORTS]
    redis_node.ask(PORTS[0], password, "--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes")


def is_ready(password):
    """Returns True if all nodes know the location of the keys, and each replica has a copy of them."""
    states = [redis_node.ask(port, password, "CLUSTER", "INFO") for port in PORTS]
    copies = [redis_node.ask(port, password, "INFO", "replication") for port in PORTS]
    up = sum("master_link_status:up" in copy for copy in copies)
    return all("cluster_state:ok" in state for state in states) and up == len(PORTS) // 2


def told(processes):
    primaries = ", ".join(f"{processes[f'Redis {port}'].pid} at port {port}" for port in PORTS[:3])
    return f"""
Kill a primary, and see that no request fails; who is counted there is limited by each gateway itself until, some five seconds
later, its replica has taken over. The primaries are {primaries}.

  kill -9 {processes["Redis 17001"].pid}; hello; sleep 5; hello
  {redis_node.admin(17002)} cluster nodes

Let a replica take over as planned, and see that nobody notices:

  {redis_node.admin(17004)} cluster failover; hello
"""
