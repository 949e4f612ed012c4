"""How time and memory grow with examples and with classes: numbers and a figure.

    python benchmarks/growth.py [--rows 1e8] [--more] [--draw]

Each point is a process of its own, one thread: it makes its data, does the task once on
something small, then once in full, and prints CPU seconds, the rise of memory above the
input, and the bytes of the input. Pairs are of float32 and bool, 5 bytes each: at a
hundred million that is half a gigabyte, and a machine of 24 GiB can hold all that is made
of them. A sketch is given a million of them again and again. `growth.json` keeps the
numbers with date and machine, and docs/images/growth.svg is drawn of it; with --draw
nothing is measured again, and with --more a run goes on where another was stopped.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import peak_memory
import run
import synthetic

HERE = Path(__file__).resolve().parent
NUMBERS, FIGURE = HERE / "growth.json", HERE.parent / "docs" / "images" / "growth.svg"
ENTRIES = 20_000_000
"""Of the matrices whose classes grow; a thousand rows at least."""

CLASSES = (2, 10, 100, 1000, 5000, 30_000)
TASKS = {  # what it is called, and its line: colours that differ in grey, too
    "intervals": ("evaluate, evaluate_pairs: default intervals", "#0072B2", "o-"),
    "pairs": ("the same with interval=None", "#D55E00", "s-"),
    "sketch": ("Sketch in batches, then evaluate", "#009E73", "^-"),
    "smooth": ("smooth_ece", "#CC79A7", "D-"),
    "logits": ("evaluate, default intervals", "#0072B2", "o-"),
    "classes": ("evaluate, interval=None", "#D55E00", "s-"),
}
BATCH, SMALL = 1_000_000, 100
MOST = {"intervals": 10_000_000}
"""Where a point more would take longer than all others."""


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
    given = pairs(min(size, BATCH) if task == "sketch" else size)
    if task == "sketch":
        return given, lambda h, a: sketched(h, a, size if len(h) > SMALL else 1)
    if task == "smooth":
        return given, lambda h, a: cal.smooth_ece(a, confidence=h)
    how = {"interval": None} if task == "pairs" else {}
    return given, lambda h, a: dict(cal.evaluate_pairs(a, h, **how).curves)


def pairs(size):
    """Confidence and correctness in 5 bytes a row, made ten million at a time."""
    h, a = np.empty(size, np.float32), np.empty(size, bool)
    for seed, first in enumerate(range(0, size, 10 * BATCH)):
        part = slice(first, min(first + 10 * BATCH, size))
        h[part], a[part] = synthetic.pairs(part.stop - first, seed)
    return h, a


def sketched(h, a, rows):
    """The evaluation of so many rows that come in batches."""
    import calibrant as cal

    sketch = cal.Sketch()
    for _ in range(0, rows, len(h)):
        sketch.update_pairs(a, h)
    return dict(cal.evaluate(sketch).curves)


def measure(task, size):
    """In this process: CPU seconds, rise of memory, bytes and rows of the input."""
    given, work = work_on(task, size)
    work(*(x[:SMALL] for x in given))
    peak_memory.CLEAR.write_text("5")
    before, cpu = peak_memory.status("VmRSS"), time.process_time()
    work(*given)
    took = time.process_time() - cpu
    rise = max(peak_memory.status("VmHWM") - before, 0)
    print(json.dumps([took, rise, sum(x.nbytes for x in given), len(given[0])]))


def points(most):
    """Tasks and sizes."""
    sizes = [10**i for i in range(3, 9) if 10**i <= most]
    for task in TASKS:
        chosen = CLASSES if task in ("classes", "logits") else sizes
        yield from ((task, size) for size in chosen if size <= MOST.get(task, most))


def measured(most, found):
    """The best of three processes for each point; of one where it takes long.

    Points that are there are kept, and the file is written after each.
    """
    known = {(x["task"], x["size"]) for x in found["points"]}
    threads = dict.fromkeys(
        ("CALIBRANT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
    )
    for task, size in points(most):
        if (task, size) in known:
            continue
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
        found["points"].append(one | {"rise": rise, "input": given})
        print(found["points"][-1], flush=True)
        NUMBERS.write_text(json.dumps(found, indent=1) + "\n")


def draw(found):
    """Time above, memory below; against examples on the left, classes on the right."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "growth", "font.size": 9, "svg.fonttype": "path"}
    figure, axes = plt.subplots(2, 2, figsize=(7.2, 5.4), sharex="col", sharey="row")
    sides = (("intervals", "pairs", "sketch", "smooth"), ("logits", "classes"))
    for column, tasks in enumerate(sides):
        for task in tasks:
            draw_task(axes[:, column], [x for x in found if x["task"] == task])
        given = {x["size"]: x["input"] / 1e6 for x in found if x["task"] == tasks[1]}
        how = {"color": "0.4", "linestyle": "--", "label": "the input itself"}
        axes[1, column].plot(list(given), list(given.values()), **how)
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        ax.set(xscale="log", yscale="log")
        ax.grid(alpha=0.25, linewidth=0.5)
        ax.spines[["top", "right"]].set_visible(False)
        ax.text(0.02, 0.95, letter, transform=ax.transAxes, weight="bold", va="top")
    axes[0, 0].set(ylabel="CPU time (s), one thread")
    axes[1, 0].set(ylabel="memory above the input (MB)", xlabel="examples n")
    axes[1, 1].set(xlabel="classes k")
    handles = [*axes[1, 0].lines]
    figure.legend(
        handles=handles, fontsize=8, frameon=False, loc="upper center", ncols=3
    )
    figure.align_ylabels()
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    figure.savefig(FIGURE, metadata={"Date": None})
    plt.close(figure)


def draw_task(axes, mine):
    """One line of each kind; below 0.1 MB nothing can be told from noise."""
    label, color, line = TASKS[mine[0]["task"]]
    how = {"label": label, "color": color, "markersize": 4, "linewidth": 1.2}
    size = [x["size"] for x in mine]
    axes[0].plot(size, [x["cpu"] for x in mine], line, **how)
    axes[1].plot(size, [max(x["rise"], 1e5) / 1e6 for x in mine], line, **how)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e8, help="most examples (1e8)")
    parser.add_argument("--draw", action="store_true", help="draw what was measured")
    parser.add_argument(
        "--more",
        action="store_true",
        help="keep what was measured, add what is missing",
    )
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.task:
        return measure(said.task, said.size)
    if not said.draw:
        date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        found = {"date": date, "machine": run.machine(), "points": []}
        if said.more:
            found = json.loads(NUMBERS.read_text())
        measured(said.rows, found)
    return draw(json.loads(NUMBERS.read_text())["points"])


if __name__ == "__main__":
    main()
