"""A running Envoy with one worker."""

import json
import os
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

START_SECONDS = 60


class Envoy:
    """Starts Envoy, and stops it at the end of a `with`."""

    def __init__(self, binary, configuration, pin):
        self.folder = tempfile.TemporaryDirectory(prefix="diana-bench-")
        folder = Path(self.folder.name)
        config, self.admin, self.log = (folder / n for n in ("envoy.json", "admin", "log"))
        config.write_text(json.dumps(configuration))
        self.process = subprocess.Popen(
            [
                binary, "-c", config, "--concurrency", "1", "--disable-hot-restart",
                "--log-level", "warn", "--log-path", self.log,
                "--admin-address-path", self.admin,
            ],
            preexec_fn=pin,
        )

    def __enter__(self):
        deadline = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                if self.get("/ready").strip() == "LIVE":
                    self.worker = self.find_worker()
                    return self
            except OSError:
                pass
            time.sleep(0.05)
        said = self.log.read_text()
        self.__exit__()
        raise RuntimeError(f"Envoy does not start:\n{said}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.admin.read_text()}{path}") as answer:
            return answer.read().decode()

    def ports(self):
        """The port of each listener."""
        found = json.loads(self.get("/listeners?format=json"))["listener_statuses"]
        return {int(l["name"]): l["local_address"]["socket_address"]["port_value"] for l in found}

    def served(self):
        """Requests answered so far, by listener."""
        text = self.get(r"/stats?filter=^http\.\d%2B\.downstream_rq_completed$")
        return {int(l.split(".")[1]): int(l.split(": ")[1]) for l in text.splitlines()}

    def find_worker(self):
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return next(t for t in tasks if (t / "comm").read_text().startswith("wrk:worker_0"))

    def spent(self):
        """Seconds of CPU that the worker has used, once it has nothing left to do.

        The kernel accounts for a thread when it goes to sleep, so only then the figure is exact.
        """
        while (self.worker / "stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
            time.sleep(0.0005)
        return int((self.worker / "schedstat").read_text().split()[0]) / 1e9


def pins():
    """Functions that pin Envoy to one core, and everything else to the others."""
    cores = sorted(os.sched_getaffinity(0))
    return (
        lambda: os.sched_setaffinity(0, cores[:1]),
        lambda: os.sched_setaffinity(0, cores[1:] or cores),
    )
