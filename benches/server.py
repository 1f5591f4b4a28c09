"""A running Envoy."""

import json
import os
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

START_SECONDS = 300


class Envoy:
    """Starts Envoy, optionally `under` another program, and stops it at the end of a `with`."""

    def __init__(self, binary, configuration, pin=None, workers=1, under=(), environment={}):
        self.count = workers
        self.folder = tempfile.TemporaryDirectory(prefix="diana-bench-")
        folder = Path(self.folder.name)
        config, self.admin, self.log = (folder / n for n in ("envoy.json", "admin", "log"))
        config.write_text(json.dumps(configuration))
        self.process = subprocess.Popen(
            [
                *under, binary, "-c", config, "--concurrency", str(workers), "--disable-hot-restart",
                "--log-level", "warn", "--log-path", self.log,
                "--admin-address-path", self.admin,
            ],
            # As documented in the examples. Otherwise timers depend on the kernel's tick.
            env={**os.environ, "EVENT_PRECISE_TIMER": "1", **environment},
            preexec_fn=pin,
        )

    def __enter__(self):
        deadline = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                if self.get("/ready").strip() == "LIVE":
                    self.workers = self.find_workers()
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
        found = [each for each in found if each["name"].isdigit()]
        return {int(l["name"]): l["local_address"]["socket_address"]["port_value"] for l in found}

    def served(self):
        """Completed requests by listener."""
        text = self.get(r"/stats?filter=^http\.\d%2B\.downstream_rq_completed$")
        return {int(l.split(".")[1]): int(l.split(": ")[1]) for l in text.splitlines()}

    def find_workers(self):
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        workers = [t for t in tasks if (t / "comm").read_text().startswith("wrk:worker_")]
        if len(workers) != self.count:
            raise OSError("not all workers run yet")
        return workers

    def shared(self):
        """Writes to shared data by namespace: all, and those that lost a race."""
        found = {}
        for line in self.get(r"/stats?filter=^wasmcustom\.diana\..*\.shared\.").splitlines():
            name, count = line.split(": ")
            _, _, namespace, _, what = name.split(".")
            found.setdefault(namespace, {})[what] = int(count)
        return found

    def spent(self):
        """Seconds of CPU that the workers have used, once they have nothing left to do.

        The kernel accounts for a thread when it goes to sleep, so only then the figure is exact.
        """
        while any(state(worker) != "S" for worker in self.workers):
            time.sleep(0.0005)
        spent = (int((worker / "schedstat").read_text().split()[0]) for worker in self.workers)
        return sum(spent) / 1e9


def state(worker):
    return (worker / "stat").read_text().rsplit(")", 1)[1].split()[0]


def pins():
    """Functions that pin Envoy to one core, and all other processes to the others."""
    cores = sorted(os.sched_getaffinity(0))
    return (
        lambda: os.sched_setaffinity(0, cores[:1]),
        lambda: os.sched_setaffinity(0, cores[1:] or cores),
    )
