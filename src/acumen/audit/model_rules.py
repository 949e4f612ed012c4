"""Rules for the numbers of one model: each may find something in an evaluation.

The first line of a docstring says what is found, the rest why it matters; the page of
codes in the manual is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acumen.estimators.adaptive import brier_error
from acumen.estimators.neighbours import cells_of_sketch
from acumen.findings import Finding
from acumen.intervals import WIDENED, Interval
from acumen.measures import is_trivial
from acumen.results import Evaluation

Rule = Callable[[Evaluation], Iterator[Finding]]

FEW_VALUES, MANY_ROWS, MOST_VALUES = 40, 100, 256
"""Few confidences: up to 40, or up to 256 if 100 rows or more share one on average."""

HALF = 0.5


def trivial_confidence(ev: Evaluation) -> Iterator[Finding]:
    """(Nearly) all rows have the same confidence.

    Such a model is calibrated by matching one number, its accuracy, and says nothing of
    single rows. Mean replacement does this to any model: accuracy stays, calibration
    errors vanish, and only a proper score or the sharpness gap shows what was lost.
    """
    if is_trivial(ev):
        share = 100 * ev.largest_share
        yield Finding(
            "trivial-confidence",
            "serious",
            (ev.name,),
            f"{ev.name} gives {share:.4g} % of its rows the same confidence: it is "
            "calibrated by matching one number.",
            {"largest_share": ev.largest_share, "distinct": float(ev.distinct)},
            "Do not quote its calibration error alone; compare Brier score and NLL.",
        )


def few_confidences(ev: Evaluation) -> Iterator[Finding]:
    """There are few distinct confidences.

    Between them the calibration curve is made up by smoothing, and a binned error jumps
    where a bin edge passes a value. Histogram binning, forests and stated confidences
    are of this kind. Coarse confidences are easy to calibrate and say less of single
    rows, which the sharpness gap shows.
    """
    few = ev.distinct <= FEW_VALUES and ev.rows > 2 * ev.distinct
    rounded = ev.distinct <= MOST_VALUES and ev.rows >= MANY_ROWS * ev.distinct
    if (few or rounded) and not is_trivial(ev):
        yield Finding(
            "few-confidences",
            "note",
            (ev.name,),
            f"{ev.name} has only {ev.distinct} distinct confidences in {ev.rows:,} rows.",
            {"distinct": float(ev.distinct), "rows": float(ev.rows)},
            "Read the accuracy at each value, not the curve between them; choose bins "
            "that split no value.",
        )


def infinite_loss(ev: Evaluation) -> Iterator[Finding]:
    """Some true class was given probability 0.

    The log loss is then infinite, whatever the other rows say, and any finite NLL
    printed for it comes from clipping. Isotonic and histogram recalibration make such
    zeros. The Brier score stays finite.
    """
    if ev.infinite_rows > 0:
        did = "was certain and wrong"
        if ev.target in ("top-label", "class-wise"):
            did = "gave the true class probability 0"
        yield Finding(
            "infinite-loss",
            "warning",
            (ev.name,),
            f"{ev.name} {did} in {ev.infinite_rows:,.10g} of {ev.n:,.10g} rows: NLL is "
            "infinite.",
            {"rows": ev.infinite_rows, "share": ev.infinite_rows / ev.n},
            "Report the count; a clipped NLL measures the clip.",
        )


def one_dimensional_score(ev: Evaluation) -> Iterator[Finding]:
    """The proper score is that of the confidence, not of the classes.

    From pairs of confidence and correctness only the one-dimensional loss is known. It
    can vanish for a predictor that is always wrong, and knows it, while the full loss
    does not. It is no substitute for the score of the whole probability vector.
    """
    if ev.target == "pairs":
        right = float(ev.metrics["accuracy"])
        yield Finding(
            "one-dimensional-score",
            "warning" if right < HALF else "note",
            (ev.name,),
            f"Brier score and NLL of {ev.name} are those of its confidence alone "
            f"({100 * right:.1f} % of answers are right).",
            {"share_correct": right},
            "Quote the share of right answers beside it, and score whole probability "
            "vectors where they are to be had.",
        )


def smoothed_away(ev: Evaluation) -> Iterator[Finding]:
    """The fixed bandwidth smooths miscalibration away.

    The published estimate smooths with bandwidth 0.05 on the probability scale. Where
    most confidences lie closer together than that, as in saturated networks, it blends
    rows that are over-confident with others and finds too little: it falls below the
    interval of the adaptive estimate.
    """
    value, interval = _adaptive(ev)
    headline = ev.decomposition.bandwidth is not None
    fixed = float(ev.paper.calibration)
    if not headline and ev.settings.get("counterpart") == "tight":
        fixed *= ev.k / (ev.k - 1)  # as the adaptive estimate is
    if interval is not None and ev.divergence == "brier" and fixed < interval[0]:
        low, high = interval
        yield Finding(
            "smoothed-away",
            "warning" if headline else "note",
            (ev.name,),
            f"At bandwidth {ev.paper.bandwidth:g} the calibration error of {ev.name} is "
            f"{fixed:.4f}, below the {value:.4f} [{low:.4f}, {high:.4f}] of the adaptive "
            "estimate.",
            {"fixed": fixed, "adaptive": value, "low": low, "high": high},
            "Quote the adaptive estimate (bandwidth='auto').",
        )


def narrow_defect(ev: Evaluation) -> Iterator[Finding]:
    """A narrow range of confidence is miscalibrated by more than the log estimate shows.

    The log calibration error comes from local fits wide enough to be stable, and a defect
    narrower than they are is smoothed away. Rows closer together still agree that
    something is left; the interval was widened to include it. Round numbers that people
    or language models prefer have this effect.
    """
    parts = ev.decompositions.get("log")
    if parts is None or parts.calibration.interval is None:
        return
    if WIDENED in (parts.calibration.method or ""):
        value, high = float(parts.calibration), parts.calibration.interval[1]
        yield Finding(
            "narrow-defect",
            "note",
            (ev.name,),
            f"The log calibration error of {ev.name}, {value:.4f}, misses some of a "
            f"narrow range of confidence; its interval reaches up to {high:.4f}.",
            {"log_calibration": value, "high": high},
            "Lead with the Brier calibration error, and look for jumps in the curve.",
        )


def _adaptive(ev: Evaluation) -> tuple[float, Interval | None]:
    """The adaptive estimate: the headline, or, if it is another, from the sketch."""
    found = ev.decomposition
    if found.bandwidth is None:
        return float(found.calibration), found.calibration.interval
    if ev.sketch is None:
        return float("nan"), None
    error = brier_error(cells_of_sketch(ev.sketch), float(ev.settings["level"]))
    return error.value, error.interval


RULES: tuple[Rule, ...] = (
    trivial_confidence,
    few_confidences,
    infinite_loss,
    one_dimensional_score,
    smoothed_away,
    narrow_defect,
)
