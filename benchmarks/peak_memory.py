"""How far memory rises above the input while calibrant works on it. Linux only.

    python benchmarks/peak_memory.py TASK ENGINE SCORES.npy LABELS.npy

is a process of its own: it does the task on something small first, so that imports and
compilation are over, then loads the input, and prints the rise in bytes and a number to
check the answer by, and the CPU and wall seconds it took. What a task returns as its
result does not count as a rise.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import Timing

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
FIT_SHARE = 0.2
"""Share of the rows that a recalibrator is fitted on; it is applied to the rest."""


def rise(
    scores: np.ndarray, labels: np.ndarray, engine: str, task: str = "evaluate"
) -> tuple[int, Timing]:
    """Bytes that a task needs at its peak beyond input and output; seconds and answer."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, name)) for name in ("scores.npy", "labels.npy")]
        for path, array in zip(paths, (scores, labels), strict=True):
            np.save(path, array)
        command = [sys.executable, __file__, task, engine, *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    rise, answer, cpu, wall = map(float, done.stdout.split())
    return int(rise), Timing(wall, cpu, wall, answer)


def status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(f"{STATUS} has no {field}")


def evaluate(scores, labels, engine):
    """The accuracy, and no array."""
    import calibrant as cal

    found = cal.evaluate(labels, logits=scores, engine=engine, interval=None)
    return float(found.metrics["accuracy"]), None


def pairs(scores, labels, engine):
    """The Brier score of confidences, and no array."""
    import calibrant as cal

    found = cal.evaluate_pairs(labels, scores, engine=engine, interval=None)
    return float(found.metrics["brier"]), None


def recalibrate(name):
    """Fit on the first rows, apply to the rest: accuracy there, and probabilities."""

    def task(scores, labels, engine):
        from calibrant import recalibration

        kind = "logits" if name == "TemperatureScaling" else "probs"
        method = getattr(recalibration, name)(scores=kind, engine=engine)
        split = int(FIT_SHARE * len(scores))
        fitted = method.fit(scores[:split], labels[:split])
        probs = fitted.predict_proba(scores[split:])
        return float(np.mean(probs.argmax(axis=1) == labels[split:])), probs

    return task


def main(task: str, engine: str, scores_path: str, labels_path: str) -> None:
    import synthetic

    work = {"evaluate": evaluate, "pairs": pairs}.get(task) or recalibrate(task)
    small, small_labels = synthetic.logits(500, 1000, seed=1)
    if task == "pairs":
        small, small_labels = synthetic.pairs(500)
    elif task not in ("evaluate", "TemperatureScaling"):
        small = synthetic.softmax(small)
    work(small, small_labels, engine)
    scores, labels = np.load(scores_path), np.load(labels_path)
    CLEAR.write_text("5")  # let the high-water mark start from here
    before = status("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    answer, result = work(scores, labels, engine)
    took = time.process_time() - cpu, time.perf_counter() - wall
    output = 0 if result is None else result.nbytes
    print(status("VmHWM") - before - output, answer, *took)


if __name__ == "__main__":
    main(*sys.argv[1:])
