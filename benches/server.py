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
    """Starts Envoy, `under` another program if given, and stops it at the end of a `with`."""

    def __init__(self, binary, configuration, pin=None, workers=1, under=(), environment={}):
        self.count = workers
        self.folder = tempfile.TemporaryDirectory(prefix="diana-bench-")
        config, self.admin, self.log = (Path(self.folder.name, name) for name in ("envoy.json", "admin", "log"))
        config.write_text(json.dumps(configuration))
        command = [*under, binary, "-c", config, "--concurrency", str(workers), "--disable-hot-restart", "--log-level", "warn"]
        command += ["--log-path", self.log, "--admin-address-path", self.admin]
        # Without EVENT_PRECISE_TIMER, timers follow the kernel's tick.
        self.process = subprocess.Popen(command, env={**os.environ, "EVENT_PRECISE_TIMER": "1", **environment}, preexec_fn=pin)

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
        log = self.log.read_text()
        self.__exit__()
        raise RuntimeError(f"Envoy does not start:\n{log}")

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
        return {int(each["name"]): each["local_address"]["socket_address"]["port_value"] for each in found}

    def stats(self, pattern):
        """The metrics whose names match."""
        lines = self.get(f"/stats?filter={pattern}").splitlines()
        return {name: int(value) for name, value in (line.split(": ") for line in lines)}

    def served(self):
        """The requests answered so far, by listener."""
        return {int(name.split(".")[1]): count for name, count in self.stats(r"^http\.\d%2B\.downstream_rq_completed$").items()}

    def find_workers(self):
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        workers = [task for task in tasks if (task / "comm").read_text().startswith("wrk:worker_")]
        if len(workers) != self.count:
            raise OSError("not all workers run yet")
        return workers

    def spent(self):
        """The seconds of CPU that the workers have used, once they are idle: the kernel accounts for a thread when it sleeps."""
        while any((worker / "stat").read_text().rsplit(")", 1)[1].split()[0] != "S" for worker in self.workers):
            time.sleep(0.0005)
        return sum(int((worker / "schedstat").read_text().split()[0]) for worker in self.workers) / 1e9
