"""Clients of a gateway: one request, many requests in turn, and responses that stay open."""

import contextlib
import datetime
import http.client
import json
import queue
import socket
import ssl
import subprocess
import threading
import time

import grpc

TYPE = "type.googleapis.com/envoy.extensions"

class Answer:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()

    def __repr__(self):
        return f"{self.status}{' upstream' if self.upstream else ''}"

    @property
    def upstream(self):
        return self.headers.get("x-upstream") == "here"

    @property
    def refused(self):
        """Whether Diana has refused the request."""
        return not self.upstream and self.status in (429, 503) and "retry-after" in self.headers


def ask(address, port, path="/", method="GET", **headers):
    link = http.client.HTTPConnection(address, port, timeout=60)
    with contextlib.closing(link):
        link.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return Answer(link.getresponse())


def get(address, port, path="/", **headers):
    """The answer; `None` if nothing answers."""
    try:
        return ask(address, port, path, **headers)
    except (OSError, http.client.HTTPException):
        return None


UNVERIFIED = ssl._create_unverified_context()


def secure(address, port, host, path):
    """The answer over TLS to a request for a host; `None` if nothing answers."""
    try:
        with UNVERIFIED.wrap_socket(socket.create_connection((address, port), timeout=60), server_hostname=host) as link:
            link.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
            answer = http.client.HTTPResponse(link)
            answer.begin()
            return Answer(answer)
    except (OSError, http.client.HTTPException):
        return None


class Http3:
    """A client by HTTP/3: an Envoy that forwards plain requests to a gateway."""

    PORT = 9443

    def __init__(self, program, address, port, host):
        self.host = host
        quic = {"@type": f"{TYPE}.transport_sockets.quic.v3.QuicUpstreamTransport", "upstream_tls_context": {"sni": host}}
        options = {"@type": f"{TYPE}.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config": {"http3_protocol_options": {}}}
        manager = {
            "@type": f"{TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "client",
            "http_filters": [{"name": "router", "typed_config": {"@type": f"{TYPE}.filters.http.router.v3.Router"}}],
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "gateway"}}]}]},
        }
        cluster = {
            "name": "gateway",
            "load_assignment": {"cluster_name": "gateway", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": place(address, port)}}]}]},
            "transport_socket": {"name": "envoy.transport_sockets.quic", "typed_config": quic},
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
        }
        listener = {"address": place("127.0.0.1", self.PORT), "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}
        config = json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}})
        command = [program, "--use-dynamic-base-id", "--log-level", "error", "--config-yaml", config]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def get(self, path):
        """The answer; `None` if nothing answers. Envoy's own answers are none."""
        answer = get("127.0.0.1", self.PORT, path, host=self.host)
        return answer if answer and (answer.upstream or answer.refused) else None

    def end(self):
        self.process.kill()
        self.process.wait()


def place(address, port):
    return {"socket_address": {"address": address, "port_value": port}}


class Steady:
    """A client that sends 50 requests a second to an address and port, each on a connection of its own, until the block ends."""

    def __init__(self, place):
        self.place, self.seen, self.over = place, {}, threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            began, clock = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
            try:
                answer = ask(*self.place)
                what = "upstream" if answer.upstream else "refused" if answer.refused else f"{answer} {answer.body}"
            except (OSError, http.client.HTTPException) as error:
                what = repr(error)
            self.seen.setdefault(what, []).append(f"{clock:%H:%M:%S.%f} for {time.monotonic() - began:.2f} s")

    def __enter__(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def bad(self):
        """What neither the upstream nor Diana has answered, a line for each kind: how often, and the first and last times, which are
        those of the logs."""
        bad = {what: when for what, when in self.seen.items() if what not in ("upstream", "refused")}
        return [f"{len(when)} times {what}: {', '.join(dict.fromkeys((*when[:3], *when[-1:])))}" for what, when in bad.items()]


class Stream:
    """A response that is open: server-sent events, or an upgraded connection."""

    def __init__(self, scene, path):
        self.socket, self.path = socket.create_connection((scene.address(), scene.plane.PORT), timeout=60), path
        upgrade = (
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        )
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nhost: lab\r\n{upgrade if path == '/ws' else ''}\r\n".encode())
        self.head = self.read(b"\r\n\r\n")

    def read(self, end):
        found = b""
        while end not in found:
            if not (data := self.socket.recv(4096)):
                raise AssertionError(f"{self.path} was closed after {found}")
            found += data
        return found

    def lives(self):
        """Whether something passes now."""
        if self.path == "/ws":
            self.socket.sendall(b"still here?")
            return b"still here?" in self.read(b"here?")
        with contextlib.suppress(BlockingIOError):
            self.socket.setblocking(False)
            while self.socket.recv(65536):
                pass
        self.socket.setblocking(True)
        return b"tick" in self.read(b"tick\n\n")


class Call:
    """A gRPC stream that is open."""

    Error = grpc.RpcError

    def __init__(self, scene):
        self.sent = queue.SimpleQueue()
        # A connection of its own.
        options = [("grpc.use_local_subchannel_pool", 1)]
        channel = grpc.insecure_channel(f"{scene.address()}:{scene.plane.PORT}", options)
        self.received = channel.stream_stream("/lab.Echo/Stream")(iter(self.sent.get, None))

    def lives(self):
        """Whether a message comes back now."""
        self.sent.put(b"still here?")
        return next(self.received) == b"still here?"


def refused_after(scene, action, **headers):
    """The seconds from the beginning of an action to the first refusal; requests with these headers are sent all the time."""
    address, refused, over = scene.address(), [], threading.Event()

    def send():
        while not over.wait(0.01):
            answer = get(address, scene.plane.PORT, "/limited", **headers)
            if answer and answer.status == 429 and not refused:
                refused.append(time.monotonic())

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    began = time.monotonic()
    action()
    scene.wait(lambda: refused, "a request is refused")
    over.set()
    thread.join()
    return refused[0] - began
