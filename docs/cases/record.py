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


def stated(*, llm: str | None = None) -> dict[str, Any]:
    """Answers with a stated confidence, of one model or of all eleven.

    Two answers to one question of HaluEval, the true one and a made-up one (12_r, 12_h),
    are one cluster, and so are the answers of several models.
    """
    rows = load("llm_stated_confidence")
    chosen = np.isin(rows["llm"], rows["llm"] if llm is None else llm)
    rows = {key: values[chosen] for key, values in rows.items()}
    number = np.char.partition(rows["question_id"], "_")[:, 0]
    rows["cluster"] = np.char.add(np.char.add(rows["qset"], "/"), number)
    return rows


def ninety() -> cal.Evaluation:
    """All answers that were given with a stated confidence of exactly 90 %, by model."""
    rows = stated()
    chosen = np.isclose(rows["stated_confidence"], 0.9, rtol=0, atol=1e-9)
    rows = {key: values[chosen] for key, values in rows.items()}
    given = {"cluster": rows["cluster"], "group": rows["llm"], "name": "90 %"}
    return cal.evaluate_pairs(rows["correct"], rows["stated_confidence"], **given)


def ninety_by_questions() -> cal.Evaluation:
    """GPT-4o by the set of questions."""
    rows = stated(llm="gpt-4o")
    given = {"cluster": rows["cluster"], "group": rows["qset"], "name": "GPT-4o"}
    return cal.evaluate_pairs(rows["correct"], rows["stated_confidence"], **given)


def ninety_study() -> cal.Study:
    """GPT-4o, its stated confidences recalibrated, cross-fitted by question."""
    rows = stated(llm="gpt-4o")
    given = {"confidence": rows["stated_confidence"], "cluster": rows["cluster"]}
    return cal.study(rows["correct"], **given, folds=5, methods=["platt", "isotonic"])


CASES = {
    "network": network,
    "forest": forest,
    "forecasts": forecasts,
    "language_model": language_model,
    "ninety": ninety,
    "ninety_by_questions": ninety_by_questions,
    "ninety_study": ninety_study,
}

if __name__ == "__main__":
    main()
