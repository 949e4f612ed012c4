"""Confidences of a language model's answers, from what it gives beside a number it states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import exp, fsum
from typing import Any

import numpy as np

from calibrant._base.checks import check_flags
from calibrant._inputs.arrays import Column, as_scores


def self_consistency(answer: Sequence[Any], question: Sequence[Any]) -> Column:
    """Share of the samples of a question that give the same answer, for each sample.

    Parameters
    ----------
    answer : sequence
        The answer of each sample, brought to one form: "4" and "four" are two answers.
        None is an abstention.
    question : sequence
        The question of each sample.

    Returns
    -------
    ndarray
        A confidence for each sample; NaN for abstentions, which count among the samples
        of their question.

    Notes
    -----
    Samples of one question depend on each other: pass `question` as the cluster, too. Of
    m samples the share is a multiple of 1/m and never below it; a single sample always
    agrees with itself.

    Examples
    --------
    >>> import calibrant as cal
    >>> answer, question = ["4", "4", "5", "7", None], ["a", "a", "a", "b", "b"]
    >>> cal.self_consistency(answer, question).round(2).tolist()
    [0.67, 0.67, 0.33, 0.5, nan]
    """
    answers, questions = _listed(answer, "answer"), _listed(question, "question")
    if len(answers) != len(questions):
        both = f"{len(questions)} questions for {len(answers)} answers"
        raise ValueError(f"question must have one entry per answer: {both}.")
    pairs = list(zip(questions, answers, strict=True))
    samples, alike = Counter(questions), Counter(pairs)
    shares = [
        np.nan if said is None else alike[asked, said] / samples[asked]
        for asked, said in pairs
    ]
    return np.array(shares, np.float64)


def _listed(given: Sequence[Any], name: str) -> list[Any]:
    """Entries that can be told apart."""
    try:
        found = list(given)
        set(found)
    except TypeError as error:
        rule = f"{name} must be a sequence of texts, numbers or None"
        raise TypeError(f"{rule}: {error}.") from None
    return found


def p_true(true: Any, false: Any) -> Column:
    """P(True): how likely a model finds its own answer, asked "Is it true or false?".

    Parameters
    ----------
    true, false : array_like
        Log-probabilities of the tokens for True and False. They are normalised over the
        two, since the rest of the vocabulary is no answer.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> cal.p_true(np.log([0.6, 0.1]), np.log([0.2, 0.1])).round(6).tolist()
    [0.75, 0.5]
    """
    yes, no = (_log_probabilities(x, n) for x, n in ((true, "true"), (false, "false")))
    if yes.shape != no.shape:
        raise ValueError(
            f"true and false must be alike, got {yes.shape} and {no.shape}."
        )
    if (both := np.isneginf(yes) & np.isneginf(no)).any():
        row = int(np.argmax(both))
        raise ValueError(
            f"true and false must not both have probability 0; row {row} has."
        )
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(no - yes)))


def sequence_probability(
    logprobs: Iterable[Sequence[float]], *, per_token: bool = False
) -> Column:
    """Probability of whole answers from log-probabilities of their tokens.

    Parameters
    ----------
    logprobs : iterable of sequences
        Log-probabilities of the tokens of each answer.
    per_token : bool
        Whether to take the geometric mean of the tokens' probabilities. Products shrink
        with the length of an answer; the mean does not, but is the probability of nothing.

    Returns
    -------
    ndarray
        A number for each answer; NaN for one without tokens.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> answers = [np.log([0.5, 0.5]), np.log([0.25])]
    >>> cal.sequence_probability(answers).round(6).tolist()
    [0.25, 0.25]
    >>> cal.sequence_probability(answers, per_token=True).round(6).tolist()
    [0.5, 0.25]
    """
    check_flags(per_token=per_token)
    try:
        answers = iter(logprobs)
    except TypeError:
        kind = type(logprobs).__name__
        rule = "logprobs must be a sequence for each answer"
        raise TypeError(f"{rule}, got {kind}.") from None
    return np.array([_probability(x, per_token) for x in answers], np.float64)


def _probability(tokens: Sequence[float], per_token: bool) -> float:  # noqa: FBT001
    numbers = _log_probabilities(tokens, "logprobs").tolist()
    if not numbers:
        return float("nan")
    return exp(fsum(numbers) / (len(numbers) if per_token else 1))


ROUND_OFF = 1e-3
"""How far above 0 a log-probability may be: float16 and APIs round."""


def _log_probabilities(given: Any, name: str) -> Column:
    """Numbers of at most 0; what is a little above is round-off, and 0."""
    found = np.atleast_1d(as_scores(given, name)).astype(np.float64)
    if found.ndim > 1:
        raise ValueError(f"{name} must be one number a token, got {found.shape}.")
    if bad := np.flatnonzero(np.isnan(found) | (found > ROUND_OFF)).tolist():
        value = found.ravel()[bad[0]]
        rule = (
            f"{name} must be log-probabilities, at most 0; number {bad[0]} is {value:g}"
        )
        raise ValueError(f"{rule}. If these are probabilities, take their logarithm.")
    return np.minimum(found, 0.0)
