"""An Envoy whose worker's instructions valgrind's callgrind counts."""

import re
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from server import running

# The binary may be a script that starts Envoy. Counting, which slows it down, starts with the first
# request.
CALLGRIND = ["valgrind", "--tool=callgrind", "--trace-children=yes", "--separate-threads=yes", "--instr-atstart=no", "--quiet"]
SLOW_CLOCK = Path(__file__).with_name("slow_clock.c")


class Counted:
    """Counts the instructions of the only worker of an Envoy."""

    def __init__(self, envoy, folder):
        self.envoy, self.folder = envoy, folder
        self.ports = envoy.ports()

    def warm_up(self, listener, requests):
        """Sends requests that are not counted."""
        self.control("--instr=off")
        self.serve(listener, requests)
        self.control("--instr=on")

    def instructions(self, listener, requests):
        """The worker's instructions for these requests, one after another on one connection."""
        self.control("--zero")
        self.serve(listener, requests)
        self.control("--dump")
        dumps = list(self.folder.glob("out.*"))
        totals = [int(total) for dump in dumps for total in re.findall(r"^totals: (\d+)", dump.read_text(), re.MULTILINE)]
        for dump in dumps:
            dump.unlink()
        # There is one dump for each thread, and the other threads are idle.
        return max(totals)

    def control(self, what):
        """Sends callgrind a command, and waits until it is done."""
        pid = str(self.envoy.process.pid)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["callgrind_control", what, pid], check=True, **quiet)

    def serve(self, listener, requests):
        """Sends requests, each after the whole response to the one before."""
        with socket.create_connection(("127.0.0.1", self.ports[listener]), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = connection.makefile("rb")
            for request in requests:
                connection.sendall(request)
                read(answers)


@contextmanager
def counted(binary, configuration, environment={}):
    """Starts an Envoy in callgrind, and stops it at the end of a `with`."""
    with tempfile.TemporaryDirectory(prefix="diana-cost-") as folder:
        clock = f"{folder}/clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", SLOW_CLOCK, "-o", clock], check=True)
        under = [*CALLGRIND, f"--callgrind-out-file={folder}/out"]
        with running([*under, binary, "--concurrency", "1"], configuration, {"LD_PRELOAD": clock, **environment}) as envoy:
            yield Counted(envoy, Path(folder))


def read(answers):
    """Reads one response."""
    length = 0
    while line := answers.readline().strip().lower():
        name, _, value = line.partition(b":")
        length = int(value) if name == b"content-length" else length
    answers.read(length)
