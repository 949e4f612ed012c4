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

from calibrant.files._harness_base import Field, Harness, OddError, as_written_by, need
from calibrant.files._sources import Numbered

NAME = "token log-probabilities"
LETTER = re.compile("[A-Z]")
PLAIN = (str, int, float, bool)


def knows(first: dict[str, Any]) -> bool:
    """Whether an object has log-probabilities of tokens, by itself or in a response."""
    try:
        return bool(tokens_of(Field(first)))
    except OddError:
        return False


def rows(path: Path, given: Iterable[Any]) -> Iterator[Numbered]:
    """One flat record for each answer, with what stands beside its tokens."""
    for number, record in enumerate(given, 1) if isinstance(given, list) else given:
        with as_written_by(NAME, path, f"line {number}"):
            answer, options = Field(record), None
            if answer.has("options"):
                options = [option.text() for option in answer["options"].elements()]
            kept = {
                n: x for n, x in record.items() if x is None or isinstance(x, PLAIN)
            }
            yield number, kept | answer_of(tokens_of(answer), options)


def tokens_of(answer: Field) -> list[Field]:
    """The tokens of an answer: as such, in a response, or in a line of a batch.

    A request that failed has none.
    """
    if "response" in answer.members():
        response = answer["response"]
        if response.value is None or _failed(response):
            return []
        answer = response["body"] if "body" in response.members() else response
    if "choices" in answer.members():
        choices = answer["choices"].elements()
        need(choices, f"{answer['choices'].name!r} is empty")
        answer = choices[0]
    given = answer["logprobs"]
    if given.value is None:
        return []
    if given.has("token_logprobs"):
        return _of_completion(given)
    return given["content"].elements() if given["content"].value is not None else []


OK = 200


def _failed(response: Field) -> bool:
    """Whether a request was not answered."""
    return response.has("status_code") and response["status_code"].number() != OK


def _of_completion(given: Field) -> list[Field]:
    """The older form: lists of tokens, of their numbers, and of objects of the likeliest."""
    texts, numbers = given["tokens"].elements(), given["token_logprobs"].elements()
    top = given["top_logprobs"].elements() if given.has("top_logprobs") else []
    need(
        len(texts) == len(numbers) and len(top) in (0, len(texts)),
        f"lists of {given.name!r} differ in length",
    )
    found = []
    for i, (text, number) in enumerate(zip(texts, numbers, strict=True)):
        others = top[i].members() if top and top[i].value is not None else {}
        likeliest = [{"token": x, "logprob": n.value} for x, n in others.items()]
        one = {"token": text.value, "logprob": number.value, "top_logprobs": likeliest}
        found.append(Field(one, text.name))
    return found


def answer_of(
    tokens: Sequence[Field], options: Sequence[str] | None = None
) -> dict[str, Any]:
    """The answer, its probability, and log-probabilities of all options seen.

    Of an answer that names no option nothing is known.

    >>> found = answer_of([Field({"token": " B", "logprob": -0.5, "top_logprobs": [
    ...     {"token": " B", "logprob": -0.5}, {"token": "A", "logprob": -1.5}]})])
    >>> found["answer"], found["option_logprobs"]
    ('B', {'A': -1.5, 'B': -0.5})
    """
    named = [x for x in tokens if _is_option(x["token"].text(), options)]
    if not named:
        return dict.fromkeys(("answer", "answer_probability", "option_logprobs"))
    others = named[-1].get("top_logprobs")
    seen = {} if others.value is None else _seen(others.elements())
    seen |= _seen(named[-1:])
    sums: dict[str, list[float]] = {}
    for token, number in seen.items():
        if _is_option(token, options):
            sums.setdefault(token.strip(), []).append(number.log_probability())
    added = {name: _added(sums[name]) for name in sorted(sums)}
    answer = named[-1]["token"].text().strip()
    found = {"answer": answer, "answer_probability": min(exp(added[answer]), 1.0)}
    return {**found, "option_logprobs": added if len(added) > 1 else None}


def _seen(tokens: Iterable[Field]) -> dict[str, Field]:
    """Numbers of tokens."""
    return {token["token"].text(): token["logprob"] for token in tokens}


def _is_option(token: str, options: Sequence[str] | None) -> bool:
    name = token.strip()
    return bool(LETTER.fullmatch(name)) if options is None else name in options


def _added(numbers: list[float]) -> float:
    """The logarithm of the sum of probabilities that are given by theirs."""
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
