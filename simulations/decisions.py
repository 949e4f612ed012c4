"""How often intervals of risk and coverage, decisions and clinical measures hold the truth.

    python -m simulations.decisions

Data sets come from worlds whose truth is known: that of 50,021 evenly spaced places whose
outcomes are their own probabilities. Goes on where `decisions.json` ends; writes
`decisions.md`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy

from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
from scipy.special import expit, logit, ndtri

import calibrant as cal
from calibrant._base.measures import MEASURES
from calibrant._stats.metrics import METRICS
from calibrant._verbs import clinical
from calibrant._verbs import decisions as verb
from calibrant._verbs.compare import ModelRows, paired_difference
from calibrant._verbs.reading import read_sample
from simulations import tallies
from simulations.tallies import Case
from simulations.worlds import (
    Clusters,
    Weights,
    World,
    atoms,
    beta,
    normal,
    same,
    tempered,
)

HERE = Path(__file__).resolve().parent
SEED, RESAMPLES, PLACES = 1, 200, 50_021
BENEFIT, COST, ACCEPTED = (0.1, 0.3), (0.2, 0.5), 0.8
BEFORE, NOISE = 0.8, 0.5
"""Another model: log-odds times this, with normal noise of this spread."""

RISK = beta(1.2, 3)
HEAVY, TENS = Weights(spread=1.0), Clusters(10, 0.25, near=None)


def seen() -> Iterator[tuple[World, int]]:
    """Worlds that intervals were mended on."""
    off = tempered(1.5)
    yield World("calibrated", "risks of Beta(1.2, 3), calibrated", RISK, same), 1000
    yield World("off", "the same, temperature 1.5", RISK, off), 1000
    yield World("rare", "3 % events, calibrated", beta(0.6, 19), same), 1000
    yield World("sure", "saturated, temperature 1.5", normal(2.5, 1.5), off), 1000
    words = "log-normal weights, calibrated"
    yield World("weights_cal", words, RISK, same, HEAVY), 1000
    words = "log-normal weights, temperature 1.5"
    yield World("weights_off", words, RISK, off, HEAVY), 1000
    words = "10 rows of any risk, calibrated"
    yield World("clusters_cal", words, RISK, same, None, TENS), 1000
    words, near = "10 rows of near risk, temperature 1.5", Clusters(10, 0.25, near=0.02)
    yield World("clusters_off", words, RISK, off, None, near), 1000


def unseen() -> Iterator[tuple[World, int]]:
    """Worlds that nothing was chosen by: made before the mending, and looked at after it."""
    words, law = "few examples, not sure enough", normal(-0.8, 1.3)
    yield World("few", words, law, tempered(0.7, 0.3)), 300
    words, law = "1.6 % events, temperature 1.2", beta(0.5, 30)
    yield World("rarer", words, law, tempered(1.2)), 1000
    words = "six values, their rates off by up to 0.12"
    six = atoms((0.05, 0.15, 0.25, 0.45, 0.65, 0.9), (0.25, 0.2, 0.2, 0.15, 0.1, 0.1))
    yield World("ties", words, six, lambda h: 0.04 + 0.8 * h), 300
    words = "weights that grow with the risk, log-normal of 0.7; not sure enough"
    own = Weights(mean=lambda h: 1 + 2 * h, spread=0.7)
    yield World("weights", words, beta(2, 5), tempered(0.8), own), 1000
    words = "log-normal weights of 1.3, 6 % events, calibrated"
    yield World("heavy", words, beta(0.8, 12), same, Weights(spread=1.3)), 1000
    words = "20 clusters of 15 rows of any risk, shifted"
    shifted, own = tempered(1.0, -0.4), Clusters(15, 0.2, near=None)
    yield World("few_clusters", words, beta(2, 3), shifted, None, own), 300
    words = "about 100 clusters of uneven sizes and near risk, temperature 1.3"
    own = Clusters(8, 0.3, near=0.05, spread=0.7)
    yield World("uneven", words, beta(1, 2), tempered(1.3), None, own), 1000
    words, law = "many examples, risks near 0 and 1", beta(0.5, 0.7)
    yield World("many", words, law, tempered(1.3, -0.2)), 5000
    words = "weights and clusters of 5 at once, temperature 1.4"
    both = Weights(spread=0.6), Clusters(5, 0.3, near=0.1)
    yield World("both", words, beta(1.5, 4), tempered(1.4), *both), 1000
    words, own = "15 clusters of 20 rows of near risk, temperature 0.7", (20, 0.2, 0.05)
    law = tempered(0.7), None, Clusters(*own)
    yield World("wards", words, beta(2, 4), *law), 300
    words = "weights and uneven clusters of about 6, saturated, temperature 1.3"
    both = Weights(spread=0.9), Clusters(6, 0.3, near=0.1, spread=0.5)
    yield World("survey", words, normal(1.8, 1.6), tempered(1.3), *both), 900


def fresh() -> Iterator[tuple[World, int]]:
    """The same of what was mended last, by what the worlds above showed."""
    words, law = "1 % events, twice the odds", beta(0.4, 40)
    yield World("scarce", words, law, tempered(1.0, 0.7)), 1500
    words = "25 clusters of 12 rows of any risk, not sure enough"
    law = tempered(0.8, 0.2), None, Clusters(12, 0.25, near=None)
    yield World("schools", words, beta(2, 3), *law), 300
    words = "weights and clusters of 4 rows of any risk, 5 % events, temperature 1.2"
    both = Weights(spread=0.5), Clusters(4, 0.3, near=None)
    yield World("panel", words, beta(0.8, 14), tempered(1.2), *both), 1200


CURVE = ("ici", "e50", "e90", "emax")
BANDS = ("e50", "e90", "emax", "decision loss")
"""Their intervals are bands, which promise to hold at least as often as their level."""

Numbers = Iterator[tuple[str, cal.Estimate]]


def accepted(hit, h):
    """Whether the likelier outcome came true, and how likely it was."""
    return np.where(h >= 0.5, hit, 1 - hit), np.maximum(h, 1 - h)


def selective(hit, h, risk, **given) -> Numbers:
    """Numbers of the risk-coverage curve; `risk` is the one that coverage is asked at."""
    right, sure = accepted(hit, h)
    found = cal.risk_coverage(right, confidence=sure, **given)
    yield from (("AURC", found.aurc), ("E-AURC", found.excess), ("AUGRC", found.augrc))
    yield f"accuracy at {ACCEPTED:.0%}", found.accuracy_at(ACCEPTED)
    yield "coverage at a risk", found.coverage_at(risk)


def along(what: str, at, value, low, high) -> Numbers:
    """A number at each threshold; NaN ends are no interval."""
    for t, *found in zip(at, value, low, high, strict=True):
        ends = None if np.isnan(found[1:]).any() else tuple(found[1:])
        yield f"{what} at {t:g}", cal.Estimate(found[0], ends)


def decisions(hit, h, **given) -> Numbers:
    """Net benefit and elementary scores, and the Brier score below them."""
    curve = cal.decision_curve(hit, confidence=h, thresholds=BENEFIT, **given)
    yield from along("net benefit", BENEFIT, curve.net_benefit, curve.low, curve.high)
    curve = cal.murphy(hit, confidence=h, thresholds=COST, **given)
    yield from along("Murphy score", COST, curve.score, curve.low, curve.high)
    yield "Murphy area", curve.area


def walk(hit, h, **given) -> Numbers:
    """Numbers of the cumulative differences."""
    found = cal.cutoff_error(hit, confidence=h, resamples=RESAMPLES, **given)
    yield from (("cutoff error", found.error), ("decision loss", found.decision_loss))


def rival(h, noise):
    """Another model's risks of the same rows, in another order."""
    return expit(BEFORE * logit(np.clip(h, 1e-12, 1 - 1e-12)) + NOISE * ndtri(noise))


