"""The compared variants: the same route with different HTTP filters."""

import json
from typing import NamedTuple, Optional

from filters import NEVER, local_ratelimit, wasm

BUDGET = 0.97


class Variant(NamedTuple):
    """One listener."""

    name: str
    load: str  # "one": all requests are equal; "keys": 100,000 accounts in turn
    filter: Optional[dict]  # the HTTP filter before the router
    budget: Optional[float] = None  # minimum share of the no-op filter's throughput
    warm_up: int = 1_000  # requests before the measurement
    connections: int = 64  # connections of the load


def variants(noop, module):
    """All variants. `noop` and `module` are the paths of the two wasm modules."""

    def diana(name, limits, load="one", budget=None, **more):
        configuration = {"limits": limits, "actors": ACTORS}
        return Variant(name, load, wasm(module, f"{load} {name}", json.dumps(configuration)), budget, **more)

    baselines = [
        Variant(name, load, filter_)
        for load in ("one", "keys")
        for name, filter_ in (
            ("no filter", None),
            ("no-op filter", wasm(noop, "noop", "")),
            ("local_ratelimit", local_ratelimit()),
        )
    ]
    return baselines + [
        diana("no rule", []),
        diana("1 rule, all", [entry("/", rule("all"))], budget=BUDGET),
        diana("1 rule, header", [entry("/", rule("account"))], budget=BUDGET),
        diana("1 rule, address", [entry("/", rule("address"))], budget=BUDGET),
        diana("1 rule, all, path", [entry("/svc", rule("all"))], budget=BUDGET),
        diana("3 rules", [
            entry("/", rule("all", algo="W"), rule("account")),
            entry("/svc", rule("account", algo="SW")),
        ]),
        diana("50 entries", [entry(f"/svc/{n}", rule("all")) for n in range(50)]),
        # Rules that settle at the end, and the same rule without settlement.
        *(
            diana(f"{scope}, {name}", [entry("/", {**known, "scope": scope})])
            for scope in ("local", "gateway")
            for name, known in (("header, W", rule("account", algo="W")), *settled())
        ),
        # So slow a refill that no account expires during the run.
        diana(
            "1 rule, header",
            [entry("/", rule("account", unit="day", rpu=1000))],
            load="keys", budget=BUDGET, warm_up=100_000,
        ),
    ]


ACTORS = {
    "account": [{"header": "x-account-id"}],
    "address": [{"client_address": {"v4": 32, "v6": 64}}],
}


def entry(url, *rules):
    return {"Url": url, "rules": list(rules)}


def rule(actor, algo="TB", unit="second", rpu=NEVER, scope="local", **more):
    return {"actor": actor, "unit": unit, "rpu": rpu, "algo": algo, "scope": scope, **more}


def settled():
    """Rules with a cost that is known at the end of a request, and their names."""
    # The response contains the usage, in addition to a reservation of one permit.
    told = {"response": {"header": "x-tokens-used"}, "reserve": 1, "max": 2}
    return [
        ("cost of the response", rule("account", algo="W", cost=told)),
        ("outcomes that count", rule("account", algo="W", count={"status": [401]})),
        ("in flight", {"actor": "account", "in_flight": 1_000_000}),
    ]
