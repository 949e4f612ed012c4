"""Differences of two models in words that claim no more than the interval does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite, isinf, isnan

from acumen.contrasts.differences import SAME, holm, is_clear, p_value
from acumen.measures import MEASURES, is_trivial
from acumen.results import Estimate, Evaluation

NAMES = {
    "accuracy": "accuracy",
    "brier": "Brier score",
    "calibration": "calibration error d_CAL",
    "sharpness_gap": "sharpness gap",
}
"""Columns whose label does not read well in a sentence."""

DIGITS = 4


def sentence(
    ev: Evaluation,
    base: Evaluation,
    key: str,
    difference: Estimate,
    *,
    paired: bool = True,
) -> str:
    """What one difference says: lower, higher, or not to be told apart."""
    what, value = name_of(key), float(difference)
    both = f"{ev.name} and {base.name}"
    if isnan(value):
        return f"{_capital(what)} of {both} is infinite."
    if isinf(value):
        worse, other = (ev, base) if value > 0 else (base, ev)
        return f"{worse.name}'s {what} is infinite, {other.name}'s is not."
    if difference.method == SAME:
        return f"{_capital(what)} of {both} is the same in every row."
    if difference.interval is None:
        told = f"{ev.name}'s {what} is {_size(value)}"
        return f"{told}; no interval is known for it."
    rows = _rows(ev, base, paired=paired)
    if not is_clear(difference):
        ends = _interval(*difference.interval)
        told = f"{_capital(what)} differs by {_number(value)} {ends}"
        return f"{told}: {rows} cannot tell {both} apart."
    low, high = sorted(abs(end) for end in difference.interval)
    told = f"{ev.name}'s {what} is {_size(value)} {_interval(low, high)}"
    return f"{told}: a real difference on {rows}.{_trivial(ev, key, value)}"


def name_of(key: str) -> str:
    """What a column is called in a sentence."""
    return NAMES.get(key, MEASURES[key].label)


def _capital(what: str) -> str:
    return what[0].upper() + what[1:]


def _trivial(ev: Evaluation, key: str, value: float) -> str:
    if not (MEASURES[key].calibration and value < 0 and is_trivial(ev)):
        return ""
    return " It is trivial, though: (nearly) every row has the same confidence."


def _rows(ev: Evaluation, base: Evaluation, *, paired: bool) -> str:
    if paired:
        return f"these {ev.n:,.10g} rows"
    return f"{ev.n:,.10g} and {base.n:,.10g} rows"


def _size(value: float) -> str:
    return f"{_number(abs(value))} {'lower' if value < 0 else 'higher'}"


def _interval(low: float, high: float) -> str:
    return f"[{_number(low)}, {_number(high)}]"


def _number(value: float) -> str:
    """Four decimals, or two digits of what is smaller; no negative zero."""
    if value != 0 and abs(value) < 10**-DIGITS and isfinite(value):
        return f"{value:.1e}"
    return f"{value + 0.0:.{DIGITS}f}"


def multiple_note(
    told: Mapping[tuple[str, str], Estimate], level: float
) -> Iterator[str]:
    """How many differences are claimed, and how many outlast Holm's correction."""
    tested = {
        place: p_value(difference, level)
        for place, difference in told.items()
        if difference.interval is not None and difference.method != SAME
    }
    claimed = [place for place in tested if is_clear(told[place])]
    if len(claimed) < 2:
        return
    kept = holm(tested, 1 - level)
    lost = [f"{name}'s {name_of(k)}" for name, k in claimed if (name, k) not in kept]
    expected = (1 - level) * len(tested)
    yield (
        f"{len(claimed)} of {len(tested)} differences are called real, each at "
        f"{100 * level:g} %; were there none, about {expected:.1g} would be. "
        + (
            f"Holm's correction drops {', '.join(lost)}."
            if lost
            else "All of them outlast Holm's correction."
        )
    )
