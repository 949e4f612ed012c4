"""Cases whose results were frozen with version 0.1.0, when the package was `acumen`.

A case is a function of the package (`cal`) and an empty folder, which is also the
working directory. It returns what JSON can hold. The same code runs with the old and
with the new package: `spelled` translates keywords, `part_of` finds submodules.

Data come from fixed seeds. What a case returns depends neither on the clock, nor on
paths, nor on the width of the terminal, nor on what was built: NumPy does the work unless
the case asks for compiled loops, which were numba's when it was frozen.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import importlib
import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

# -- what a case is -------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A function whose result is frozen, and the optional packages it needs."""

    name: str
    function: Callable[[ModuleType, Path], Any]
    needs: tuple[str, ...] = ()
    compiled: bool = False


CASES: dict[str, Case] = {}


def add(
    name: str, function: Callable[..., Any], *needs: str, compiled: bool = False
) -> None:
    """Enter a case; a name is used once."""
    if name in CASES:
        raise ValueError(f"two cases are called {name!r}.")
    CASES[name] = Case(name, function, needs, compiled)


def case(*needs: str, compiled: bool = False) -> Callable[..., Any]:
    """Enter the decorated function under its own name."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        add(function.__name__, function, *needs, compiled=compiled)
        return function

    return enter


def run(name: str, cal: ModuleType, folder: Path) -> Any:
    """The result of a case, as plain data."""
    found = CASES[name]
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(same_surroundings())
        stack.enter_context(by_engine("compiled" if found.compiled else "numpy"))
        return plain(found.function(cal, folder))


def same_surroundings() -> contextlib.AbstractContextManager[None]:
    """Environment variables that results could depend on, set for a while."""
    fixed = {
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "MPLBACKEND": "Agg",
        "ACUMEN_THREADS": "2",
        "CALIBRANT_THREADS": "2",
    }
    return environment(fixed)


def by_engine(name: str) -> contextlib.AbstractContextManager[None]:
    """What "auto" stands for, for a while."""
    return environment({"CALIBRANT_ENGINE": name})


@contextlib.contextmanager
def environment(fixed: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a while."""
    before = {name: os.environ.get(name) for name in fixed}
    os.environ.update(fixed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# -- plain data -----------------------------------------------------------------------

LONG = 48
"""Lists of more numbers than this are thinned: some of them, sums and counts."""

PICKED = 16


def plain(value: Any) -> Any:
    """What JSON can hold; NaN and infinities are words."""
    if type(value) is float:  # nearly all of them are
        return value if isfinite(value) else str(value)
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return plain(float(value))
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"{type(value).__name__} is not plain.")


def brief(value: Any) -> Any:
    """Plain data whose long lists of numbers are thinned."""
    return _brief(plain(value))


