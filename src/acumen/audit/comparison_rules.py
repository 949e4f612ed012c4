"""Rules for several models: each looks at a comparison and may find something."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acumen.audit.audited import Audited
from acumen.contrasts.differences import is_clear
from acumen.estimators.bins import binned_error, width_bins
from acumen.estimators.regression import calibration_error, regress
from acumen.findings import Finding, listed
from acumen.intervals import quantile
from acumen.kernels import GAUSSIAN
from acumen.measures import MEASURES, is_trivial
from acumen.results import Estimate, Evaluation

BANDWIDTHS = (0.01, 0.02, 0.05, 0.1)
"""The paper finds 0.01 to 0.05 to work best, and over-smoothing beyond 0.1."""

BIN_COUNTS = (10, 15, 20, 30, 50)
SCORES = ("brier", "nll")
POWER = 0.84
"""Normal quantile of a power of 80 %."""


Rule = Callable[[Audited], Iterator[Finding]]


def score_worse(audited: Audited) -> Iterator[Finding]:
    """Calibration is better where the proper score is worse.

    A proper score is calibration error plus sharpness gap. A model that wins on the
    first and loses on the sum has paid with sharpness: mean replacement always does,
    and any recalibration may. Tables of calibration errors and accuracy cannot show it.
    """
    for name, worse in _traded(audited).items():
        ev, others = audited.comparison[name], list(worse)
        best = max(others, key=lambda other: abs(worse[other][1]))
        calibration, score, key = worse[best]
        recalibrated = bool(audited.comparison.effects) or is_trivial(ev)
        yield Finding(
            "score-worse",
            "warning" if recalibrated else "note",
            (name, *others),
            f"{name} wins over {listed(others)} in calibration error and loses in proper "
            f"score: {MEASURES[key].label} is {score:.4f} worse than that of {best}.",
            {"calibration_difference": calibration, f"{key}_difference": score},
            "Choose by the proper score, and show the sharpness gap.",
        )


def _traded(audited: Audited) -> dict[str, dict[str, tuple[float, float, str]]]:
    """By model: others it beats in calibration and loses to in a proper score."""
    found: dict[str, dict[str, tuple[float, float, str]]] = {}
    for ev, other in audited.pairs():
        if not _wins_calibration(audited, ev, other):
            continue
        lost = [key for key in SCORES if audited.clearly_better(other, ev, key)]
        if lost:
            d = float(audited.difference(ev, other, "calibration"))
            score = float(audited.difference(ev, other, lost[0]))
            found.setdefault(ev.name, {})[other.name] = d, score, lost[0]
    return found


def _wins_calibration(audited: Audited, ev: Evaluation, other: Evaluation) -> bool:
    """Clearly, or, if it does so trivially, by its number alone."""
    if is_trivial(ev) and not is_trivial(other):
        measure = MEASURES["calibration"]
        return measure.place(measure.of(ev)) <= measure.place(measure.of(other))
    return audited.clearly_better(ev, other, "calibration")


def accuracy_changed(audited: Audited) -> Iterator[Finding]:
    """Recalibration changed predictions.

    One-against-rest methods move classes past each other and make ties. What looks like
    better calibration may then be another classifier, and accuracy has to be reported
    before and after.
    """
    for name, effect in audited.comparison.effects.items():
        if effect.changed > 0:
            change = 100 * effect.accuracy_change
            yield Finding(
                "accuracy-changed",
                "warning" if effect.accuracy_change < 0 else "note",
                (name,),
                f"{name} changed the predicted class of {effect.changed:,.10g} rows: "
                f"accuracy {change:+.2f} points.",
                {
                    "accuracy_change": effect.accuracy_change,
                    "changed": effect.changed,
                    "tied": effect.tied,
                },
                "Report accuracy before and after, or use a method that keeps the order "
                "of the classes.",
            )


def bandwidth_ranking(audited: Audited) -> Iterator[Finding]:
    """Which model is better calibrated depends on the bandwidth.

    Over-smoothing can turn the order of calibration errors around. This is raised if the
    headline tells two models apart and a fixed bandwidth from 0.01 to 0.1 has them the
    other way round.
    """
    first = audited.comparison[0]
    if first.divergence != "brier" or any(
        ev.sketch is None for ev in audited.comparison
    ):
        return
    errors = {
        ev.name: {width: _fixed(ev, width) for width in BANDWIDTHS}
        for ev in audited.comparison
    }
    for ev, other in audited.pairs():
        if not audited.clearly_better(ev, other, "calibration"):
            continue
        against = [x for x in BANDWIDTHS if errors[ev.name][x] > errors[other.name][x]]
        if against:
            yield Finding(
                "bandwidth-ranking",
                "warning",
                (ev.name, other.name),
                f"{ev.name} is better calibrated than {other.name}, but not at bandwidth "
                f"{listed([f'{x:g}' for x in against])}.",
                {"difference": float(audited.difference(ev, other, "calibration"))}
                | {
                    f"at_{x:g}": errors[ev.name][x] - errors[other.name][x]
                    for x in against
                },
                "Rank by the adaptive estimate (bandwidth='auto') and its interval.",
            )


def _fixed(ev: Evaluation, bandwidth: float) -> float:
    found = regress(ev.sketch, GAUSSIAN, bandwidth)
    return calibration_error(found, ev.sketch, "brier", "direct")


def bins_ranking(audited: Audited) -> Iterator[Finding]:
    """Which model has the lower ECE depends on the bins.

    ECE jumps with bin edges, and few bins average errors of both signs away. This is
    raised if ECE as printed tells two models apart and another number of bins from 10 to
    50 has them the other way round.
    """
    if not audited.paired or audited.comparison[0].target == "class-wise":
        return
    ordered = {name: rows.values for name, rows in audited.rows.items()}
    errors = {
        name: {bins: binned_error(width_bins(values, bins)) for bins in BIN_COUNTS}
        for name, values in ordered.items()
    }
    for ev, other in audited.pairs():
        if not audited.clearly_better(ev, other, "ece"):
            continue
        against = [x for x in BIN_COUNTS if errors[ev.name][x] > errors[other.name][x]]
        if against:
            yield Finding(
                "bins-ranking",
                "warning",
                (ev.name, other.name),
                f"{ev.name} has a lower ECE than {other.name}, but not with "
                f"{listed([str(x) for x in against])} bins.",
                {"difference": float(audited.difference(ev, other, "ece"))}
                | {
                    f"at_{x}": errors[ev.name][x] - errors[other.name][x]
                    for x in against
                },
                "Rank by d_CAL, which has no bins, or show several bin counts.",
            )


def too_few_rows_to_rank(audited: Audited) -> Iterator[Finding]:
    """There are too few rows to tell the best model from the next.

    The best in a column is only the luckiest if the interval of its lead holds 0. The
    number of rows that would settle a difference of this size grows as its inverse
    square.
    """
    for key in ("brier", "calibration"):
        measure = MEASURES[key]
        models = [ev for ev in audited.comparison if not is_trivial(ev)]
        ranked = sorted(models, key=lambda ev, m=measure: m.place(m.of(ev)))  # type: ignore[misc]
        if len(ranked) < 2:
            continue
        lead = audited.difference(ranked[0], ranked[1], key)
        needed = _rows_needed(lead, ranked[0].n)
        if needed:
            first, second = ranked[0].name, ranked[1].name
            yield Finding(
                "too-few-rows",
                "note",
                (first, second),
                f"{measure.label} of {first} leads {second} by {abs(lead):.4f}, which "
                f"{ranked[0].n:,.10g} rows cannot tell from chance.",
                {"difference": float(lead), "rows_needed": needed},
                f"About {needed:,.0f} rows would settle a difference of this size.",
            )


def _rows_needed(lead: Estimate, n: float) -> float:
    """Rows for a power of 80 %, if the lead is real; 0 if it is clear or there is none."""
    if lead.interval is None or is_clear(lead) or not lead or lead.interval[0] == lead:
        return 0.0
    error = (lead.interval[1] - lead.interval[0]) / (2 * quantile(0.95))
    needed = n * ((quantile(0.95) + POWER) * error / abs(lead)) ** 2
    return float(f"{needed:.2g}")


def shared_rows(audited: Audited) -> Iterator[Finding]:
    """Rows to fit on and rows to test on overlap.

    A recalibrator is calibrated on the rows it was fitted on by construction. Tested
    there, it looks better than it is, the more so the more freedom it has.
    """
    count = getattr(audited.comparison, "shared_rows", 0)
    if count:
        n = audited.comparison[0].n
        yield Finding(
            "shared-rows",
            "serious" if count > 0.01 * n else "warning",
            audited.comparison.names,
            f"{count:,.10g} of {n:,.10g} rows to test on were also used to fit.",
            {"rows": float(count), "share": count / n},
            "Fit and test on different rows, or cross-fit (folds=).",
        )


RULES: tuple[Rule, ...] = (
    score_worse,
    accuracy_changed,
    bandwidth_ranking,
    bins_ranking,
    too_few_rows_to_rank,
    shared_rows,
)
