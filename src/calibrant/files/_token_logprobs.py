"""Log-probabilities of tokens as the API of OpenAI gives them, and many others do.

An answer is a list of tokens, each with the likeliest ones at its place. The last token
that is the name of an option is the answer; probabilities of " A" and "A" are added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import exp, log
from pathlib import Path
from typing import Any

from calibrant.files._harness_base import Harness, as_written_by, finite, need
from calibrant.files._sources import Numbered

NAME = "token log-probabilities"
LETTER = re.compile("[A-Z]")
PLAIN = (str, int, float, bool)


def knows(first: dict[str, Any]) -> bool:
    """Whether an object has log-probabilities of tokens, by itself or in a response."""
    try:
        return bool(tokens_of(first))
    except (LookupError, TypeError, ValueError, AttributeError):
        return False


def rows(path: Path, given: Iterable[Any]) -> Iterator[Numbered]:
    """One flat record for each answer, with what stands beside its tokens."""
    for number, record in enumerate(given, 1) if isinstance(given, list) else given:
        with as_written_by(NAME, path, f"line {number}"):
            options = record.get("options")
            kept = {
                n: x for n, x in record.items() if x is None or isinstance(x, PLAIN)
            }
            yield number, kept | answer_of(tokens_of(record), options)


def tokens_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The tokens of an answer: as such, in a response, or in a line of a batch."""
    if "response" in record and isinstance(record["response"], dict):
        record = record["response"].get("body", record["response"])
    if isinstance(record.get("choices"), list) and record["choices"]:
        record = record["choices"][0]
    given = record["logprobs"]
    if given is None:
        return []
    if "token_logprobs" in given:
        return _of_completion(given)
    found: list[dict[str, Any]] = given["content"]
    return found


def _of_completion(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The older form: lists of tokens, of their numbers, and of objects of the likeliest."""
    top = given.get("top_logprobs") or [{}] * len(given["tokens"])
    parts = zip(given["tokens"], given["token_logprobs"], top, strict=True)
    return [
        {
            "token": token,
            "logprob": number,
            "top_logprobs": [
                {"token": name, "logprob": x} for name, x in (others or {}).items()
            ],
        }
        for token, number, others in parts
    ]


def answer_of(
    tokens: Sequence[dict[str, Any]], options: Sequence[str] | None = None
) -> dict[str, Any]:
    """The answer, its probability, and log-probabilities of all options seen.

    Of an answer that names no option nothing is known.

    >>> found = answer_of([{"token": " B", "logprob": -0.5, "top_logprobs": [
    ...     {"token": " B", "logprob": -0.5}, {"token": "A", "logprob": -1.5}]}])
    >>> found["answer"], found["option_logprobs"]
    ('B', {'A': -1.5, 'B': -0.5})
    """
    named = [x for x in tokens if _is_option(x["token"], options)]
    if not named:
        return dict.fromkeys(("answer", "answer_probability", "option_logprobs"))
    sums: dict[str, list[float]] = {}
    seen = {x["token"]: x["logprob"] for x in named[-1].get("top_logprobs") or []}
    seen[named[-1]["token"]] = named[-1]["logprob"]
    for token, number in seen.items():
        if _is_option(token, options):
            sums.setdefault(token.strip(), []).append(finite(number))
    added = {name: _added(sums[name]) for name in sorted(sums)}
    answer = named[-1]["token"].strip()
    found = {"answer": answer, "answer_probability": min(exp(added[answer]), 1.0)}
    return {**found, "option_logprobs": added if len(added) > 1 else None}


def _is_option(token: str, options: Sequence[str] | None) -> bool:
    name = token.strip()
    return bool(LETTER.fullmatch(name)) if options is None else name in options


def _added(numbers: list[float]) -> float:
    """The logarithm of the sum of probabilities that are given by theirs."""
    need(max(numbers) <= 1e-6, f"{max(numbers)} is no logarithm of a probability")
    if len(numbers) == 1:
        return numbers[0]
    return log(sum(exp(x) for x in numbers))


TOKEN_LOGPROBS = Harness(
    NAME,
    knows,
    rows,
    {
        "logits": "option_logprobs",
        "confidence": "answer_probability",
        "pred": "answer",
        "id": "custom_id",
    },
    "ask for answers that name an option, such as 'Answer with one letter'",
)
