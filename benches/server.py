"""A running Envoy."""

import json
import os
import re
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import local


@contextmanager
def running(command, configuration, environment={}):
    """Starts Envoy by this command, and kills it at the end of a `with`."""
    with tempfile.TemporaryDirectory(prefix="diana-bench-") as folder:
        config, admin = (Path(folder, name) for name in ("envoy.json", "admin"))
        config.write_text(json.dumps(configuration))
        options = ["-c", config, "--disable-hot-restart", "--log-level", "error", "--admin-address-path", admin]
        # Without EVENT_PRECISE_TIMER, timers follow the kernel's tick.
        process = subprocess.Popen([*command, *options], env={**os.environ, "EVENT_PRECISE_TIMER": "1", **environment})
        try:
            envoy = Envoy(process, admin)
            local.wait(lambda: admin.exists() and envoy.get("/ready"), [process])
            yield envoy
        finally:
            local.kill([process])


class Envoy(NamedTuple):
    process: subprocess.Popen
    # A file with the address of its admin interface.
    admin: Path

    def get(self, path):
        return local.get(self.admin.read_text().rpartition(":")[2], path)

    def ports(self):
        """The port of each listener."""
        found = json.loads(self.get("/listeners?format=json"))["listener_statuses"]
        return {int(each["name"]): each["local_address"]["socket_address"]["port_value"] for each in found if each["name"].isdigit()}

    def stats(self, pattern):
        """The metrics whose names match."""
        lines = self.get(f"/stats?filter={pattern}").splitlines()
        return {name: int(value) for name, value in (line.split(": ") for line in lines)}

    def served(self, listener):
        """The requests answered so far."""
        return sum(self.stats(rf"^http\.{listener}\.downstream_rq_completed$").values())

    def spent(self):
        """The seconds of CPU that the process has used."""
        # The number of its clock, as clock_getcpuclockid(3) makes it.
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def memory(self):
        """The bytes of memory that the process has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"^VmRSS:\s+(\d+)", status, re.MULTILINE).group(1))
