"""Counts the instructions of Envoy's worker with valgrind's callgrind."""

import re
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from server import Envoy

# Envoy may be started by a script. Instrumentation is off at the start, so that only the counted
# part is slow.
CALLGRIND = ["valgrind", "--tool=callgrind", "--trace-children=yes", "--separate-threads=yes", "--instr-atstart=no", "--quiet"]
SLOW_CLOCK = Path(__file__).with_name("slow_clock.c")


class Counted:
    """Counts the instructions of Envoy's only worker for requests."""

    def __init__(self, envoy, folder):
        self.envoy, self.folder = envoy, folder
        self.ports = envoy.ports()

    def warm_up(self, listener, requests):
        """Sends requests that are not counted."""
        self.control("--instr=off")
        self.serve(listener, requests)
        self.control("--instr=on")

    def instructions(self, listener, requests):
        """The worker's instructions for these requests, sent in sequence on one connection."""
        self.control("--zero")
        self.serve(listener, requests)
        self.control("--dump")
        dumps = list(self.folder.glob("out.*"))
        totals = [int(total) for dump in dumps for total in re.findall(r"^totals: (\d+)", dump.read_text(), re.MULTILINE)]
        for dump in dumps:
            dump.unlink()
        # There is one dump per thread, and the other threads are idle.
        return max(totals)

    def control(self, what):
        """Sends a command to callgrind, and waits until it is done."""
        pid = str(self.envoy.process.pid)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["callgrind_control", what, pid], check=True, **quiet)

    def serve(self, listener, requests):
        """Sends requests, each after the complete response to the previous one."""
        with socket.create_connection(("127.0.0.1", self.ports[listener]), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = connection.makefile("rb")
            for request in requests:
                connection.sendall(request)
                read(answers)


@contextmanager
def counted(binary, configuration):
    """Starts an Envoy in callgrind, and stops it at the end of a `with`."""
    with tempfile.TemporaryDirectory(prefix="diana-cost-") as folder:
        clock = f"{folder}/clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", SLOW_CLOCK, "-o", clock], check=True)
        under = [*CALLGRIND, f"--callgrind-out-file={folder}/out"]
        with Envoy(binary, configuration, under=under, environment={"LD_PRELOAD": clock}) as envoy:
            yield Counted(envoy, Path(folder))


def read(answers):
    """Reads one response to its end."""
    length = 0
    while line := answers.readline().strip().lower():
        name, _, value = line.partition(b":")
        length = int(value) if name == b"content-length" else length
    answers.read(length)
