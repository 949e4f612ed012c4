"""Tests of calibration: how hits like these could come from the stated confidences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Self, Unpack

import numpy as np

from acumen.arrays import as_number, check_choice
from acumen.calibration_tests.redrawn_rows import NullRows
from acumen.calibration_tests.statistics import METHODS, Method
from acumen.calibration_tests.walks import is_smooth
from acumen.columns import Columns
from acumen.encoding import number
from acumen.inputs import Scores, read, takes_scores, target_of
from acumen.records import Record

RESAMPLES = 1000
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class CalibrationTest(Record):
    """What a test of calibration found.

    Attributes
    ----------
    statistic, p_value : float
        How far hits are from the confidences, and how often chance alone takes
        calibrated rows as far.
    method : str
        ``"kuiper"``, ``"ks"``, ``"spiegelhalter"`` or ``"bootstrap"``.
    law : str
        Where the p-value is from: ``"normal"``, ``"Brownian motion"`` or
        ``"simulated"``; ``"exact"`` where it must be 0 or 1.
    n : float
        Rows, or total weight.
    target : str
        What was asked of each row.
    sentence : str
        The same in words.

    Examples
    --------
    >>> import acumen as ac
    >>> found = ac.calibration_test([1, 1, 0, 1] * 50, confidence=[0.75] * 200)
    >>> found.p_value > 0.5, found.method
    (True, 'kuiper')
    """

    statistic: float
    p_value: float
    method: str
    law: str
    n: float
    target: str
    sentence: str = ""

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        numbers = {name: number(given[name]) for name in ("statistic", "p_value", "n")}
        return cls(**{**given, **numbers})

    def __str__(self) -> str:
        return self.sentence


@takes_scores
def calibration_test(
    y: Any,
    *,
    method: str = "kuiper",
    law: str = "auto",
    resamples: int = RESAMPLES,
    rng: Any = 0,
    **given: Unpack[Scores],
) -> CalibrationTest:
    r"""Test whether the hits could come from the stated confidences.

    The null hypothesis is that row i is a hit with probability h_i, independently of
    other rows. No curve is fitted and no bin chosen.

    Parameters
    ----------
    y : array_like
        Labels, or correctness if ``confidence=`` is given. Hits must be 0 or 1.
    method : {"kuiper", "ks", "spiegelhalter", "bootstrap"}
        ``"kuiper"`` and ``"ks"`` are the range and the largest absolute value of the
        cumulative differences; ``"spiegelhalter"`` compares the Brier score with the
        one expected of a calibrated model, on both sides; ``"bootstrap"`` redraws the
        debiased squared calibration error of a kernel of adaptive width.
    law : {"auto", "asymptotic", "simulated"}
        Where the p-value comes from. ``"auto"`` simulates where steps of the cumulative
        differences are too coarse for the asymptotic law (few rows, or ties) and weights
        are whole. ``"bootstrap"`` is always simulated.
    resamples : int
        Data sets to simulate; no simulated p-value is below ``1 / (resamples + 1)``.
    rng : int, Generator or None
        Seed of the simulation.
    **given
        One of ``probs=``, ``logits=`` and ``confidence=``, and optionally ``target=``,
        ``classes=`` and ``sample_weight=``, as in `acumen.evaluate`. Weights count
        rows; where hits are simulated they must be whole.

    Returns
    -------
    CalibrationTest
        Statistic, p-value and a sentence.

    Notes
    -----
    Rows are taken in order of confidence, ties in one step, from the origin on. If the
    model is calibrated, the sums :math:`\sum (a_i - h_i)` are a martingale whose
    variance grows by :math:`h_i (1 - h_i)`. On that clock, and divided by the root of
    the whole variance, it tends to Brownian motion B on [0, 1], not to a bridge: nothing
    is estimated from the hits, so nothing ties the end to 0. The p-values are those of
    the largest absolute value of B and of max B - min B.

    A hit at confidence 0 or a miss at 1 is impossible under the null: p = 0. If there
    is nothing else but confidences of 0 and 1 (or, for Spiegelhalter, one half),
    nothing could speak against calibration: p = 1. So it is for the bootstrap of a
    single row, since its statistic compares rows with others.

    References
    ----------
    D. J. Spiegelhalter, *Statistics in Medicine* 5, 1986. I. Arrieta-Ibarra et al.,
    *JMLR* 23, 2022. W. Feller, *Annals of Mathematical Statistics* 22, 1951.

    Examples
    --------
    >>> import numpy as np, acumen as ac
    >>> h = np.linspace(0.5, 1, 400)
    >>> came_true = np.random.default_rng(0).random(400) < h
    >>> ac.calibration_test(came_true, confidence=h).p_value > 0.05
    True
    >>> ac.calibration_test(came_true, confidence=h**3).p_value < 0.001
    True
    """
    check_choice(method, "method", tuple(METHODS))
    check_choice(law, "law", ("auto", "asymptotic", "simulated"))
    if as_number(resamples) != int(as_number(resamples)) or resamples < 1:
        raise ValueError(
            f"resamples must be a positive whole number; got {resamples!r}."
        )
    predictions, columns = read(y, given)
    found = run_test(columns, method, law, resamples, np.random.default_rng(rng))
    found = replace(found, target=target_of(predictions))
    return replace(found, sentence=in_words(found))


def run_test(
    columns: Columns, method: str, law: str, resamples: int, rng: np.random.Generator
) -> CalibrationTest:
    """Test rows that were reduced to columns."""
    if not columns.hard:
        row = int(np.argmax((columns.hit != 0) & (columns.hit != 1)))
        raise ValueError(
            f"a test of calibration needs hits of 0 or 1; row {row} is "
            f"{columns.hit[row]:.6g}. Soft labels have another variance than h (1 - h)."
        )
    null, kind = NullRows.of(columns), METHODS[method]
    plain = replace(_NOTHING, method=method, n=null.n)
    if not kind.spread(null) > 0:
        extreme = null.contradictions > 0
        return replace(plain, statistic=inf if extreme else 0.0, p_value=1.0 - extreme)
    certain = null.contradictions > 0
    null = null.coarse() if kind.coarse else null
    statistic = float(kind.statistic(null, null.observed())[0])
    if certain:
        return replace(plain, statistic=statistic, p_value=0.0)
    law = _choose_law(null, kind, law)
    if law != "simulated":
        assert kind.tail is not None
        p = kind.tail(abs(statistic))
    else:
        p = _simulated(null, kind, statistic, resamples, rng)
    return replace(plain, statistic=statistic, p_value=p, law=law)


_NOTHING = CalibrationTest(0.0, 1.0, "", "exact", 0.0, "")


def _choose_law(null: NullRows, kind: Method, law: str) -> str:
    if kind.tail is None and law == "asymptotic":
        raise ValueError("method='bootstrap' has no asymptotic law; leave law out.")
    must = kind.tail is None or law == "simulated"
    if must and not null.countable:
        raise ValueError(
            "sample_weight must be whole numbers where hits are simulated. Use "
            "law='asymptotic' with method='kuiper', 'ks' or 'spiegelhalter'."
        )
    if must or (law == "auto" and null.countable and not is_smooth(null)):
        return "simulated"
    return kind.law


def _simulated(
    null: NullRows,
    kind: Method,
    statistic: float,
    resamples: int,
    rng: np.random.Generator,
) -> float:
    parts = [kind.statistic(null, part) for part in null.redraw(resamples, rng)]
    redrawn = np.concatenate(parts)
    if kind.sides == 2:
        redrawn, statistic = np.abs(redrawn), abs(statistic)
    slack = 1e-9 * np.abs(redrawn).max()  # equal but for round-off counts as equal
    return float((1 + (redrawn >= statistic - slack).sum()) / (1 + resamples))


def in_words(found: CalibrationTest) -> str:
    """One sentence that claims no more than the p-value does."""
    size = f"({found.method}, {found.n:,.10g} row{'' if found.n == 1 else 's'})"
    p = found.p_value
    told = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if found.law == "exact" and p == 0:
        return f"p = 0: a confidence of 0 or 1 was contradicted {size}."
    if found.law == "exact":
        return f"p = 1: nothing here could speak against calibration {size}."
    if p < SIGNIFICANT:
        return (
            f"{told}: hits would hardly be so far from the confidences if these were "
            f"right {size}."
        )
    return f"{told}: nothing here speaks against calibration, which is no proof of it {size}."
