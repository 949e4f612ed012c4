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

from calibrant.files._harness_base import (
    Field,
    Harness,
    MixedError,
    Once,
    as_written_by,
    need,
    told,
)
from calibrant.files._sources import TASK, FileError, Numbered, shorten
from calibrant.files._token_logprobs import answer_of

NAME = "Inspect"
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of scores as numbers, as Inspect's accuracy takes them."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def knows(first: dict[str, Any]) -> bool:
    """Whether an object is a whole log, or lacks one or two of its parts."""
    return len(first.keys() & PARTS) >= 3


PARTS = {"version", "status", "eval", "plan", "results", "stats", "samples"}


def rows(path: Path, given: Any) -> Iterator[Numbered]:
    """One flat record for each sample of a log."""
    header = {key: x for key, x in given.items() if key != "samples"}
    with as_written_by(NAME, path, "the log"):
        samples = [x.value for x in Field(given)["samples"].elements()]
        need(samples, "'samples' is an empty list")
    yield from rows_of_samples(path, header, enumerate(samples, 1))


def rows_of_samples(
    path: Path, header: dict[str, Any], samples: Iterable[Numbered]
) -> Iterator[Numbered]:
    """Flat records of samples; what was asked several times is one cluster."""
    with as_written_by(NAME, path, "the header"):
        about = Field(header)
        status, run = about["status"].text(), about["eval"]
        task, model = run["task"].text(), run["model"].text()
        epochs = _count(run.get("config"), "epochs")
        expected = _count(about.get("results"), "completed_samples")
    if status != FINISHED:
        again = "run it again (inspect eval-retry)"
        raise FileError(path, f"is of a run with the 'status' {status!r}; {again}.")
    number, once = 0, Once()
    for number, sample in samples:
        with as_written_by(NAME, path, f"sample {number}"):
            row = {**_row(Field(sample), task), "model": model}
            name, epoch = shorten(str(sample["id"])), shorten(str(sample["epoch"]))
            once.add(f"the 'id' {name} with 'epoch' {epoch}", row["question"])
            if epochs > 1:
                row["cluster"] = row["sample"]
        yield number, row
    if number < expected:
        lost = f"has {number} samples, and its header says {expected:g}"
        raise FileError(path, f"{lost} ('results.completed_samples'); it is damaged.")


FINISHED = "success"


def _count(part: Field, name: str) -> float:
    """A number of the header; 0 if it is not there."""
    if part.value is None or not part.has(name):
        return 0
    return part[name].number(0)


def _row(sample: Field, task: str) -> dict[str, Any]:
    name = f"{task}/{sample['id'].called()}"
    epoch = sample["epoch"].called()
    about = {"question": f"{name}/{epoch}", "sample": name, TASK: task}
    scores = {} if not sample.has("scores") else sample["scores"].members()
    return {**about, **_scores(scores), **_answer(sample, scores)}


def _scores(scores: dict[str, Field]) -> dict[str, Any]:
    """Whether the answer is right, by each scorer, and how sure it was said to be."""
    found: dict[str, Any] = {}
    for name, score in scores.items():
        right, sure = grade(score["value"]), _sure(score.get("metadata"))
        found |= {f"{name}.correct": right, f"{name}.confidence": sure}
        found.setdefault("correct", right)  # that of the first scorer
        if found.get("confidence") is None:
            found["confidence"] = sure
    return found


def _sure(metadata: Field) -> Any:
    """What a scorer kept as the confidence: a number, text, or nothing."""
    if metadata.value is None:
        return None
    found = metadata.get("confidence")
    if isinstance(found.value, bool | list | dict):
        found.refuse("a number")
    return found.value


def grade(given: Field) -> float | None:
    """The value of a score as a number; None if it was not scored.

    >>> [grade(Field(x)) for x in ("C", "P", "yes", float("nan"))]
    [1.0, 0.5, 1.0, None]
    """
    value = given.value
    if isinstance(value, str):
        known = GRADES.get(value, WORDS.get(value.lower()))
        return given.number() if known is None else known
    if isinstance(value, bool):
        return float(value)
    return None if isinstance(value, float) and isnan(value) else given.number()


def _answer(sample: Field, scores: dict[str, Field]) -> dict[str, Any]:
    """Options and their log-probabilities, if the log has those of tokens."""
    count = len(sample["choices"].elements()) if sample.has("choices") else 0
    letters = [*LETTERS[:count]] if count else None
    found = answer_of(_tokens(sample), letters)
    target = _target(sample["target"]) if letters else None
    if letters and found["answer"] is not None:
        known = target is None or target in letters
        need(known, f"'target' is {told(target)}, none of the {count} options")
        for score in [*scores.values()][:1]:
            _check_same(score.get("answer"), found["answer"], letters)
    return {**found, "target": target}


def _check_same(said: Field, answer: str, letters: list[str]) -> None:
    """Refuse tokens that name another option than the scorer read."""
    value = said.value.strip() if isinstance(said.value, str) else None
    if value in letters and value != answer:
        both = f"{said.name!r} is {value!r}, but the last token of an option {answer!r}"
        why = (
            "multiple_choice(shuffle=True) has this effect: shuffle the dataset instead"
        )
        raise MixedError(f"{both}; {why}")


def _target(given: Field) -> str | None:
    """The letter of the true option; None if there are several."""
    if not isinstance(given.value, list):
        return given.text().strip()
    texts = [x.text().strip() for x in given.elements()]
    return texts[0] if len(texts) == 1 else None


def _tokens(sample: Field) -> list[Field]:
    """Tokens of the first answer; none if there are no log-probabilities."""
    at = sample.get("output")
    for name in ("choices", "logprobs", "content"):
        if at.value is None:
            return []
        at = at.get(name)
        if name == "choices" and at.value is not None:
            at = (at.elements() or [Field(None)])[0]
    return [] if at.value is None else at.elements()


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
