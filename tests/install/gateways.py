"""Real Envoys in the configuration of a control plane, with the Redis and the configuration server of their
clusters."""

import contextlib
import functools
import http.server
import os
import re
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

from servers import ROOT, free_port, server, wait_for

PASSWORD = "of-the-test"


@contextlib.contextmanager
def redis():
    """A Redis with the user of envoy/redis/users.conf, and the same password for the default user."""
    port = free_port()
    users = (ROOT / "envoy/redis/users.conf").read_text()
    user = re.search("^user diana .*$", users, flags=re.M)[0].replace("PASSWORD", PASSWORD)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "redis.conf"
        config.write_text(f"port {port}\nbind 127.0.0.1\nsave ''\ndir {folder}\nrequirepass {PASSWORD}\n{user}\n")
        with server(["redis-server", config], port):
            yield port


@contextlib.contextmanager
def centre(folder):
    """A plain file server."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=folder))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    try:
        yield files.server_address[1]
    finally:
        files.shutdown()
        files.server_close()


class Gateway:
    """A running Envoy."""

    def __init__(self, port, admin):
        self.port, self.admin = port, admin

    def get(self, path="/", **headers):
        """The status and the headers of the response."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=sent)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/stats/prometheus", timeout=10) as answer:
            return answer.read().decode()


@contextlib.contextmanager
def envoy(plane, manifests, addresses=None, document=None, host_env=False):
    """Starts Envoy in the configuration of `plane`. `addresses` maps the names in the manifests to local addresses, and
    `document` replaces Diana's configuration. `host_env` passes the password, as the comments of the manifests
    describe."""
    port, admin = free_port(), free_port()
    made = plane(port, admin, ROOT / "target/diana.wasm").apply(*manifests)
    for config in made.documents():
        if document:
            config["configuration"]["value"] = document
        if host_env:
            config["vm_config"]["environment_variables"] = {"host_env_keys": ["DIANA_REDIS_PASSWORD"]}
    with tempfile.TemporaryDirectory() as folder:
        text = made.write(Path(folder))
        for name, number in (addresses or {}).items():
            text, count = re.subn(rf'"address": "{name}[^"]*", "port_value": \d+', f'"address": "127.0.0.1", "port_value": {number}', text)
            if not count:
                raise AssertionError(f"no cluster leads to {name}")
        text = re.sub(r'"[^"]*/diana-redis\.sock"', f'"{folder}/redis.sock"', text)
        file = Path(folder) / "envoy.json"
        file.write_text(text)
        command = [os.environ["DIANA_ENVOY"], "-c", file, "--disable-hot-restart", "--concurrency", "2", "-l", "warning"]
        with server(command, port, {"DIANA_REDIS_PASSWORD": PASSWORD}) as log:
            running = Gateway(port, admin)
            wait_for(lambda: ready(admin), f"Envoy is not ready: {log.read_text()}")
            yield running


def ready(admin):
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{admin}/ready", timeout=1) as answer:
        return answer.status == 200
    return False
