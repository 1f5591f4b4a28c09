#!/usr/bin/env python3
"""Writes an invented access log: a day with many callers, of whom a few come much more often than others.

Lines are in the order in which requests end. Envoy's own format has no column for accounts: they are column 14.
"""

import argparse
import random
import signal
import time

BEGIN = 1_795_478_400  # 24 November 2026, 00:00 UTC
PATHS = ["/", "/reports", "/hello", "/slow", "/api/v1/items", "/api/v1/items/7?page=2", "/api/v1/search?q=shoes", "/static/app.js"]
AGENTS = ["curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "okhttp/4.12.0"]


def line(at, path, account, address, took, number):
    return (
        f'[{at}] "GET {path} HTTP/2" 200 - 0 {number % 4096} {took} {took} "{address}" '
        f'"{AGENTS[number % 3]}" "6ba7b810-9dad-11d1-80b4-{number:012x}" "shop.example.com" "10.0.2.1:8080" "{account}"'
    )


def lines(count, callers, seconds):
    chance = random.Random(1)
    for number in range(count):
        # The n-th caller comes about as often as the first one divided by n.
        caller, took = int(callers ** chance.random()), int(chance.expovariate(1 / 60)) + 1
        address = f"10.{caller >> 16 & 255}.{caller >> 8 & 255}.{caller & 255}"
        began, milliseconds = divmod(BEGIN * 1000 + int(number * (seconds * 1000 / count)) - took, 1000)
        at = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(began))}.{milliseconds:03}Z"
        yield line(at, PATHS[int(chance.random() * len(PATHS))], f"account-{caller}", address, took, number)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--callers", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=86_400, help="the time from the first line to the last one")
    given = parser.parse_args()
    # Ends silently, as other commands do, when its reader ends.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for text in lines(given.lines, given.callers, given.seconds):
        print(text)


if __name__ == "__main__":
    main()
