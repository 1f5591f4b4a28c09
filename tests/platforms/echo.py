"""The upstream of the laboratory. `/sse` sends an event every 100 ms until the client leaves, `/ws` returns every byte of an upgraded
connection, and every other path is answered at once."""

import contextlib
import http.server
import time


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with contextlib.suppress(OSError):
            {"/sse": self.events, "/ws": self.echo}.get(self.path, self.answer)()

    def answer(self):
        self.send_response(200)
        self.send_header("x-upstream", "here")
        self.send_header("content-length", "9")
        self.end_headers()
        self.wfile.write(b"upstream\n")

    def events(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(b"data: tick\n\n")
            time.sleep(0.1)

    def echo(self):
        self.send_response(101)
        self.send_header("connection", "upgrade")
        self.send_header("upgrade", "websocket")
        self.end_headers()
        self.close_connection = True
        while data := self.connection.recv(4096):
            self.connection.sendall(data)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Upstream).serve_forever()
