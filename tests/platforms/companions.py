"""Servers in place of the companion. `hanging` is ready and never answers a gateway, `slow` answers with the module after 12 s, and
`unchecked` serves any rules, as a companion of a newer version serves rules that this module does not know."""

import http.server
import sys
import threading
import time
from pathlib import Path

KIND = sys.argv[1]


class Companion(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if KIND == "hanging" and self.path not in ("/ready", "/live"):
            threading.Event().wait()
        if KIND == "slow" and self.path.startswith("/modules/"):
            time.sleep(12)
        path = Path("/etc/diana/rules.yaml" if self.path == "/rules.yaml" else self.path)
        text = path.read_bytes() if path.is_file() else b""
        self.send_response(200 if text or self.path in ("/ready", "/live") else 404)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Companion).serve_forever()
