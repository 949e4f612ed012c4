"""Make the records that the case studies show: `python docs/cases/record.py`.

They are evaluations of real model outputs, which are looked for in CALIBRANT_DATA, or in
../shared/data, and are not part of the project; the records are.
"""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))


def main() -> None:
    """Write every record and say how large it is."""
    for name, make in CASES.items():
        path = HERE / f"{name}.json.xz"
        path.write_bytes(lzma.compress(make().to_json().encode()))
        print(path.name, path.stat().st_size)  # noqa: T201


def load(name: str) -> dict[str, Any]:
    """The arrays of a file."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def network() -> cal.Study:
    """A ResNet-32 on CIFAR-10, before and after temperature scaling."""
    rows = load("cifar10_akamaster_resnet32")
    return cal.study(rows["labels"], logits=rows["logits"], methods="temperature")


def forest() -> cal.Study:
    """A random forest on the census data known as Adult."""
    rows = load("adult_random_forest")
    return cal.study(rows["outcome"], probs=rows["prob"], methods="temperature")


def forecasts() -> cal.Study:
    """FiveThirtyEight's forecasts of NBA games, the games of a day kept together."""
    rows = load("fivethirtyeight_games")
    nba = rows["league"] == "nba"
    given = {"probs": rows["prob"][nba], "cluster": rows["date"][nba]}
    return cal.study(rows["outcome"][nba], **given, folds=5, methods="platt")


def language_model() -> cal.Contrast:
    """Llama 3.1 8B: confidence as stated, and as the probability of its answer's token."""
    rows = load("llm_stated_confidence")
    chosen = (rows["llm"] == "Meta-Llama-3.1-8B-Instruct") & np.isfinite(
        rows["chosen_token_confidence"]
    )
    rows = {key: values[chosen] for key, values in rows.items()}
    right = rows["correct"]
    stated, token = rows["stated_confidence"], rows["chosen_token_confidence"]
    return cal.compare(
        cal.evaluate_pairs(right, stated, name="stated", group=rows["qset"]),
        cal.evaluate_pairs(right, token, name="token"),
    )


CASES = {
    "network": network,
    "forest": forest,
    "forecasts": forecasts,
    "language_model": language_model,
}

if __name__ == "__main__":
    main()
