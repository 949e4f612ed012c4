"""Logs of Inspect, and what a sample of one says.

A sample has a score of each scorer. Its confidence is what the scorer kept as
``confidence`` in the metadata of the score, or the probability of the answer's token; for
multiple choice with log-probabilities, those of all options are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan
from pathlib import Path
from typing import Any

from calibrant.files._harness_base import Harness, as_written_by, need
from calibrant.files._sources import TASK, Numbered
from calibrant.files._token_logprobs import answer_of

NAME = "Inspect"
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of scores as numbers, as Inspect's accuracy takes them."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def knows(first: dict[str, Any]) -> bool:
    """Whether an object is a whole log."""
    return first.keys() >= {"version", "eval", "samples"}


def rows(path: Path, given: Any) -> Iterator[Numbered]:
    """One flat record for each sample of a log."""
    header = {key: x for key, x in given.items() if key != "samples"}
    yield from rows_of_samples(path, header, enumerate(given["samples"] or [], 1))


def rows_of_samples(
    path: Path, header: dict[str, Any], samples: Iterable[Numbered]
) -> Iterator[Numbered]:
    """Flat records of samples; what was asked several times is one cluster."""
    with as_written_by(NAME, path, "the header"):
        task, model = str(header["eval"]["task"]), str(header["eval"]["model"])
        epochs = header["eval"].get("config", {}).get("epochs") or 1
    for number, sample in samples:
        with as_written_by(NAME, path, f"sample {number}"):
            row = {**_row(sample, task), "model": model}
            if epochs > 1:
                row["cluster"] = row["sample"]
            yield number, row


def _row(sample: dict[str, Any], task: str) -> dict[str, Any]:
    name = f"{task}/{sample['id']}"
    about = {"question": f"{name}/{sample['epoch']}", "sample": name, TASK: task}
    return {**about, **_scores(sample.get("scores") or {}), **_answer(sample)}


def _scores(scores: dict[str, Any]) -> dict[str, Any]:
    """Whether the answer is right, by each scorer, and how sure it was said to be."""
    found: dict[str, Any] = {}
    for name, score in scores.items():
        right = grade(score["value"])
        sure = (score.get("metadata") or {}).get("confidence")
        found |= {f"{name}.correct": right, f"{name}.confidence": sure}
        found.setdefault("correct", right)  # that of the first scorer
        if found.get("confidence") is None:
            found["confidence"] = sure
    return found


def grade(value: Any) -> float | None:
    """The value of a score as a number; None if it was not scored.

    >>> grade("C"), grade("P"), grade("yes"), grade(float("nan"))
    (1.0, 0.5, 1.0, None)
    """
    if isinstance(value, str):
        known = GRADES.get(value, WORDS.get(value.lower()))
        return float(value) if known is None else known
    need(isinstance(value, int | float), f"a score of {value!r} is no number")
    return None if isnan(value) else float(value)


def _answer(sample: dict[str, Any]) -> dict[str, Any]:
    """Options and their log-probabilities, if the log has those of tokens."""
    target, choices = sample.get("target"), sample.get("choices")
    made = (sample.get("output") or {}).get("choices") or [{}]
    tokens = (made[0].get("logprobs") or {}).get("content") or []
    found = answer_of(tokens, LETTERS[: len(choices)] if choices else None)
    single = isinstance(target, str) and bool(choices)
    return {**found, "target": str(target).strip() if single else None}


INSPECT_LOG = Harness(
    NAME,
    knows,
    rows,
    {
        "confidence": "confidence",
        "correct": "correct",
        "logits": "option_logprobs",
        "label": "target",
        "group": TASK,
        "cluster": "cluster",
        "id": "question",
    },
    "keep one as 'confidence' in the metadata of a score, or ask for log-probabilities "
    "of the tokens (logprobs and top_logprobs of the model's configuration)",
)
