"""Three Redis nodes and three sentinels that promote another primary when the old one fails, for `make fleet`."""

import redis_node

CONFIG = "envoy/redis/sentinel.yaml"
NODES = [17001, 17002, 17003]
SENTINELS = [27001, 27002, 27003]
PORTS = NODES + SENTINELS
# The keys that gateways must reach before they are ready.
KEYS = ["diana:{2:fleet}:ready"]
WHERE = "in the primary among 127.0.0.1:17001 … 17003"


# As long as gateways still use the old primary, it must not count in parallel with the new one.
SETTINGS = ["min-replicas-to-write 1"]


def start(processes, password):
    for port in NODES:
        follow = [] if port == NODES[0] else [f"replicaof 127.0.0.1 {NODES[0]}"]
        processes[f"Redis {port}"] = redis_node.start(port, password, *SETTINGS, *follow)
    for port in SENTINELS:
        processes[f"Sentinel {port}"] = start_sentinel(port, password)


def start_sentinel(port, password):
    return redis_node.spawn(
        port, ["--sentinel"],
        f"sentinel monitor main 127.0.0.1 {NODES[0]} 2",
        "sentinel auth-user main sentinel",
        f"sentinel auth-pass main {password}",
        "sentinel down-after-milliseconds main 1000",
        "sentinel failover-timeout main 5000",
        f"user {redis_node.ADMIN} on >{password} ~* &* +@all",
    )  # fmt: skip


def is_ready(password):
    """Returns True if the primary has both replicas, and the sentinels would agree on another one."""
    replicas = redis_node.ask(NODES[0], password, "INFO", "replication").count("state=online")
    agree = [redis_node.ask(port, password, "SENTINEL", "CKQUORUM", "main") for port in SENTINELS]
    return replicas == len(NODES) - 1 and all(answer.startswith("OK 3") for answer in agree)


def told(processes):
    primary = processes["Redis 17001"].pid
    return f"""
Kill the primary, and see that no request fails and each gateway limits by itself until, some three seconds later, the sentinels
have named another one:

  kill -9 {primary}; hello; sleep 4; hello
  {redis_node.admin(27001)} sentinel get-master-addr-by-name main

Name another one as planned:

  {redis_node.admin(27001)} sentinel failover main; sleep 2; hello
"""
