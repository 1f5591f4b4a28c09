"""Redis servers on this machine for `make fleet` and `make watch`: a single one, a cluster, shards, or nodes with sentinels."""

import os
import re
import shutil
import subprocess
import time
from typing import Callable, NamedTuple

import needs
from console import ROOT, TARGET

FOLDER = TARGET / "fleet"
PASSWORD = FOLDER / "password"
ADMIN = "admin"


class Setup(NamedTuple):
    """One way to set up Redis for a fleet."""

    # Envoy's configuration for it.
    config: str
    ports: list
    # Keys that each gateway reaches through its own proxy when it is ready: one for each shard.
    keys: list
    # Yields the servers as it starts them; returns true if they are ready. Both take the password.
    start: Callable
    is_ready: Callable


def write(path, text):
    """Writes a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_text(text)


def spawn(port, *lines, arguments=()):
    """Starts redis-server in target/fleet/<port>, with these lines in its configuration."""
    folder = FOLDER / str(port)
    shutil.rmtree(folder, ignore_errors=True)
    write(folder / "redis.conf", "\n".join([f"port {port}", "bind 127.0.0.1", "pidfile redis.pid", *lines, ""]))
    command = [needs.program("redis-server"), folder / "redis.conf", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)


def node(port, password, *lines):
    """Starts a Redis without persistence, with the users of envoy/redis/users.conf and an administrator."""
    users = (ROOT / "envoy/redis/users.conf").read_text().replace(">PASSWORD", f">{password}")
    lines = [*re.findall("^user .*", users, re.M), admin(password), "masteruser replica", f"masterauth {password}", 'save ""', *lines]
    # A replica waits five seconds for its first copy by default.
    return spawn(port, *lines, "repl-diskless-sync-delay 0")


def admin(password):
    return f"user {ADMIN} on >{password} ~* &* +@all"


def cli(*words, password=""):
    """What redis-cli prints."""
    command = [needs.program("redis-cli"), "--no-auth-warning", *map(str, words)]
    return subprocess.run(command, env={**os.environ, "REDISCLI_AUTH": password}, capture_output=True, text=True).stdout.strip()


def ask(port, password, *words):
    """The reply of a node to its administrator."""
    return cli("-p", port, "--user", ADMIN, *words, password=password)


def answer(ports, password):
    return all(ask(port, password, "PING") == "PONG" for port in ports)


def start_one(password):
    yield spawn(ONE.ports[0], f"requirepass {password}", 'save ""')


def start_cluster(password):
    """Three primaries with a replica each. Replicas take over after about twice the timeout; meanwhile the other primaries serve."""
    lines = ["cluster-enabled yes", "cluster-node-timeout 2000", "cluster-require-full-coverage no"]
    yield from (node(port, password, *lines) for port in CLUSTER.ports)
    while not answer(CLUSTER.ports, password):
        time.sleep(0.1)
    addresses = [f"127.0.0.1:{port}" for port in CLUSTER.ports]
    ask(CLUSTER.ports[0], password, "--cluster", "create", *addresses, "--cluster-replicas", 1, "--cluster-yes")


def cluster_is_ready(password):
    """Returns true if all nodes know the slots and each replica has its copy."""
    states = [ask(port, password, "CLUSTER", "INFO") for port in CLUSTER.ports]
    copies = [ask(port, password, "INFO", "replication") for port in CLUSTER.ports]
    return all("cluster_state:ok" in state for state in states) and sum("master_link_status:up" in copy for copy in copies) == 3


def start_sentinels(password):
    """A primary with two replicas, and three sentinels. A primary that lost its replicas refuses writes."""
    first, *others = NODES
    yield node(first, password, "min-replicas-to-write 1")
    yield from (node(port, password, "min-replicas-to-write 1", f"replicaof 127.0.0.1 {first}") for port in others)
    lines = [f"sentinel monitor main 127.0.0.1 {first} 2", "sentinel auth-user main sentinel", f"sentinel auth-pass main {password}"]
    lines += ["sentinel down-after-milliseconds main 1000", "sentinel failover-timeout main 5000", admin(password)]
    yield from (spawn(port, *lines, arguments=["--sentinel"]) for port in SENTINELS)


def sentinels_are_ready(password):
    """Returns true if the primary has both replicas and the sentinels can agree on another primary."""
    agree = [ask(port, password, "SENTINEL", "CKQUORUM", "main") for port in SENTINELS]
    return ask(NODES[0], password, "INFO", "replication").count("state=online") == 2 and all(it.startswith("OK 3") for it in agree)


NODES, SENTINELS = [17001, 17002, 17003], [27001, 27002, 27003]
READY = "diana:{2:fleet}:ready"
# With a single Redis, gateways have no proxy.
ONE = Setup("envoy/fleet.yaml", [16379], [], start_one, lambda password: cli("-p", 16379, "PING", password=password) == "PONG")
CLUSTER = Setup("envoy/redis/cluster.yaml", list(range(17001, 17007)), [READY], start_cluster, cluster_is_ready)
SENTINEL = Setup("envoy/redis/sentinel.yaml", NODES + SENTINELS, [READY], start_sentinels, sentinels_are_ready)
SHARDS = Setup(
    "envoy/redis/shards.yaml",
    [17001, 17002],
    ["diana:{2:fleet:0:0}:ready", "diana:{2:fleet:1:0}:ready"],
    lambda password: (node(port, password) for port in SHARDS.ports),
    lambda password: answer(SHARDS.ports, password),
)
SETUPS = {"one": ONE, "cluster": CLUSTER, "shards": SHARDS, "sentinel": SENTINEL}
