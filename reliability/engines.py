"""Two engines on the same hostile arrays: the same numbers, or the same error.

The loops in C have a twin in NumPy. Both get arrays of odd strides, types and sizes, with
numbers that are none; and the loops themselves are called with arrays that are not theirs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .api import WORDS
from .cases import Case, Refused
from .choices import Choices
from .rows import EDGES

DTYPES = ("f8", "f4", "f2", ">f8", ">f4", "longdouble", "i8")
USES = (
    "accuracy", "brier", "nll", "confidence_gap", "ece", "ks_error", "auroc", "aurc", "sketch",
    "TemperatureScaling", "HistogramBinning", "IsotonicCalibration", "columns", "smooth_ece",
    "EnsembleTemperatureScaling", "TopLabelBinning", "calibration_error", "evaluate",
)  # fmt: skip
CLASSES = (3, 2, 1, 4, 5, 10, 32, 33, 65, 200, 3000)
VALUES = (math.nan, math.inf, -math.inf, *EDGES, -1e308, 700.0, -700.0, 1e-45)


def engine_case(c: Choices, home: Path) -> Case:
    """Hostile arrays for both engines, or for a loop by itself."""
    return _loop(c) if c.below(4) == 3 else _twins(c)


# -- both engines ---------------------------------------------------------------------


def _twins(c: Choices) -> Case:
    use = c.one(USES)
    y, scores, kind = _arrays(c, use)
    weight = _weight(c, len(scores)) if c.chance(50) else {}
    shown = f"{use}(y, {kind}={scores.dtype}{scores.shape}, strides {scores.strides})"
    near = {2: 5e-3, 4: 1e-4}.get(scores.dtype.itemsize, 1e-7)
    coarse = scores.dtype.itemsize < 8 or scores.dtype.kind == "i"
    if coarse and len(scores):  # rounding makes or breaks a tie of ranks
        near = max(near, 1 / len(scores))
    return Case(
        f"both engines: {use}",
        lambda: _both(lambda: _use(use, y, kind, scores, weight), near=near),
        (*WORDS, *USES),
        shown,
        "?",
        lambda said: said if isinstance(said, str) else "",
        like=str(scores.size // 300),
    )


def _arrays(c: Choices, use: str) -> tuple[Any, Any, str]:
    """Labels and scores of a few rows: in any layout, with a few numbers off."""
    rng = np.random.default_rng(c.below(1 << 16))
    n, k = c.one((7, 1, 0, 2, 3, 12, 127, 129)), c.one(CLASSES)
    kind = c.one(("probs", "logits"))
    if use in ("auroc", "ece", "ks_error") and c.chance(90):
        scores, y = rng.random(n), rng.integers(0, 2, n)
        kind = "probs"
    else:
        y = rng.integers(0, k, n)
        scores = rng.normal(0, c.one((3, 1e-3, 50)), (n, k))
        if kind == "probs":
            scores = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-1e9))
            scores /= scores.sum(axis=1, keepdims=True)
    for _ in range(c.one((0, 0, 1, 2))):
        if scores.size:
            scores.flat[c.below(scores.size)] = c.one(VALUES)
    with np.errstate(all="ignore"):
        scores = scores.astype(c.one(DTYPES) if c.chance(128) else "f8")
    return y, laid_out(c, scores), kind


def _weight(c: Choices, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(c.below(256))
    made = rng.random(n) + 0.1
    if n and c.chance(60):
        made[c.below(n)] = c.one((0.0, math.nan, -1.0, math.inf, 1e300, 5e-324))
    return {"sample_weight": laid_out(c, made)}


def laid_out(c: Choices, x: Any) -> Any:
    """The same numbers, somewhere else in memory."""
    how = c.below(9)
    if how == 1:
        return np.asfortranarray(x)
    if how == 2:
        return np.repeat(x, 2, axis=0)[::2]
    if how == 3:
        return np.repeat(x, 3, axis=-1)[..., ::3]
    if how == 4:
        return x[::-1].copy()[::-1]
    if how == 5:
        return x[..., ::-1].copy()[..., ::-1]
    if how == 6:
        return _unaligned(x)
    if how == 7:
        x = x.copy()
        x.flags.writeable = False
    return x if how != 8 else x.T.copy().T


def _unaligned(x: Any) -> Any:
    room = np.zeros(x.nbytes + 1, np.uint8)
    made = room[1:].view(x.dtype).reshape(x.shape) if x.size else x
    made[...] = x
    return made


@contextmanager
def _engine(name: str) -> Iterator[None]:
    old = os.environ.get("CALIBRANT_ENGINE")
    os.environ["CALIBRANT_ENGINE"] = name
    try:
        yield
    finally:
        if old is None:
            del os.environ["CALIBRANT_ENGINE"]
        else:
            os.environ["CALIBRANT_ENGINE"] = old


def _both(use: Callable[[], Any], *, near: float) -> str | None:
    """What differs between the engines; an error that both raise is raised."""
    found: list[Any] = []
    for engine in ("numpy", "compiled"):
        with _engine(engine):
            try:
                found.append(use())
            except (ValueError, TypeError) as error:
                found.append(error)
    one, other = found
    wrong = [isinstance(x, Exception) for x in found]
    if all(wrong):
        if (type(one), str(one)) != (type(other), str(other)):
            return "the engines refuse in other words"
        raise other
    if any(wrong):
        return "one engine refuses what the other accepts"
    return None if _equal(one, other, near) else "the engines differ"


def _equal(one: Any, other: Any, tolerance: float) -> bool:
    a, b = (np.asarray(x, float).ravel() for x in (one, other))
    if a.shape != b.shape:
        return False
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerance * np.maximum(1, np.abs(b))
    return bool(np.all(same | near))


def _use(use: str, y: Any, kind: str, scores: Any, weight: dict[str, Any]) -> Any:
    """Numbers that the loops have a part in."""
    import calibrant as cal
    from calibrant import recalibration

    target = {"target": "top-label"} if scores.ndim == 2 else {}
    given = {kind: scores, **weight, **target}
    if use == "sketch":
        return _sums(cal.Sketch(**target).update(y, **{kind: scores}, **weight))
    if use == "columns":
        return _columns(y, given)
    if use == "evaluate":
        ev = cal.evaluate(y, **given, interval=None)
        return [float(x) for x in ev.metrics.values()]
    if use[0].isupper():
        made = getattr(recalibration, use)(scores=kind).fit(scores, y, **weight)
        return made.predict_proba(scores)
    return getattr(cal, use)(y, **given)


def _sums(sketch: Any) -> Any:
    """All sums of a sketch."""
    cells = sketch.cells
    losses = [loss for x in cells.totals.values() for loss in (x.loss, x.loss2)]
    return [cells.rows, cells.weight, *losses]


def _columns(y: Any, given: dict[str, Any]) -> Any:
    from calibrant._inputs.predictions import read_predictions
    from calibrant._rows.reduce import reduce_to_columns

    found = reduce_to_columns(read_predictions(y, **given))
    return [found.confidence, found.hit]


# -- a loop by itself -----------------------------------------------------------------


def _loop(c: Choices) -> Case:
    """A loop called with arrays of which one is not what it takes."""
    name = c.one(sorted(GOOD))
    n, k = c.one((5, 1, 0, 17, 130)), c.one((3, 2, 33))
    given = GOOD[name](n, k)
    for _ in range(c.one((1, 0, 2))):
        place = c.below(len(given))
        given[place] = _other(c, given[place])
    return Case(
        f"loop: {name}",
        lambda: _called(name, given),
        (),
        f"_compiled.{name}(…)",
        "?",
        like=str(n * k // 300),
    )


def _called(name: str, given: list[Any]) -> Any:
    from calibrant._rows import compiled

    try:
        getattr(compiled.loops, name)(*given)
    except (TypeError, ValueError, BufferError, OverflowError):
        return Refused()
    return None


def _other(c: Choices, x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return c.one(
            (0, 1, -1, 2**40, -(2**63), 2**70, math.nan, math.inf, None, "x", [])
        )
    how = c.below(9)
    if how == 0 and x.size and x.dtype.kind == "f":
        x = x.copy()
        x.flat[c.below(x.size)] = c.one(VALUES)
        return x
    if how == 1 and x.size and x.dtype.kind == "i":
        x = x.copy()
        x.flat[c.below(x.size)] = c.one((-1, 1000, 2**31 - 1, -(2**31)))
        return x
    if how == 2:
        return x[: c.below(len(x) + 1)]
    if how == 3:
        return np.concatenate([x, x])
    if how == 4:
        with np.errstate(all="ignore"):
            return x.astype(
                c.one(("f4", "f2", "i4", "i8", "c16", ">f8", "?", "O", "U3"))
            )
    if how == 5:
        return c.one(
            (None, 3, "x", [], b"", np.float64(1), np.zeros((0, 0)), np.zeros(2**16))
        )
    return laid_out(c, x)


def _rows(n: int, k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n * k)
    return rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)


def _outs(n: int, count: int) -> list[Any]:
    return [np.zeros(n) for _ in range(count)]


STEPS = 11601
GOOD: dict[str, Callable[[int, int], list[Any]]] = {
    "reduce": lambda n, k: [
        0, 1e-6, k, *_rows(n, k), *_outs(n, 5), np.zeros(n, np.int32), np.zeros(n, bool)
    ],
    "bend": lambda n, k: [1.5, k, *_rows(n, k), *_outs(n, 4)],
    "residual": lambda n, k: [3, *(np.full(n, 0.5),) * 2, None, np.zeros((9600, 3))],
    "add_pairs": lambda n, k: [
        24, np.zeros((2 * (STEPS + 2), 24)), np.full(n, 0.5), np.ones(n), None
    ],
    "fit_platt": lambda n, k: [
        0.5, 0.0625, 0.0, 1e-6, 50, 1.5, np.arange(n) / max(n, 1), np.arange(n) / 2 - 1,
        *(np.ones(n) for _ in range(3)), *_outs(k, 6),
    ],
    "sort": lambda n, k: [
        np.arange(n)[::-1].copy(), np.zeros(n, np.int64), np.arange(n), np.zeros(n, np.int64)
    ],
    "poisson": lambda n, k: [1, n, np.ones(k), np.full(k, 21), np.zeros((k, n))],
}  # fmt: skip
"""Good arguments of the loops whose arguments do not hang together in other ways."""
