"""Small examples with known answers: from other libraries' tests, issues and papers.

Where an example means "one bin per distinct value", we ask for as many equal-mass bins
as there are rows: mid-ranks of distinct values are at least one row apart, so no two
of them share a bin.
"""

from math import exp, pi, sqrt

import numpy as np
import pytest

import calibrant as cal

# -- CORP (model-diagnostics, checked there against R) ----------------------------

TINY = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]


@pytest.mark.parametrize(
    ("divergence", "score", "miscalibration", "discrimination", "uncertainty"),
    [
        ("brier", 0.2266667, 0.1016667, 0.125, 0.25),
        ("log", 0.6986228, 0.3237327, 0.3182571, 0.6931472),
    ],
)
def test_corp_of_six_forecasts(
    divergence, score, miscalibration, discrimination, uncertainty
):
    y, p = TINY
    parts = cal.corp(y, probs=p, divergence=divergence)
    assert parts.score == pytest.approx(score, abs=5e-8)
    assert parts.miscalibration == pytest.approx(miscalibration, abs=5e-8)
    assert parts.discrimination == pytest.approx(discrimination, abs=5e-8)
    assert parts.uncertainty == pytest.approx(uncertainty, abs=5e-8)


# -- scikit-learn #10883: A is calibrated, B has the better score -----------------

Y = [0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1]
A = [0, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 0.75, 0.75, 1]
B = [0, 0.25, 0.25, 0.25, 0.75, 0.5, 0.5, 0.25, 0.75, 0.75, 0.75, 1]


@pytest.mark.parametrize(
    ("p", "brier", "l1", "l2_squared", "miscalibration", "discrimination"),
    [
        pytest.param(A, 1 / 6, 0, 0, 0, 1 / 12, id="A"),
        pytest.param(B, 1 / 12, 1 / 6, 1 / 24, 1 / 24, 5 / 24, id="B"),
    ],
)
def test_better_score_and_better_calibration_can_disagree(
    p, brier, l1, l2_squared, miscalibration, discrimination
):
    values = {"probs": p, "bins": 12, "strategy": "mass"}
    parts = cal.corp(Y, probs=p)
    assert cal.brier(Y, probs=p) == pytest.approx(brier)
    assert cal.ece(Y, **values) == pytest.approx(l1)
    assert cal.ece(Y, **values, norm=2) ** 2 == pytest.approx(l2_squared)
    assert parts.score == pytest.approx(brier)
    assert parts.miscalibration == pytest.approx(miscalibration, abs=1e-15)
    assert parts.discrimination == pytest.approx(discrimination)
    assert parts.uncertainty == pytest.approx(1 / 4)


# -- binned errors ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("norm", "error"), [(1, 0.1875), (2, 0.2165064), ("max", 0.25)]
)
def test_weights_of_scikit_learn_11096(norm, error):
    # Bin .25 is right; bin .75 is off by .25 and weighs 12 of 16.
    y, p = [0, 0, 0, 1, 1, 1, 1, 1], [0.25] * 4 + [0.75] * 4
    weight = [1] * 4 + [3] * 4
    found = cal.ece(y, probs=p, sample_weight=weight, bins=2, norm=norm)
    assert found == pytest.approx(error, abs=5e-8)


@pytest.mark.parametrize(("norm", "error"), [(1, 0.29), (2, 0.2918), ("max", 0.3167)])
def test_binary_example_of_torchmetrics(norm, error):
    # Gaps .25 (two rows) and 1 - (.55 + .75 + .75)/3 = .3167 (three).
    y, p = [0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75]
    assert cal.ece(y, probs=p, bins=2, norm=norm) == pytest.approx(error, abs=5e-5)


@pytest.mark.parametrize(("norm", "error"), [(1, 0.2), (2, 0.2082), ("max", 0.2333)])
def test_multiclass_example_of_torchmetrics(norm, error):
    # Top labels .55, .55, .60 (one of three right) and .90 (right).
    p = [[0.25, 0.2, 0.55], [0.55, 0.05, 0.4], [0.1, 0.3, 0.6], [0.9, 0.05, 0.05]]
    found = cal.ece([0, 1, 2, 0], probs=p, bins=3, norm=norm)
    assert found == pytest.approx(error, abs=5e-5)


def test_confidence_of_one_shares_the_last_bin():
    # torchmetrics #3510: |(.95 + 1)/2 - 1/2| = .475.
    error = cal.ece([1, 0], probs=[0.95, 1.0], bins=10)
    assert error == pytest.approx(0.475)


def test_certain_and_always_wrong_errs_by_one():
    # DeepTab #421 lost the row at 1.0 and said 0.
    assert cal.ece([0, 0, 0], confidence=[1.0, 1.0, 1.0]) == 1
    matrix = [[1.0, 0.0, 0.0]] * 3
    assert cal.ece([1, 1, 2], probs=matrix) == 1


