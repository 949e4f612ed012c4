"""How time and memory grow with examples and with classes: numbers and two figures.

    python benchmarks/growth.py [--rows 1e7] [--draw]

Each point is a process of its own, one thread: it makes its data, does the task once on
something small, then once in full, and prints CPU seconds, the rise of memory above the
input, and the bytes of the input. `growth.json` keeps the numbers, and
docs/images/growth.svg is drawn of it; with --draw nothing is measured again.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import peak_memory
import synthetic

HERE = Path(__file__).resolve().parent
NUMBERS, FIGURE = HERE / "growth.json", HERE.parent / "docs" / "images" / "growth.svg"
ENTRIES = 20_000_000
"""Of the matrices whose classes grow; a thousand rows at least."""

CLASSES = (2, 10, 100, 1000, 5000, 30_000)
TASKS = {
    "pairs": "evaluate_pairs, no intervals",
    "intervals": "evaluate_pairs, default intervals",
    "smooth": "smooth_ece",
    "classes": "evaluate, no intervals",
    "logits": "evaluate, default intervals",
}


def work_on(task, size):
    """The input of a task, and what is timed on some of its rows."""
    import calibrant as cal

    if task in ("classes", "logits"):
        rows = max(ENTRIES // size, 1000)
        scores, y = synthetic.logits(min(rows, 100_000), size)
        how = {"target": "top-label"} | (
            {"interval": None} if task == "classes" else {}
        )
        return (scores, y), lambda z, y: dict(cal.evaluate(y, logits=z, **how).curves)
    given = synthetic.pairs(size)
    if task == "smooth":
        return given, lambda h, a: cal.smooth_ece(a, confidence=h)
    how = {"interval": None} if task == "pairs" else {}
    return given, lambda h, a: dict(cal.evaluate_pairs(a, h, **how).curves)


def measure(task, size):
    """In this process: CPU seconds, rise of memory, bytes and rows of the input."""
    given, work = work_on(task, size)
    work(*(x[:100] for x in given))
    peak_memory.CLEAR.write_text("5")
    before, cpu = peak_memory.status("VmRSS"), time.process_time()
    work(*given)
    took = time.process_time() - cpu
    rise = max(peak_memory.status("VmHWM") - before, 0)
    print(json.dumps([took, rise, sum(x.nbytes for x in given), len(given[0])]))


def points(most):
    """Tasks and sizes."""
    sizes = [10**i for i in range(3, 9) if 10**i <= most]
    for task in ("pairs", "intervals", "smooth"):
        yield from ((task, size) for size in sizes)
    for task in ("classes", "logits"):
        yield from ((task, size) for size in CLASSES)


def measured(most):
    """The best of three processes for each point; of one where it takes long."""
    found = []
    threads = dict.fromkeys(
        ("CALIBRANT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
    )
    for task, size in points(most):
        runs = []
        while len(runs) < (3 if not runs or runs[0][0] < 1 else 1):
            command = [sys.executable, __file__, "--task", task, "--size", str(size)]
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | threads,
            )
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        cpu, rise, given, rows = (min(x) for x in zip(*runs, strict=True))
        one = {"task": task, "size": size, "rows": rows, "cpu": cpu}
        found.append(one | {"rise": rise, "input": given})
        print(found[-1], flush=True)
    return found


def draw(found):
    """Time above, memory below; against examples on the left, classes on the right."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "growth"
    figure, axes = plt.subplots(2, 2, figsize=(8.4, 6), sharex="col", sharey="row")
    sides = (("pairs", "intervals", "smooth"), ("classes", "logits"))
    for column, tasks in enumerate(sides):
        for task in tasks:
            mine = [x for x in found if x["task"] == task]
            size = [x["size"] for x in mine]
            axes[0, column].plot(
                size, [x["cpu"] for x in mine], "o-", label=TASKS[task]
            )
            rise = [max(x["rise"], 1e5) / 1e6 for x in mine]
            axes[1, column].plot(size, rise, "o-", label=TASKS[task])
        given = {x["size"]: x["input"] / 1e6 for x in found if x["task"] == tasks[0]}
        how = {"color": "0.6", "linestyle": "--", "label": "the input itself"}
        axes[1, column].plot(list(given), list(given.values()), **how)
    for ax in axes.flat:
        ax.set(xscale="log", yscale="log")
        ax.grid(alpha=0.3)
    axes[0, 0].set(ylabel="CPU seconds, one thread", title="examples (pairs)")
    axes[0, 1].set(title=f"classes ({ENTRIES / 1e6:.0f} million logits at most)")
    axes[1, 0].set(ylabel="MB above the input", xlabel="examples")
    axes[1, 1].set(xlabel="classes")
    axes[0, 0].legend(fontsize=8)
    axes[0, 1].legend(fontsize=8)
    axes[1, 1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e8, help="most examples (1e8)")
    parser.add_argument("--draw", action="store_true", help="draw what was measured")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.task:
        return measure(said.task, said.size)
    if not said.draw:
        found = measured(said.rows)
        NUMBERS.write_text(json.dumps(found, indent=1) + "\n")
    return draw(json.loads(NUMBERS.read_text()))


if __name__ == "__main__":
    main()
