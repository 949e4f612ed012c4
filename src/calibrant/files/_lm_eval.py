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
    Field,
    Harness,
    NoProbabilitiesError,
    OddError,
    Once,
    as_written_by,
    need,
)
from calibrant.files._sources import TASK, FileError, Numbered, shorten

NAME = "lm-evaluation-harness"
FIELDS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
ENOUGH = 4
"""How many of its fields a line must have, to be taken for a sample that lacks the rest."""

METRICS = ("acc", "acc_norm")
"""What the harness makes of the log-likelihoods, and is computed again."""

DATE = re.compile(r"_\d{4}-\d{2}-\d{2}T[\d.:-]+$")


def knows(first: dict[str, Any]) -> bool:
    """Whether a line has what samples have."""
    return len(first.keys() & FIELDS) >= ENOUGH


def rows(path: Path, given: Iterable[Numbered]) -> Iterator[Numbered]:
    """One flat record for each question."""
    task, first, once = task_of(path), True, Once()
    for number, record in given if not isinstance(given, list) else enumerate(given, 1):
        with as_written_by(NAME, path, where := f"line {number}"):
            sample = Field(record)
            if first and (reason := _no_choice(sample)):
                raise NoProbabilitiesError(path, f"{where} {reason}.")
            row = _row(sample, task)
            if first:
                filter_, first = record.get("filter"), False
                said = row.keys() & METRICS
            for name in sorted(said ^ (row.keys() & METRICS)):
                need(name in said, f"{name!r} is there, but missing in the first line")
                need(name in row, f"{name!r} is missing, which other lines have")
        if record.get("filter") != filter_:
            both = f"{filter_!r} and, in {where}, {record.get('filter')!r}"
            way_out = "each question would count twice, so keep the lines of one"
            raise FileError(path, f"has samples of the filters {both}; {way_out}.")
        with as_written_by(NAME, path, where):
            name = sample["doc_id"].called()
            once.add(f"the 'doc_id' {shorten(name)}", name)
        yield number, row


def task_of(path: Path) -> str:
    """The task of a file, which only its name says.

    >>> task_of(Path("samples_arc_easy_2024-05-01T10-00-00.123456.jsonl"))
    'arc_easy'
    """
    return DATE.sub("", path.stem.removesuffix(".jsonl")).removeprefix("samples_")


GENERATED = (
    "is a generated text, which has no probability; only samples of multiple choice have. "
    "Ask for a stated confidence, and write it as JSON lines of confidence and correct"
)


def _no_choice(sample: Field) -> str:
    """Why a task has not one true option among several; empty if it has.

    Requests and answers must agree on it, so that no damaged sample is taken for one of
    another task, and left out.
    """
    asked, answered = _requests(sample["arguments"]), _answers(sample)
    need(
        len(asked) == len(answered),
        f"'arguments' are {len(asked)}, and answers {len(answered)}",
    )
    if asked and all(not isinstance(x[1].value, str) for x in asked if len(x) > 1):
        if len(asked[0]) == 1:
            return "has one text to score, not several options to choose from"
        need(all(map(_is_text, answered)), f"{answered[0].name!r} is no text")
        return GENERATED
    if len(asked) == 1:
        return "has one text to score, not several options to choose from"
    target = str(sample["target"].value)
    if re.fullmatch(r"\[\d[\d, ]*\]", target):
        return f"has a list of true options, {target}, not one"
    share = _share(sample, "acc") or 0
    several = "so several options may be true" if 0 < share < 1 else ""
    return several and f"has the acc {share:.3g}, neither 0 nor 1, {several}"


def _is_text(answer: Field) -> bool:
    """Whether an answer is a text, or a list of texts, as of repeated requests."""
    value = answer.value
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(x, str) for x in value)
    )


def _requests(arguments: Field) -> list[list[Field]]:
    """What was asked for each option: the question, and mostly what follows it."""
    if isinstance(arguments.value, list):
        found = [request.elements() for request in arguments.elements()]
    else:
        found = [x.numbered("arg") for x in arguments.numbered("gen_args")]
    need(found and all(found), f"{arguments.name!r} has a request without a text")
    return found


def _answers(sample: Field) -> list[Field]:
    """What came back for each option: a number, and whether it is the likeliest text."""
    return [_first_of(answer) for answer in sample[_answered(sample)].elements()]


def _answered(sample: Field) -> str:
    return "filtered_resps" if sample.has("filtered_resps") else "resps"


def _first_of(answer: Field) -> Field:
    """An answer, or the first where requests may be repeated."""
    value = answer.value
    several = isinstance(value, list) and value and isinstance(value[0], list)
    return answer.elements()[0] if several else answer


