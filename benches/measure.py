"""One round: all variants in turn, in slices so short that disturbances affect all of them alike."""

import time
from contextlib import ExitStack
from typing import NamedTuple

from wrk import Wrk

SLICE = 0.1  # seconds


class Run(NamedTuple):
    """The results of a variant in one round."""

    requests: int
    wall: float  # seconds in which it had the worker to itself
    cpu: float  # seconds of CPU time of the worker


def measure(envoy, variants, seconds, pin, slice=SLICE):
    """Gives each variant `seconds` of load. Returns their runs, in the order of the variants."""
    with ExitStack() as stack:
        loads = []
        for n, variant in enumerate(variants):
            loads.append(stack.enter_context(Wrk(envoy.ports()[n], variant.load, variant.connections, pin)))
            warm_up(envoy, n, loads[n], variant.warm_up)
        before = envoy.served()
        wall, cpu = [0.0] * len(loads), [0.0] * len(loads)
        for turn in range(round(seconds / slice)):
            for n in turned(len(loads), turn):
                began, spent = time.perf_counter(), envoy.spent()
                loads[n].go()
                time.sleep(slice)
                loads[n].halt()
                cpu[n] += envoy.spent() - spent
                wall[n] += time.perf_counter() - began
        after = envoy.served()
        for load in loads:
            load.check()
    return [Run(after[n] - before[n], wall[n], cpu[n]) for n in range(len(loads))]


def warm_up(envoy, n, load, requests):
    """Stops the load after its variant has served enough requests."""
    while load.alive() and envoy.served()[n] < requests:
        time.sleep(0.05)
    load.halt()
    envoy.spent()


def turned(count, turn):
    """A different order each turn: rotated, and reversed every second time."""
    order = [(turn + n) % count for n in range(count)]
    return order[::-1] if turn % 2 else order