def differences(hit, h, other, **given) -> Numbers:
    """What the other model has more, on the same rows.

    By what `murphy`, `decision_curve` and `compare` call: whole evaluations, most of whose
    numbers are not looked at here, take ten times as long.
    """
    scores = {"sample_weight": given.get("sample_weight")}
    ours, theirs = (
        read_sample(
            hit.astype(int), scores | {"probs": x}, given.get("cluster"), None, 0.95
        )
        for x in (h, other)
    )
    both = theirs.sample, ours.sample
    for what, at, worth in (
        ("Murphy", COST, verb._cost),
        ("net benefit", BENEFIT, verb._benefit),
    ):
        found = verb._along(*both, np.array(at), worth)
        yield from along(f"{what} difference", at, *found)
    models = [_model_rows(sample) for sample in both]
    for key, words in AREAS.items():
        found = paired_difference(*models, MEASURES[key])
        yield f"{words} difference", found


def _model_rows(sample) -> ModelRows:
    """Rows with the areas of an evaluation of them."""
    areas = {key: METRICS[key].estimate(sample) for key in AREAS}
    return ModelRows(SimpleNamespace(metrics=areas), sample)


AREAS = {"aurc": "AURC", "excess_aurc": "E-AURC", "augrc": "AUGRC"}


def clinical_means(hit, h, **given) -> Numbers:
    """Clinical numbers whose intervals are closed forms, by what `clinical` calls."""
    scores = {"confidence": h, "sample_weight": given.get("sample_weight")}
    sample = read_sample(hit, scores, given.get("cluster"), None, 0.95).sample
    yield "in_the_large", clinical._in_the_large(sample)
    yield "oe_ratio", clinical._ratio(sample)
    yield from clinical.logistic(sample).items()
    yield "scaled_brier", clinical._scaled(sample)
    yield "c_statistic", clinical._c_statistic(sample)