@pytest.mark.parametrize("closed", ["right", "left"])
def test_binary_top_label_example_of_robustness_metrics(closed):
    # (|1.06 - 1| + |1.95 - 2| + .71 + |1.66 - 2|) / 8 = .145
    p = [0.51, 0.45, 0.39, 0.66, 0.68, 0.29, 0.81, 0.85]
    y = [0, 0, 0, 1, 0, 1, 1, 1]
    error = cal.ece(y, probs=p, target="top-label", bins=10, closed=closed)
    assert error == pytest.approx(0.145)


SIX = [
    *([0.31, 0.32, 0.27], [0.37, 0.33, 0.30], [0.30, 0.31, 0.39]),
    *([0.61, 0.38, 0.01], [0.10, 0.65, 0.25], [0.91, 0.05, 0.04]),
]


def test_multiclass_example_of_robustness_metrics():
    # (|1.08 - 2| + 1.26 + |.91 - 1|) / 6 = .378333
    p, y = np.array(SIX), np.array([1, 0, 0, 1, 0, 0])
    correct, confidence = p.argmax(axis=1) == y, p.max(axis=1)
    error = cal.ece(correct, confidence=confidence, bins=10)
    assert error == pytest.approx(2.27 / 6)


def test_six_rows_of_robustness_metrics_are_no_distributions():
    # Its first row sums to .9, which is why the test above passes pairs.
    with pytest.raises(ValueError, match=r"row 0 sums to 0\.9"):
        cal.ece([1, 0, 0, 1, 0, 0], probs=SIX, bins=10)


def test_example_of_huggingface_evaluate_784():
    error = cal.ece([0, 0, 1, 1], probs=[0.25, 0.25, 0.75, 0.75], bins=2)
    assert error == pytest.approx(0.25)


def test_equal_mass_example_of_torch_uncertainty():
    # Top labels .7, .75, .76 (right) and .8, .8 (one right). The third of five rows
    # lies on the edge between two bins; edges belong to the lower bin.
    y, p = [0, 0, 0, 1, 1], [0.3, 0.24, 0.25, 0.2, 0.8]
    error = cal.ece(y, probs=p, target="top-label", bins=2, strategy="mass")
    expected = 3 / 5 * (1 - (0.7 + 0.76 + 0.75) / 3) + 2 / 5 * (0.8 - 0.5)
    assert expected == pytest.approx(0.278)
    assert error == pytest.approx(expected)


# -- verified_calibration, util_test.py -------------------------------------------


def power_mean(shares, gaps, q):
    return sum(s * g**q for s, g in zip(shares, gaps, strict=True)) ** (1 / q)


@pytest.mark.parametrize(
    ("q", "error"), [(1, 2 / 9), (2, 0.2236068), (3, (1 / 144 + 1 / 225) ** (1 / 3))]
)
def test_one_bin_per_value_of_a_binary_forecast(q, error):
    # At .5 one of 4 came true, at .6 four of 5.
    p = [0.5, 0.5, 0.5, 0.6, 0.5, 0.6, 0.6, 0.6, 0.6]
    y = [0, 1, 0, 1, 0, 1, 1, 1, 0]
    found = cal.ece(y, probs=p, bins=9, strategy="mass", norm=q)
    assert found == pytest.approx(power_mean([4 / 9, 5 / 9], [0.25, 0.2], q))
    assert found == pytest.approx(error, abs=5e-8)


THREE = np.repeat([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.1, 0.0, 0.9]], [6, 4, 4], 0)
THREE_Y = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("q", [1, 2, 3])
def test_one_bin_per_value_of_the_top_label(q):
    # At .6 five of 6 are right, at .8 three of 4, at .9 all 4.
    error = cal.ece(THREE_Y, probs=THREE, bins=14, strategy="mass", norm=q)
    shares, gaps = [6 / 14, 4 / 14, 4 / 14], [5 / 6 - 0.6, 0.05, 0.1]
    assert error == pytest.approx(power_mean(shares, gaps, q))


@pytest.mark.parametrize("q", [1, 2, 3])
def test_one_bin_per_value_of_every_class(q):
    errors = cal.classwise_ece(
        THREE_Y, probs=THREE, bins=14, strategy="mass", norm=q, reduce="none"
    )
    # Class 0 at .1 and .6, class 1 at 0, .3 and .8, class 2 at .1 and .9. Their mean
    # over classes, in the q-th power, is verified_calibration's marginal error.
    shares = np.array([8, 6, 6, 4, 10, 4]) / 42
    gaps = [0.1, 5 / 6 - 0.6, 0.3 - 1 / 6, 0.05, 0, 0.1]
    assert np.mean(errors**q) ** (1 / q) == pytest.approx(power_mean(shares, gaps, q))


