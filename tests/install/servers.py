"""Starts servers of the tests on loopback, and waits for them."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Maximum time to start on a busy machine.
PATIENCE = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what):
    """Returns the first true result of the condition."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE} s in vain: {what}")


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def server(command, port, environment=None):
    """Runs a program until the block ends, after it listens on the port. Yields the file of its log."""
    with tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
        try:
            said = Path(log.name).read_text
            wait_for(lambda: process.poll() is not None or listens(port), f"{command[0]}: {said()}")
            if process.poll() is not None:
                raise AssertionError(f"{command[0]} has ended:\n{said()}")
            yield Path(log.name)
        finally:
            process.kill()
            process.wait()