def _brief(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _brief(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > LONG and all(_is_number(item) for item in value):
        return _thinned(value)
    return [_brief(item) for item in value]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or value in ("nan", "inf", "-inf")


def _thinned(values: list[Any]) -> dict[str, Any]:
    """Some of the numbers, and sums that notice a change in any other."""
    words = [x for x in values if isinstance(x, str)]
    finite = np.array([x for x in values if not isinstance(x, str)], float)
    return {
        "length": len(values),
        "picked": values[:: -(-len(values) // PICKED)],
        "last": values[-1],
        "sum of sizes": float(np.abs(finite).sum()),
        "sum of squares": float((finite**2).sum()),
        "sum by place": float((np.abs(finite) * np.arange(1, len(finite) + 1)).sum()),
        "words": {word: words.count(word) for word in sorted(set(words))},
    }


def without_times(value: Any) -> Any:
    """Plain data without what a clock measured."""
    if isinstance(value, dict):
        kept = {k: x for k, x in value.items() if k not in CLOCKED}
        return {key: without_times(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value


CLOCKED = ("fit_seconds", "apply_seconds")


def untimed(text: str) -> str:
    """A text whose column of seconds is blotted out."""
    lines, inside = [], False
    for line in text.split("\n"):
        inside = line.endswith("fit (s)") or (inside and bool(line))
        lines.append(re.sub(r" *\d+\.\d+$", " ?", line) if inside else line)
    return "\n".join(lines)


def record(value: Any) -> Any:
    """A result, thinned, without times."""
    return _brief(without_times(plain(value)))


# -- both packages --------------------------------------------------------------------

SYNONYMS = {
    "y": ("labels", "label"),
    "label": ("y", "labels"),
    "weight": ("sample_weight", "weights"),
    "objective": ("divergence",),
}
"""Keywords as they were in 0.1.0 (or before), and what they may be called now."""


def spelled(function: Callable[..., Any], **keywords: Any) -> dict[str, Any]:
    """The keywords as this function spells them."""
    known = inspect.signature(function).parameters
    return {_spelling(name, known): value for name, value in keywords.items()}


def _spelling(name: str, known: Mapping[str, Any]) -> str:
    """The first of a name and its synonyms that is known; else the name itself.

    Weights counted rows in 0.1.0; what counts them now is called frequency.
    """
    if name in ("weight", "sample_weight") and "frequency" in known:
        return "frequency"
    return next((x for x in (name, *SYNONYMS.get(name, ())) if x in known), name)


def call(function: Callable[..., Any], *given: Any, **keywords: Any) -> Any:
    """Call a function with keywords as it spells them."""
    return function(*given, **spelled(function, **keywords))


def part_of(cal: ModuleType, name: str) -> ModuleType:
    """A public submodule of the package."""
    return importlib.import_module(f"{cal.__name__}.{name}")


def as_old_names(saved: Any) -> Any:
    """A saved recalibrator with its parameters as 0.1.0 called them."""
    parameters = saved["parameters"]
    if saved["method"] == "TemperatureScaling" and "divergence" in parameters:
        parameters["objective"] = parameters.pop("divergence")
    return saved


# -- data -----------------------------------------------------------------------------


def softmax(z: np.ndarray) -> np.ndarray:
    """Probabilities of logits."""
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def many(n: int, k: int, seed: int, sure: float = 2.0) -> tuple[Any, Any]:
    """Labels and logits of an over-confident model of k classes."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=(n, k))
    return (z + rng.gumbel(size=z.shape)).argmax(axis=1), sure * z


def forecasts(n: int, seed: int) -> tuple[Any, Any]:
    """Outcomes, and forecasts of the positive class that are a little off."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    return (rng.random(n) < p**1.3).astype(int), p


def answers(n: int, seed: int) -> tuple[Any, Any]:
    """Whether answers were right, and the stated confidences."""
    rng = np.random.default_rng(seed)
    h = rng.beta(4, 1, n)
    return rng.random(n) < 0.2 + 0.7 * h, h


def weights(n: int, seed: int) -> np.ndarray:
    """Frequency weights, some of them 0."""
    return np.random.default_rng([seed, 1]).integers(0, 4, n).astype(float)


def clusters(n: int, seed: int) -> np.ndarray:
    """A cluster for each row."""
    return np.random.default_rng([seed, 2]).integers(0, max(2, n // 8), n)


def groups(n: int, seed: int) -> np.ndarray:
    """A group for each row."""
    return np.random.default_rng([seed, 3]).choice(["north", "south", "west"], n)


def soft_labels(n: int, k: int, seed: int) -> np.ndarray:
    """Shares of classes for each row."""
    return np.random.default_rng([seed, 4]).dirichlet(np.full(k, 0.5), n)


def own_divergence(cal: ModuleType) -> Any:
    """A divergence that is not built in, registered."""
    made = cal.Divergence(
        "cubic",
        phi=lambda x: (x**3).sum(axis=1),
        gradient=lambda x: 3 * x**2,
        phi_1d=lambda p: p**3,
        derivative_1d=lambda p: 3 * p**2,
    )
    return cal.register_divergence(made)


def name_of(index: Any) -> np.ndarray:
    """Names of classes 0, 1, ..."""
    return np.array(["ant", "bee", "cow", "dog"])[index]


# -- evaluations of k classes ---------------------------------------------------------


def of_classes(
    n: int, k: int, scores: str, dtype: str = "float64", **options: Any
) -> Any:
    """A case that evaluates k classes and gives the whole record, thinned."""

    def evaluate(cal: ModuleType, _: Path) -> Any:
        y, z = many(n, k, seed=n + k)
        given = (z if scores == "logits" else softmax(z)).astype(dtype)
        keywords = {key: _made(value, n, k) for key, value in options.items()}
        y = keywords.pop("soft", y)
        return record(call(cal.evaluate, y, **{scores: given}, **keywords))

    return evaluate


def _made(value: Any, n: int, k: int) -> Any:
    """An option, made for n rows and k classes if it is a function."""
    if value is soft_labels:
        return value(n, k, 7)
    return value(n, 7) if callable(value) else value


OF_CLASSES: dict[str, Callable[..., Any]] = {
    "logits_2": of_classes(400, 2, "logits", target="top-label"),
    "logits_3": of_classes(2000, 3, "logits"),
    "logits_10": of_classes(2000, 10, "logits"),
    "logits_100": of_classes(2000, 100, "logits"),
    "probs_2": of_classes(400, 2, "probs", target="top-label"),
    "probs_3": of_classes(2000, 3, "probs"),
    "probs_10": of_classes(2000, 10, "probs"),
    "probs_100": of_classes(500, 100, "probs"),
    "rows_1": of_classes(1, 3, "probs"),
    "rows_5": of_classes(5, 3, "probs"),
    "rows_50": of_classes(50, 3, "logits"),
    "rows_50000": of_classes(50_000, 10, "logits"),
    "rows_50000_probs": of_classes(50_000, 4, "probs"),
    "float16": of_classes(1000, 5, "logits", "float16"),
    "float32": of_classes(1000, 5, "logits", "float32"),
    "float32_probs": of_classes(1000, 5, "probs", "float32"),
    "float16_probs": of_classes(1000, 5, "probs", "float16"),
    "positive_2": of_classes(1000, 2, "logits", target="positive"),
    "positive_2_probs": of_classes(1000, 2, "probs", target="positive"),
    "class_wise_3": of_classes(1000, 3, "logits", target="class-wise"),
    "class_wise_10": of_classes(600, 10, "probs", target="class-wise"),
    "class_wise_log": of_classes(
        600, 3, "probs", target="class-wise", divergence="log", bandwidth=0.1
    ),
    "soft": of_classes(800, 4, "probs", soft=soft_labels),
    "soft_logits": of_classes(
        800, 4, "logits", soft=soft_labels, sample_weight=weights
    ),
    "soft_class_wise": of_classes(
        400, 3, "probs", soft=soft_labels, target="class-wise"
    ),
    "weights": of_classes(1000, 4, "logits", sample_weight=weights),
    "weights_class_wise": of_classes(
        500, 3, "probs", sample_weight=weights, target="class-wise"
    ),
    "clusters": of_classes(1000, 4, "logits", cluster=clusters),
    "clusters_weights": of_classes(
        1000, 4, "logits", cluster=clusters, sample_weight=weights
    ),
    "groups": of_classes(900, 4, "logits", group=groups),
    "groups_all": of_classes(
        900, 3, "probs", group=groups, cluster=clusters, sample_weight=weights
    ),
    "log": of_classes(1000, 4, "logits", divergence="log"),
    "log_bandwidth": of_classes(1000, 4, "logits", divergence="log", bandwidth=0.05),
    "tight": of_classes(1000, 4, "logits", counterpart="tight"),
    "tight_bandwidth": of_classes(
        1000, 4, "probs", counterpart="tight", bandwidth=0.05
    ),
    "paper": of_classes(2000, 4, "logits", preset="paper"),
    "paper_log": of_classes(2000, 4, "probs", preset="paper", divergence="log"),
    "bins_7_left": of_classes(700, 3, "logits", bins=7, closed="left"),
    "bins_100": of_classes(700, 3, "logits", bins=100),
    "bins_1": of_classes(700, 3, "probs", bins=1),
    "no_interval": of_classes(1000, 4, "logits", interval=None),
    "level_resamples_seed": of_classes(
        1000, 4, "logits", level=0.8, resamples=200, rng=5
    ),
    "numpy": of_classes(3000, 6, "logits", engine="numpy"),
}

for _name, _function in OF_CLASSES.items():
    add(f"evaluate_{_name}", _function)

for _kernel in ("gaussian", "epanechnikov"):
    for _boundary in ("none", "reflect"):
        for _estimator in ("direct", "plugin"):
            add(
                f"evaluate_{_kernel}_{_boundary}_{_estimator}",
                of_classes(
                    800,
                    3,
                    "logits",
                    bandwidth=0.07,
                    kernel=_kernel,
                    boundary=_boundary,
                    estimator=_estimator,
                ),
            )

add("numba_logits", of_classes(3000, 6, "logits", engine="compiled"), compiled=True)
add("numba_probs", of_classes(3000, 6, "probs", engine="compiled"), compiled=True)
add(
    "numba_float32_weights",
    of_classes(3000, 6, "logits", "float32", engine="compiled", sample_weight=weights),
    compiled=True,
)
add(
    "numba_log_soft",
    of_classes(800, 4, "probs", soft=soft_labels, divergence="log", engine="compiled"),
    compiled=True,
)


@case()
def evaluate_own_divergence(cal: ModuleType, _: Path) -> Any:
    """A registered divergence by its name, adaptive and at a bandwidth."""
    own_divergence(cal)
    y, z = many(800, 4, seed=3)
    found = [
        cal.evaluate(y, logits=z, divergence="cubic", bandwidth=b)
        for b in ("auto", 0.05)
    ]
    return [record(ev) for ev in found]


@case()
def evaluate_whole_record(cal: ModuleType, _: Path) -> Any:
    """Every number of one evaluation, not thinned."""
    y, z = many(1500, 3, seed=11)
    return cal.evaluate(y, logits=z, name="whole", interval=None)


@case()
def evaluate_named_classes(cal: ModuleType, _: Path) -> Any:
    """Labels that are names."""
    y, z = many(500, 4, seed=12)
    names = ["ant", "bee", "cow", "dog"]
    return record(cal.evaluate(name_of(y), logits=z, classes=names, name="zoo"))


@case()
def evaluate_few_confidences(cal: ModuleType, _: Path) -> Any:
    """Ties: six distinct confidences, and one alone."""
    rng = np.random.default_rng(13)
    h = rng.choice([0.4, 0.5, 0.6, 0.75, 0.9, 1.0], 600)
    a = rng.random(600) < h * 0.9
    same = cal.evaluate_pairs(a, np.full(600, 0.7), name="one")
    return [record(cal.evaluate_pairs(a, h, name="six")), record(same)]


@case()
def evaluate_ends(cal: ModuleType, _: Path) -> Any:
    """Probabilities of exactly 0 and 1, right and wrong: an infinite log loss."""
    y, z = many(300, 3, seed=14)
    p = softmax(z)
    p[:40] = np.eye(3)[y[:40]]
    right = cal.evaluate(y, probs=p, divergence="log", name="right")
    p[:3] = np.eye(3)[(y[:3] + 1) % 3]
    wrong = [
        cal.evaluate(y, probs=p, divergence=d, bandwidth=b, name="wrong")
        for d, b in (("log", "auto"), ("brier", "auto"), ("log", 0.05))
    ]
    return [record(ev) for ev in (right, *wrong)]


@case()
def evaluate_infinite_logits(cal: ModuleType, _: Path) -> Any:
    """Logits of minus infinity, one of them of the true class."""
    y, z = many(200, 3, seed=15)
    z[np.arange(20), (y[:20] + 1) % 3] = -np.inf
    z[20, y[20]] = -np.inf
    return record(cal.evaluate(y, logits=z))


@case()
def evaluate_positive(cal: ModuleType, _: Path) -> Any:
    """Forecasts of one class: probabilities, logits, with weights and clusters."""
    y, p = forecasts(1200, seed=16)
    z = np.log(p) - np.log1p(-p)
    w, c = weights(1200, 16), clusters(1200, 16)
    found = (
        cal.evaluate(y, probs=p),
        cal.evaluate(y, logits=z, divergence="log"),
        call(cal.evaluate, y, probs=p, sample_weight=w, cluster=c),
        cal.evaluate(y, probs=p, target="top-label"),
        cal.evaluate(y, probs=p, bandwidth=0.03, boundary="reflect"),
    )
    return [record(ev) for ev in found]


@case()
def evaluate_soft_positive(cal: ModuleType, _: Path) -> Any:
    """Shares in place of outcomes."""
    share = np.random.default_rng(17).beta(2, 2, (300, 1))
    soft = np.concatenate([1 - share, share], axis=1)
    _, z = many(300, 2, seed=17)
    return record(cal.evaluate(soft, logits=z, target="positive"))


def of_pairs(n: int, **options: Any) -> Callable[..., Any]:
    """A case that evaluates pairs."""

    def evaluate(cal: ModuleType, _: Path) -> Any:
        keywords = {key: _made(value, n, 2) for key, value in options.items()}
        return record(call(cal.evaluate_pairs, *answers(n, seed=n), **keywords))

    return evaluate


OF_PAIRS = {
    "plain": of_pairs(2000),
    "rows_1": of_pairs(1),
    "rows_5": of_pairs(5),
    "rows_50": of_pairs(50),
    "rows_50000": of_pairs(50_000, interval=None),
    "log": of_pairs(500, divergence="log"),
    "all_options": of_pairs(
        600, sample_weight=weights, cluster=clusters, group=groups, bins=10, level=0.9
    ),
    "epanechnikov": of_pairs(
        500,
        bandwidth=0.1,
        kernel="epanechnikov",
        estimator="plugin",
        boundary="reflect",
    ),
    "paper": of_pairs(500, preset="paper"),
    "left": of_pairs(500, closed="left", bins=4),
}

for _name, _function in OF_PAIRS.items():
    add(f"pairs_{_name}", _function)


@case()
def pairs_of_shares(cal: ModuleType, _: Path) -> Any:
    """Correctness between 0 and 1."""
    rng = np.random.default_rng(18)
    h = rng.beta(3, 1, 400)
    return record(cal.evaluate_pairs(rng.beta(8 * h + 0.1, 8 * (1 - h) + 0.1), h))


@case()
def evaluation_back_from_json(cal: ModuleType, _: Path) -> Any:
    """What is written is read again."""
    ev = _three_models(cal)[0]
    back = cal.Evaluation.from_json(ev.to_json())
    return [record(back), str(back), repr(back)]


# -- several models -------------------------------------------------------------------


def _three_models(cal: ModuleType, **options: Any) -> list[Any]:
    """Three models of the same rows: over-confident, fair, and trivial."""
    n = 900
    y, z = many(n, 4, seed=21)
    z = z.copy()
    keywords = {key: _made(value, n, 4) for key, value in options.items()}
    noise = np.random.default_rng(22).normal(scale=0.7, size=z.shape)
    constant = np.full((n, 4), 0.2)
    constant[np.arange(n), z.argmax(axis=1)] = 0.4
    return [
        call(cal.evaluate, y, logits=z, name="sure", **keywords),
        call(cal.evaluate, y, logits=z / 2 + noise, name="fair", **keywords),
        call(cal.evaluate, y, probs=constant, name="flat", **keywords),
    ]


def _told(found: Any) -> dict[str, Any]:
    """Differences, sentences, text and findings of a comparison."""
    whole = record(found)
    del whole["evaluations"]
    return {
        "numbers": whole,
        "sentences": list(found.sentences),
        "text": str(found),
        "findings": [record(finding) for finding in found.audit()],
    }


@case()
def compare_two(cal: ModuleType, _: Path) -> Any:
    """Two models on the same rows."""
    return _told(cal.compare(*_three_models(cal)[:2]))


@case()
def compare_three_whole(cal: ModuleType, _: Path) -> Any:
    """Three models, with the record of each."""
    return record(cal.compare(*_three_models(cal)))


@case()
def compare_baseline_level(cal: ModuleType, _: Path) -> Any:
    """Another baseline and another level."""
    return _told(cal.compare(*_three_models(cal), baseline="fair", level=0.9))


@case()
def compare_clusters(cal: ModuleType, _: Path) -> Any:
    """Rows in clusters."""
    return _told(cal.compare(*_three_models(cal, cluster=clusters)))


@case()
def compare_weights(cal: ModuleType, _: Path) -> Any:
    """Weighted rows."""
    return _told(cal.compare(*_three_models(cal, sample_weight=weights)))


@case()
def compare_weights_clusters_log(cal: ModuleType, _: Path) -> Any:
    """Weighted rows in clusters, log divergence."""
    options = {"sample_weight": weights, "cluster": clusters, "divergence": "log"}
    return _told(cal.compare(*_three_models(cal, **options)))


@case()
def compare_bandwidth(cal: ModuleType, _: Path) -> Any:
    """The paper's estimate."""
    return _told(cal.compare(*_three_models(cal, bandwidth=0.05)))


@case()
def compare_four_pairs(cal: ModuleType, _: Path) -> Any:
    """Four models that give confidences."""
    a, h = answers(700, seed=23)
    models = [
        cal.evaluate_pairs(a, h**power, name=f"power {power}")
        for power in (1, 2, 3, 0.5)
    ]
    return _told(cal.compare(*models))


@case()
def compare_unpaired(cal: ModuleType, _: Path) -> Any:
    """Models of other rows."""
    models = [
        cal.evaluate_pairs(*answers(n, seed=n), name=f"of {n}") for n in (300, 500)
    ]
    return _told(cal.compare(*models, paired=False))


@case()
def compare_positive(cal: ModuleType, _: Path) -> Any:
    """Forecasts of one class."""
    y, p = forecasts(600, seed=24)
    models = [cal.evaluate(y, probs=p**x, name=f"power {x}") for x in (1, 1.3, 2)]
    return _told(cal.compare(*models))


@case()
def comparison_best(cal: ModuleType, _: Path) -> Any:
    """The best model by several columns, and the frame as columns."""
    found = cal.Comparison(tuple(_three_models(cal)))
    by = ("brier", "nll", "accuracy", "ece", "calibration", "smooth_ece")
    frame = found.frame()
    return {
        "best": {key: found.best(key).name for key in by},
        "frame": {name: list(frame[name]) for name in frame.columns},
        "html": found._repr_html_(),
    }


# -- studies --------------------------------------------------------------------------


def _study(cal: ModuleType, **options: Any) -> Any:
    """A study of 600 rows of three classes."""
    y, z = many(600, 3, seed=31, sure=3.0)
    given = options.pop("given", {"logits": z})
    return call(cal.study, y, **given, **options)


def _of_study(found: Any) -> dict[str, Any]:
    """The numbers of a study, its text and what was learned."""
    return {
        "numbers": record(found),
        "findings": [record(finding) for finding in found.audit()],
        "text": untimed(str(found)),
        "table": found.table("text"),
        "intervals": found.table("markdown", intervals=True),
    }


@case()
def study_split(cal: ModuleType, _: Path) -> Any:
    """One set of rows, part of it to fit on."""
    return _of_study(_study(cal, split=0.4))


@case()
def study_folds(cal: ModuleType, _: Path) -> Any:
    """Cross-fitting."""
    return _of_study(_study(cal, folds=4, methods=["temperature", "vector"]))


@case()
def study_all_methods(cal: ModuleType, _: Path) -> Any:
    """Every method, without intervals."""
    found = _study(cal, split=0.5, methods="all", interval=None)
    return _of_study(found)


@case()
def study_paper(cal: ModuleType, _: Path) -> Any:
    """As published, on the first rows."""
    return _of_study(_study(cal, preset="paper", rng=None))


@case()
def study_test_rows_weights(cal: ModuleType, _: Path) -> Any:
    """Two sets of rows, with weights, of probabilities."""
    y, z = many(600, 3, seed=32, sure=3.0)
    p, w = softmax(z), weights(600, 32)
    found = call(
        cal.study,
        y[:300],
        y[300:],
        probs=(p[:300], p[300:]),
        sample_weight=(w[:300], w[300:]),
        divergence="log",
    )
    return _of_study(found)


@case()
def study_positive(cal: ModuleType, _: Path) -> Any:
    """Forecasts of one class."""
    y, p = forecasts(500, seed=33)
    return _of_study(cal.study(y, probs=p, split=0.4, methods=["platt", "beta"]))


@case()
def study_named_methods(cal: ModuleType, _: Path) -> Any:
    """Recalibrators and names of one's own."""
    made = cal.recalibration.HistogramBinning(bins=5, mode="top-label")
    methods = {"five bins": made, "T": "temperature"}
    found = _study(cal, split=0.5, methods=methods, interval=None)
    return [list(found.names), record(found.effects), record(found)]


# -- metrics --------------------------------------------------------------------------

METRICS: dict[str, tuple[dict[str, Any], ...]] = {
    "accuracy": ({},),
    "ace": ({}, {"bins": 7, "closed": "left"}),
    "auroc": ({},),
    "brier": ({},),
    "calibration_error": (
        {},
        {"divergence": "log"},
        {"bandwidth": 0.05},
        {"bandwidth": 0.1, "kernel": "epanechnikov", "boundary": "reflect"},
        {"bandwidth": 0.1, "estimator": "plugin", "divergence": "log"},
    ),
    "calibration_bracket": ({}, {"divergence": "log", "folds": 3, "rng": 2}),
    "calibration_test": (
        {},
        {"method": "ks"},
        {"method": "spiegelhalter"},
        {"method": "bootstrap", "resamples": 200},
        {"law": "simulated", "resamples": 300, "rng": 4},
        {"method": "ks", "law": "asymptotic"},
    ),
    "choose_bandwidth": ({}, {"candidates": [0.02, 0.05, 0.1, 0.3]}),
    "confidence_gap": ({},),
    "confidence_split": ({}, {"bandwidth": 0.05}, {"divergence": "log", "level": 0.8}),
    "corp": ({}, {"divergence": "log"}),
    "ece": (
        {},
        {"bins": 10, "strategy": "mass"},
        {"norm": 2, "debias": True},
        {"norm": "max"},
        {"bins": "cube-root", "closed": "left"},
        {"bins": "sweep", "strategy": "mass"},
    ),
    "ks_error": ({},),
    "logit_smoothed_ece": ({}, {"bandwidth": 0.5}),
    "mce": ({}, {"strategy": "mass"}),
    "nll": ({},),
    "smooth_ece": ({}, {"bandwidth": 0.1}, {"compat": "relplot"}),
}
OF_ROWS = {
    "canonical_calibration_error": ({}, {"divergence": "log", "rng": 3}),
    "classwise_ece": ({}, {"reduce": "none", "strategy": "mass"}, {"norm": 2}),
    "full_vector_ece": ({}, {"bins": 3}),
    "top_label_ece": ({}, {"reduce": "mean"}, {"bins": 5, "closed": "left"}),
}
"""Options that each metric is tried with; the last ones need a row per class."""


def metric(name: str, options: tuple[dict[str, Any], ...], *, rows: bool) -> Any:
    """A case that calls a metric with each of its options on several sets of rows."""

    def measure(cal: ModuleType, _: Path) -> Any:
        function = getattr(cal, name)
        found = []
        for y, given in _given(rows=rows):
            for more in options:
                result = call(function, y, **given, **more)
                numbers = record(result)
                text = str(result) if isinstance(numbers, dict) else ""
                found.append([numbers, text])
        return found

    return measure


def _given(*, rows: bool) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Sets of rows that metrics are tried on."""
    y, z = many(500, 3, seed=41)
    yield y, {"logits": z}
    yield y, {"probs": softmax(z), "sample_weight": weights(500, 41)}
    yield name_of(y[:60]), {"logits": z[:60], "classes": ["ant", "bee", "cow"]}
    if rows:
        return
    y, p = forecasts(400, seed=42)
    yield y, {"probs": p}
    a, h = answers(300, seed=43)
    yield a, {"confidence": np.round(h, 2)}


for _name, _options in METRICS.items():
    add(f"metric_{_name}", metric(_name, _options, rows=False))
for _name, _options in OF_ROWS.items():
    add(f"metric_{_name}", metric(_name, _options, rows=True))


@case()
def metric_names(cal: ModuleType, _: Path) -> Any:
    """Every public function has a case."""
    called = {"evaluate", "evaluate_pairs", "compare", "study", "sketch_frame"}
    called |= {"register_divergence", *METRICS, *OF_ROWS}
    return {name: hasattr(cal, name) for name in sorted(called)}


@case()
def metric_bracket_clusters(cal: ModuleType, _: Path) -> Any:
    """The bracket of rows in clusters, and of pairs of whole weights."""
    y, z = many(400, 3, seed=44)
    found = call(cal.calibration_bracket, y, logits=z, cluster=clusters(400, 44))
    a, h = answers(400, seed=45)
    w = weights(400, 45)
    other = call(cal.calibration_bracket, a, confidence=h, sample_weight=w)
    return [record(found), str(found), record(other), str(other)]


@case()
def metric_of_certain_rows(cal: ModuleType, _: Path) -> Any:
    """Metrics where confidences are 0 and 1, and some of them wrong."""
    a, h = answers(200, seed=46)
    h = np.where(h > 0.9, 1.0, h)
    h[:2], a[:2] = 0.0, True
    names = [x for x in METRICS if x not in ("choose_bandwidth", "calibration_bracket")]
    return {name: record(getattr(cal, name)(a, confidence=h)) for name in names}


@case()
def divergence_of_ones_own(cal: ModuleType, _: Path) -> Any:
    """The methods of a divergence."""
    made = own_divergence(cal)
    rng = np.random.default_rng(47)
    x, y = rng.dirichlet(np.ones(3), (2, 5))
    labels, z = many(300, 3, seed=48)
    return {
        "dominates": made.dominates,
        "between": made.between(x, y),
        "of labels": made.of_labels(x, np.array([0, 1, 2, 0, 1])),
        "on unit": made.on_unit(x[:, 0], y[:, 0]),
        "curvature": made.curvature_1d(x[:, 1]),
        "error": cal.calibration_error(labels, logits=z, divergence=made),
    }


# -- recalibration --------------------------------------------------------------------

RECALIBRATORS: dict[str, tuple[dict[str, Any], ...]] = {
    "BetaCalibration": ({}, {"smoothing": 0.5}),
    "DirichletCalibration": ({}, {"off_diagonal": 5.0}),
    "EnsembleTemperatureScaling": ({},),
    "HistogramBinning": (
        {},
        {"bins": 6, "strategy": "mass"},
        {"mode": "top-label", "smoothing": 1.0},
        {"compat": "netcal"},
    ),
    "Identity": ({},),
    "IsotonicCalibration": (
        {},
        {"mode": "top-label"},
        {"smoothing": 1.0},
        {"compat": "netcal"},
    ),
    "MatrixScaling": ({}, {"off_diagonal": 5.0, "intercept": 2.0}),
    "MeanReplacement": ({},),
    "PlattScaling": ({}, {"smoothing": 0.0}),
    "TemperatureScaling": ({}, {"objective": "brier"}, {"bounds": (0.5, 1.5)}),
    "VectorScaling": ({}, {"diagonal": 3.0}),
}


def recalibrator(name: str, **more: Any) -> Callable[..., Any]:
    """A case that fits a recalibrator in several ways, applies and saves it."""

    def fit(cal: ModuleType, folder: Path) -> Any:
        make = getattr(cal.recalibration, name)
        return [
            _fitted(cal, call(make, scores=kind, **options, **more), *rows)
            for options in RECALIBRATORS[name]
            for kind, rows in _to_fit().items()
        ]

    return fit


def _to_fit() -> dict[str, tuple[Any, Any, Any]]:
    """Scores, labels and weights to fit on, by kind of score."""
    y, z = many(300, 3, seed=51, sure=3.0)
    return {"logits": (z, y, None), "probs": (softmax(z), y, weights(300, 51))}


def _fitted(cal: ModuleType, made: Any, scores: Any, y: Any, weight: Any) -> Any:
    """What a recalibrator gives for four rows, and its file."""
    made.fit(scores, y, **spelled(made.fit, sample_weight=weight))
    Path("saved.json").unlink(missing_ok=True)  # save replaces nothing
    made.save("saved.json")
    saved = json.loads(Path("saved.json").read_text(encoding="utf-8"))
    again = cal.recalibration.load("saved.json")
    kind, given = made.recalibrate(scores[:4])
    return {
        "probabilities": made.predict_proba(scores[:4]),
        "loaded": again.predict_proba(scores[4:8]),
        "kind": kind,
        "scores": given,
        "score": made.score(scores, y),
        "predicted": made.predict(scores[:4]),
        "notes": made.notes_,
        "saved": brief(as_old_names(saved)),
    }


for _name in RECALIBRATORS:
    add(f"recalibrator_{_name}", recalibrator(_name))
for _name in (
    "TemperatureScaling",
    "EnsembleTemperatureScaling",
    "HistogramBinning",
    "IsotonicCalibration",
):
    add(f"numba_{_name}", recalibrator(_name, engine="compiled"), compiled=True)


@case()
def recalibrators_of_one_column(cal: ModuleType, _: Path) -> Any:
    """Binary problems given by one column, and names of classes."""
    y, p = forecasts(300, seed=52)
    names = (
        "TemperatureScaling",
        "PlattScaling",
        "BetaCalibration",
        "HistogramBinning",
    )
    names = (*names, "IsotonicCalibration", "MeanReplacement", "VectorScaling")
    made = {name: getattr(cal.recalibration, name)(scores="probs") for name in names}
    return {
        name: one.fit(p, np.array(["no", "yes"])[y]).predict_proba(p[:4])
        for name, one in made.items()
    }


@case()
def recalibrators_of_float32(cal: ModuleType, _: Path) -> Any:
    """Scores in single precision."""
    y, z = many(300, 3, seed=53, sure=3.0)
    z = z.astype(np.float32)
    found = {}
    for name in RECALIBRATORS:
        fitted = getattr(cal.recalibration, name)().fit(z, y)
        given = fitted.predict_proba(z[:3])
        found[name] = [str(given.dtype), given.astype(float)]
    return found


@case("sklearn")
def recalibrated_classifier(cal: ModuleType, _: Path) -> Any:
    """A classifier of scikit-learn with a recalibrator behind it."""
    bayes = importlib.import_module("sklearn.naive_bayes").GaussianNB()
    rng = np.random.default_rng(54)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 4)) + y[:, None] * [1.0, 0.5, 0.0, -0.5]
    method = cal.recalibration.TemperatureScaling(scores="probs")
    made = cal.recalibration.RecalibratedClassifier(bayes, method, cv=3).fit(X, y)
    return [made.predict_proba(X[:5]), made.predict(X[:5]), made.score(X, y)]


# -- words, tables, pages, figures ----------------------------------------------------


def _shown(cal: ModuleType) -> dict[str, Any]:
    """Models of every kind that there is something to say about."""
    y, z = many(500, 3, seed=61)
    a, h = answers(400, seed=62)
    outcome, p = forecasts(300, seed=63)
    certain = softmax(z)
    certain[:5] = np.eye(3)[(y[:5] + 1) % 3]
    constant = np.full(400, 0.8)
    return {
        "classes": cal.evaluate(y, logits=z, name="net"),
        "paper": cal.evaluate(y, logits=z, name="published", preset="paper"),
        "log": cal.evaluate(y, probs=certain, name="certain", divergence="log"),
        "positive": cal.evaluate(outcome, probs=p, name="rain"),
        "pairs": cal.evaluate_pairs(a, h, name="language model"),
        "constant": cal.evaluate_pairs(a, constant, name="constant"),
        "class-wise": cal.evaluate(y, logits=z, name="each", target="class-wise"),
        "few": cal.evaluate(y[:8], logits=z[:8], name="few"),
        "one": cal.evaluate(y[:1], logits=z[:1], name="one"),
        "weights": call(
            cal.evaluate, y, logits=z, sample_weight=weights(500, 61), name="weighted"
        ),
        "groups": cal.evaluate(y, logits=z, group=groups(500, 61), name="grouped"),
        "clusters": cal.evaluate(
            y, logits=z, cluster=clusters(500, 61), name="clustered"
        ),
        "soft": cal.evaluate(soft_labels(500, 3, 61), logits=z, name="soft"),
        "no interval": cal.evaluate(y, logits=z, interval=None, name="quick"),
    }


@case()
def words_of_models(cal: ModuleType, _: Path) -> Any:
    """What printing gives, and the alternative text of the diagram."""
    return {
        key: [str(ev), repr(ev), ev.describe(), ev.describe("paper")]
        for key, ev in _shown(cal).items()
    }


@case()
def audits_of_models(cal: ModuleType, _: Path) -> Any:
    """Findings: codes, text, evidence and advice."""
    return {
        key: [[record(finding), str(finding)] for finding in ev.audit()]
        for key, ev in _shown(cal).items()
    }


@case()
def audit_of_comparison(cal: ModuleType, _: Path) -> Any:
    """Findings about several models, and about models of few rows."""
    found = cal.Comparison(tuple(_three_models(cal))).audit()
    y, z = many(60, 3, seed=64)
    few = [cal.evaluate(y, logits=z / t, name=f"T {t}") for t in (1, 1.5, 3)]
    return [
        [str(x) for x in found],
        [str(x) for x in cal.Comparison(tuple(few)).audit()],
    ]


FORMATS = ("text", "markdown", "html", "latex", "csv")
TABLES: dict[str, dict[str, Any]] = {
    "plain": {},
    "intervals": {"intervals": True, "digits": 3},
    "columns": {"columns": ["accuracy", "ece", "brier", "nll"], "percent": False},
    "caption": {"caption": "Models & more", "label": "tab:models", "footnotes": False},
    "not best": {"best": False, "columns": "all"},
}


@case()
def tables_of_models(cal: ModuleType, _: Path) -> Any:
    """Three models in every format."""
    found = cal.Comparison(tuple(_three_models(cal)))
    return {
        f"{name}, {form}": found.table(form, **options)
        for name, options in TABLES.items()
        for form in FORMATS
    }


@case()
def tables_of_single_models(cal: ModuleType, _: Path) -> Any:
    """One model in every format."""
    table = part_of(cal, "table").table
    return {
        f"{key}, {form}": table(ev, form, intervals=True)
        for key, ev in _shown(cal).items()
        for form in ("text", "markdown", "latex")
    }


@case()
def frames_of_models(cal: ModuleType, _: Path) -> Any:
    """Frames of a model, of its curve and of its bins."""
    ev = _shown(cal)["classes"]
    frames = (ev.frame(), ev.bins.frame(), ev.curve.frame())
    return [brief({n: list(x[n]) for n in x.columns}) for x in frames]


@case()
def terminal_pages(cal: ModuleType, _: Path) -> Any:
    """Models as a terminal shows them."""
    render = part_of(cal, "terminal").render
    shown = _shown(cal)
    kept = {key: shown[key] for key in ("classes", "log", "pairs", "constant", "few")}
    kept["several"] = cal.Comparison(tuple(_three_models(cal)))
    return {
        f"{key}, {width}, {unicode}": render(
            models, width=width, colour=False, unicode=unicode
        )
        for key, models in kept.items()
        for width, unicode in ((80, True), (50, True), (100, False))
    }


@case()
def terminal_colours(cal: ModuleType, _: Path) -> Any:
    """Escape codes."""
    render = part_of(cal, "terminal").render
    return render(_three_models(cal)[:2], width=72, colour=True, unicode=True)


def payload_of(cal: ModuleType, models: Any, **options: Any) -> Any:
    """The data inside a report, with its columns as numbers, thinned."""
    report = part_of(cal, "report").report
    page = Path(report(models, "page.html", force=True, **options)).read_text(
        encoding="utf-8"
    )
    found = re.search(
        r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL
    )
    told = json.loads(found.group(1))
    data = {key: value for key, value in told.items() if key not in FOR_THE_SCRIPT}
    return brief(without_times(_decoded(data)))


FOR_THE_SCRIPT = ("geometry", "box", "nothing", "widths", "live")
"""Constants that pages of 0.1.0 had in their script, and now have among their data."""


def _decoded(value: Any, name: str = "", *, inside: bool = False) -> Any:
    """Base64 as lists of numbers, singles but for those of `KINDS`."""
    if isinstance(value, dict):
        return {
            key: _decoded(item, key, inside=inside or key in PACKED)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_decoded(item, name, inside=inside) for item in value]
    if inside and name != "state" and isinstance(value, str) and _is_base64(value):
        kind = KINDS.get(name, "<f4")
        return plain(np.frombuffer(base64.b64decode(value), kind).astype(float))
    return value


PACKED = ("line", "mass", "sums", "views")
"""Parts of a page whose columns are base64; `state` is a digit for each place."""

KINDS = {"slope": "<f8", "curve": "<u2"}


def _is_base64(text: str) -> bool:
    return len(text) >= 64 and len(text) % 4 == 0 and " " not in text


def text_of_page(cal: ModuleType, models: Any) -> list[str]:
    """What a reader sees without a script, but for versions and digests."""
    report = part_of(cal, "report").report
    page = Path(report(models, "page.html", force=True)).read_text(encoding="utf-8")
    body = re.sub(r"<(script|style|svg).*?</\1>", "", page, flags=re.DOTALL)
    lines = (line.strip() for line in re.sub(r"<[^>]+>", "\n", body).splitlines())
    return [line for line in lines if line and not OF_THE_DAY.search(line)]


OF_THE_DAY = re.compile(r"NumPy|^[0-9a-f]{64}$|\d+\.\d+\.\d+")


@case()
def page_of_one_model(cal: ModuleType, _: Path) -> Any:
    """The data of a page about one model."""
    return payload_of(cal, _shown(cal)["classes"])


@case()
def page_of_three_models(cal: ModuleType, _: Path) -> Any:
    """The data and the text of a page about three models."""
    found = cal.Comparison(tuple(_three_models(cal)))
    return [payload_of(cal, found), text_of_page(cal, found)]


@case()
def page_of_groups(cal: ModuleType, _: Path) -> Any:
    """A page with groups."""
    shown = _shown(cal)["groups"]
    return [payload_of(cal, shown), text_of_page(cal, shown)]


@case()
def page_of_classes(cal: ModuleType, _: Path) -> Any:
    """A page of a class-wise evaluation."""
    return payload_of(cal, _shown(cal)["class-wise"])


@case()
def page_of_infinite_loss(cal: ModuleType, _: Path) -> Any:
    """A page about a log loss that is infinite."""
    shown = _shown(cal)["log"]
    return [payload_of(cal, shown), text_of_page(cal, shown)]


@case()
def page_of_pairs_and_bandwidth(cal: ModuleType, _: Path) -> Any:
    """A page of pairs, at a bandwidth."""
    ev = cal.evaluate_pairs(*answers(400, seed=65), bandwidth=0.08, name="fixed")
    return payload_of(cal, ev, title="Answers")


@case()
def page_of_own_divergence(cal: ModuleType, _: Path) -> Any:
    """A page of a divergence that a browser does not know."""
    own_divergence(cal)
    y, z = many(300, 3, seed=66)
    return payload_of(cal, cal.evaluate(y, logits=z, divergence="cubic", name="own"))


@case()
def page_of_study(cal: ModuleType, _: Path) -> Any:
    """A page of a study."""
    found = _study(cal, split=0.5)
    return payload_of(cal, found)


def _drawn(axes: Any) -> Any:
    """Lines, words and ends of all axes of a figure, and its alternative text."""
    axes = getattr(axes, "errors", axes)  # a sweep is a pair
    first = axes.flat[0] if hasattr(axes, "flat") else axes
    figure = first.figure
    told = getattr(figure, "alt_text", None)
    return [told if isinstance(told, str) else None, *map(_of_axes, figure.axes)]


def _of_axes(ax: Any) -> dict[str, Any]:
    lines = [[line.get_xdata(), line.get_ydata()] for line in ax.lines]
    return {
        "labels": [ax.get_title(), ax.get_xlabel(), ax.get_ylabel()],
        "ends": [ax.get_xlim(), ax.get_ylim()],
        "texts": [text.get_text() for text in ax.texts],
        "lines": brief([[np.asarray(x, float) for x in line] for line in lines]),
        "patches": len(ax.patches),
        "collections": len(ax.collections),
    }


@case()
def figures_of_one_model(cal: ModuleType, _: Path) -> Any:
    """Every figure of one model: what is drawn, not how it looks."""
    shown, plot = _shown(cal), part_of(cal, "plot")
    ev = shown["classes"]
    names = ("calibration_sharpness", "reliability", "corp", "residual")
    names = (*names, "smooth_reliability", "bandwidth_sweep")
    found = {name: _drawn(getattr(plot, name)(ev)) for name in names}
    found["paper style"] = _drawn(plot.calibration_sharpness(ev, style="paper"))
    found["grid"] = _drawn(plot.classwise_grid(shown["class-wise"]))
    return found


@case()
def figures_of_several_models(cal: ModuleType, _: Path) -> Any:
    """Every figure of several models."""
    models, plot = _three_models(cal), part_of(cal, "plot")
    names = ("calibration_sharpness", "compare_methods", "score_map", "bandwidth_sweep")
    return {name: _drawn(getattr(plot, name)(models)) for name in names}


# -- sketches -------------------------------------------------------------------------


def table_rows(n: int = 1500, k: int = 4) -> dict[str, np.ndarray]:
    """Columns of a frame: probabilities, label, pairs, weight and group."""
    y, z = many(n, k, seed=71)
    p = softmax(z)
    a, h = answers(n, seed=72)
    columns = {f"p_{j}": p[:, j] for j in range(k)}
    more = {"y": y, "h": h, "a": a.astype(np.int8)}
    return columns | more | {"w": weights(n, 73), "g": groups(n, 74)}


OF_CLASS_COLUMNS = {"label": "y", "probs": "p_*", "weight": "w", "group": "g"}
OF_PAIR_COLUMNS = {"confidence": "h", "correct": "a", "group": "g"}


def _of_sketch(cal: ModuleType, sketch: Any) -> dict[str, Any]:
    """What is known of a sketch."""
    return {
        "facts": record(sketch.facts()),
        "text": [str(sketch), repr(sketch)],
        "bounds": record(sketch.bounds()),
        "evaluation": record(cal.evaluate(sketch, name="sketched")),
    }


def of_frame(make: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """A case that sketches a frame of some library: classes, pairs, one column."""

    def sketch(cal: ModuleType, _: Path) -> Any:
        rows = table_rows()
        positive = {"label": "b", "probs": "h"}
        rows["b"] = rows["a"].astype(np.int64)
        found = {}
        for key, columns in {
            "classes": OF_CLASS_COLUMNS,
            "pairs": OF_PAIR_COLUMNS,
            "positive": positive,
        }.items():
            made = call(cal.sketch_frame, make(rows), **columns)
            found[key] = _of_sketch(cal, made)
        return found

    return sketch


def _library(name: str) -> Any:
    return importlib.import_module(name)


def _pandas(rows: dict[str, Any]) -> Any:
    return _library("pandas").DataFrame(rows)


def _polars(rows: dict[str, Any]) -> Any:
    return _library("polars").DataFrame(rows)


def _polars_lazy(rows: dict[str, Any]) -> Any:
    return _polars(rows).lazy()


def _arrow(rows: dict[str, Any]) -> Any:
    return _library("pyarrow").table({name: list(x) for name, x in rows.items()})


def _arrow_batches(rows: dict[str, Any]) -> Any:
    return _arrow(rows).to_batches(max_chunksize=400)


def _duckdb(rows: dict[str, Any]) -> Any:
    duckdb = _library("duckdb")
    connection = duckdb.connect()
    connection.register("rows", _arrow(rows))
    return connection.table("rows")


def _dask(rows: dict[str, Any]) -> Any:
    return _library("dask.dataframe").from_pandas(_pandas(rows), npartitions=3)


for _name, _make, *_needs in (
    ("pandas", _pandas, "pandas"),
    ("polars", _polars, "polars"),
    ("polars_lazy", _polars_lazy, "polars"),
    ("arrow", _arrow, "pyarrow"),
    ("arrow_batches", _arrow_batches, "pyarrow"),
    ("duckdb", _duckdb, "duckdb", "pyarrow"),
    ("dask", _dask, "dask.dataframe", "pandas", "pyarrow"),
):
    add(f"sketch_{_name}", of_frame(_make), "narwhals", *_needs)
add(
    "numba_sketch_duckdb",
    of_frame(_duckdb),
    "narwhals",
    "duckdb",
    "pyarrow",
    compiled=True,
)


@case()
def sketch_rows(cal: ModuleType, _: Path) -> Any:
    """Sketches of rows added in parts: classes, one column, each class, own divergence."""
    rows = table_rows()
    p = np.stack([rows[f"p_{j}"] for j in range(4)], axis=1)
    own_divergence(cal)
    found = {}
    for key, options in {
        "top-label": {},
        "class-wise": {"target": "class-wise"},
        "own": {"divergence": "cubic"},
    }.items():
        sketch = cal.Sketch(**options)
        for i in range(3):
            part = slice(500 * i, 500 * i + 500)
            given = {"probs": p[part], "sample_weight": rows["w"][part]}
            call(sketch.update, rows["y"][part], part=f"part {i}", **given)
        found[key] = _of_sketch(cal, sketch)
    own = cal.evaluate(sketch, divergence="cubic", bandwidth=0.05)
    return found | {"cubic": record(own)}


@case()
def sketch_options(cal: ModuleType, _: Path) -> Any:
    """Options of an evaluation that a sketch can be asked for."""
    y, z = many(1000, 3, seed=75)
    sketch = cal.Sketch().update(y, logits=z, group=groups(1000, 75))
    options: tuple[dict[str, Any], ...] = (
        {"bandwidth": 0.05},
        {"bandwidth": 0.1, "kernel": "epanechnikov", "boundary": "reflect"},
        {"divergence": "log", "interval": None},
        {"preset": "paper"},
        {"counterpart": "tight", "bins": 10},
    )
    return [record(cal.evaluate(sketch, **one)) for one in options]


@case()
def sketch_pairs(cal: ModuleType, _: Path) -> Any:
    """Sketches of pairs, with and without the full loss."""
    rows = table_rows()
    a, h = rows["a"], rows["h"]
    plain_ = call(cal.Sketch().update_pairs, a, h, sample_weight=rows["w"])
    loss = {"brier": 1.3 * (a - h) ** 2}
    full = cal.Sketch().update_pairs(a, h, loss=loss, group=rows["g"])
    return [_of_sketch(cal, plain_), _of_sketch(cal, full)]


@case()
def sketch_merged(cal: ModuleType, _: Path) -> Any:
    """Sketches of shards, merged, and sent as bytes."""
    y, z = many(1200, 3, seed=76)
    shards = [cal.Sketch().update(y[i::3], logits=z[i::3]) for i in range(3)]
    whole = shards[0] + shards[1].merge(shards[2])
    whole.save("all.npz")
    sent = cal.Sketch.from_bytes(whole.to_bytes())
    loaded = cal.Sketch.load("all.npz")
    return [_of_sketch(cal, one) for one in (whole, sent, loaded)]


@case()
def sketch_of_many_values(cal: ModuleType, _: Path) -> Any:
    """More distinct confidences than a sketch keeps."""
    a, h = answers(150_000, seed=77)
    sketch = cal.Sketch(engine="numpy").update_pairs(a, h)
    ev = cal.evaluate(sketch, interval=None)
    return [
        record(ev),
        record(sketch.bounds()),
        record(sketch.bounds(bins=7)),
        str(sketch),
    ]


add(
    "numba_sketch_rows",
    lambda cal, _: _of_sketch(
        cal, cal.Sketch(engine="compiled").update_pairs(*answers(2000, seed=78))
    ),
    compiled=True,
)


# -- the command line -----------------------------------------------------------------


def command(cal: ModuleType, *words: str) -> dict[str, Any]:
    """What a command prints, and its exit code."""
    runner = importlib.import_module("click.testing").CliRunner()
    result = runner.invoke(part_of(cal, "cli").main, list(words))
    out = untimed(result.stdout)
    return {"code": result.exit_code, "out": out, "err": result.stderr}


def json_of(cal: ModuleType, *words: str) -> Any:
    """The JSON that a command prints, thinned."""
    return record(json.loads(command(cal, *words)["out"]))


def flag(cal: ModuleType, name: str, role: str) -> str:
    """How a command spells an option."""
    known = [x.name for x in part_of(cal, "cli").main.commands[name].params]
    return "--" + _spelling(role, dict.fromkeys(known)).replace("_", "-")


def _arrays(n: int = 300, seed: int = 81) -> dict[str, np.ndarray]:
    """Arrays of one model, under well-known names."""
    y, z = many(n, 3, seed=seed)
    return {"logits": z.round(4), "labels": y}


def _columns(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of a table: those of a matrix get numbers."""
    found = {}
    for name, x in arrays.items():
        each = (
            {name: x} if x.ndim == 1 else {f"{name}_{j}": v for j, v in enumerate(x.T)}
        )
        found |= each
    return found


def _write_text(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    columns = _columns(arrays)
    mark = "\t" if path.endswith("tsv") else ","
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=mark)
        writer.writerow(columns)
        writer.writerows(zip(*(x.tolist() for x in columns.values()), strict=True))


def _write_lines(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    rows = zip(*(x.tolist() for x in arrays.values()), strict=True)
    lines = [json.dumps(dict(zip(arrays, row, strict=True))) for row in rows]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _as_arrow(arrays: Mapping[str, np.ndarray]) -> Any:
    return _library("pyarrow").table({n: x.tolist() for n, x in arrays.items()})


def _write_parquet(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    _library("pyarrow.parquet").write_table(_as_arrow(_columns(arrays)), path)


def _write_feather(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    _library("pyarrow.feather").write_feather(_as_arrow(arrays), path)


def _write_ipc(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    table = _as_arrow(arrays)
    with _library("pyarrow.ipc").new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=70)


def _write_safetensors(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    _library("safetensors.numpy").save_file(dict(arrays), path)


def _write_torch(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    torch = _library("torch")
    torch.save({name: torch.tensor(x) for name, x in arrays.items()}, path)


FILES: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "npz": (lambda path, arrays: np.savez(path, **arrays), ()),
    "csv": (_write_text, ()),
    "tsv": (_write_text, ()),
    "jsonl": (_write_lines, ()),
    "parquet": (_write_parquet, ("pyarrow",)),
    "feather": (_write_feather, ("pyarrow",)),
    "arrow": (_write_ipc, ("pyarrow",)),
    "safetensors": (_write_safetensors, ("safetensors",)),
    "pt": (_write_torch, ("torch",)),
}


def of_file(suffix: str) -> Callable[..., Any]:
    """A case that reads a file in one format by several commands."""

    def read(cal: ModuleType, _: Path) -> Any:
        write, file = FILES[suffix][0], f"model.{suffix}"
        write(file, _arrays())
        return {
            "inspect": command(cal, "inspect", file),
            "inspect as JSON": record(command(cal, "inspect", file, "--json")),
            "report": json_of(cal, "report", file, "--json"),
            "sketch": command(cal, "sketch", file, "-o", "sketch.npz"),
            "of the sketch": command(cal, "report", "sketch.npz"),
        }

    return read


for _suffix, (_, _needs) in FILES.items():
    add(f"file_{_suffix}", of_file(_suffix), *_needs)


def _save(name: str, **arrays: Any) -> str:
    """Write an npz and give its name back."""
    np.savez(name, **arrays)
    return name


@case()
def command_report(cal: ModuleType, _: Path) -> Any:
    """`report`: pages, options, gates and a written page."""
    first = _save("first.npz", **_arrays())
    other = _arrays()
    second = _save("second.npz", logits=other["logits"] / 2, labels=other["labels"])
    gates = ("--fail-if", "brier>0.2", "--max-ece-upper", "0.05")
    options = ("--divergence", "log", "--bandwidth", "0.05", "--bins", "10")
    np.save("logits.npy", other["logits"])
    np.save("labels.npy", other["labels"])
    return {
        "one": command(cal, "report", first),
        "two": command(cal, "report", first, second, "--names", "a,b"),
        "gates": command(cal, "report", first, "-q", *gates),
        "options": command(cal, "report", first, *options),
        "seed": json_of(
            cal, "report", first, "--json", "--seed", "3", "--level", "0.9"
        ),
        "class-wise": command(cal, "report", first, "--target", "class-wise"),
        "written": command(cal, "report", first, "-o", "page.html", "--title", "T"),
        "again": command(cal, "report", first, "-o", "page.html"),
        "joined": command(cal, "report", "logits.npy,labels.npy"),
        "no file": command(cal, "report", "nothing.npz"),
    }


@case()
def command_report_columns(cal: ModuleType, _: Path) -> Any:
    """`report` and `inspect` of a table whose columns have to be named."""
    y, z = many(200, 3, seed=82)
    p = softmax(z)
    columns = {f"p_{name}": p[:, j] for j, name in enumerate(["ant", "bee", "cow"])}
    columns |= {
        "truth": name_of(y),
        "times": weights(200, 82),
        "place": groups(200, 82),
    }
    _write_text("scores.csv", columns)

    def words(name: str) -> list[str]:
        said = [flag(cal, name, "label"), "truth", "--probs", "p_*"]
        return [*said, flag(cal, name, "weight"), "times", "--group", "place"]

    return {
        "inspect": command(cal, "inspect", "scores.csv", *words("inspect")),
        "report": command(cal, "report", "scores.csv", *words("report")),
        "json": json_of(cal, "report", "scores.csv", *words("report"), "--json"),
        "sketch": command(cal, "sketch", "scores.csv", *words("sketch"), "-o", "s.npz"),
        "of the sketch": json_of(cal, "report", "s.npz", "--json"),
    }


@case()
def command_pairs(cal: ModuleType, _: Path) -> Any:
    """Files of pairs and of forecasts."""
    a, h = answers(300, seed=83)
    y, p = forecasts(300, seed=84)
    pairs = _save("pairs.npz", correct=a, confidence=h)
    rain = _save("rain.npz", prob=p, outcome=y)
    return {
        "pairs": command(cal, "report", pairs),
        "forecasts": command(cal, "report", rain),
        "inspect": command(cal, "inspect", rain),
        "sketch": command(cal, "sketch", pairs, "-o", "sketch.npz"),
        "of the sketch": json_of(cal, "report", "sketch.npz", "--json"),
    }


@case()
def command_compare(cal: ModuleType, _: Path) -> Any:
    """`compare`: paired, unpaired, as JSON."""
    arrays = _arrays()
    first = _save("first.npz", **arrays)
    second = _save("second.npz", logits=arrays["logits"] / 2, labels=arrays["labels"])
    third = _save("third.npz", **_arrays(250, seed=85))
    return {
        "paired": command(cal, "compare", first, second),
        "baseline": command(cal, "compare", first, second, "--baseline", "second"),
        "json": json_of(cal, "compare", first, second, "--json"),
        "unpaired": command(cal, "compare", first, third, "--unpaired"),
        "other rows": command(cal, "compare", first, third),
        "one file": command(cal, "compare", first)["code"],
    }


@case()
def command_study(cal: ModuleType, _: Path) -> Any:
    """`study`: one file, two files, folds, methods."""
    first = _save("first.npz", **_arrays())
    second = _save("second.npz", **_arrays(250, seed=86))
    some = ("--methods", "temperature,vector")
    return {
        "split": command(cal, "study", first, "--split", "0.5"),
        "two files": command(cal, "study", first, second, *some),
        "json": json_of(cal, "study", first, "--folds", "3", *some, "--json"),
        "gates": command(cal, "study", first, second, "-q", "--fail-if", "brier>0.1"),
    }


@case()
def command_sketch_and_merge(cal: ModuleType, _: Path) -> Any:
    """`sketch`, `merge`, `--resume` and `inspect` of what they write."""
    files = [_save(f"day_{i}.npz", **_arrays(150, seed=90 + i)) for i in range(3)]
    return {
        "first": command(cal, "sketch", files[0], "-o", "a.npz"),
        "others": command(cal, "sketch", *files[1:], "-o", "b.npz"),
        "exists": command(cal, "sketch", files[0], "-o", "a.npz"),
        "resumed": command(cal, "sketch", *files[1:], "-o", "b.npz", "--resume"),
        "merged": command(cal, "merge", "a.npz", "b.npz", "-o", "all.npz"),
        "inspect": command(cal, "inspect", "all.npz"),
        "inspect as JSON": json_of(cal, "inspect", "all.npz", "--json"),
        "report": command(cal, "report", "all.npz"),
        "json": json_of(cal, "report", "all.npz", "--json"),
        "pattern": command(cal, "sketch", "day_*.npz", "-o", "c.npz"),
    }


@case()
def command_recalibrate(cal: ModuleType, _: Path) -> Any:
    """`recalibrate`: fit, save, load, apply."""
    first = _save("first.npz", **_arrays())
    second = _save("second.npz", **_arrays(50, seed=87))
    found = {}
    for method in (
        "temperature",
        "vector",
        "isotonic",
        "histogram",
        "mean-replacement",
    ):
        out, saved = f"{method}.npz", f"{method}.json"
        words = ("--apply", second, "-o", out, "--save", saved)
        told = command(cal, "recalibrate", "--fit", first, "--method", method, *words)
        again = ("--load", saved, "--apply", second, "-o", out, "--force")
        found[method] = [
            told,
            command(cal, "recalibrate", *again),
            _first_rows(out),
            brief(as_old_names(json.loads(Path(saved).read_text(encoding="utf-8")))),
        ]
    return found


def _first_rows(file: str) -> Any:
    with np.load(file) as arrays:
        return {name: arrays[name][:4] for name in arrays}


# -- torch ----------------------------------------------------------------------------


@case("torch", "torchmetrics")
def torch_metric(cal: ModuleType, _: Path) -> Any:
    """The metric of a training loop: numbers, and the evaluation of its sketch."""
    torch = _library("torch")
    make = part_of(cal, "torch").CalibrationSharpness
    y, z = many(600, 3, seed=91)
    outcome, p = forecasts(400, seed=92)
    top = make(3, scores="logits", ignore_index=-1)
    labels = np.where(np.arange(600) % 50 == 0, -1, y)
    for part in (slice(0, 250), slice(250, 600)):
        top.update(torch.tensor(z[part]), torch.tensor(labels[part]))
    positive = make(2, scores="probs", target="positive")
    positive.update(torch.tensor(p), torch.tensor(outcome))
    return [
        {
            "numbers": {name: float(x) for name, x in metric_.compute().items()},
            "evaluation": record(metric_.evaluation(name="loop")),
        }
        for metric_ in (top, positive)
    ]


@case("torch")
def torch_rows(cal: ModuleType, _: Path) -> Any:
    """Tensors given to `evaluate`."""
    torch = _library("torch")
    y, z = many(300, 4, seed=93)
    tensors = torch.tensor(y), torch.tensor(z)
    return record(cal.evaluate(tensors[0], logits=tensors[1], interval=None))


@case("polars")
def polars_columns(cal: ModuleType, _: Path) -> Any:
    """Columns of a frame given to `evaluate`."""
    y, z = many(300, 3, seed=94)
    frame = _library("polars").DataFrame(
        {"y": y, "a": z[:, 0], "b": z[:, 1], "c": z[:, 2]}
    )
    ev = cal.evaluate(frame["y"], logits=frame.select("a", "b", "c"), interval=None)
    return record(ev)
