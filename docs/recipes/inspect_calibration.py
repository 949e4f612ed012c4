"""A scorer for Inspect that keeps stated confidences, with metrics of calibration.

Use it as ``scorer=stated_confidence()`` of a task whose prompt ends in "Answer with two
lines, ANSWER: and a letter, CONFIDENCE: and a number from 0 to 100." The log is then read
by ``calibrant report logs/*.eval``.
"""

import re

from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    NOANSWER,
    Score,
    accuracy,
    metric,
    scorer,
)

import calibrant as cal

ANSWER = re.compile(r"ANSWER:\s*([A-Z])\b")
CONFIDENCE = re.compile(r"CONFIDENCE:\s*(\d+(?:\.\d+)?)\s*%?")


def evaluated(scores):
    """The evaluation of all samples; those that state no confidence are left out."""
    right = [item.score.value in (CORRECT, 1, 1.0, True) for item in scores]
    said = [(item.score.metadata or {}).get("confidence") for item in scores]
    question = [item.sample_id for item in scores]
    repeated = len(set(question)) < len(question)
    rows = {"cluster": question} if repeated else {}
    return cal.evaluate_pairs(right, said, **rows, drop_missing=True)


@metric
def brier():
    """Brier score of the stated confidences."""
    return lambda scores: float(evaluated(scores).metrics["brier"])


@metric
def calibration_error():
    """The part of the Brier score that recalibration can save."""
    return lambda scores: float(evaluated(scores).decomposition.calibration)


@metric
def coverage():
    """Share of the samples that state a confidence."""
    return lambda scores: evaluated(scores).coverage


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
