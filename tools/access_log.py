#!/usr/bin/env python3
"""Writes a synthetic access log: requests of many callers over a day. A few callers make many more requests than
others.

The lines are in the order in which the requests ended. In Envoy's own format, which has no accounts, these are added as
column 14.
"""

import argparse
import json
import random
import sys
import time

BEGIN = 1_795_478_400  # 24 November 2026, 00:00 UTC
PATHS = ["/", "/share/qq", "/hello", "/slow", "/api/v1/items", "/api/v1/items/7?page=2", "/api/v1/search?q=shoes", "/static/app.js"]
AGENTS = ["curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "okhttp/4.12.0"]


def instant(milliseconds, template, cache={}):
    """An instant as text. Most requests share their second with others."""
    second, rest = divmod(milliseconds, 1000)
    if cache.get("second") != (second, template):
        cache["second"], cache["text"] = (second, template), time.strftime(template, time.gmtime(second))
    return cache["text"], rest


def envoy(at, path, account, address, took, number):
    text, rest = instant(at, "%Y-%m-%dT%H:%M:%S")
    return (
        f'[{text}.{rest:03}Z] "GET {path} HTTP/2" 200 - 0 {number % 4096} {took} {took} "{address}" '
        f'"{AGENTS[number % 3]}" "6ba7b810-9dad-11d1-80b4-{number:012x}" "shop.example.com" "10.0.2.1:8080" "{account}"'
    )


def istio(at, path, account, address, took, number):
    text, rest = instant(at, "%Y-%m-%dT%H:%M:%S")
    return json.dumps({
        "authority": "shop.example.com", "bytes_received": 0, "bytes_sent": number % 4096, "connection_termination_details": None,
        "downstream_local_address": "10.0.1.1:8443", "downstream_remote_address": f"{address}:40000", "duration": took,
        "method": "GET", "path": path, "protocol": "HTTP/2", "request_id": f"6ba7b810-9dad-11d1-80b4-{number:012x}",
        "requested_server_name": None, "response_code": 200, "response_code_details": "via_upstream", "response_flags": "-",
        "route_name": "default", "start_time": f"{text}.{rest:03}Z", "upstream_cluster": "outbound|80||shop",
        "upstream_host": "10.0.2.1:8080", "upstream_local_address": "10.0.1.1:50000", "upstream_service_time": str(took),
        "upstream_transport_failure_reason": None, "user_agent": AGENTS[number % 3], "x_forwarded_for": address,
        "x-account-id": account,
    })


def combined(at, path, account, address, took, number):
    text, _ = instant(at, "%d/%b/%Y:%H:%M:%S +0000")
    return f'{address} - {account} [{text}] "GET {path} HTTP/1.1" 200 {number % 4096} "-" "{AGENTS[number % 3]}"'


FORMATS = {"envoy": envoy, "json": istio, "combined": combined}


def lines(count, callers, seconds, write, seed=1):
    chance = random.Random(seed)
    apart = seconds * 1000 / count
    for number in range(count):
        end = BEGIN * 1000 + int(number * apart)
        # The n-th caller makes about 1/n of the first one's requests.
        caller = int(callers ** chance.random())
        took = int(chance.expovariate(1 / 60)) + 1
        address = f"10.{caller >> 16 & 255}.{caller >> 8 & 255}.{caller & 255}"
        yield write(end - took, PATHS[int(chance.random() * len(PATHS))], f"account-{caller}", address, took, number)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--callers", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=86_400, help="how long it takes from the first line to the last one")
    parser.add_argument("--format", choices=FORMATS, default="envoy")
    given = parser.parse_args()
    for line in lines(given.lines, given.callers, given.seconds, FORMATS[given.format]):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()
