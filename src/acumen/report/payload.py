"""The data of a page: names, numbers and sums, as JSON that no parser takes for markup."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acumen.comparison import MEASURES, Comparison, is_trivial
from acumen.encoding import plain
from acumen.findings import Finding
from acumen.plot.reading import view
from acumen.plot.support import doubtful, trusted
from acumen.report.binary import base64_of
from acumen.report.coarse import (
    FEWER_NODES,
    MANY_MODELS,
    NODES,
    SCORES,
    Coarse,
    calibrations,
    coarse_sums,
)
from acumen.report.parts import class_view, group_view, interval_of, state_of
from acumen.report.remarks import SCORE_LABELS, badges
from acumen.results import Evaluation
from acumen.settings import PAPER_BANDWIDTH
from acumen.table.cells import Heading
from acumen.table.columns import PAPER, choose

LIVE = ("calibration", "sharpness_gap", "total")
"""Columns that follow the bandwidth."""

BARS = 60
BANDWIDTHS = (
    0.005, 0.007, 0.01, 0.014, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.14, 0.18, 0.25,
)  # fmt: skip
KERNELS = ("gaussian", "epanechnikov")


def headings(comparison: Comparison) -> list[Heading]:
    """Columns of the table: those of the paper that some model has, and the parts."""
    fixed = [key for key in PAPER if key not in LIVE]
    kept = [c.heading for c in choose(fixed, comparison) if _has(c.key, comparison)]
    return [*kept, *(c.heading for c in choose(LIVE, comparison))]


def _has(key: str, comparison: Comparison) -> bool:
    return not np.isnan([float(MEASURES[key].of(ev)) for ev in comparison]).all()


def nodes_for(comparison: Comparison) -> int:
    """Nodes per model: fewer where there are many models."""
    return FEWER_NODES if len(comparison) >= MANY_MODELS else NODES


def sums_of(comparison: Comparison) -> list[Coarse | None]:
    """Coarse sums of every model that has a sketch."""
    nodes = nodes_for(comparison)
    return [coarse_sums(ev, nodes) for ev in comparison]


def payload(
    comparison: Comparison,
    sums: list[Coarse | None],
    groups: Mapping[str, Any] | None = None,
    found: Sequence[Finding] = (),
) -> dict[str, Any]:
    """Everything the page computes and draws from."""
    first = comparison[0]
    common = [
        s
        for s in first.decompositions
        if all(s in e.decompositions for e in comparison)
    ]
    views = [class_view(comparison), group_view(comparison, groups)]
    return plain(
        {
            "nodes": nodes_for(comparison),
            "scores": [{"key": s, "label": SCORE_LABELS.get(s, s)} for s in common],
            "score": first.divergence,
            "adaptive": all(e.decomposition.bandwidth is None for e in comparison),
            "bandwidth": first.decomposition.bandwidth or PAPER_BANDWIDTH,
            "kernel": first.decomposition.kernel,
            "level": float(first.settings["level"]),
            "words": axis_words(first),
            "columns": [_column(heading) for heading in headings(comparison)],
            "models": [
                {**_model(ev, one, comparison, common), "badges": badges(ev, found)}
                for ev, one in zip(comparison, sums, strict=True)
            ],
            "sweep": _sweep(sums),
            "views": [one for one in views if one is not None],
        }
    )


def axis_words(ev: Evaluation) -> dict[str, str]:
    """What the axes of a diagram are called: what came true, against what was said."""
    if ev.target in ("positive", "class-wise"):
        return {"hit": "share of positives", "said": "forecast"}
    return {"hit": "accuracy", "said": "confidence"}


def _column(heading: Heading) -> dict[str, Any]:
    measure = MEASURES[heading.key]
    return {
        "key": heading.key,
        "label": heading.label,
        "up": measure.higher_is_better,
        "calibration": measure.calibration,
        "live": heading.key in LIVE,
    }


def _model(
    ev: Evaluation, sums: Coarse | None, comparison: Comparison, scores: list[str]
) -> dict[str, Any]:
    atoms = ev.atoms
    fixed = [h.key for h in headings(comparison) if h.key not in LIVE]
    return {
        "name": ev.name,
        "rows": ev.n,
        "trivial": is_trivial(ev),
        "infinite": ev.infinite_rows,
        "metrics": {key: interval_of(MEASURES[key].of(ev)) for key in fixed},
        "atoms": np.stack(
            [atoms.confidence, atoms.count / ev.n, atoms.accuracy], axis=1
        ),
        "bars": ev.histogram.reshape(BARS, -1).sum(axis=1) / ev.n,
        "reported": {score: _parts(ev, score) for score in scores},
        "line": _line(ev, scores),
        "mass": _mass(ev, scores, whole=sums is None or set(scores) > set(SCORES)),
        "sums": None if sums is None else _sums(sums),
    }


def _parts(ev: Evaluation, score: str) -> dict[str, Any]:
    parts = ev.decompositions[score]
    return {
        "calibration": interval_of(parts.calibration),
        "total": interval_of(parts.total),
        "sharpness_gap": interval_of(parts.sharpness_gap),
    }


def _line(ev: Evaluation, scores: list[str]) -> dict[str, Any]:
    """The line as evaluated: adaptive, or at the bandwidth asked for."""
    seen = view(ev)
    curve = seen.curve
    columns = {
        name: base64_of(getattr(curve, name))
        for name in ("confidence", "accuracy", "low", "high", "support")
    }
    gaps = {score: base64_of(ev.curves[score].sharpness_gap) for score in scores}
    bandwidth = seen.parts.bandwidth
    return {
        **columns,
        "gaps": gaps,
        "state": state_of(trusted(seen), doubtful(seen)),
        "bandwidth": bandwidth,
    }


def _mass(ev: Evaluation, scores: list[str], *, whole: bool) -> dict[str, Any]:
    """What the band of that line is made of: density times sharpness gap.

    The columns are left out where the page can make them from the sums.
    """
    seen = {score: view(ev, score) for score in scores}
    some = next(iter(seen.values()))
    made = {
        "bandwidth": some.parts.bandwidth or PAPER_BANDWIDTH,
        "kernel": some.parts.kernel,
    }
    if not whole:
        return made
    return {
        **made,
        "density": base64_of(some.mass.density),
        "support": base64_of(some.mass.support),
        "gaps": {score: base64_of(v.mass.sharpness_gap) for score, v in seen.items()},
    }


def _sums(sums: Coarse) -> dict[str, Any]:
    return {
        "weight": base64_of(sums.weight),
        "hits": base64_of(sums.hits),
        "losses": {score: base64_of(sums.losses[score]) for score in SCORES},
        "infinite": base64_of(sums.infinite) if sums.infinite.any() else "",
        "slope": base64_of(sums.slope, "<f8"),
        "rows": sums.rows,
        "total": sums.total,
        "tangent": sums.tangent,
        "unit": sums.unit,
        "certain": list(sums.certain),
        "factor": sums.factor,
        "boundary": sums.boundary,
        "estimator": sums.estimator,
    }


def _sweep(sums: list[Coarse | None]) -> dict[str, Any] | None:
    """d_CAL of every model by kernel, score and bandwidth."""
    if any(one is None for one in sums):
        return None
    found: dict[str, Any] = {"bandwidths": BANDWIDTHS}
    for kernel in KERNELS:
        table = [
            [calibrations(one, b, kernel) for b in BANDWIDTHS] for one in sums if one
        ]
        found[kernel] = {
            score: [[_short(at[score]) for at in row] for row in table]
            for score in SCORES
        }
    return found


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def as_json(data: Mapping[str, Any]) -> str:
    r"""Strict JSON, safe inside a script element.

    Examples
    --------
    >>> print(as_json({"name": "</script>&"}))
    {"name":"\u003c/script\u003e\u0026"}
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
