"""Samples of the same questions: whether intervals of tasks, and of a study, hold.

`python simulations/questions.py` draws data sets of 150 questions with 5 answers each, in
two tasks of unequal size, and writes `questions.md`. A language model states one of six
confidences. Answers to one question agree by a Gaussian copula, and so do their
confidences; each answer alone is correct with a probability that is known.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

import calibrant as cal
from calibrant._verbs.study import read_study_rows
from calibrant.recalibration import PlattScaling

HERE = Path(__file__).resolve().parent
QUESTIONS, SAMPLES, ALIKE = 150, 5, 0.5
SAID = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
USED = {
    "small": np.array([1, 1, 2, 2, 2, 2]) / 10,
    "large": np.array([0, 1, 1, 3, 3, 2]) / 10,
}
RIGHT = {"small": 0.2 + 0.7 * SAID**2, "large": 0.1 + 0.6 * SAID}
SHARES = {"small": 1 / 3, "large": 2 / 3}
FOLDS, EVERY = 5, 20


@dataclass(frozen=True)
class Answers:
    """Answers to questions: what was said, whether it is correct, and of which task."""

    correct: np.ndarray
    said: np.ndarray
    question: np.ndarray
    task: np.ndarray


def draw(seed: int) -> Answers:
    """One data set."""
    rng = np.random.default_rng([seed, 20])
    question = np.repeat(np.arange(QUESTIONS), SAMPLES)
    tasks = np.where(np.arange(QUESTIONS) < SHARES["small"] * QUESTIONS, *SHARES)[
        question
    ]
    sure, luck = (_alike(rng, question) for _ in range(2))
    place = np.empty(len(question), int)
    chance = np.empty(len(question))
    for task, law in USED.items():
        own = tasks == task
        place[own] = np.searchsorted(np.cumsum(law)[:-1], sure[own], side="right")
        chance[own] = RIGHT[task][place[own]]
    return Answers(luck < chance, SAID[place], question, tasks)


def _alike(rng: np.random.Generator, question: np.ndarray) -> np.ndarray:
    """Uniform numbers that are alike for answers to one question."""
    own, shared = rng.normal(size=len(question)), rng.normal(size=QUESTIONS)
    return ndtr(np.sqrt(ALIKE) * shared[question] + np.sqrt(1 - ALIKE) * own)


def truth(task: str, given: np.ndarray = SAID) -> dict[str, float]:
    """Population values of a task whose confidences are replaced by these."""
    law, right = USED[task], RIGHT[task]
    brier = float(law @ (right * (1 - given) ** 2 + (1 - right) * given**2))
    gap, error = float(law @ (given - right)), float(law @ (given - right) ** 2)
    accuracy = float(law @ right)
    return {"accuracy": accuracy, "brier": brier, "confidence_gap": gap, "d_CAL": error}


def pooled(values: Mapping[str, float], weights: Mapping[str, float] = SHARES) -> float:
    """The mean over tasks, by weight."""
    return sum(weights[task] * value for task, value in values.items())


def held_by_tasks(data: Answers) -> Iterator[tuple[str, bool | None]]:
    """Whether intervals of tasks, of all answers, and of the mean over tasks hold."""
    rows = {"cluster": data.question, "group": data.task}
    ev = cal.evaluate_pairs(data.correct, data.said, **rows)
    truths = {task: truth(task) for task in SHARES}
    macro = cal.macro_average(ev)
    for key in ("accuracy", "brier", "confidence_gap"):
        true = {task: one[key] for task, one in truths.items()}
        for task, part in ev.per_group.items():
            yield f"{key}, task {task}", holds(part.metrics[key], true[task])
        yield f"{key}, all answers (micro)", holds(ev.metrics[key], pooled(true))
        yield f"{key}, tasks (macro)", holds(macro[key], sum(true.values()) / 2)
    for task, part in ev.per_group.items():
        error = part.decomposition.calibration
        yield f"d_CAL, task {task}", holds(error, truths[task]["d_CAL"])
    alone = cal.evaluate_pairs(data.correct, data.said).metrics["accuracy"]
    true = pooled({task: one["accuracy"] for task, one in truths.items()})
    yield "accuracy, all answers, as if independent", holds(alone, true)


def held_by_study(data: Answers) -> Iterator[tuple[str, bool | None]]:
    """Whether intervals of cross-fitted confidences hold what new questions would give."""
    rows = {"cluster": data.question, "folds": FOLDS, "rng": 0}
    found = cal.study(data.correct, confidence=data.said, **rows, methods="platt")
    given = {"logits": None, "probs": None, "split": None}
    parts = read_study_rows(
        data.correct, None, confidence=data.said, **given, **rows
    ).parts
    true: dict[str, dict[str, list[float]]] = {"Platt": {}, "Uncalibrated": {}}
    for fit, places in parts:
        platt = PlattScaling(scores="probs").fit(fit.scores, fit.y)
        moved = {"Platt": platt.predict_proba(SAID)[:, 1], "Uncalibrated": SAID}
        for name, values in moved.items():
            for task in SHARES:
                share = (
                    np.mean(data.task[places] == task) * len(places) / len(data.said)
                )
                for key, value in truth(task, values).items():
                    true[name].setdefault(key, []).append(share * value)
    for name, numbers in true.items():
        for key in ("brier", "confidence_gap", "accuracy"):
            yield f"{key}, {name}", holds(found[name].metrics[key], sum(numbers[key]))


def holds(found: Any, true: float) -> bool | None:
    """Whether an interval holds the truth; None if there is no interval."""
    if found.interval is None:
        return None
    return bool(found.interval[0] <= true <= found.interval[1])


def coverage(
    count: int, seed: int = 0, save: Callable[[Any], object] = dict
) -> dict[str, list[bool | None]]:
    """What was held, for every interval, in so many data sets, saved now and then."""
    found: dict[str, list[bool | None]] = defaultdict(list)
    for number in range(count):
        data = draw(seed + number)
        for name, held in (*held_by_tasks(data), *held_by_study(data)):
            found[name].append(held)
        if (number + 1) % EVERY == 0:
            save(found)
    save(found)
    return dict(found)


def page(found: Mapping[str, list[bool | None]]) -> str:
    """The results in Markdown."""
    count = len(next(iter(found.values())))
    about = (
        f"Written by `python simulations/questions.py {count}`: {count} data sets of "
        f"{QUESTIONS} questions with {SAMPLES} answers each, in two tasks, whose answers "
        f"and confidences agree by a Gaussian copula of correlation {ALIKE}. Share of "
        "nominal 95 % intervals, with the question as cluster, that hold the population "
        "value. After `study`, that is the value of the recalibrators fitted on the folds."
    )
    lines = [
        "# Samples of the same questions",
        "",
        about,
        "",
        "| interval of | held, % | without interval |",
        "|---|---|---|",
    ]
    for name, held in found.items():
        known = [x for x in held if x is not None]
        share = f"{100 * np.mean(known):.1f}" if known else ""
        lines.append(f"| {name} | {share} | {count - len(known)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    written = HERE / "questions.md"
    coverage(times, save=lambda found: written.write_text(page(found), "utf-8"))