def closed(hit, h, risk, **given) -> Numbers:
    """Everything of one model that nothing is resampled for."""
    yield from selective(hit, h, risk, **given)
    yield from decisions(hit, h, **given)
    yield from clinical_means(hit, h, **given)


def resampled(hit, h, **given) -> Numbers:
    """The rest, which takes longer."""
    yield from walk(hit, h, **given)
    told = cal.clinical(hit, confidence=h, resamples=RESAMPLES, **given).estimates
    yield from ((key, told[key]) for key in CURVE)


@cache
def truth_of(world: World) -> tuple[dict[str, float], float]:
    """Population values, and the risk at the coverage that is asked for."""
    h = world.confidence((np.arange(PLACES) + 0.5) / PLACES)
    m, given = world.truth_at(h), {}
    mass = np.ones(PLACES)
    if world.weights is not None:
        mass = world.weights.mean(h)
        given = {"sample_weight": mass}
    right, sure = accepted(m, h)
    curve = cal.risk_coverage(right, confidence=sure, **given)
    risk = 1 - float(curve.accuracy_at(ACCEPTED))
    both = *closed(m, h, risk, **given), *resampled(m, h, **given)
    found = {key: float(x) for key, x in both}
    rate, score = (
        np.average(x, weights=mass) for x in (m, m * (1 - h) ** 2 + (1 - m) * h**2)
    )
    found["scaled_brier"] = 1 - score / (rate * (1 - rate))
    found["Murphy area"] = score
    other = rival(h, (np.arange(PLACES) * 0.6180339887498949 + 0.5) % 1)
    return found | _true_differences(m, h, other, risk, given), risk


def _true_differences(m, h, other, risk, given) -> dict[str, float]:
    ours, theirs = (
        {
            k: float(v)
            for k, v in (*selective(m, x, risk, **given), *decisions(m, x, **given))
        }
        for x in (h, other)
    )
    more = {key: theirs[key] - ours[key] for key in ours}
    named = {f"{key} difference": more[key] for key in AREAS.values()}
    for what, at in (("Murphy score", COST), ("net benefit", BENEFIT)):
        for t in at:
            new = what.replace(" score", "") + f" difference at {t:g}"
            named[new] = more[f"{what} at {t:g}"]
    return named


def measure(world: World, n: int, replicate: int) -> tallies.Found:
    """Everything of one data set that has a closed form, beside the truth."""
    truth, risk = truth_of(world)
    rows = world.draw(n, replicate, SEED)
    hit, h = rows.hit.astype(float), rows.confidence
    noise = np.random.default_rng([SEED, n, replicate]).random(n)
    for key, found in closed(hit, h, risk, **rows.given):
        yield key, found, truth[key]
    for key, found in differences(hit, h, rival(h, noise), **rows.given):
        yield key, found, truth[key]


