"""The interval of the log calibration error: rows left out with care, a second width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit, rel_entr

import calibrant as cal
from calibrant._inputs.divergences import LOG
from calibrant._stats import platt
from calibrant._stats import platt_error as log_error
from calibrant._stats.ladder import Ladder
from calibrant._stats.neighbours import Neighbours as Cells
from calibrant._stats.platt_error import left_out, left_out_by_one_step, local_error

PRIOR = 1 / platt.PRIOR_SD**2


@pytest.fixture(scope="module")
def laws(simulation):
    return simulation("laws")


def cells_at(h, count, hits):
    """Hard hits at distinct confidences, as the estimators read them."""
    some = count > 0
    h, n, a = h[some], count[some].astype(float), hits[some].astype(float)
    powers = [a * (1 - h) ** j + (n - a) * (-h) ** j for j in range(1, 5)]
    squares = n, powers[0], powers[1], powers[1]
    return Cells(n, a, a, *powers, h, logit(h), {}, *squares)


def drawn(h, accuracy, n, replicates, seed=0):
    """Data sets whose confidences are spread evenly over the places h."""
    rng = np.random.default_rng(seed)
    for _ in range(replicates):
        count = rng.multinomial(n, np.full(len(h), 1 / len(h)))
        yield cells_at(h, count, rng.binomial(count, accuracy))


def truth(h, accuracy):
    return float(np.mean(rel_entr(accuracy, h) + rel_entr(1 - accuracy, 1 - h)))


def fit_of(cells, width=None):
    width = log_error.fixed_width(cells.n) if width is None else width
    return platt.fit(cells, width, platt.choose_nodes(cells))


def plain_interval(cells, leave_out=left_out_by_one_step):
    """That of the smooth part alone, with one way to leave out rows."""
    gains = log_error._gains(cells, LOG, fit_of(cells), leave_out)
    value = gains.error(gains.model_loss)
    return gains.lower_end(value, 0.95), gains.upper_end(value, 0.95)


def share_held(intervals, value):
    return np.mean([low <= value <= high for low, high in intervals])


# -- rows left out -----------------------------------------------------------------


def refitted(z, n, hits):
    """The shift of n rows of one log-odds, hits of them right, under the prior."""

    def score(shift):
        return hits - n * expit(z + shift) - PRIOR * shift

    return brentq(score, -60, 60, xtol=1e-12)


@given(
    n=st.integers(2, 5000),
    rate=st.floats(0, 1),
    z=st.floats(-4, 8),
    hit=st.booleans(),
)
def test_leaving_out_one_of_equal_rows_is_fitting_the_others(n, rate, z, hit):
    hits = min(max(round(rate * n), int(hit)), n - 1 + int(hit))
    eta = z + refitted(z, n, hits)
    m = expit(eta)
    leverage = 1 / (n * m * (1 - m) + PRIOR)
    without = z + refitted(z, n - 1, hits - hit)
    most = log_error.LARGEST_CHANGE
    expected = eta + np.clip(without - eta, -most, most)
    found = left_out(np.array([eta]), np.array([leverage]), np.array([float(hit)]))
    assert found[0] == pytest.approx(expected, abs=0.01)


@given(eta=st.floats(-9, 9), leverage=st.floats(1e-6, 15), hit=st.booleans())
def test_a_row_pulls_the_fit_towards_its_hit(eta, leverage, hit):
    arrays = np.array([eta]), np.array([leverage]), np.array([float(hit)])
    for leave_out in (left_out, left_out_by_one_step):
        change = leave_out(*arrays)[0] - eta
        assert change <= 0 if hit else change >= 0
        assert abs(change) <= log_error.LARGEST_CHANGE + 1e-9


def test_where_rows_are_many_one_step_is_enough():
    eta, leverage = np.linspace(-3, 3, 50), np.full(50, 1e-4)
    for a in (np.zeros(50), np.ones(50)):
        np.testing.assert_allclose(
            left_out(eta, leverage, a),
            left_out_by_one_step(eta, leverage, a),
            atol=1e-6,
        )


# -- intervals ---------------------------------------------------------------------

SPREAD = 0.5 + (np.arange(500) + 0.5) / 1000


def test_the_interval_holds_the_plain_one():
    (cells,) = drawn(SPREAD, expit(logit(SPREAD) / 1.5), 3000, 1)
    low, high = local_error(cells, LOG).interval
    plain = plain_interval(cells)
    assert low <= plain[0] < plain[1] <= high
    assert high - low < 1.3 * np.ptp(plain)


def family_end(cells, fitted, value, chance):
    """Least error among curves s times as far off that the value does not contradict."""
    n, shift = cells.weight.sum(), fitted.at(cells.z, fitted.shift)
    best, first = 0.0, None
    for s in np.linspace(1, 0, 1001):
        m = expit(cells.z + s * shift)
        d = truth_at(cells, m)
        first = d if first is None else first
        slope = 0.5 * (1 + s) * shift
        variance = (cells.weight * slope**2 * m * (1 - m)).sum() / n**2 + chance
        if abs(value - value * d / first) > 1.959964 * np.sqrt(variance):
            return best
        best = value * d / first
    return 0.0


def truth_at(cells, m):
    each = rel_entr(m, cells.h) + rel_entr(1 - m, 1 - cells.h)
    return (cells.weight * each).sum() / cells.weight.sum()


def test_the_milder_curve_at_the_lower_end_is_the_least_that_is_possible():
    (cells,) = drawn(SPREAD, expit(logit(SPREAD) / 1.5), 3000, 1)
    fitted = fit_of(cells)
    gains = log_error._gains(cells, LOG, fitted)
    value = gains.error(gains.model_loss)
    found = log_error._family_end(cells, LOG, fitted, gains, value, 0.95)
    want = family_end(cells, fitted, value, gains.chance)
    assert found == pytest.approx(want, rel=0.005)


@pytest.mark.simulation
def test_a_calibrated_saturated_model_is_not_accused(laws, data):
    law = laws.reduce_to_atoms(laws.HOLD_OUT["CIFAR-10 VGG-16"](data))
    count, hits = laws.draw(law, law.h, 50_000, 60, np.random.default_rng(0))
    found = [laws.gather(law, *x) for x in zip(count.T, hits.T, strict=True)]
    careful = [local_error(cells, LOG).interval for cells in found]
    assert share_held(careful, 0.0) > 0.9


@pytest.mark.simulation
def test_a_narrow_defect_is_not_denied():
    accuracy = jump(0.12)
    found = list(drawn(SPREAD, accuracy, 50_000, 30))
    value = truth(SPREAD, accuracy)
    careful = [local_error(cells, LOG).interval for cells in found]
    assert share_held(map(plain_interval, found), value) < 0.5
    assert share_held(careful, value) > 0.8


# -- what a fit leaves -------------------------------------------------------------


def rest_by_pairs(h, a, m, leverage, variance, width):
    """The debiased square of a - m of single rows, each divided by twice m (1 - m)."""
    n, r = len(h), a - m
    x = 0.5 * ((np.arange(n) + 0.5) / n + h)
    t = np.subtract.outer(*[np.rint(4 * (x - 0.5) / width)] * 2) / 4
    K = np.where(np.abs(t) <= 5, np.exp(-0.5 * t * t), 0.0)
    share = 1 / K.sum(axis=1)
    others = share * (K @ r - r)
    noise = share**2 * (K**2 @ r**2 - r**2)
    v = m * (1 - m)
    pulled = v**2 * (2 * leverage - variance)  # products of residuals, by the fit
    squares = 2 * r * others - others**2 + noise + pulled
    return np.mean(squares / (2 * np.maximum(v, share)))


def test_what_a_fit_leaves_equals_its_definition():
    rng = np.random.default_rng(3)
    h = np.sort(rng.uniform(0.3, 1, 400))
    a = (rng.random(400) < h**2).astype(float)
    cells = cells_at(h, np.ones(400), a)
    wide = fit_of(cells, 0.5)
    m = expit(wide.log_odds(cells.z))
    sure = [wide.at(cells.z, x) for x in (wide.leverage, wide.variance)]
    ladder = Ladder.of(cells)
    for level in ladder.levels[1:]:
        value, _ = log_error._left(cells.about(m), m, LOG, wide, level)
        want = rest_by_pairs(h, a, m, *sure, level.width)
        assert value == pytest.approx(want, abs=1e-7)


def test_a_fit_to_calibrated_rows_leaves_little_on_average():
    found = []
    for cells in drawn(SPREAD, SPREAD, 50_000, 60):
        ladder = Ladder.of(cells)
        found.append(log_error.remainder(ladder, LOG, fit_of(cells)).levels[0])
    values, variances = np.transpose(found)
    assert abs(values.mean()) < 0.6 * values.std()  # without what it absorbed: 2.6
    assert values.std() == pytest.approx(np.sqrt(variances.mean()), rel=0.3)


def test_residuals_about_the_confidence_are_those_of_the_rows():
    (cells,) = drawn(SPREAD, SPREAD**2, 3000, 1)
    again = cells.about(cells.h)
    for name in ("r1", "r2", "r3", "r4"):
        np.testing.assert_allclose(
            getattr(again, name), getattr(cells, name), atol=1e-10
        )


def test_log_under_another_name_leaves_the_same():
    (cells,) = drawn(SPREAD, SPREAD**2, 3000, 1)
    wide = fit_of(cells)
    log = LOG.phi, LOG.gradient, LOG.phi_1d, LOG.derivative_1d
    other = cal.Divergence("entropy", *log)
    ladder = Ladder.of(cells)
    found, same = (log_error.remainder(ladder, x, wide) for x in (LOG, other))
    assert same.full == pytest.approx(found.full, rel=1e-6)


def jump(size):
    """Accuracy that is too low between confidences of 0.7 and 0.73 only."""
    return np.where((SPREAD >= 0.7) & (SPREAD <= 0.73), SPREAD - size, SPREAD)


@pytest.mark.simulation
def test_a_narrow_defect_is_named_and_included():
    for cells in drawn(SPREAD, jump(0.12), 50_000, 10):
        found = local_error(cells, LOG)
        assert found.widened
        assert found.method.removeprefix("one-sided ") == "widened close pairs"
        assert found.interval[1] > plain_interval(cells)[1]


@pytest.mark.simulation
@pytest.mark.parametrize("accuracy", [SPREAD, expit(logit(SPREAD) / 1.5), SPREAD**2])
def test_what_is_wide_is_not_called_narrow(accuracy):
    found = [local_error(cells, LOG) for cells in drawn(SPREAD, accuracy, 50_000, 20)]
    assert sum(error.widened for error in found) <= 2


def test_real_networks_have_no_narrow_defect(data):
    for name in ("cifar10_verified_vgg16", "cifar10_akamaster_resnet32"):
        arrays = data(name)
        kind = {key: arrays[key] for key in ("logits", "probs") if key in arrays}
        ev = cal.evaluate(arrays["labels"], **kind)
        assert ev.decompositions["log"].calibration.method == "close pairs"
        assert "narrow-defect" not in {finding.code for finding in ev.audit()}
