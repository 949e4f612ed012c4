"""A scorer for Inspect that keeps stated confidences, with metrics of calibration.

Use it as ``scorer=stated_confidence()`` of a task whose prompt ends in "Answer with two
lines, ANSWER: and a letter, CONFIDENCE: and a number from 0 to 100." The log is then read
by ``calibrant report logs/*.eval --drop-missing``. With several epochs take the numbers from
there: Inspect gives its metrics the mean score of a sample and its first confidence only.
"""

import re

from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    NOANSWER,
    SampleScore,
    Score,
    accuracy,
    metric,
    scorer,
    value_to_float,
)

import calibrant as cal

ANSWER = re.compile(r"ANSWER:\s*([A-Z])\b")
CONFIDENCE = re.compile(r"CONFIDENCE:\s*(\d+(?:\.\d+)?)\s*%?")


def of_evaluation(number):
    """A metric that is a number of the evaluation of all samples; NaN if none is sure."""

    def compute(scores: list[SampleScore]) -> float:
        right = [value_to_float()(item.score.value) for item in scores]
        said = [(item.score.metadata or {}).get("confidence") for item in scores]
        if all(sure is None for sure in said):
            return float("nan")
        return float(number(cal.evaluate_pairs(right, said, drop_missing=True)))

    return compute


@metric
def brier():
    """Brier score of the stated confidences."""
    return of_evaluation(lambda ev: ev.metrics["brier"])


@metric
def calibration_error():
    """The part of the Brier score that recalibration can save."""
    return of_evaluation(lambda ev: ev.decomposition.calibration)


@metric
def coverage():
    """Share of the samples that state a confidence."""
    return of_evaluation(lambda ev: ev.coverage)


@scorer(metrics=[accuracy(), brier(), calibration_error(), coverage()])
def stated_confidence():
    """Whether the letter is right, with the confidence in the metadata of the score."""

    async def score(state, target):
        text = state.output.completion
        answer, said = ANSWER.search(text), CONFIDENCE.search(text)
        sure = float(said[1]) / 100 if said else None
        if sure is not None and sure > 1:
            sure = None
        if answer is None:
            return Score(value=NOANSWER, metadata={"confidence": sure})
        right = answer[1] == target.text.strip()
        value = CORRECT if right else INCORRECT
        return Score(value=value, answer=answer[1], metadata={"confidence": sure})

    return score