def measure_resampled(world: World, n: int, replicate: int) -> tallies.Found:
    """What is resampled, of the same data sets."""
    truth, _ = truth_of(world)
    rows = world.draw(n, replicate, SEED)
    for key, found in resampled(rows.hit.astype(float), rows.confidence, **rows.given):
        yield key, found, truth[key]


def cases(worlds) -> list[Case]:
    """Worlds as cases."""
    return [Case(w.name, w.words, n, partial(measure, w, n)) for w, n in worlds]


def slow(worlds) -> list[Case]:
    """The same, of what is resampled."""
    return [
        Case(w.name + "*", w.words, n, partial(measure_resampled, w, n))
        for w, n in worlds
    ]


KINDS = {
    "fresh": (cases, fresh),
    "fresh_slow": (slow, fresh),
    "unseen": (cases, unseen),
    "unseen_slow": (slow, unseen),
    "seen": (cases, seen),
    "seen_slow": (slow, seen),
}

PAGE = """\
# Risk and coverage, decisions, clinical measures: how often intervals hold

Written by

    python -m simulations.decisions

The share of 95 % intervals, in per cent, that hold the truth, with its binomial standard
error; **bold** where it is outside 93 to 97. A true coverage of 95 % is outside, by chance, in
one of 14 numbers from 400 data sets. *Bands* promise to hold at least as often as their level:
E50, E90, Emax and the decision loss; they are bold below 93. "None" counts data sets without
an interval. Intervals of errors near 0 begin at 0, so in calibrated worlds they can miss on
one side only. Differences are those of a second model of the same examples, whose log-odds are
{before} times the first's with normal noise of {noise}.

## Worlds that nothing was chosen by

Written down before the intervals that they are about were looked at, and looked at once.

{fresh_words}
{fresh_outside}

{fresh}
The cutoff error, ICI and their like, whose noise is resampled ({resamples} times):
{fresh_slow_sets}.

{fresh_slow}
## Worlds that some things were chosen by

These were such worlds, too, until they showed that differences of areas were too wide
with clusters and few events, and the cutoff error and ICI too narrow (`rarer`,
`few_clusters`, `both`), and that differences of net benefit and Murphy scores must not be widened
for clusters without a surprise (`few_clusters`, `wards`, `survey`). Nothing else was chosen by
them. With ties the coverage at a risk jumps from one value to the next, which its interval does
not know (`ties`).

{unseen_words}
{unseen_outside}

{unseen}
What is resampled: {unseen_slow_sets}.

{unseen_slow}
## Worlds that the intervals were mended on

{seen_words}
{seen_outside}

{seen}
What is resampled: {seen_slow_sets}.

{seen_slow}"""


def page(known: Mapping[str, dict]) -> str:
    """The whole of `decisions.md`."""
    told = {"before": BEFORE, "noise": NOISE, "resamples": RESAMPLES}
    for name, worlds in (("fresh", fresh), ("unseen", unseen), ("seen", seen)):
        some, more = (
            [case for case in make(worlds()) if known[case.name]["sets"]]
            for make in (cases, slow)
        )
        told[f"{name}_words"] = tallies.legend(some, known)
        told[f"{name}_outside"] = tallies.outside(some + more, known, BANDS)
        told[name] = tallies.coverage_table(some, known, BANDS)
        told[f"{name}_slow"] = tallies.coverage_table(more, known, BANDS)
        sets = {known[case.name]["sets"] for case in more} or {0}
        told[f"{name}_slow_sets"] = f"{min(sets)} to {max(sets)} data sets a world"
    return PAGE.format(**told)


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=tallies.REPLICATES, show_default=True)
@click.option("--minutes", default=60.0, show_default=True)
@click.option("--only", default=",".join(KINDS), show_default=True)
def main(replicates: int, minutes: float, only: str):
    kinds = {kind: make(worlds()) for kind, (make, worlds) in KINDS.items()}
    every = [case for some in kinds.values() for case in some]
    own = tallies.chosen(only, kinds)
    tallies.run(every, HERE / "decisions.json", page, replicates, minutes, own)


if __name__ == "__main__":
    main()
