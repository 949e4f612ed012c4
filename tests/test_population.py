"""Simulations whose population values are exact: every estimate must find its own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit, rel_entr

import calibrant as cal

pytestmark = pytest.mark.xdist_group("population")

SIZES = (1_000, 10_000, 100_000)
SEEDS = range(10)


# -- worlds ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class World:
    """Scores p = score(u) with u uniform, and the accuracy at each score.

    `published` are L1, L2 squared, KL, Brier and NLL as other projects print them.
    """

    name: str
    score: Callable
    accuracy: Callable
    published: tuple = ()

    def expect(self, f):
        """E f(p, m(p)), the corner of min(p + 0.02, 1) being an end of its own."""

        def integrand(u):
            return f(self.score(u), self.accuracy(self.score(u)))

        return sum(quad(integrand, *ends, epsabs=1e-9)[0] for ends in self._pieces())

    def _pieces(self):
        # score(u) = 0.98 at u = 0.98 (uniform) and at 2/pi asin sqrt(.98) (arcsine).
        corner = 0.98 if self.score is uniform else 2 / np.pi * np.arcsin(0.98**0.5)
        return [(0, corner), (corner, 1)]

    def draw(self, n, seed):
        rng = np.random.default_rng([seed, n])
        p = self.score(rng.random(n))
        return rng.random(n) < self.accuracy(p), p


def uniform(u):
    return u


def arcsine(u):
    """Quantile function of Beta(1/2, 1/2)."""
    return np.sin(np.pi * u / 2) ** 2


def square(p):
    return p**2


def overconfident(p):
    return expit(0.4 * logit(p) + 0.3)


def underconfident(p):
    return expit(4 * logit(p) + 1)


def shifted(p):
    return np.minimum(p + 0.02, 1)


WORLDS = [
    World("square", uniform, square, (0.166667, 0.033333, 0.090863, 0.166667, 0.5)),
    World(
        *("over-confident", uniform, overconfident),
        (0.133978, 0.023910, 0.087009, 0.244927, 0.718604),
    ),
    World(
        *("under-confident", uniform, underconfident),
        (0.172793, 0.039101, 0.146510, 0.097947, 0.337010),
    ),
    World(
        *("shifted", uniform, shifted),
        (0.019800, 0.000395, 0.002162, 0.166864, 0.501081),
    ),
    World("over-confident, arcsine", arcsine, overconfident, (0.137157,)),
    World("under-confident, arcsine", arcsine, underconfident, (0.131246,)),
    World("shifted, arcsine", arcsine, shifted, (0.018797,)),
]
SIMULATED = WORLDS[:5]
CALIBRATED = [
    World("uniform", uniform, lambda p: p),
    World("arcsine", arcsine, lambda p: p),
]


def kl(m, p):
    return rel_entr(m, p) + rel_entr(1 - m, 1 - p)


@cache
def truths(world):
    """Population values by quadrature."""
    return {
        "l1": world.expect(lambda p, m: abs(m - p)),
        "brier cal": world.expect(lambda p, m: (m - p) ** 2),
        "log cal": world.expect(lambda p, m: kl(m, p)),
        "brier": world.expect(lambda p, m: m * (1 - p) ** 2 + (1 - m) * p**2),
        "nll": world.expect(lambda p, m: -m * np.log(p) - (1 - m) * np.log1p(-p)),
    }


@cache
def estimates(world):
    """calibrant's estimates by name, as (size, seed) arrays."""
    rows = [[estimate(*world.draw(n, seed)) for seed in SEEDS] for n in SIZES]
    return {
        name: np.array([[found[name] for found in row] for row in rows])
        for name in rows[0][0]
    }


def estimate(y, p):
    ev = cal.evaluate_pairs(y, p, resamples=100)  # used by none of these
    low, high = ev.decomposition.calibration.interval
    return {
        "brier": ev.metrics["brier"],
        "nll": ev.metrics["nll"],
        "brier cal": ev.decomposition.calibration,
        "log cal": ev.decompositions["log"].calibration,
        "l1": ev.metrics["ece_mass"],
        "paper cal": ev.paper.calibration,
        "width": high - low,
    }


def by_name(world):
    return world.name


simulated = pytest.mark.parametrize("world", SIMULATED, ids=by_name)
calibrated = pytest.mark.parametrize("world", CALIBRATED, ids=by_name)


