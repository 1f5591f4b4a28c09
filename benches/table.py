"""Medians and ratios as a Markdown table."""

from statistics import median

BASELINES = ("no filter", "no-op filter", "local_ratelimit")
HEAD = [
    "load", "filter", "requests/s", "µs/request", "of no filter", "of no-op (min … max)",
    "of local_ratelimit", "budget",
]


def table(variants, rounds):
    """The Markdown table, and whether every budget is met.

    A ratio compares two runs of one round; the table shows the median over the rounds.
    """
    rows, met = [HEAD, ["---"] * 2 + ["---:"] * 5 + ["---"]], True
    for n, variant in enumerate(variants):
        rates = [rate(runs[n]) for runs in rounds]
        of = {b: ratios(variants, rounds, n, b) for b in BASELINES}
        noop = of["no-op filter"]
        verdict = ""
        if variant.budget:
            ok = median(noop) >= variant.budget
            met &= ok
            verdict = f"≥ {variant.budget} {'met' if ok else 'MISSED'}"
        rows.append([
            variant.load,
            variant.name,
            f"{median(rates):,.0f}",
            f"{1e6 / median(rates):.2f}",
            f"{median(of['no filter']):.3f}",
            f"{median(noop):.3f} ({min(noop):.3f} … {max(noop):.3f})",
            f"{median(of['local_ratelimit']):.3f}",
            verdict,
        ])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows), met


def ratios(variants, rounds, n, baseline):
    """The throughput of variant `n` relative to the baseline under the same load, round by round."""
    load = variants[n].load
    base = next(b for b, v in enumerate(variants) if (v.name, v.load) == (baseline, load))
    return [rate(runs[n]) / rate(runs[base]) for runs in rounds]


def rate(run):
    """Requests per second of the worker's CPU time: the throughput of a saturated worker."""
    return run.requests / run.cpu


def noise(rounds):
    """The worker's share of its core. The rest went to other processes."""
    busy = min(sum(r.cpu for r in runs) / sum(r.wall for r in runs) for runs in rounds)
    advice = "" if busy > 0.9 else ": measure again on a quiet machine"
    return f"The worker had at least {busy:.0%} of its core{advice}."
