"""Check what recalibration promises: Venn-Abers, the choice of a method, unknown priors.

    python -m simulations.recalibration

draws data of known laws. Intervals of `select` and of
frequencies go on where `recalibration.json` ends. Writes
`recalibration.md`.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from calibrant.recalibration import (
    EnsembleTemperatureScaling,
    IsotonicCalibration,
    MixtureScaling,
    PlattScaling,
    PriorShift,
    TemperatureScaling,
    VectorScaling,
    VennAbers,
)
from simulations import tallies

HERE = Path(__file__).resolve().parent
Column = NDArray[np.float64]

LAWS: dict[str, Callable[[Column], Column]] = {
    "calibrated": lambda p: p,
    "too sure": lambda p: 0.25 + 0.5 * p,
    "not monotone": lambda p: 0.9 - 0.8 * np.abs(p - 0.4),
}
ROWS = {20: 1500, 100: 500, 1000: 40}
"""Rows to fit on, and how many data sets are drawn."""

CHOICES, NEW, SIZE = 40, 20_000, 300
METHODS = ("temperature", "vector", "matrix", "beta", "histogram", "isotonic", "offset")


def draw(law: Callable[[Column], Column], n: int, rng: np.random.Generator) -> tuple:
    """Forecasts and labels."""
    p = rng.beta(0.7, 0.7, n)
    return p, (rng.random(n) < law(p)).astype(int)


def log_loss(y: Column, p: Column) -> float:
    with np.errstate(divide="ignore"):
        return -float(np.mean(np.log(np.where(y == 1, p, 1 - p))))


def venn_abers_rows() -> Iterator[str]:
    """A line per law and number of rows."""
    for name, law in LAWS.items():
        for n, count in ROWS.items():
            rng = np.random.default_rng(n)
            terms, width, losses = [], [], []
            for _ in range(count):
                p, y = draw(law, n, rng)
                new, came = draw(law, 50, rng)
                found = VennAbers("probs").fit(p, y)
                low, high = (end[:, 1] for end in found.predict_interval(new))
                own = np.where(came == 1, high, low)
                off = came - own
                terms.append([np.mean(off * g) for g in (1, own, own**2, own > 0.5)])
                width.append(np.mean(high - low))
                smooth = IsotonicCalibration("probs", smoothing=1).fit(p, y)
                others = found, smooth, PlattScaling("probs").fit(p, y)
                losses.append(
                    [log_loss(came, m.predict_proba(new)[:, 1]) for m in others]
                )
            z = np.mean(terms, axis=0) / (np.std(terms, axis=0) / np.sqrt(count))
            means = " | ".join(f"{x:.4f}" for x in np.mean(losses, axis=0))
            gap = f"{np.mean(terms, axis=0)[0]:+.4f}"
            yield f"| {name} | {n:,} | {gap} | {np.abs(z).max():.1f} | {np.mean(width):.3f} | {means} |"


def problem(n: int, rng: np.random.Generator) -> tuple:
    z = 2 * rng.normal(size=(n, 3))
    return 1.3 * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def choice_rows() -> Iterator[str]:
    """A line per protocol: how good the choice seems, is said to be, and is."""
    for words, options in (
        ("half and half", {"split": 0.5}),
        ("5 folds", {"folds": 5}),
    ):
        rng, found, held = np.random.default_rng(7), [], []
        for _ in range(CHOICES):
            z, y = problem(SIZE, rng)
            study = cal.study(
                y, logits=z, methods=METHODS, interval=None, rng=rng, **options
            )
            chosen = study.select()
            new, labels = problem(NEW, rng)
            kept = study.recalibrators[chosen.chosen]
            true = cal.brier(labels, probs=kept.predict_proba(new))
            gain = cal.brier(labels, logits=new) - true
            found.append([chosen.apparent, float(chosen.honest), true])
            low, high = chosen.gain.interval
            held.append(low <= gain <= high)
        seems, honest, true = np.mean(found, axis=0)
        share = f"{100 * np.mean(held):.0f} %"
        yield f"| {words} | {seems:.4f} | {honest:.4f} | {true:.4f} | {share} |"


# -- choices in laws that nothing was chosen by: made before they were looked at -----------

FEWER = ("temperature", "vector", "offset", "histogram")


def outcome(true: Column, rng: np.random.Generator, luck: Column | None = None):
    """Labels of these probabilities."""
    luck = rng.random(len(true)) if luck is None else luck
    labels = (true.cumsum(axis=1) > luck[:, None]).argmax(axis=1)
    return labels.astype(int)


def softmax(z: Column) -> Column:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def too_sure(n: int, rng: np.random.Generator) -> tuple:
    z = np.column_stack([np.zeros(n), 1.5 * rng.normal(size=n) - 0.5])
    return 1.8 * z, softmax(z)


def biased(n: int, rng: np.random.Generator) -> tuple:
    z = 1.5 * rng.normal(size=(n, 4))
    return z + np.array([0.8, 0.0, 0.0, -0.6]), softmax(z)


def rare_class(n: int, rng: np.random.Generator) -> tuple:
    z = 1.2 * rng.normal(size=(n, 3)) + np.log([0.85, 0.12, 0.03])
    return 0.7 * z, softmax(z)


CHOICE_LAWS = {
    "too sure": (too_sure, 300, {"split": 0.5}, "two classes, temperature 1.8; halves"),
    "biased": (
        biased,
        400,
        {"folds": 5},
        "four classes, of which two are off; 5 folds",
    ),
    "rare class": (
        rare_class,
        500,
        {"split": 0.5},
        "12 and 3 % of two classes; halves",
    ),
    "weights": (too_sure, 400, {"split": 0.5}, "too sure, log-normal weights of 0.7"),
    "clusters": (biased, 400, {"folds": 5}, "biased, clusters of 4; 5 folds"),
}
"""Law, rows, protocol, words. Methods are the four of FEWER."""


def choice(law: str, replicate: int) -> tallies.Found:
    """The gain that `select` promises, beside that of its choice on new rows."""
    make, n, options, _ = CHOICE_LAWS[law]
    rng = np.random.default_rng([len(law), n, replicate])
    z, true = make(n, rng)
    more, luck = {}, None
    if law == "weights":
        more["sample_weight"] = rng.lognormal(0, 0.7, n)
    if law == "clusters":  # three in ten rows share the luck of their cluster
        more["cluster"] = np.repeat(np.arange(n // 4), 4)
        luck = np.where(
            rng.random(n) < 0.3, rng.random(n)[more["cluster"]], rng.random(n)
        )
    y = outcome(true, rng, luck)
    about = {"methods": FEWER, "interval": None, "rng": rng, **options, **more}
    study = cal.study(y, logits=z, target="top-label", **about)
    chosen = study.select()
    new, real = make(NEW, rng)
    kept = study.recalibrators[chosen.chosen].predict_proba(new)
    gain = float(((real - softmax(new)) ** 2).sum(axis=1).mean())
    gain -= float(((real - kept) ** 2).sum(axis=1).mean())
    yield "gain of the choice", chosen.gain, gain


def choice_cases() -> list[tallies.Case]:
    """Laws as cases."""
    return [
        tallies.Case(law, words, n, partial(choice, law))
        for law, (_, n, _, words) in CHOICE_LAWS.items()
    ]


# -- mixtures in laws that nothing was chosen by --------------------------------------------


def sure_and_wrong(n: int, rng: np.random.Generator) -> tuple:
    z = 6 * rng.normal(size=(n, 50))
    z[np.arange(n), rng.integers(0, 50, n)] += rng.gamma(5, 8, n)
    return z, 0.95 * softmax(z / 1.5) + 0.05 * softmax(z / 20)


def one_temperature(n: int, rng: np.random.Generator) -> tuple:
    z = 5 * rng.normal(size=(n, 10))
    return z, softmax(z / 3)


def noisy_labels(n: int, rng: np.random.Generator) -> tuple:
    z = 9 * rng.normal(size=(n, 10))
    return z, 0.9 * softmax(z / 2) + 0.01


MIXTURE_LAWS = {
    "sure and wrong, 50 classes": (sure_and_wrong, 60),
    "one temperature, 10 classes": (one_temperature, 100),
    "a tenth of the labels at random": (noisy_labels, 80),
}
MIXED = (MixtureScaling, TemperatureScaling, EnsembleTemperatureScaling, VectorScaling)
MIXTURES = 40


def mixture_rows() -> Iterator[str]:
    """A line per law: the log loss of methods, on new rows, and the least that is possible."""
    for law, (make, n) in MIXTURE_LAWS.items():
        rng, losses = np.random.default_rng(11), []
        new, true = make(5000, rng)
        entropy = -float((true * np.log(true)).sum(axis=1).mean())
        for _ in range(MIXTURES):
            z, own = make(n, rng)
            y = outcome(own, rng)
            fits = [method().fit(z, y).predict_proba(new) for method in MIXED]
            losses.append([-(true * np.log(p)).sum(axis=1).mean() for p in fits])
        means = " | ".join(f"{x:.4f}" for x in np.mean(losses, axis=0))
        yield f"| {law} | {n} | {entropy:.4f} | {means} |"


# -- frequencies without labels ---------------------------------------------------------


def of_source(shares: Column, n: int, rng: np.random.Generator, distance: float = 1.1):
    """Log-scores of normal classes, calibrated where all are as frequent, and the classes."""
    k = len(shares)
    angle = 2 * np.pi * np.arange(k) / k
    centres = distance * np.column_stack([np.cos(angle), np.sin(angle)])
    label = rng.choice(k, n, p=shares)
    x = centres[label] + rng.normal(size=(n, 2))
    return x @ centres.T, label


PRIOR_LAWS = {
    "prior 0.02": ([0.98, 0.02], 2000, "a class of 2 %"),
    "prior 0.2": ([0.8, 0.2], 2000, "a class of 20 %"),
    "prior 0.5": ([0.5, 0.5], 200, "as frequent as before"),
    "prior of 4": ([0.6, 0.25, 0.1, 0.05], 1000, "four classes, of which one has 5 %"),
    "prior, weights": ([0.7, 0.3], 1000, "log-normal weights of 0.7"),
    "prior, clusters": ([0.7, 0.3], 1000, "pairs and fives of one class as clusters"),
}
"""Frequencies, rows, words. Old ones are equal, and the last class is looked at."""


def prior(law: str, replicate: int) -> tallies.Found:
    """The frequency of the last class that EM finds, beside the true one."""
    shares, n, _ = PRIOR_LAWS[law]
    rng = np.random.default_rng([n, len(law), replicate])
    k, more = len(shares), {}
    z, label = of_source(np.array(shares), n, rng)
    if law == "prior, weights":
        more["sample_weight"] = rng.lognormal(0, 0.7, n)
    if law == "prior, clusters":  # the class is drawn for each, the rows of it for all
        size = np.resize([2, 5], 2 * n // 7)
        more["cluster"] = np.repeat(np.arange(len(size)), size)
        z = one_class_each(z, label, size, rng)
    shift = PriorShift(source=[1 / k] * k).fit(np.eye(k), np.arange(k))
    low, high = shift.prior_interval(z, **more)
    found = float(shift.adapt(z, more.get("sample_weight")).prior_[-1])
    yield "frequency by EM", cal.Estimate(found, (low[-1], high[-1])), shares[-1]


def one_class_each(z: Column, label: Column, size: Column, rng: np.random.Generator):
    """So many rows of the class of each of the first rows."""
    chosen = [
        rng.choice(np.flatnonzero(label == own), count)
        for own, count in zip(label, size, strict=False)
    ]
    return z[np.concatenate(chosen)]


def prior_cases() -> list[tallies.Case]:
    """Frequencies as cases."""
    return [
        tallies.Case(law, words, n, partial(prior, law))
        for law, (_, n, words) in PRIOR_LAWS.items()
    ]


def prior_rows(known: Mapping[str, dict]) -> Iterator[str]:
    """A line per law: what EM finds on average, and how much it varies about the truth."""
    for case in prior_cases():
        if tally := known[case.name]["of"].get("frequency by EM"):
            sets, *_, found, truth, squares = tally
            off = np.sqrt(squares / sets)
            yield f"| `{case.name}` | {truth / sets:g} | {found / sets:.4f} | {off:.4f} |"


def page(known: Mapping[str, dict]) -> str:
    """The whole of `recalibration.md`."""
    cases, priors = choice_cases(), prior_cases()
    lines = [
        "# What recalibration promises",
        "",
        "Written by `python -m simulations.recalibration`.",
        "",
        "## Venn-Abers",
        "",
        "One of p0 and p1, the one that comes true, is calibrated for any number of rows. Mean",
        "of y - p_y, which should be 0, and the largest |z| of E[(y - p_y) g(p_y)] over four",
        "functions g (up to about 2.5 by chance); the mean of p1 - p0; and the log loss of the",
        "merged probability beside isotonic regression (`smoothing=1`) and Platt scaling.",
        "",
        "| law | rows | y - p_y | largest abs z | p1 - p0 | merged | isotonic | Platt |",
        "|---|---|---|---|---|---|---|---|",
        *venn_abers_rows(),
        "",
        "## The choice of a method",
        "",
        "Share of 95 % intervals of the gain that hold the gain on new rows, in per cent, with",
        "its binomial standard error; **bold** outside 93 to 97. Nothing was chosen by these",
        "laws. The choice is among five models: uncalibrated, and four methods.",
        "",
        tallies.legend(cases, known),
        tallies.coverage_table(cases, known),
        f"In the law that the interval was widened on: the best of {len(METHODS) + 2} Brier",
        f"scores, {SIZE} rows of 3 classes, {CHOICES} data",
        "sets: as it seems on the rows it was chosen by, as `select` says, and on 20,000 new",
        "rows; and the share of 95 % intervals of the gain that hold the true gain.",
        "",
        "| protocol | as it seems | select | truth | held |",
        "|---|---|---|---|---|",
        *choice_rows(),
        "",
        "## Mixtures of temperatures",
        "",
        f"Mean log loss on new rows, over {MIXTURES} data sets, of laws that no constant of",
        "`MixtureScaling` was chosen by, beside the least that is possible.",
        "",
        "| law | rows | possible | mixture | temperature | ensemble | vector |",
        "|---|---|---|---|---|---|---|",
        *mixture_rows(),
        "",
        "## Unknown frequencies of classes",
        "",
        "What EM finds from scores without labels, which are calibrated where all classes are as",
        "frequent: its mean, and the root of its mean squared error.",
        "",
        "| law | truth | mean | error |",
        "|---|---|---|---|",
        *prior_rows(known),
        "",
        "Share of 95 % intervals (`prior_interval`) that hold the truth, as above.",
        "",
        tallies.legend(priors, known),
        tallies.coverage_table(priors, known),
    ]
    return "\n".join(lines)


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=tallies.REPLICATES, show_default=True)
@click.option("--minutes", default=60.0, show_default=True)
def main(replicates: int, minutes: float) -> None:
    warnings.simplefilter("ignore")
    path = HERE / "recalibration.json"
    tallies.run([*choice_cases(), *prior_cases()], path, page, replicates, minutes)


if __name__ == "__main__":
    main()
