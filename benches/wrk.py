"""One wrk per variant. All are started at once, and one at a time runs."""

import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

PATH = "/svc/25/items/7?page=2"
KEYS = ["-s", str(Path(__file__).with_name("keys.lua"))]
# The arguments before the URL, and after it.
LOADS = {
    "one": (["-H", "x-account-id: account-000001"], []),
    "keys": (KEYS, ["--", "100000"]),
    "10,000 keys": (KEYS, ["--", "10000"]),
}


class Wrk:
    """Runs from the start to the end of a `with`. `halt` and `go` stop and continue it."""

    def __init__(self, port, load, connections, pin):
        self.output = tempfile.TemporaryFile("w+")
        options, arguments = LOADS[load]
        url = f"http://127.0.0.1:{port}{PATH}"
        self.process = subprocess.Popen(
            ["wrk", "-t1", f"-c{connections}", "-d1h", *options, url, *arguments],
            preexec_fn=pin, stdout=self.output, stderr=subprocess.STDOUT,
        )

    def halt(self):
        self.process.send_signal(signal.SIGSTOP)

    def go(self):
        self.process.send_signal(signal.SIGCONT)

    def alive(self):
        return self.process.poll() is None

    def check(self):
        """Ends it; any answer that is an error, and any lost connection, is one.

        Time-outs are none: its clock goes on while it is halted.
        """
        self.go()
        # The other thread may receive the first signal, while the main thread sleeps.
        while self.alive():
            self.process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        self.output.seek(0)
        said = self.output.read()
        lost = re.search(r"Socket errors: (?!connect 0, read 0, write 0,)", said)
        if lost or "Non-2xx" in said or "Requests/sec" not in said:
            raise RuntimeError(f"wrk saw failures:\n{said}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.output.close()
