"""A row of the table on intervals: resampled counts against resampled rows."""

from dataclasses import replace
from functools import cache

import numpy as np
from registry import Ratio, agree, benchmark, seconds_in
from timing import race

from calibrant._inputs.options import Settings
from calibrant._rows.columns import Columns
from calibrant._sketch.ordered import order
from calibrant._stats import bins as binning
from calibrant._stats import smooth_ece as smoothing
from calibrant._stats.metrics import METRICS
from calibrant._stats.sample import Sample

ROWS, RESAMPLES, SHOWN = 40_000, 1000, 10
SETTINGS = Settings().checked()


@cache
def sample() -> Columns:
    rng = np.random.default_rng(0)
    p = rng.random(ROWS)
    return Columns(p, None, (rng.random(ROWS) < p**2).astype(float))


def metrics(interval: str | None) -> float:
    """All metrics, with or without intervals; the width of ECE's tells that they are."""
    settings = replace(SETTINGS, interval=interval)
    ece = METRICS["ece"].estimate(Sample.of_rows(sample(), settings, "pairs", 2))
    return 0.0 if ece.interval is None else float(np.ptp(ece.interval))


def resampled(rng: np.random.Generator) -> tuple[float, ...]:
    """Draw all rows again and compute each metric whose interval is resampled."""
    columns = sample().take(rng.integers(0, ROWS, ROWS))
    ordered = order(columns)
    values, bins = ordered.without_twins(), binning.width_bins(ordered, SETTINGS.bins)
    mass = binning.mass_bins(values, SETTINGS.bins)
    return (
        binning.binned_error(bins),
        binning.average_error(bins),
        binning.binned_error(bins, "max"),
        binning.binned_error(mass),
        binning.debiased_square(binning.debiased_bins(values), values),
        smoothing.smooth_error(columns),
        binning.ks_error(ordered),
        binning.auroc(ordered),
        binning.mean_gap(bins),
    )


def several(count: int) -> float:
    """Width of a normal interval of ECE from so many resamples."""
    rng = np.random.default_rng(1)
    errors = [resampled(rng)[0] for _ in range(count)]
    return 2 * 1.96 * float(np.std(errors))


@benchmark(
    "Resampling 40,000 rows 1000 times / intervals of all metrics, 1000 resamples",
    at_least=20,
)
def naive_bootstrap() -> Ratio:
    """Ten resamples are timed, and counted a hundred times."""
    timings = race(
        bare=lambda: metrics(None),
        full=lambda: metrics("auto"),
        naive=lambda: several(SHOWN),
    )
    check = agree("width of ECE's interval", timings["full"].answer, several(100), 2e-3)
    seconds = seconds_in(timings)
    by_cpu, by_wall = (_ratio(seconds, clock) for clock in ("cpu", "wall"))
    return Ratio(by_cpu, by_wall, (check,), seconds)


def _ratio(seconds: dict[str, dict[str, float]], clock: str) -> float:
    """Cost of naive resampling over what intervals add to all metrics."""
    added = seconds["full"][clock] - seconds["bare"][clock]
    return RESAMPLES / SHOWN * seconds["naive"][clock] / added
