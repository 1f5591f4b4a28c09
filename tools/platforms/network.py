"""The network of the laboratory: a bridge in a network namespace of its own, a namespace for each pod, names, and
addresses of services."""

import asyncio
import contextlib
import itertools
import logging
import random
import socket
import struct
import subprocess
import threading

HOST = "10.99.0.1"
SERVICES = "10.96.0.0/16"
DOMAIN = "cluster.local"
ADDRESSES = (f"10.99.{number // 250 + 1}.{number % 250 + 1}" for number in itertools.count())
# What happens on the node, with the times of other logs.
note = logging.getLogger("node").info


def shell(*lines):
    subprocess.run(["sh", "-e"], input="\n".join(lines), text=True, check=True)


def begin():
    """Prepares the namespace in which this process runs. All addresses of services are addresses of this host."""
    shell(
        "mount -t tmpfs tmpfs /run",
        "mkdir /run/netns",
        "ip link set lo up",
        # By default it has the address of a pod's link, and another one when that pod ends: some connections then need a second more.
        "ip link add lab address 02:00:00:00:00:01 type bridge",
        f"ip addr add {HOST}/16 dev lab",
        "ip link set lab up",
        f"ip route add local {SERVICES} dev lo",
    )


def add_pod(name, address):
    """Makes a network namespace with this address."""
    link = "v" + "-".join(address.split(".")[2:])
    shell(
        f"ip netns add {name}",
        f"ip link add {link} type veth peer name eth0 netns {name}",
        f"ip link set {link} master lab up",
        f"ip -n {name} link set lo up",
        f"ip -n {name} addr add {address}/16 dev eth0",
        f"ip -n {name} link set eth0 up",
        f"ip -n {name} route add default via {HOST}",
        # As in a container: any user may listen on port 80.
        f"nsenter --net=/run/netns/{name} sh -c 'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start'",
    )
    return address


def remove_pod(name):
    subprocess.run(["ip", "netns", "del", name], check=False)


class Names:
    """A name server for `table`, which maps names to addresses."""

    def __init__(self):
        self.table = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((HOST, 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, sender = self.socket.recvfrom(4096)
            with contextlib.suppress(IndexError, struct.error, UnicodeDecodeError):
                self.socket.sendto(self.answer(query), sender)

    def answer(self, query):
        labels, at = [], 12
        while length := query[at]:
            labels.append(query[at + 1 : at + 1 + length].decode().lower())
            at += 1 + length
        kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
        found = self.table.get(".".join(labels))
        addresses = found if found and kind == 1 else []
        flags = 0x8580 if found is not None else 0x8583
        head = query[:2] + struct.pack("!5H", flags, 1, len(addresses), 0, 0)
        records = [struct.pack("!3HIH", 0xC00C, 1, 1, 2, 4) + socket.inet_aton(address) for address in addresses]
        return head + query[12 : at + 5] + b"".join(records)


class Services:
    """Forwards connections to the addresses of services, as kube-proxy does. A service without endpoints refuses them."""

    def __init__(self):
        self.endpoints, self.servers, self.open = {}, {}, set()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def update(self, endpoints):
        """`endpoints` maps pairs of address and port to lists of such pairs."""
        asyncio.run_coroutine_threadsafe(self.set(endpoints), self.loop).result()

    async def set(self, endpoints):
        before, self.endpoints = self.endpoints, {place: sorted(targets) for place, targets in endpoints.items() if targets}
        for place in before.keys() | self.endpoints.keys():
            if before.get(place) != self.endpoints.get(place):
                note(f"{place} goes to {self.endpoints.get(place, 'nothing')}")
        for place in self.servers.keys() - self.endpoints.keys():
            self.servers.pop(place).close()
        for place in self.endpoints.keys() - self.servers.keys():
            self.servers[place] = await asyncio.start_server(lambda r, w, place=place: self.accept(place, r, w), *place)

    def accept(self, place, reader, writer):
        # A loop keeps only weak references to its tasks.
        task = self.loop.create_task(self.forward(place, reader, writer))
        self.open.add(task)
        task.add_done_callback(self.open.discard)

    async def forward(self, place, reader, writer):
        try:
            to, out = await asyncio.open_connection(*random.choice(self.endpoints[place]))
        except (OSError, KeyError) as error:
            note(f"{place} cannot be connected: {error!r}")
            writer.transport.abort()
            return
        await asyncio.gather(copy(reader, out), copy(to, writer))
        out.close()
        writer.close()


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()
