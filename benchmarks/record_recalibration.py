"""Record what netcal's binned and isotonic recalibration answer, for tests to compare.

    python benchmarks/record_recalibration.py --data DATA_FOLDER

writes `tests/peer_recalibration.npz`. Needs netcal; not calibrant. Takes 10 seconds.

Input: the stored `logits` of DATA_FOLDER/<name>.<split>.npz as float64, each row less its
maximum, exponentiated, divided by its sum. A fifth of the rows, with their integer
`labels`, is for fitting: the first rows (split "first") or every fifth from row 0 on
(split "every"). Numbers of rows below count the others only.

The arrays:

netcal_version, names
    of the package, and of the files.
<name>.<split>.rows
    Numbers of 500 rows.
<name>.<split>.entries
    (2, m) rows and columns of single entries: all of those rows if k = 10, otherwise
    20,000 anywhere.
<name>.<split>.<method>.entries, <name>.<split>.<method>.squares
    What the method gives at the entries, and the sums of squares of the rows. Methods
    are histogram = `HistogramBinning(bins=15)` and isotonic = `IsotonicRegression()`.
<name>.<split>.<method>.lost
    Numbers of all rows that are NaN there, since every class got 0.

The rows of ImageNet are sorted by class, so its first fifth lacks 800 of 1000 classes.
"""

import argparse
import contextlib
import importlib.metadata
import io
import os
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FILES = ("cifar10_akamaster_resnet32", "imagenet5k_efficientnet_lite0")
ROWS, ENTRIES = 500, 20_000


def softmax(logits: np.ndarray) -> np.ndarray:
    z = logits.astype(np.float64)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def methods() -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from netcal.binning import HistogramBinning, IsotonicRegression
    return {"histogram": HistogramBinning(bins=15), "isotonic": IsotonicRegression()}


def splits(n: int) -> dict[str, np.ndarray]:
    """Which rows are for fitting."""
    return {"first": np.arange(n) < n // 5, "every": np.arange(n) % 5 == 0}


def recalibrate(method, probs, labels, fit: np.ndarray) -> np.ndarray:
    """Fit on some rows, apply to the others; what netcal prints is not shown."""
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(invalid="ignore"):
        return method.fit(probs[fit], labels[fit]).transform(probs[~fit])


def choose(n: int, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and entries as (rows, columns)."""
    rows = np.sort(rng.choice(n, ROWS, replace=False))
    if k == 10:
        return rows, np.stack([rows.repeat(k), np.tile(np.arange(k), ROWS)])
    return rows, np.stack([rng.integers(0, n, ENTRIES), rng.integers(0, k, ENTRIES)])


def of_split(probs, labels, fit: np.ndarray, rng) -> dict[str, np.ndarray]:
    rows, entries = choose((~fit).sum(), probs.shape[1], rng)
    found = {"rows": rows.astype(np.int32), "entries": entries.astype(np.int32)}
    for name, method in methods().items():
        answer = recalibrate(method, probs, labels, fit)
        found[f"{name}.entries"] = answer[entries[0], entries[1]]
        found[f"{name}.squares"] = (answer[rows] ** 2).sum(axis=1)
        lost = np.flatnonzero(np.isnan(answer).any(axis=1))
        found[f"{name}.lost"] = lost.astype(np.int32)
    return found


def of_file(path: Path, rng: np.random.Generator) -> dict[str, np.ndarray]:
    with np.load(path) as data:
        probs, labels = softmax(data["logits"]), data["labels"].astype(np.int64)
    return {
        f"{path.stem}.{split}.{key}": array
        for split, fit in splits(len(probs)).items()
        for key, array in of_split(probs, labels, fit, rng).items()
    }


def default_data() -> Path:
    beside_the_repository = HERE.parent.parent / "shared" / "data"
    return Path(os.environ.get("CALIBRANT_DATA", beside_the_repository))


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what netcal answers.")
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument(
        "--out", type=Path, default=HERE.parent / "tests" / "peer_recalibration.npz"
    )
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    arrays = {
        "netcal_version": np.array(importlib.metadata.version("netcal")),
        "names": np.array(FILES),
    }
    for name in FILES:
        arrays |= of_file(options.data / f"{name}.npz", rng)
    np.savez_compressed(options.out, **arrays)


if __name__ == "__main__":
    main()
