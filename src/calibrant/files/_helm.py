"""What a run of HELM leaves: numbers of each instance, and the requests behind them.

``per_instance_stats.json`` and ``display_predictions.json`` have the probability of the
answer (``max_prob``) and whether it matches. ``scenario_state.json`` has the tokens of all
answers, from which options that were scored one by one get their scores again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import exp
from pathlib import Path
from typing import Any

from calibrant.files._harness_base import (
    Harness,
    NoProbabilitiesError,
    as_written_by,
    finite,
    need,
)
from calibrant.files._sources import TASK, Numbered

NAME = "HELM"
MATCHES = (
    *("exact_match", "quasi_exact_match", "quasi_leave_articles_exact_match"),
    *("prefix_exact_match", "quasi_prefix_exact_match", "math_equiv", "code_eval_acc"),
)
"""Numbers that say whether an answer is right, the first that is there."""

UNTOUCHED = "as it is"
"""Instances that were not perturbed."""

SEPARATE = "multiple_choice_separate_"


def knows_stats(first: dict[str, Any]) -> bool:
    """Whether an object has the statistics of one instance."""
    return first.keys() >= {"instance_id", "train_trial_index", "stats"}


def rows_of_stats(path: Path, given: Any) -> Iterator[Numbered]:
    """One flat record for each instance and trial."""
    found = []
    for number, record in enumerate(given, 1) if isinstance(given, list) else given:
        with as_written_by(NAME, path, f"item {number}"):
            found.append((number, _row_of_stats(record)))
    yield from _finished(path, found)


def _row_of_stats(record: dict[str, Any]) -> dict[str, Any]:
    given = record["stats"]
    if isinstance(given, list):
        given = {x["name"]["name"]: x["mean"] for x in given if x.get("count", 1)}
    need(all(isinstance(name, str) for name in given), "a statistic has no name")
    stats = {name: None if x is None else finite(x) for name, x in given.items()}
    right = next((stats[name] for name in MATCHES if name in stats), None)
    confidence = stats.pop("max_prob", None)
    row = _about(record["instance_id"], record.get("perturbation"))
    return {**row, "max_prob": confidence, "correct": right, **stats}


def _about(instance: Any, perturbation: Any) -> dict[str, Any]:
    name = perturbation["name"] if isinstance(perturbation, dict) else perturbation
    return {"instance_id": str(instance), "perturbation": name or UNTOUCHED}


def _finished(path: Path, found: list[Numbered]) -> Iterator[Numbered]:
    """Records with groups and clusters, where there are any."""
    sure = [row["max_prob"] for _, row in found if row.get("max_prob") is not None]
    vectors = any("reference_scores" in row for _, row in found)
    if found and not vectors and (not sure or min(sure) == 1):
        raise NoProbabilitiesError(
            path,
            "has no probabilities: max_prob is missing, or 1 for every answer, as HELM "
            "writes for models whose API gives no log-probabilities.",
        )
    task, model = run_of(path)
    perturbed = any(row["perturbation"] != UNTOUCHED for _, row in found)
    repeated = len({row["instance_id"] for _, row in found}) < len(found)
    for number, row in found:
        name = f"{task}/{row['instance_id']}"
        group = f"{task}, {row['perturbation']}" if perturbed else task
        clusters = {"cluster": name} if repeated else {}
        about = {"question": name, TASK: group, "model": model}
        yield number, {**about, **row, **clusters}


def run_of(path: Path) -> tuple[str, str]:
    """Task and model of a run, which the name of its folder says.

    >>> run_of(Path("mmlu:subject=anatomy,model=openai_gpt2,eval_split=test/stats.json"))
    ('mmlu:subject=anatomy,eval_split=test', 'openai_gpt2')
    """
    task, _, options = path.resolve().parent.name.partition(":")
    said = [x for x in options.split(",") if x and not x.startswith("model=")]
    model = [x for x in options.split(",") if x.startswith("model=")]
    return ":".join([task, *filter(None, [",".join(said)])]), "".join(model)[6:]


# -- scenario_state.json: the requests and what came back --------------------------------


def knows_requests(first: dict[str, Any]) -> bool:
    """Whether an object is the state of a scenario."""
    return first.keys() >= {"adapter_spec", "request_states"}


def rows_of_requests(path: Path, given: Any) -> Iterator[Numbered]:
    """One flat record for each instance and trial, of all its requests."""
    with as_written_by(NAME, path, "the file"):
        method = given["adapter_spec"]["method"]
        asked: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for state in given["request_states"]:
            about = _about(
                state["instance"]["id"], state["instance"].get("perturbation")
            )
            asked[(*about.values(), state["train_trial_index"])].append(state)
    found = []
    for number, ((instance, perturbation, _), states) in enumerate(asked.items(), 1):
        with as_written_by(NAME, path, f"instance {instance}"):
            one = _of_options if method.startswith(SEPARATE) else _of_answer
            row = _about(instance, perturbation) | one(states, method)
            found.append((number, row))
    yield from _finished(path, found)


def _of_options(states: Sequence[dict[str, Any]], method: str) -> dict[str, Any]:
    """Scores of options that were asked for one by one, as HELM computes them."""
    references = states[0]["instance"]["references"]
    sums: dict[tuple[str, int], tuple[float, int]] = {}
    for state in states:
        place = state["reference_index"]
        (completion,) = state["result"]["completions"]
        text = references[place]["output"]["text"]
        mode = state.get("request_mode") or "original"
        sums[mode, place] = _last_tokens(completion["tokens"], text)
    scores = []
    for place in range(len(references)):
        total, count = sums["original", place]
        less = sums["calibration", place][0] if method.endswith("calibrated") else None
        scores.append(total / count if less is None else total - less)
    return {"reference_scores": scores, "target": _correct_of(references)}


def _last_tokens(tokens: Sequence[dict[str, Any]], text: str) -> tuple[float, int]:
    """Log-probability and number of the last tokens, which spell a text."""
    spelt, total = "", 0.0
    for count, token in enumerate(reversed(tokens), 1):
        spelt, total = token["text"] + spelt, total + finite(token["logprob"])
        if spelt.strip() == text.strip():
            return total, count
    raise ValueError(f"tokens do not end in the answer {text!r}")


def _correct_of(references: Sequence[dict[str, Any]]) -> int:
    right = [i for i, x in enumerate(references) if "correct" in x["tags"]]
    need(len(right) == 1, f"{len(right)} references are correct, not one")
    return right[0]


def _of_answer(states: Sequence[dict[str, Any]], _: str) -> dict[str, Any]:
    """The likeliest answer of a single request, and whether it is the right one."""
    (state,) = states
    best = max(state["result"]["completions"], key=lambda x: finite(x["logprob"]))
    said, named = best["text"].strip(), state.get("output_mapping")
    answer = said if named is None else named.get(said)
    references = state["instance"]["references"]
    right = [x["output"]["text"] for x in references if "correct" in x["tags"]]
    matches = answer is not None and answer.strip() in [x.strip() for x in right]
    return {"max_prob": min(exp(finite(best["logprob"])), 1.0), "correct": matches}


ROLES = {
    "confidence": "max_prob",
    "correct": "correct",
    "group": TASK,
    "cluster": "cluster",
    "id": "question",
}
HELM_STATS = Harness(NAME, knows_stats, rows_of_stats, ROLES)
HELM_REQUESTS = Harness(
    f"{NAME} requests",
    knows_requests,
    rows_of_requests,
    {**ROLES, "logits": "reference_scores", "label": "target"},
)
