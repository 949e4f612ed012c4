"""What a run of HELM leaves: numbers of each instance, and the requests behind them.

``per_instance_stats.json`` and ``display_predictions.json`` have the probability of the
answer (``max_prob``) and whether it matches. ``scenario_state.json`` has the tokens of all
answers, from which options that were scored one by one get their scores again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import exp
from pathlib import Path
from typing import Any

from calibrant.files._harness_base import (
    ROUNDING,
    Field,
    Harness,
    NoProbabilitiesError,
    OddError,
    Once,
    as_written_by,
    need,
    told,
)
from calibrant.files._sources import TASK, Numbered, shorten

NAME = "HELM"
MATCHES = (
    *("exact_match", "quasi_exact_match", "quasi_leave_articles_exact_match"),
    *("prefix_exact_match", "quasi_prefix_exact_match", "math_equiv", "code_eval_acc"),
)
"""Numbers that say whether an answer is right, the first that is there."""

UNTOUCHED = "as it is"
"""Instances that were not perturbed."""

SEPARATE, JOINT = "multiple_choice_separate_", "multiple_choice_joint"


def knows_stats(first: dict[str, Any]) -> bool:
    """Whether an object has the statistics of one instance, or all but one of its names."""
    return len(first.keys() & {"instance_id", "train_trial_index", "stats"}) >= 2


def rows_of_stats(path: Path, given: Any) -> Iterator[Numbered]:
    """One flat record for each instance and trial."""
    found, once = [], Once()
    for number, record in enumerate(given, 1) if isinstance(given, list) else given:
        with as_written_by(NAME, path, f"item {number}"):
            found.append((number, row := _row_of_stats(Field(record))))
            about = row["instance_id"], record.get("train_trial_index")
            key = json.dumps([*about, record.get("perturbation")], sort_keys=True)
            once.add(f"a trial of the 'instance_id' {shorten(about[0])!r}", key)
    names = {name for _, row in found for name in row}
    match = next((name for name in MATCHES if name in names), "")
    yield from _finished(path, [(i, {"correct": x.get(match), **x}) for i, x in found])


def _row_of_stats(record: Field) -> dict[str, Any]:
    row = _about(record["instance_id"], record.get("perturbation"))
    return row | {name: _share(name, x) for name, x in _means(record["stats"]).items()}


def _means(stats: Field) -> dict[str, Field]:
    """Means of statistics by name: of objects that say more, or as they are."""
    if isinstance(stats.value, dict):
        return {name: x for name, x in stats.members().items() if x.value is not None}
    counted = [x for x in stats.elements() if _is_counted(x)]
    return {x["name"]["name"].text(): x["mean"] for x in counted}


def _is_counted(stat: Field) -> bool:
    """Whether a statistic is of anything; one of nothing has no mean."""
    return not stat.has("count") or stat["count"].number() > 0


def _share(name: str, stat: Field) -> float | None:
    """A statistic; what is used of them is a share."""
    if name == "max_prob" or name in MATCHES:
        return min(stat.number(0, 1 + ROUNDING), 1.0)
    try:
        return stat.number()
    except OddError:
        return None  # of no use here


def _about(instance: Field, perturbation: Field) -> dict[str, Any]:
    name = perturbation.value
    if isinstance(name, dict):
        name = perturbation["name"].text()
    need(name is None or isinstance(name, str), f"{perturbation.name!r} has no name")
    return {"instance_id": instance.called(), "perturbation": name or UNTOUCHED}


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
    return "request_states" in first or first.keys() == {"adapter_spec"}


def rows_of_requests(path: Path, given: Any) -> Iterator[Numbered]:
    """One flat record for each instance and trial, of all its requests."""
    with as_written_by(NAME, path, "the file"):
        method = Field(given)["adapter_spec"]["method"].text()
        states = Field(given)["request_states"].elements()
        need(states, "'request_states' is an empty list")
    asked: dict[Any, list[Field]] = defaultdict(list)
    for number, state in enumerate(states, 1):
        with as_written_by(NAME, path, f"request {number}"):
            instance = state["instance"]
            about = _about(instance["id"], instance.get("perturbation"))
            trial = state["train_trial_index"].number()
            asked[(*about.values(), trial)].append(state)
    found = []
    for number, ((name, perturbation, _), some) in enumerate(asked.items(), 1):
        with as_written_by(NAME, path, f"instance {name}"):
            one = _of_options if method.startswith(SEPARATE) else _of_answer
            about = {"instance_id": name, "perturbation": perturbation}
            found.append((number, about | one(some, method)))
    yield from _finished(path, found)


def _completions(state: Field) -> list[Field]:
    """What came back; nothing, if the request failed and HELM went on without it."""
    result = state["result"]
    success = result.get("success")
    need(
        success.value in (None, True, False),
        f"{success.name!r} is neither true nor false",
    )
    if success.value is False:
        return []
    found = result["completions"]
    need(found.elements(), f"{found.name!r} is empty")
    return found.elements()


def _of_options(states: Sequence[Field], method: str) -> dict[str, Any]:
    """Scores of options that were asked for one by one, as HELM computes them."""
    references = states[0]["instance"]["references"].elements()
    found = {"target": _correct_of(references)}
    sums: dict[tuple[str, int], tuple[float, int]] = {}
    for state in states:
        if not (completions := _completions(state)):
            return {**found, "reference_scores": None}
        asked = _asked(state, len(references))
        need(asked not in sums, f"'reference_index' is {asked[1]} twice")
        text = references[asked[1]]["output"]["text"].text()
        sums[asked] = _last_tokens(completions[0]["tokens"], text)
    calibrated = method.endswith("calibrated")
    scores = [_score(sums, place, calibrated) for place in range(len(references))]
    return {**found, "reference_scores": scores}


def _asked(state: Field, count: int) -> tuple[str, int]:
    """Which option was asked for, and in which mode."""
    mode, place = state.get("request_mode"), state["reference_index"]
    need(mode.value in (None, *MODES), f"{mode.name!r} is {told(mode.value)}")
    return mode.value or MODES[0], int(place.number(0, count - 1))


MODES = ("original", "calibration")
"""With the question, and without."""


def _score(
    sums: dict[tuple[str, int], tuple[float, int]],
    place: int,
    calibrated: bool,  # noqa: FBT001
) -> float:
    """The mean of the tokens of an option, or how much the question adds to their sum."""
    for mode in MODES if calibrated else MODES[:1]:
        need((mode, place) in sums, f"no 'reference_index' {place}, {mode}")
    total, count = sums[MODES[0], place]
    return total - sums[MODES[1], place][0] if calibrated else total / count


def _last_tokens(tokens: Field, text: str) -> tuple[float, int]:
    """Log-probability and number of the last tokens, which spell a text."""
    spelt, total = "", 0.0
    for count, token in enumerate(reversed(tokens.elements()), 1):
        spelt = token["text"].text() + spelt
        total += token["logprob"].log_probability()
        if spelt.strip() == text.strip():
            return total, count
    raise OddError(f"{tokens.name!r} do not end in the answer {shorten(text)!r}")


def _correct_of(references: Sequence[Field]) -> int:
    right = [i for i, x in enumerate(references) if _is_correct(x)]
    need(len(right) == 1, f"{len(right)} of 'instance.references' are correct, not one")
    return right[0]


def _is_correct(reference: Field) -> bool:
    return "correct" in [tag.text() for tag in reference["tags"].elements()]


def _letters(state: Field, right: Sequence[str], method: str) -> dict[str, str] | None:
    """Texts of options by the letter that stands for them; None if texts are generated."""
    mapping = state.get("output_mapping")
    if mapping.value is None and not method.startswith(JOINT):
        return None
    named = {x: text.text().strip() for x, text in mapping.members().items()}
    need({*right} & {*named.values()}, f"{mapping.name!r} has no correct reference")
    return named


def _of_answer(states: Sequence[Field], method: str) -> dict[str, Any]:
    """The likeliest answer of a single request, and whether it is the right one."""
    need(len(states) == 1, f"there are {len(states)} requests of this 'id', not one")
    references = states[0]["instance"]["references"].elements()
    texts = [x["output"]["text"].text().strip() for x in references if _is_correct(x)]
    named = _letters(states[0], texts, method)
    completions = [(x["logprob"].log_probability(), x) for x in _completions(states[0])]
    if not completions or not texts:
        return {"max_prob": None, "correct": None}
    sure, best = max(completions, key=lambda x: x[0])
    said = best["text"].text().strip()
    answer = said if named is None else named.get(said)
    return {"max_prob": min(exp(sure), 1.0), "correct": answer in texts}


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
