"""Where the time of an evaluation goes: shares of its stages, by Python's profiler.

    python benchmarks/where_time_goes.py

docs/explanation/cost-and-accuracy.md quotes it. A profiler makes short calls look longer
than they are, so shares are rough; compiled loops are inside the stages that call them.
"""

import cProfile
import pstats

import run

run.hold_threads(1, use_peers=False)  # before NumPy is imported

import synthetic

import calibrant as cal

STAGES = {
    "reduction": ("reduce.py", "reduce_to_columns"),
    "sums and order": ("sample.py", "of_rows"),
    "d_CAL and its law": ("decomposition.py", "_adaptive"),
    "metrics": ("metrics.py", "estimates"),
    "metrics of classes": ("evaluate.py", "add_metrics"),
    "of the sum of classes": ("evaluate.py", "add_rows"),
}
TASKS = {
    "40,000 x 1000": (40_000, 1000, {"interval": None}),
    "1000 x 10": (1000, 10, {"interval": None}),
    "class-wise, 10,000 x 100": (10_000, 100, {"target": "class-wise"}),
}


def profile(n, k, options):
    """Shares of stages and of compiled loops, and the number of calls."""
    logits, y = synthetic.logits(n, k)
    cal.evaluate(y, logits=logits, **options)  # what is loaded and cached
    profiler = cProfile.Profile()
    profiler.runcall(cal.evaluate, y, logits=logits, **options)
    found = pstats.Stats(profiler)
    spent = {}
    for (file, _, name), (_, _, own, whole, _) in found.stats.items():
        place = (file.rpartition("/")[2], name)
        for stage, known in STAGES.items():
            if place == known:
                spent[stage] = whole / found.total_tt
        if "_compiled" in name:
            spent["compiled loops"] = (
                spent.get("compiled loops", 0) + own / found.total_tt
            )
    return spent, found.total_calls


if __name__ == "__main__":
    for title, (n, k, options) in TASKS.items():
        spent, calls = profile(n, k, options)
        told = ", ".join(f"{stage} {share:.0%}" for stage, share in spent.items())
        print(f"{title}: {told}; {calls:,} calls")