@pytest.mark.parametrize("q", [1, 2, 3])
def test_two_equal_mass_bins_of_six_pairs(q):
    # .4, .6, .8 (two right) and .85, .9, 1 (all right). The matrix behind these pairs
    # has a row that sums to 1.05.
    correct, confidence = [1, 1, 1, 1, 0, 1], [0.8, 0.6, 0.9, 1.0, 0.4, 0.85]
    error = cal.ece(correct, confidence=confidence, bins=2, strategy="mass", norm=q)
    gaps = [2 / 3 - 0.6, 1 - 2.75 / 3]
    assert error == pytest.approx(power_mean([1 / 2, 1 / 2], gaps, q))


def test_three_equal_width_bins_of_six_pairs():
    # .8, .85, .9 and 1 share a bin and are right; .6 (right) and .4 (wrong) cancel.
    correct, confidence = [1, 1, 1, 1, 0, 1], [0.8, 0.6, 0.9, 1.0, 0.4, 0.85]
    error = cal.ece(correct, confidence=confidence, bins=3)
    assert error == pytest.approx(4 / 6 * (1 - 3.55 / 4))


def test_class_that_never_occurs_does_no_harm():
    error = cal.ece([0, 0], probs=[[0.9, 0.1], [0.8, 0.2]], target="top-label", bins=15)
    assert error == pytest.approx(0.15)


# -- MAPIE: cumulative differences ------------------------------------------------


def ks_statistic(y, p):
    """Largest cumulative difference in units of its standard deviation if calibrated."""
    p = np.asarray(p)
    return cal.ks_error(y, probs=p) * len(p) / sqrt((p * (1 - p)).sum())


def brownian_maximum(x):
    """P(max |W| <= x) of Brownian motion on [0, 1]."""
    terms = [(-1) ** k / (2 * k + 1) for k in range(20)]
    decay = [exp(-(pi**2) * (2 * k + 1) ** 2 / (8 * x * x)) for k in range(20)]
    return 4 / pi * float(np.dot(terms, decay))


def test_ks_statistic_of_five_forecasts():
    # The walk goes -.1, -.31, -.81, then up again: .81 / sqrt(.6859) = .978.
    found = ks_statistic([0, 1, 0, 1, 0], [0.1, 0.9, 0.21, 0.9, 0.5])
    assert found == pytest.approx(0.81 / sqrt(0.6859))
    assert found == pytest.approx(0.978, abs=5e-4)


def test_ks_statistic_of_an_uncalibrated_sample():
    draw = np.random.RandomState(1)  # the sample of MAPIE's test
    y = draw.choice([0, 1], size=100)
    assert ks_statistic(y, draw.uniform(size=100)) == pytest.approx(5.607741, abs=1e-6)


def test_ks_statistic_of_a_calibrated_sample_has_the_known_p_value():
    draw = np.random.RandomState(1)  # the sample of MAPIE's test
    p = draw.uniform(size=100)
    y = (draw.uniform(size=100) <= p).astype(float)
    assert 1 - brownian_maximum(ks_statistic(y, p)) == pytest.approx(0.2148, abs=1e-4)


@pytest.mark.parametrize(("x", "share"), [(1, 0.370777), (2, 0.908999), (3, 0.994600)])
def test_law_behind_that_p_value(x, share):
    assert brownian_maximum(x) == pytest.approx(share, abs=5e-7)


# -- SmoothECE: the right one, and relplot's --------------------------------------


def test_smooth_ece_counts_confidences_of_one_in_full():
    # Half right at 1 (residual 0), half wrong at .5 (residual -1/2): 1/4 at any width.
    y, h = np.tile([1, 0], 100), np.tile([1.0, 0.5], 100)
    assert cal.smooth_ece(y, confidence=h) == pytest.approx(0.25, abs=1e-6)


def test_relplot_counts_confidences_of_one_half():
    # The half at 1 weighs 1/2: (1/2 * 1/2) / (1/2 + 1/4) = 1/3, up to relplot's grid.
    y, h = np.tile([1, 0], 100), np.tile([1.0, 0.5], 100)
    error = cal.smooth_ece(y, confidence=h, compat="relplot")
    assert error == pytest.approx(1 / 3, abs=1e-4)
    assert error == pytest.approx(0.333315015456, abs=1e-11)


@pytest.mark.parametrize("closed", ["right", "left"])
def test_edge_at_one_is_no_bin_of_its_own(closed):
    # torchmetrics gives 1.0 a bin of its own and says .525.
    y, h = [0, 0, 1, 1], [1.0, 1.0, 0.95, 0.95]
    error = cal.ece(y, confidence=h, bins=10, closed=closed)
    assert error == pytest.approx(0.475)
