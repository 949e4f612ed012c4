"""How far memory rises above the input while acumen evaluates it. Linux only.

    python benchmarks/peak_memory.py LOGITS.npy LABELS.npy ENGINE

is a process of its own: it evaluates something small first, so that imports and
compilation are over, then loads the input, and prints the rise in bytes and the
accuracy it found.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def rise(logits: np.ndarray, labels: np.ndarray, engine: str) -> tuple[int, float]:
    """Bytes of memory ac.evaluate needs at its peak beyond the input; the accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, name)) for name in ("logits.npy", "labels.npy")]
        for path, array in zip(paths, (logits, labels), strict=True):
            np.save(path, array)
        command = [sys.executable, __file__, *paths, engine]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    rise, accuracy = done.stdout.split()
    return int(rise), float(accuracy)


def _status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(f"{STATUS} has no {field}")


def main(logits_path: str, labels_path: str, engine: str) -> None:
    import synthetic

    import acumen as ac

    small, small_labels = synthetic.logits(500, 1000, seed=1)
    ac.evaluate(small_labels, logits=small, engine=engine)
    logits, labels = np.load(logits_path), np.load(labels_path)
    CLEAR.write_text("5")  # let the high-water mark start from here
    before = _status("VmRSS")
    evaluation = ac.evaluate(labels, logits=logits, engine=engine)
    print(_status("VmHWM") - before, float(evaluation.metrics["accuracy"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
