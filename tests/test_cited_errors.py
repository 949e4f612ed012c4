"""Errors that the paper cites: each against its authors' definition, spelt out slowly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import softmax
from scipy.optimize import linprog
from scipy.stats import dirichlet

import calibrant as cal
from calibrant._verbs import smooth_calibration_error as smooth
from calibrant._verbs.t_cal import Binned, of_first, scales


def _drawn():
    rng = np.random.default_rng(0)
    h = np.round(rng.beta(2, 1, 300), 2)
    return h, (rng.random(300) < h**1.5).astype(int), rng.exponential(size=300)


H, HIT, W = _drawn()


# -- smooth calibration error -----------------------------------------------------------------


def by_linear_programme(h, residual):
    n = len(h)
    step = np.eye(n, k=1)[:-1] - np.eye(n)[:-1]
    rows, ends = np.concatenate([step, -step]), np.tile(np.diff(h), 2)
    return -linprog(-residual, A_ub=rows, b_ub=ends, bounds=[(-1, 1)] * n).fun


numbers = st.lists(
    st.tuples(st.floats(0, 3), st.floats(-1, 1)), min_size=2, max_size=12
)


@given(numbers)
def test_the_best_witness_is_that_of_the_linear_programme(pairs):
    h, residual = (np.array(x) for x in zip(*sorted(pairs), strict=True))
    found = smooth.largest_sum(h, residual)
    assert found == pytest.approx(by_linear_programme(h, residual), abs=1e-7)


def test_rows_weights_and_ties():
    order = np.argsort(H, kind="stable")
    residual = (W * (HIT - H))[order] / W.sum()
    expected = by_linear_programme(H[order], residual)
    found = cal.smooth_calibration_error(HIT, confidence=H, sample_weight=W)
    assert found == pytest.approx(expected, abs=1e-9)
    assert cal.smooth_calibration_error([0, 1], confidence=[0.0, 1.0]) == 0


def test_it_is_at_most_the_ece_and_at_least_the_gap():
    found = cal.smooth_calibration_error(HIT, confidence=H)
    gap = abs(cal.confidence_gap(HIT, confidence=H))
    assert gap - 1e-12 <= found <= cal.ece(HIT, confidence=H, bins=1000) + 1e-9


def test_many_distinct_confidences_are_rounded(monkeypatch):
    h = np.linspace(0, 1, 4000)
    hit = np.random.default_rng(1).random(4000) < h**2
    exact = cal.smooth_calibration_error(hit, confidence=h)
    monkeypatch.setattr(smooth, "MOST_VALUES", 1000)
    assert cal.smooth_calibration_error(hit, confidence=h) == pytest.approx(
        exact, abs=5e-4
    )


# -- T-Cal ------------------------------------------------------------------------------------


def test_errors_bin_by_bin():
    found = cal.t_cal(HIT, confidence=H, resamples=20)
    for m, value in zip(found.bins, found.errors, strict=True):
        expected = 0.0
        for b in range(m) if m <= 256 else ():
            own = np.minimum(np.floor(H * m), m - 1) == b
            if own.any():
                r = (HIT - H)[own]
                expected += (r.sum() ** 2 - (r**2).sum()) / own.sum() / 300
        assert m > 256 or value == pytest.approx(expected, abs=1e-12)
    assert list(found.bins) == scales(300)
    assert min(found.p_values) <= found.p_value <= 1
    assert type(found).from_json(found.to_json()) == found


def test_counts_are_rows_and_weights_have_no_unit():
    count = np.arange(300) % 3
    again = np.repeat(np.arange(300), count)
    one = cal.t_cal(HIT, confidence=H, frequency=count, resamples=20)
    two = cal.t_cal(HIT[again], confidence=H[again], resamples=20)
    assert one.errors == pytest.approx(two.errors)
    assert one.p_values == two.p_values
    three = cal.t_cal(HIT, confidence=H, sample_weight=W, resamples=20)
    four = cal.t_cal(HIT, confidence=H, sample_weight=3 * W, resamples=20)
    assert three.errors == pytest.approx(four.errors)


def test_t_cal_can_reject_as_it_is():
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 1500)
    found = cal.t_cal(rng.random(1500) < h**3, confidence=h)
    assert len(found.bins) == 19
    assert found.p_value == 1 / 200
    assert "Miscalibrated (p = 0.005 over 19 scales" in str(found)


def test_each_of_many_data_sets_has_its_own_p_value():
    # Any of them may be the observed one: p <= a for at most a share a of them.
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((9, 100)) ** 3
    errors[4:6] = errors[3]
    errors[8] = 0.0
    p = np.sort([of_first(np.roll(errors, -i, axis=1))[1] for i in range(100)])
    assert (p >= np.arange(1, 101) / 100 - 1e-12).all()
    assert p[0] == 0.01
    assert p[4] <= 0.06


@pytest.mark.simulation
def test_t_cal_keeps_its_level_and_sees_what_swings():
    rng = np.random.default_rng(4)
    fair, off, kuiper = [], [], []
    for _ in range(40):
        h = np.round(rng.uniform(0.25, 0.75, 500), 3)
        swings = rng.random(500) < h + 0.24 * np.sign(np.sin(90 * h))
        fair.append(cal.t_cal(rng.random(500) < h, confidence=h, rng=rng).p_value)
        off.append(cal.t_cal(swings, confidence=h, rng=rng).p_value)
        kuiper.append(cal.calibration_test(swings, confidence=h).p_value)
    assert np.mean(np.array(fair) <= 0.05) <= 0.1
    assert np.mean(np.array(off) <= 0.05) > 0.8
    assert np.mean(np.array(kuiper) <= 0.05) < 0.5


def test_a_single_row_has_no_pair():
    assert Binned.of(np.array([0.3]), np.ones(1)).errors(np.array([[0.7]])).max() == 0
    with pytest.raises(ValueError, match="y must be hard labels for t_cal"):
        cal.t_cal([0.5, 1.0], confidence=[0.5, 0.5])


# -- Dirichlet kernels --------------------------------------------------------------------------

P = np.random.default_rng(2).dirichlet(np.ones(3), 60)
Y = (P.cumsum(axis=1) > np.random.default_rng(3).random((60, 1))).argmax(axis=1)


@pytest.mark.parametrize("power", [1, 2])
def test_dirichlet_row_by_row(power):
    weight, h, total = np.random.default_rng(4).exponential(size=60), 0.05, 0.0
    for i in range(60):
        others = [j for j in range(60) if j != i]
        kernel = np.array([dirichlet.pdf(P[i], P[j] / h + 1) for j in others])
        kernel *= weight[others]
        mean = kernel @ np.eye(3)[Y[others]] / kernel.sum()
        total += weight[i] * np.sum(np.abs(mean - P[i]) ** power)
    given = {"probs": P, "power": power, "bandwidth": h, "sample_weight": weight}
    assert cal.dirichlet_ece(Y, **given) == pytest.approx(total / weight.sum())


@pytest.mark.parametrize("count", [np.full(60, 2), np.arange(60) % 4])
def test_dirichlet_of_counts_is_that_of_repeated_rows(count):
    again = np.repeat(np.arange(60), count)
    for more in ({}, {"bandwidth": 0.05}, {"power": 2}):
        one = cal.dirichlet_ece(Y, probs=P, frequency=count, **more)
        assert one == pytest.approx(
            cal.dirichlet_ece(Y[again], probs=P[again], **more), abs=1e-12
        )


def test_the_bandwidth_is_the_likeliest(monkeypatch):
    from calibrant._verbs import dirichlet_ece as module

    def likelihood(h):
        values = []
        for i in range(60):
            others = [dirichlet.pdf(P[i], P[j] / h + 1) for j in range(60) if j != i]
            values.append(np.log(np.mean(others)))
        return np.sum(values)

    some = (0.01, 0.1, 1.0)
    monkeypatch.setattr(module, "BANDWIDTHS", some)
    assert module.choose_bandwidth(P, np.arange(60)) == max(some, key=likelihood)


def test_blocks_zeros_and_limits(monkeypatch):
    from calibrant._verbs import dirichlet_ece as module

    whole = cal.dirichlet_ece(Y, probs=P)
    monkeypatch.setattr(module, "AT_ONCE", 60 * 7)
    assert cal.dirichlet_ece(Y, probs=P) == pytest.approx(whole)
    sure = np.eye(3)[np.arange(60) % 3]
    assert cal.dirichlet_ece(np.arange(60) % 3, probs=sure) == pytest.approx(0)
    assert np.isfinite(cal.dirichlet_ece(Y, probs=softmax(100 * P)))
    with pytest.raises(ValueError, match="2 to 20,000 rows, got 1"):
        cal.dirichlet_ece([0], probs=[[0.5, 0.5]])
