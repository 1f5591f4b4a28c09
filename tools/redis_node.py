"""Local Redis servers, with the users of envoy/redis/users.conf and an administrator."""

import os
import re
import shutil
import subprocess

import needs
from console import ROOT, TARGET

FOLDER = TARGET / "fleet"
PASSWORD = FOLDER / "password"
USERS = "envoy/redis/users.conf"
ADMIN = "admin"


def keep(password):
    """Writes the password to a file for commands in a terminal, unreadable for other users."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    PASSWORD.touch(0o600)
    PASSWORD.write_text(password)


def start(port, password, *lines):
    """Starts a Redis without persistence, with these lines in its configuration."""
    users = (ROOT / USERS).read_text().replace(">PASSWORD", f">{password}")
    return spawn(
        port, [],
        *re.findall("^user .*", users, re.M),
        f"user {ADMIN} on >{password} ~* &* +@all",
        "masteruser replica",
        f"masterauth {password}",
        'save ""',
        # Otherwise a replica waits five seconds for its first copy.
        "repl-diskless-sync-delay 0",
        *lines,
    )  # fmt: skip


def spawn(port, words, *lines):
    """Starts redis-server in a separate folder. Its configuration is unreadable for other users, since it contains
    passwords."""
    folder = FOLDER / str(port)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = folder / "redis.conf"
    config.touch(0o600)
    config.write_text("\n".join([f"port {port}", "bind 127.0.0.1", *lines, ""]))
    command = [needs.program("redis-server"), config, *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)


def ask(port, password, *words):
    """A node's reply to a command."""
    return cli(["-p", port, "--user", ADMIN, "--no-auth-warning", *words], {"REDISCLI_AUTH": password})


def ask_gateway(socket, *words):
    """A reply of Redis through a gateway, which authenticates itself."""
    return cli(["-s", socket, *words], {})


def cli(words, environment):
    command = [needs.program("redis-cli"), *map(str, words)]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True).stdout.strip()


def admin(port):
    """The command prefix for a node, in a terminal at the project's root."""
    password = PASSWORD.relative_to(ROOT)
    return f"REDISCLI_AUTH=$(cat {password}) redis-cli --user {ADMIN} --no-auth-warning -p {port}"
