"""Load by wrk: one process for each listener, all alive at once, of which one at a time runs."""

import re
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

URL = "http://127.0.0.1:{}/svc/25/items/7?page=2"
# The arguments before and after the URL: the same request each time, or 100,000 accounts in turn.
LOADS = {
    "one": (["-H", "x-account-id: account-000001"], []),
    "keys": (["-s", str(Path(__file__).with_name("keys.lua"))], ["--", "100000"]),
}
# Seconds, so short that other work on the machine affects all listeners alike.
SLICE = 0.1


class Wrk:
    """Runs until the end of a `with`; `halt` and `go` stop and continue it."""

    def __init__(self, port, load, pin):
        self.output = tempfile.TemporaryFile("w+")
        options, arguments = LOADS[load]
        command = ["wrk", "-t1", "-c64", "-d1h", *options, URL.format(port), *arguments]
        self.process = subprocess.Popen(command, preexec_fn=pin, stdout=self.output, stderr=subprocess.STDOUT)

    def halt(self):
        self.process.send_signal(signal.SIGSTOP)

    def go(self):
        self.process.send_signal(signal.SIGCONT)

    def check(self):
        """Ends it, and raises if a request failed. Time-outs are no failures: its clock goes on while it is halted."""
        self.go()
        # The first signal may reach its other thread and leave the main one asleep.
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        self.output.seek(0)
        text = self.output.read()
        lost = re.search(r"Socket errors: (?!connect 0, read 0, write 0,)", text)
        if lost or "Non-2xx" in text or "Requests/sec" not in text:
            raise RuntimeError(f"wrk saw failures:\n{text}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.output.close()


def measure(envoy, loads, seconds, pin):
    """Gives each listener `seconds` of its load, in slices that take turns. Returns for each the requests per second of the workers'
    CPU: what saturated workers serve."""
    with ExitStack() as stack:
        running = [stack.enter_context(Wrk(envoy.ports()[number], load, pin)) for number, load in enumerate(loads)]
        for number, (wrk, load) in enumerate(zip(running, loads)):
            # Each account has come once before anything is measured.
            while wrk.process.poll() is None and envoy.served()[number] < (1_000 if load == "one" else 100_000):
                time.sleep(0.05)
            wrk.halt()
            envoy.spent()
        before, cpu = envoy.served(), [0.0] * len(loads)
        for turn in range(round(seconds / SLICE)):
            order = [(turn + number) % len(loads) for number in range(len(loads))]
            for number in order[::-1] if turn % 2 else order:
                spent = envoy.spent()
                running[number].go()
                time.sleep(SLICE)
                running[number].halt()
                cpu[number] += envoy.spent() - spent
        after = envoy.served()
        for wrk in running:
            wrk.check()
    return [(after[number] - before[number]) / cpu[number] for number in range(len(loads))]
