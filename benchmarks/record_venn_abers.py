"""Record what other libraries' Venn-Abers answers, for tests to compare.

    python benchmarks/record_venn_abers.py --data DATA_FOLDER

writes `tests/peer_venn_abers.json`. Needs venn-abers and MAPIE; not calibrant. Takes seconds.

Input: the probability of the positive class as float64, divided by the sum of the row. Every 20th row is for fitting, from
row 0 on; asked about are the 300 rows from row 1 on in steps of 50. By file and library:

low, high, merged
    p0, p1 and the one probability, of those rows.
"""

import argparse
import importlib.metadata
import json
import os
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FILES = ("adult_random_forest", "imdb_cleanlab_cv")
FIT, ASKED = slice(0, None, 20), slice(1, 15_001, 50)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as data:
        if "prob" in data:
            return data["prob"].astype(float), data["outcome"].astype(int)
        p = data["probs"].astype(float)
        return p[:, 1] / p.sum(axis=1), data["labels"].astype(int)


def two_columns(p: np.ndarray) -> np.ndarray:
    return np.stack([1 - p, p], axis=1)


def libraries() -> dict:
    from mapie._venn_abers import VennAbers as Mapie
    from venn_abers import VennAbers

    return {"venn-abers": VennAbers, "mapie": Mapie}


def answers(made, p: np.ndarray, y: np.ndarray) -> dict[str, list[float]]:
    made.fit(two_columns(p[FIT]), y[FIT])
    merged, ends = made.predict_proba(two_columns(p[ASKED]))
    found = {"low": ends[:, 0], "high": ends[:, 1], "merged": merged[:, 1]}
    return {name: np.round(x, 12).tolist() for name, x in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what other libraries answer.")
    beside = HERE.parent.parent / "shared" / "data"
    folder = Path(os.environ.get("CALIBRANT_DATA", beside))
    parser.add_argument("--data", type=Path, default=folder)
    options = parser.parse_args()
    found: dict = {
        "versions": {name: importlib.metadata.version(name) for name in libraries()}
    }
    for file in FILES:
        rows = read(options.data / f"{file}.npz")
        found[file] = {n: answers(make(), *rows) for n, make in libraries().items()}
    out = HERE.parent / "tests" / "peer_venn_abers.json"
    out.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
