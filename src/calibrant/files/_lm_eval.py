"""Samples of lm-evaluation-harness (``--log_samples``): one line for each question.

A question of multiple choice has the log-likelihood of each option. The harness predicts
the first of the largest (``acc``), or of the largest after division by the number of
characters (``acc_norm``); both are computed again and held against what the file says.
Tasks without one true option among several are in good order, and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrant.files._harness_base import (
    Harness,
    NoProbabilitiesError,
    as_written_by,
    finite,
    need,
)
from calibrant.files._sources import TASK, FileError, Numbered

NAME = "lm-evaluation-harness"
FIELDS = {"doc_id", "doc", "target", "arguments"}
DATE = re.compile(r"_\d{4}-\d{2}-\d{2}T[\d.:-]+$")


def knows(first: dict[str, Any]) -> bool:
    """Whether a line has what all samples have."""
    return first.keys() >= FIELDS and bool({"resps", "filtered_resps"} & first.keys())


def rows(path: Path, given: Iterable[Numbered]) -> Iterator[Numbered]:
    """One flat record for each question."""
    task, filter_ = task_of(path), None
    for number, record in given if not isinstance(given, list) else enumerate(given, 1):
        where = f"line {number}"
        if _is_generated(record):
            raise NoProbabilitiesError(
                path,
                f"{where} is a generated text, which has no probability; only samples of "
                "multiple choice have. Ask for a stated confidence, and write it as JSON "
                "lines of confidence and correct.",
            )
        with as_written_by(NAME, path, where):
            if filter_ is None and (reason := _no_choice(record)):
                raise NoProbabilitiesError(path, f"{where} {reason}.")
            row = _row(record, task)
        filter_ = filter_ or record.get("filter")
        if record.get("filter") != filter_:
            both = f"{filter_!r} and {record.get('filter')!r}"
            way_out = "each question would count twice, so keep the lines of one"
            raise FileError(path, f"has samples of the filters {both}; {way_out}.")
        yield number, row


def task_of(path: Path) -> str:
    """The task of a file, which only its name says.

    >>> task_of(Path("samples_arc_easy_2024-05-01T10-00-00.123456.jsonl"))
    'arc_easy'
    """
    return DATE.sub("", path.stem.removesuffix(".jsonl")).removeprefix("samples_")


def _is_generated(record: dict[str, Any]) -> bool:
    """Whether an answer is text, not the log-likelihood of a given one."""
    answers = record.get("filtered_resps") or record.get("resps")
    while isinstance(answers, list) and answers:
        if len(answers) == 2 and not isinstance(answers[0], list):
            return False
        answers = answers[0]
    scored = any("perplexity" in name for name in record)  # a number in quotes
    return isinstance(answers, str) and not scored


def _no_choice(record: dict[str, Any]) -> str:
    """Why a task has not one true option among several; empty if it has."""
    if len(record.get("resps") or record.get("filtered_resps") or ()) == 1:
        return "has one text to score, not several options to choose from"
    if re.fullmatch(r"\[[\d, ]*\]", str(record["target"])):
        return f"has a list of true options, {record['target']}, not one"
    share = float(record.get("acc", 0))
    several = "so several options may be true" if 0 < share < 1 else ""
    return several and f"has the acc {share:.3g}, neither 0 nor 1, {several}"


def _row(record: dict[str, Any], task: str) -> dict[str, Any]:
    scores = _loglikelihoods(record)
    texts = _continuations(record["arguments"], len(scores))
    target = _target(record, scores, [text.strip() for text in texts])
    found = {
        "question": f"{task}/{record['doc_id']}",
        TASK: task,
        "target": target,
        "loglikelihood": scores,
        **_normalised(record, scores, texts, target),
    }
    kept = ("acc", "acc_norm")
    return found | {key: float(record[key]) for key in kept if key in record}


def _loglikelihoods(record: dict[str, Any]) -> list[float]:
    given = record.get("filtered_resps")
    if given is None or not all(isinstance(x, list) and len(x) == 2 for x in given):
        given = [answers[0] for answers in record["resps"]]
    need(all(len(pair) == 2 for pair in given), "an answer is no (number, is_greedy)")
    scores = [finite(number) for number, _ in given]
    if "acc_mutual_info" in record:  # the second half is without the question
        scores = scores[: len(scores) // 2]
    need(len(scores) > 1, "there are fewer than two options")
    return scores


def _continuations(arguments: Any, count: int) -> list[str]:
    """What follows the question: what stands between them, and an option."""
    if isinstance(arguments, dict):
        pairs = [arguments[f"gen_args_{i}"] for i in range(count)]
        texts = [pair["arg_1"] for pair in pairs]
    else:
        texts = [pair[1] for pair in arguments[:count]]
    need(len(texts) == count, "arguments are not as many as answers")
    return texts


def _choices(texts: list[str]) -> list[list[str]]:
    """What the options may be: with one space less, as they are, or with none before them.

    A task sets what stands between question and answer, which no sample says. It is a
    space in most; options may begin with one of their own, as many of HellaSwag do.
    """
    spaced = all(text[:1] == texts[0][:1] and text[:1].isspace() for text in texts)
    shorter = [[text[1:] for text in texts]] if spaced else []
    return [*shorter, texts, [text.lstrip() for text in texts]]


def _target(record: dict[str, Any], scores: Sequence[float], texts: list[str]) -> int:
    """The place of the true option: a number or, in some tasks, its text.

    The text of an option can be a number too: then `acc` says which is meant.
    """
    given, k = str(record["target"]), len(scores)
    places = [int(given)] if re.fullmatch(r"\d{1,3}", given) else []
    places += [i for i, text in enumerate(texts) if text == given.strip()]
    places = [place for place in places if place < k]
    need(places, f"the target {given!r} is none of the {k} options")
    said = record.get("acc")
    if said is None:
        return places[0]
    fits = [x for x in places if float(x == first_of_largest(scores)) == float(said)]
    need(fits, f"acc is {said}, which does not follow from the log-likelihoods")
    return fits[0]


def _normalised(
    record: dict[str, Any], scores: Sequence[float], texts: list[str], target: int
) -> dict[str, list[float] | None]:
    """Log-likelihoods by characters and bytes, where options are different texts."""
    by_character, by_byte = "loglikelihood_per_character", "loglikelihood_per_byte"
    ways = [choices for choices in _choices(texts) if "" not in choices]
    if len({text.strip() for text in texts}) < len(texts) or not ways:
        return dict.fromkeys((by_character, by_byte))
    said = record.get("acc_norm")
    for choices in ways:
        found = _over(scores, [len(text) for text in choices])
        if said is None or float(said) == float(first_of_largest(found) == target):
            sizes = [len(text.encode()) for text in choices]
            return {by_character: found, by_byte: _over(scores, sizes)}
    raise ValueError(
        f"acc_norm is {said}, which does not follow from the log-likelihoods"
    )


def _over(scores: Sequence[float], sizes: list[int]) -> list[float]:
    return [x / n for x, n in zip(scores, sizes, strict=True)]


def first_of_largest(scores: Sequence[float]) -> int:
    """The option that is predicted: of equal ones the first."""
    return max(range(len(scores)), key=scores.__getitem__)


LM_EVAL = Harness(
    NAME,
    knows,
    rows,
    {
        "label": "target",
        "logits": "loglikelihood",
        "group": TASK,
        "id": "question",
    },
    sure=True,
)
