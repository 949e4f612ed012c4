"""Public functions: good calls with one or two arguments replaced by anything at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Case
from .choices import Choices
from .rows import EDGES

METRICS = (
    "accuracy", "brier", "nll", "ece", "ace", "mce", "auroc", "ks_error", "smooth_ece",
    "confidence_gap", "corp", "calibration_error", "classwise_ece", "top_label_ece",
    "full_vector_ece", "logit_smoothed_ece", "aurc", "mmce", "dirichlet_ece", "skill",
    "smooth_calibration_error",
)  # fmt: skip
VERBS = (
    "evaluate", "evaluate_pairs", "calibration_test", "calibration_bracket",
    "canonical_calibration_error", "choose_bandwidth", "confidence_split", "risk_coverage",
    "decision_curve", "murphy", "cutoff_error", "clinical", "kernel_calibration_error", "t_cal",
    "grouping_loss", "loss_parts", "compare_groups", "find_slices", "multicalibration_error",
    "monitor",
)  # fmt: skip
OTHERS = ("fit", "study", "compare", "sketch", "table", "paper_spread", "sketch_frame")
ANSWERS = ("p_true", "self_consistency", "sequence_probability")
METHODS = (
    "TemperatureScaling", "Identity", "MeanReplacement", "HistogramBinning", "PlattScaling",
    "IsotonicCalibration", "VectorScaling", "MatrixScaling", "BetaCalibration",
    "DirichletCalibration", "EnsembleTemperatureScaling", "VennAbers", "PriorShift",
    "OffsetScaling", "MixtureScaling", "AdaptiveTemperatureScaling", "TopLabelBinning",
)  # fmt: skip

ONE_EVENT = (
    "auroc", "corp", "clinical", "decision_curve", "murphy", "smooth_calibration_error",
)  # fmt: skip
"""Functions of the probability of one event."""

OPTIONS: dict[str, tuple[Any, ...]] = {
    "divergence": ("brier", "log"),
    "bandwidth": ("auto", 0.05, 0.001),
    "kernel": ("gaussian", "epanechnikov"),
    "boundary": ("none", "reflect"),
    "estimator": ("direct", "plugin"),
    "counterpart": ("paper", "tight"),
    "bins": (15, 1, 2, 1000),
    "closed": ("right", "left"),
    "level": (0.95, 0.5, 1e-9),
    "preset": (None, "paper"),
    "interval": (None, "auto"),
    "resamples": (100, 200),
    "rng": (0, 1),
}
OWN: dict[str, dict[str, tuple[Any, ...]]] = {
    "evaluate": OPTIONS | {"name": ("m", "")},
    "evaluate_pairs": OPTIONS | {"name": ("m", "")},
    "ece": {"bins": (15, 1)},
    "ace": {"bins": (15, 1)},
    "mce": {"bins": (15, 1)},
    "corp": {"divergence": ("brier", "log")},
    "calibration_test": {
        "method": ("kuiper", "ks", "spiegelhalter"),
        "resamples": (100,),
    },
    "calibration_bracket": {
        "folds": (3, 5),
        "level": (0.95,),
        "divergence": ("brier", "log"),
    },
    "canonical_calibration_error": {"level": (0.95,), "divergence": ("brier", "log")},
    "choose_bandwidth": {"candidates": (None, [0.05, 0.1])},
    "confidence_split": {"bandwidth": ("auto", 0.05), "level": (0.95,)},
    "study": {
        "methods": ("temperature", ["identity"]),
        "split": (0.5,),
        "folds": (None, 2),
    },
    "compare": {"paired": (True, False), "level": (0.95,), "baseline": (None, "a")},
    "paper_spread": {
        "draws": (2,),
        "size": (5,),
        "of": ("rows", "points"),
        "rng": (0,),
    },
    "risk_coverage": {"level": (0.95,)},
    "decision_curve": {"thresholds": ([0.2, 0.5], [0.1]), "level": (0.95,)},
    "murphy": {"thresholds": ([0.2, 0.5], [0.1]), "level": (0.95,)},
    "cutoff_error": {"resamples": (100,), "level": (0.95,), "rng": (0,)},
    "clinical": {"resamples": (100,), "level": (0.95,)},
    "kernel_calibration_error": {
        "of": (None, "class-wise"),
        "width": ("median", 0.5),
        "resamples": (19,),
    },
    "t_cal": {"resamples": (19,), "rng": (0,)},
    "mmce": {"width": (0.4,)},
    "dirichlet_ece": {"power": (1, 2), "bandwidth": ("auto", 0.1)},
    "skill": {
        "divergence": ("brier", "log"),
        "reference": (None, 0.5),
        "level": (0.95,),
    },
    "grouping_loss": {
        "method": ("auto", "tree", "ridge"),
        "regions": (8, 2),
        "folds": (2,),
        "rng": (0,),
    },
    "loss_parts": {"votes": (None, 3), "regions": (8, 2), "method": ("auto", "tree")},
    "compare_groups": {"baseline": (None, "a", "b"), "level": (0.95,), "bins": (15,)},
    "find_slices": {
        "slices": (4, 2),
        "least": (0.05, 0.3),
        "split": (0.5,),
        "rng": (0,),
    },
    "multicalibration_error": {"bins": (10, 2), "level": (0.95,), "rng": (0,)},
    "monitor": {
        "against": ("calibration", "reference"),
        "alpha": (0.01, 0.5),
        "tolerance": (0.0, 0.1),
        "every": (None, "day"),
        "reference": (None, ["a"]),
    },
    "sequence_probability": {"per_token": (False, True)},
    "table": {"format": ("text", "markdown", "latex", "html")},
    "fit": {"scores": ("probs",), "classes": (None,)},
}
"""Options of a function and good values of each; an attack puts another in their place."""


class Odd:
    """An object that is nothing in particular."""

    def __repr__(self) -> str:
        return "Odd()"


def _generator() -> Any:
    return (i for i in (0, 1))


SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, math.nan, math.inf, -math.inf, 1e-320, 10**30,
    -(10**30), 1 << 63, "", "auto", "\x1b[31m\u202e", "a\0b", b"x", 1j, Decimal("0.5"),
    Fraction(1, 3), [], (), {}, set(), [None], ["a"], [[]], {"a": 1}, Odd(), Odd, len,
    range(3), np.float64("nan"), np.int8(-1), np.array(0.5), np.ma.masked, slice(None),
    "x" * 3000, [0.5], "brier ", np.datetime64("2020"), memoryview(b"ab"), Ellipsis,
)  # fmt: skip


def _arrays(c: Choices, n: int, k: int) -> Any:
    """Something like an array, which may or may not do."""
    rng = np.random.default_rng(c.below(256))
    made = rng.random(n), rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)
    base: Any = c.one(made)
    change = c.below(26)
    changes: tuple[Callable[[], Any], ...] = (
        lambda: base,
        lambda: base[:-1],
        lambda: base[:0],
        lambda: base[:, None],
        lambda: base.astype(object),
        lambda: base.astype(complex),
        lambda: base.astype(str),
        lambda: base.astype("float16"),
        lambda: base.astype("longdouble"),
        lambda: base.astype(">f8"),
        lambda: np.array(base, order="F"),
        lambda: base[::-1],
        base.tolist,
        lambda: [base.tolist(), [1]],
        lambda: tuple(base.tolist()),
        lambda: np.ma.masked_array(base, mask=True),
        lambda: _with(base, c.one(EDGES), c),
        lambda: _with(base, math.nan, c),
        lambda: _with(base, math.inf, c),
        lambda: base.astype("M8[s]"),
        lambda: np.zeros((n, k, 2)),
        lambda: np.array([Odd()] * n),
        lambda: np.array([("a", 1)] * n, dtype=[("x", "U1"), ("y", int)]),
        lambda: np.full(n, c.one((2**53, 2**63 - 1, -(2**63)))),
        lambda: [c.one((None, "None", math.nan, "nan", "a", "a\0", 1, True, "1"))] * n,
        lambda: {i: x for i, x in enumerate(base)},  # noqa: C416
    )
    return changes[change]()


def _with(base: Any, value: float, c: Choices) -> Any:
    made = base.astype(float)
    made[c.below(len(made))] = value
    return made


ARRAYS = ("y", "probs", "logits", "confidence", "sample_weight", "frequency", "cluster",
          "group", "correct", "classes", "y_test", "loss", "explain", "features", "groups",
          "period", "true", "false", "answer", "question", "logprobs")  # fmt: skip
WORDS = (
    *ARRAYS, "scores", "label", "class", "target", "model", "evaluation", "frame", "sketch",
    "row", "option", "X has", "feature", "periods", "dates", "token",
)  # fmt: skip
"""Words by which a message may call the argument that is wrong."""


SAID = ("true", "answer", "logprobs")
BESIDE = ("sample_weight", "frequency", "cluster", "group", "classes", "target")
"""What most functions take, and those of what models say do not."""


def api_case(c: Choices, home: Path) -> Case:
    """A call of a public function."""
    function = c.one((*VERBS, *METRICS, *OTHERS, *ANSWERS))
    given, n, k = _good(c, function)
    options = OWN.get(function, {})
    said = {name: c.one(good) for name, good in options.items() if c.chance(60)}
    given |= said
    changed = [_attack(c, given, options, n, k) for _ in range(c.one((0, 1, 1, 2)))]
    few = function in ("find_slices", "grouping_loss", "loss_parts", "monitor")
    wrong = "?" if changed or said or few else ""  # options may contradict each other
    names = tuple({*WORDS, *given, *options, *OPTIONS, *changed})
    return Case(
        f"{function}",
        lambda: _called(function, given),
        names,
        lambda: f"{function}({_listed(given)})",
        wrong,
        lambda result: _objection(result, _used(function, given)),
        like=f"{said.get('interval', 'auto')}",
    )


def _listed(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in given.items())


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:400]}…"


def _good(c: Choices, function: str) -> tuple[dict[str, Any], int, int]:
    """Arguments that every function takes, and that are right."""
    rng = np.random.default_rng(c.below(256))
    n, k = c.between(6, 24), c.between(3, 4)
    probs, y = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)
    y[:k] = range(k)
    given: dict[str, Any] = {"y": y, "probs": probs}
    if function in ANSWERS:
        return _answers(rng, function, n), n, k
    if function == "evaluate_pairs":
        given = {"correct": y == 0, "confidence": probs[:, 0]}
    elif function in ONE_EVENT or (function not in OTHERS and c.chance(40)):
        given = {"y": (y == 0).astype(int), "probs": probs[:, 0]}
        if function in (
            "classwise_ece",
            "full_vector_ece",
            "canonical_calibration_error",
        ):
            given = {"y": y, "probs": probs}
    elif c.chance(60) and function != "fit":
        given = {"y": y, "logits": 3 * np.log(probs)}
    if function not in (*OTHERS, "logit_smoothed_ece", "monitor") and c.chance(30):
        given["sample_weight"] = rng.random(n) + 0.1
    return given | _beside(rng, function, n), n, k


def _answers(rng: np.random.Generator, function: str, n: int) -> dict[str, Any]:
    """What language models say of their answers."""
    if function == "p_true":
        return {"true": -rng.random(n), "false": -rng.random(n)}
    if function == "self_consistency":
        return {"answer": list("ab" * n)[:n], "question": [i // 3 for i in range(n)]}
    return {"logprobs": [(-rng.random(3)).tolist() for _ in range(n)]}


def _beside(rng: np.random.Generator, function: str, n: int) -> dict[str, Any]:
    """What a function asks for beside labels and scores."""
    name = {
        "grouping_loss": "explain",
        "loss_parts": "explain",
        "find_slices": "features",
        "compare_groups": "group",
        "multicalibration_error": "groups",
        "monitor": "period",
    }.get(function)
    if name is None:
        return {}
    if name in ("explain", "features"):
        return {name: rng.normal(size=(n, 2))}
    if name == "groups":
        return {name: {"a": rng.random(n) < 0.5, "b": np.ones(n, bool)}}
    letters = np.array(list("ab"))[rng.integers(0, 2, n)]
    return {name: np.sort(letters) if name == "period" else letters}


def _attack(
    c: Choices, given: dict[str, Any], options: dict[str, Any], n: int, k: int
) -> str:
    """Put something else in the place of an argument, or beside them."""
    more = () if given.keys() & set(SAID) else BESIDE
    name = c.one((*given, *given, *options, *more))
    if name in ARRAYS and c.chance(190):
        given[name] = _arrays(c, n, k)
    else:
        given[name] = c.one(SCALARS) if not c.chance(3) else _generator()
    return str(name)


def _called(function: str, given: dict[str, Any]) -> Any:
    import calibrant as cal
    from calibrant import recalibration

    given = dict(given)
    if function in (*VERBS, *METRICS, *ANSWERS, "study"):
        return getattr(cal, function)(**given)
    if function == "sketch":
        sketch = cal.Sketch(target=given.pop("target", "top-label"))
        return cal.evaluate(sketch.update(given.pop("y"), **given), interval=None)
    if function == "fit":
        own = {name: given.pop(name) for name in ("classes",) if name in given}
        given.pop("scores", None)
        y, probs, method = given.pop("y"), given.pop("probs"), METHODS[_number(given)]
        weight = {n: given[n] for n in ("sample_weight", "frequency") if n in given}
        fitted = getattr(recalibration, method)(scores="probs", **own).fit(
            probs, y, **weight
        )
        return fitted.predict_proba(probs)
    if function == "sketch_frame":
        table = _frame(given)
        names = [name for name in table.columns if name != "y"]
        return cal.evaluate(
            cal.sketch_frame(table, y="y", probs=names, target="top-label")
        )
    return _of_evaluation(cal, function, given)


def _frame(given: dict[str, Any]) -> Any:
    """A frame of labels and probabilities; what makes none is left as it was."""
    import pandas as pd

    try:
        table = pd.DataFrame(np.asarray(given["probs"]))
        table.columns = [f"p{i}" for i in range(table.shape[1])]
        return table.assign(y=np.asarray(given["y"]))
    except (ValueError, TypeError, KeyError):
        return pd.DataFrame({"p0": [0.5, 0.2], "p1": [0.5, 0.8], "y": [0, 1]})


def _number(given: dict[str, Any]) -> int:
    """Which method is fitted: as many as there are rows, so that it follows from them."""
    try:
        return len(given.get("frequency", given.get("sample_weight", "abc"))) % len(
            METHODS
        )
    except TypeError:
        return 0


def _of_evaluation(cal: Any, function: str, given: dict[str, Any]) -> Any:
    own = {n: given.pop(n) for n in [*OWN[function]] if n in given}
    rows = {n: given[n] for n in ("y", "probs", "logits") if n in given}
    if function == "paper_spread":
        own.setdefault("size", 5)
    ev = cal.evaluate(**rows, interval=None, target="top-label", name="a")
    if function == "compare":
        return cal.compare(
            ev, cal.evaluate(**rows, interval=None, target="top-label", name="b"), **own
        )
    if function == "table":
        return str(cal.table.table(ev, **own))
    return cal.paper_spread(ev, **own)


def _used(function: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that are handed on: a frame is of labels and probabilities only."""
    kept = ("y", "probs") if function == "sketch_frame" else given
    return {name: given[name] for name in kept if name in given}


