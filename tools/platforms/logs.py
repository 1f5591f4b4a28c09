"""The part of a kubelet that `kubectl logs` asks, by way of the API server: the logs of containers."""

import http.server
import ssl
import threading
import urllib.parse

from network import HOST

PORT = 10250


def serve(folder, keys):
    """Serves the logs in a folder, with the certificate of the API server."""

    class Logs(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            path = folder / f"{url.path.removeprefix('/containerLogs/').replace('/', '.')}.log"
            lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
            last = urllib.parse.parse_qs(url.query).get("tailLines")
            text = b"".join(lines[-int(last[0]) :] if last else lines)
            self.send_response(200)
            self.send_header("content-type", "text/plain")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys / "apiserver.crt", keys / "apiserver.key")
    server = http.server.ThreadingHTTPServer((HOST, PORT), Logs)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