def _share(sample: Field, name: str) -> float | None:
    """A metric of one question; None if there is none."""
    found = sample.get(name)
    if found.value is None or isinstance(found.value, bool):
        return found.value if found.value is None else float(found.value)
    return found.number(0, 1)


def _row(sample: Field, task: str) -> dict[str, Any]:
    scores = _loglikelihoods(sample)
    texts = _continuations(sample, len(scores))
    target = _target(sample, scores, [text.strip() for text in texts])
    found = {
        "question": f"{task}/{sample['doc_id'].called()}",
        TASK: task,
        "target": target,
        "loglikelihood": scores,
        **_normalised(sample, scores, texts, target),
    }
    kept = {name: _share(sample, name) for name in METRICS}
    return found | {name: x for name, x in kept.items() if x is not None}


def _loglikelihoods(sample: Field) -> list[float]:
    pairs = [(answer, answer.elements()) for answer in _answers(sample)]
    for answer, pair in pairs:
        if len(pair) != 2:
            answer.refuse("a pair of a number and is_greedy")
        if str(pair[1].value) not in ("True", "False"):
            pair[1].refuse("'True' or 'False'")
    scores = [pair[0].log_probability() for _, pair in pairs]
    need(len(scores) > 1, f"{_answered(sample)!r} has fewer than two options")
    _check_unfiltered(sample, scores)
    return scores[: _options(sample, len(scores))]


def _check_unfiltered(sample: Field, scores: list[float]) -> None:
    """Refuse answers that no filter was asked to change, but are not those that came."""
    if sample.get("filter").value != "none" or not sample.has("resps"):
        return
    came = [_first_of(answer) for answer in sample["resps"].elements()]
    need(len(came) == len(scores), f"'resps' are {len(came)}, not {len(scores)}")
    for answer, score in zip(came, scores, strict=True):
        need(pair := answer.elements(), f"{answer.name!r} is an empty list")
        number = pair[0].number()
        told = (
            f"{pair[0].name!r} is {number:.10g}, and in 'filtered_resps' {score:.10g}"
        )
        need(number == score, told)


def _options(sample: Field, asked: int) -> int:
    """How many options there are; with mutual information each was asked for twice."""
    return asked // 2 if sample.has("acc_mutual_info") else asked


def _continuations(sample: Field, count: int) -> list[str]:
    """What follows the question: what stands between them, and an option."""
    asked = _requests(sample["arguments"])
    given = _options(sample, len(asked))
    need(given == count, f"'arguments' are {len(asked)}, not one for each answer")
    need(all(len(x) > 1 for x in asked), "'arguments' has a request without an option")
    return [request[1].text() for request in asked[:count]]


def _choices(texts: list[str]) -> list[list[str]]:
    """What the options may be: with one space less, as they are, or with none before them.

    A task sets what stands between question and answer, which no sample says. It is a
    space in most; options may begin with one of their own, as many of HellaSwag do.
    """
    spaced = all(text[:1] == texts[0][:1] and text[:1].isspace() for text in texts)
    shorter = [[text[1:] for text in texts]] if spaced else []
    return [*shorter, texts, [text.lstrip() for text in texts]]


def _target(sample: Field, scores: Sequence[float], texts: list[str]) -> int:
    """The place of the true option: a number or, in some tasks, its text.

    The text of an option can be a number too: then `acc` says which is meant.
    """
    given, k = sample["target"].called(), len(scores)
    places = [int(given)] if re.fullmatch(r"\d{1,3}", given) else []
    places += [i for i, text in enumerate(texts) if text == given.strip()]
    places = [place for place in places if place < k]
    need(places, f"the 'target', {shorten(given)!r}, is none of the {k} options")
    said = _share(sample, "acc")
    if said is None:
        return places[0]
    fits = [x for x in places if float(x == first_of_largest(scores)) == said]
    need(fits, f"'acc' is {said}, which does not follow from the log-likelihoods")
    return fits[0]


def _normalised(
    sample: Field, scores: Sequence[float], texts: list[str], target: int
) -> dict[str, list[float] | None]:
    """Log-likelihoods by characters and bytes, where options are different texts."""
    by_character, by_byte = "loglikelihood_per_character", "loglikelihood_per_byte"
    ways = [choices for choices in _choices(texts) if "" not in choices]
    if len({text.strip() for text in texts}) < len(texts) or not ways:
        return dict.fromkeys((by_character, by_byte))
    said = _share(sample, "acc_norm")
    for choices in ways:
        found = _over(scores, [len(text) for text in choices])
        if said is None or said == float(first_of_largest(found) == target):
            sizes = [len(text.encode()) for text in choices]
            return {by_character: found, by_byte: _over(scores, sizes)}
    raise OddError(
        f"'acc_norm' is {said}, which does not follow from the log-likelihoods"
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
