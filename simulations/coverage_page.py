"""The page that counts of covered truths make."""

from collections.abc import Iterable, Sequence

import numpy as np

GAP_EVERY = 5
"""The gap needs the curve, which takes most of the time: one replicate in five."""

HEADLINE = ("total", "ece_debiased", "calibration", "smooth_ece", "paired")
OTHERS = ("ece", "ace", "mce", "ece_mass", "ks_error", "confidence_gap", "auroc")
TERMS = ("accuracy", "nll", "mcb", "dsc", "unc", "sharpness_gap")
LEAST, MOST = 0.92, 0.97

RESAMPLED = ("smooth_ece", "ece", "ace", "mce", "ece_mass", "ks_error", "sharpness_gap")
KINDS = {
    "closed": tuple(x for x in (*HEADLINE, *OTHERS, *TERMS) if x not in RESAMPLED),
    "resampled": RESAMPLED,
}
"""Metrics by what their intervals cost: a closed form, or resamples and curves."""

WORDS = {"closed": "closed forms", "resampled": "resampled"}


def merged(cases: Iterable[dict]) -> dict[tuple[str, int], dict[str, dict]]:
    """What was found of each metric, by world and n, whatever the kind."""
    found: dict[tuple[str, int], dict[str, dict]] = {}
    for case in cases:
        found.setdefault((case["world"], case["n"]), {}).update(case["found"])
    return found


def table(cases: Iterable[dict], names: Sequence[str]) -> str:
    """One row for each world and n; coverages outside 92-97 % are marked."""
    lines = [
        [world, f"{n:,}", *(_shown(found.get(name)) for name in names)]
        for (world, n), found in merged(cases).items()
    ]
    return markdown(["scores, accuracy", "n", *names], lines)


def _shown(found: dict[str, float] | None) -> str:
    if found is None:
        return ""
    share = f"{100 * found['covered']:.1f}"
    return share if LEAST <= found["covered"] <= MOST else f"**{share}**"


def overview(cases: Sequence[dict]) -> str:
    """Mean, least and largest coverage of each metric, by n."""
    sizes = sorted({case["n"] for case in cases})
    names = (*HEADLINE, *OTHERS, *TERMS)
    lines = [[name, *(_spread(cases, name, n) for n in sizes)] for name in names]
    return markdown(["metric", *(f"n = {n:,}" for n in sizes)], lines)


def _spread(cases: Sequence[dict], name: str, n: int) -> str:
    here = [
        100 * found[name]["covered"]
        for (_, size), found in merged(cases).items()
        if size == n and name in found
    ]
    return f"{np.mean(here):.1f} ({min(here):.1f} to {max(here):.1f})" if here else ""


def within(cases: Iterable[dict], names: Sequence[str]) -> str:
    """How many shares are neither too small nor too large, and what they reach."""
    shares = [
        found[name]["covered"]
        for found in merged(cases).values()
        for name in names
        if name in found
    ]
    good = sum(LEAST <= share <= MOST for share in shares)
    ends = f"{100 * min(shares):.1f} to {100 * max(shares):.1f}"
    return f"{good} of {len(shares)} shares lie within; they range from {ends}."


def counts(cases: Sequence[dict]) -> str:
    """Data sets of each case, by kind of interval and n, with the standard error."""
    sizes = sorted({case["n"] for case in cases})
    lines = [[WORDS[kind], *(_count(cases, kind, n) for n in sizes)] for kind in KINDS]
    return markdown(["intervals", *(f"n = {n:,}" for n in sizes)], lines)


def _count(cases: Sequence[dict], kind: str, n: int) -> str:
    here = {c["replicates"] for c in cases if (c["kind"], c["n"]) == (kind, n)}
    if not here:
        return ""
    se = 100 * np.sqrt(0.95 * 0.05 / min(here))
    most = f" to {max(here):,}" if len(here) > 1 else ""
    return f"{min(here):,}{most} (± {se:.1f})"


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    whole = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in whole) + "\n"


PAGE = """\
# Coverage of the intervals

Written by

    python simulations/interval_coverage.py --seed {seed}

Share of nominal 95 % intervals that hold the population value, in per cent. Shares
outside 92 to 97 are bold. Scores are uniform or Beta(½,½); the accuracy is the score
itself (calibrated), its square, σ(0.4 logit p + 0.3), σ(4 logit p + 1) or
min(p + 0.02, 1). `total` is the Brier score, `calibration` d_CAL, and `paired` the
difference in Brier score to another model on the same rows.

The error of a calibrated model is 0, and nothing lies below: the score intervals of d_CAL
and the debiased ECE can miss it on one side only, so as n grows they cover it 97.5 % of
the time, not 95 %, and other small errors nearly so. An interval that begins at 0 says that
it is one-sided.

## Data sets

Of each case, with the standard error of a share of 95. The sharpness gap has a fifth of
those with resampled intervals.

{counts}
## Overview

Mean over the cases (least to largest).

{overview}
## Headline

{within}

{headline}
## Other calibration errors, and averages

{others}
## Terms of decompositions

{terms}"""


def page(cases: Sequence[dict], seed: int) -> str:
    """The whole of `coverage.md`."""
    return PAGE.format(
        seed=seed,
        counts=counts(cases),
        overview=overview(cases),
        within=within(cases, HEADLINE),
        headline=table(cases, HEADLINE),
        others=table(cases, OTHERS),
        terms=table(cases, TERMS),
    )