# -- truths ------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS, ids=by_name)
def test_quadrature_agrees_with_published_values(world):
    ours = list(truths(world).values())[: len(world.published)]
    np.testing.assert_allclose(ours, world.published, atol=6e-7)


@simulated
def test_losses_are_calibration_error_plus_what_the_label_leaves(world):
    # E d(y, p) = E d(m, p) + E [variance of y at p], or its entropy.
    found = truths(world)
    variance = world.expect(lambda p, m: m * (1 - m))
    entropy = world.expect(lambda p, m: -rel_entr(m, 1) - rel_entr(1 - m, 1))
    assert found["brier"] == pytest.approx(found["brier cal"] + variance, abs=1e-7)
    assert found["nll"] == pytest.approx(found["log cal"] + entropy, abs=1e-7)


# -- convergence -------------------------------------------------------------------


@pytest.mark.simulation
@simulated
def test_estimates_find_the_truth_at_the_rate_of_a_mean(world):
    for name in ("brier", "nll", "brier cal", "log cal"):
        error = estimates(world)[name] - truths(world)[name]
        standard_error = error.std(axis=1, ddof=1) / np.sqrt(len(SEEDS))
        assert np.all(np.abs(error.mean(axis=1)) <= 4 * standard_error)
        # log RMSE of 10 seeds has standard deviation 1 / sqrt(20), so the slope over
        # two decades has sqrt(2 / 20) / log(100) = 0.07.
        rmse = np.sqrt((error**2).mean(axis=1))
        slope = np.log(rmse[-1] / rmse[0]) / np.log(SIZES[-1] / SIZES[0])
        assert slope == pytest.approx(-0.5, abs=0.2)

    # Intervals shrink alike, once the error is large against the noise.
    width = np.median(estimates(world)["width"], axis=1)
    assert width[1] / width[2] == pytest.approx(10**0.5, rel=0.3)

    # Bins find L1 roughly: one in which accuracy crosses confidence hides some of it.
    ece = estimates(world)["l1"].mean(axis=1)
    assert ece[-1] == pytest.approx(truths(world)["l1"], rel=0.05)


@pytest.mark.simulation
@simulated
@pytest.mark.parametrize("estimator", ["direct", "plugin"])
def test_paper_estimate_is_consistent_if_its_bandwidth_shrinks(world, estimator):
    # sigma = n^(-1/4) / 2 meets the Theorem's conditions: sigma -> 0 and
    # n sigma^2 / log n = sqrt(n) / (4 log n) -> infinity.
    def estimate_at(n, seed):
        y, p = world.draw(n, seed)
        given = {"confidence": p, "bandwidth": n**-0.25 / 2, "estimator": estimator}
        return cal.calibration_error(y, **given)

    found = np.array([[estimate_at(n, seed) for seed in SEEDS] for n in SIZES])
    rmse = np.sqrt(((found - truths(world)["brier cal"]) ** 2).mean(axis=1))
    assert rmse[0] > rmse[1] > rmse[2]
    assert rmse[2] < rmse[0] / 2.5


@pytest.mark.simulation
def test_paper_estimate_at_its_fixed_bandwidth_misses_a_steep_curve():
    # sigma = 0.05 flattens sigmoid(4 logit p + 1): 10 % are missing at any n.
    world = WORLDS[2]
    share = estimates(world)["paper cal"].mean(axis=1) / truths(world)["brier cal"]
    np.testing.assert_allclose(share, 0.9, atol=0.04)


# -- calibrated models -------------------------------------------------------------


@pytest.mark.simulation
@calibrated
def test_calibrated_model_is_accused_by_the_paper_estimate_only(world):
    # At 1000 rows m has variance p (1 - p) / (2 sqrt(pi) n sigma f(p)), f the density
    # of scores: 0.94e-3 on average if f = 1.
    found = estimates(world)
    for name in ("brier cal", "log cal"):
        mean, spread = found[name].mean(axis=1), found[name].std(axis=1, ddof=1)
        assert np.all(np.abs(mean) <= 4 * spread / np.sqrt(len(SEEDS)))
    assert found["paper cal"].min() > 0
    assert 5e-4 < found["paper cal"][0].mean() < 2e-3
    assert abs(found["brier cal"][0].mean()) < found["paper cal"][0].mean() / 3