def _objection(result: Any, given: dict[str, Any]) -> str:
    """What is wrong with a result: a number that cannot be, groups that merged."""
    from calibrant import Evaluation

    if isinstance(result, Evaluation):
        return evaluation_objection(result) or _merged(result, given)
    if isinstance(result, np.ndarray) and result.ndim == 2:
        return probability_objection(result)
    return ""


def _merged(ev: Any, given: dict[str, Any]) -> str:
    """Groups told apart by Python that the evaluation has thrown together."""
    group = given.get("group")
    if not isinstance(group, list) or ev.per_group is None:
        return ""
    told = {repr(x) for x in group}
    return "" if len(ev.per_group) >= len(told) else f"{len(told)} groups became fewer"


def probability_objection(made: Any) -> str:
    """Whether rows are probabilities."""
    if not np.all((made >= 0) & (made <= 1)):
        return "probabilities beyond 0 and 1, or NaN"
    sums = made.sum(axis=1, dtype=float)
    return (
        "" if np.allclose(sums, 1, atol=1e-3) else "probabilities that do not sum to 1"
    )


RANGES = {"accuracy": (0, 1), "brier": (0, 2), "nll": (0, math.inf), "ece": (0, 1)}


def evaluation_objection(ev: Any) -> str:
    """A number of an evaluation that cannot be."""
    for name, (low, high) in RANGES.items():
        value = ev.metrics.get(name)
        if value is not None and not low <= value <= high:
            return f"{name} is {value:g}"
    for name, value in ev.metrics.items():
        ends = value.interval
        if ends is not None and not math.isnan(value) and not ends[0] <= ends[1]:
            return f"the interval of {name} is {ends}"
    parts = ev.decomposition
    if not math.isfinite(parts.calibration) and "n/a" not in str(ev):
        return f"d_CAL is {parts.calibration:g}, and print does not say so"
    return ""
