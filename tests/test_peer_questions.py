"""Answers to further questions, held against the libraries that answer them, too.

Theirs are frozen in benchmarks/peer_questions.json; how they were asked, and each one's
convention, is described in benchmarks/record_questions.py.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibration import OffsetScaling

ROOT = Path(__file__).resolve().parent.parent
KNOWN = json.loads((ROOT / "benchmarks" / "peer_questions.json").read_text("utf-8"))
forecasts = pytest.mark.parametrize("file", KNOWN["forecasts"])
regions = pytest.mark.parametrize("file", KNOWN["regions"])
classes = pytest.mark.parametrize("file", KNOWN["classes"])


def same(value):
    return pytest.approx(value, rel=1e-9)


def read(data, file):
    arrays = data(file)
    p = np.clip(arrays["prob"].astype(float), 1e-6, 1 - 1e-6)
    return arrays["outcome"].astype(int), p


def probcal(file):
    return KNOWN["forecasts"][file]["probcal"]


@forecasts
def test_probcal_errors_in_bins_of_equal_width(data, file):
    y, p = read(data, file)
    known, left = probcal(file), {"probs": p, "closed": "left"}
    assert cal.ece(y, **left) == same(known["ece"])
    assert cal.ece(y, **left, norm=2) == same(known["ece_l2"])
    assert cal.mce(y, **left) == same(known["mce"])


@forecasts
def test_probcal_calibration_intercept_slope_and_skill(data, file):
    y, p = read(data, file)
    found, known = cal.clinical(y, probs=p), probcal(file)
    assert float(found.intercept) == same(known["intercept"])
    assert float(found.slope) == same(known["slope"])
    assert float(cal.skill(y, probs=p)) == same(known["skill"])


@forecasts
def test_probcal_cumulative_differences_and_spiegelhalter(data, file):
    y, p = read(data, file)
    known = probcal(file)
    assert cal.ks_error(y, probs=p) == same(known["ecce"])
    how = {"method": "spiegelhalter", "law": "asymptotic"}
    found = cal.calibration_test(y, probs=p, **how)
    assert found.statistic == same(known["spiegelhalter_z"])
    assert found.p_value == same(known["spiegelhalter_p"])


@forecasts
def test_probcal_kernel_error_is_that_of_two_classes(data, file):
    # It takes the vector (1 - p, p), whose squared residuals are twice those of p.
    y, p = read(data, file)
    some = np.sort(np.random.default_rng(0).permutation(len(y))[: KNOWN["some"]])
    options = {"width": 0.2, "resamples": 20}
    found = cal.kernel_calibration_error(y[some], probs=p[some], **options)
    assert 2 * found.value == same(probcal(file)["skce"])


@forecasts
def test_probcal_offset_to_a_rate(data, file):
    y, p = read(data, file)
    offset = OffsetScaling(scores="probs", rate=0.5).fit(p, y).offset_
    assert offset[1] - offset[0] == same(probcal(file)["offset"])


@forecasts
def test_probcal_murphy_scores_are_half_of_ours(data, file):
    y, p = read(data, file)
    found = cal.murphy(y, probs=p, thresholds=KNOWN["thresholds"])
    assert found.score / 2 == same(probcal(file)["murphy"])


@forecasts
def test_t_cal_has_the_debiased_estimates_of_its_authors(data, file):
    y, p = read(data, file)
    found = cal.t_cal(y, probs=p, resamples=20)
    scales = KNOWN["scales"]
    assert found.bins[: len(scales)] == tuple(scales)
    known = KNOWN["forecasts"][file]["t_cal"]
    assert found.errors[: len(scales)] == pytest.approx(known, rel=1e-9, abs=1e-15)


@classes
def test_torch_uncertainty_risk_and_coverage(data, file):
    arrays = data(file)
    y, z = arrays["labels"], arrays["logits"].astype(float)
    found, n = cal.risk_coverage(y, logits=z), len(y)
    known = KNOWN["classes"][file]["torch_uncertainty"]
    # Trapezoids from 1 / n on, over 1 - 1 / n: of the risks half of the first, which is 0, and
    # of the last are missing. Ties are as they are sorted there, and sums are in float32.
    error = 1 - cal.accuracy(y, logits=z)
    aurc = (n * float(found.aurc) - error / 2) / (n - 1)
    assert aurc == pytest.approx(known["aurc"], rel=1e-6)
    augrc = n * float(found.augrc) / (n - 1)
    assert augrc == pytest.approx(known["augrc"], rel=1e-6)
    assert 1 - float(found.accuracy_at(0.8)) == same(known["risk_at_80_coverage"])
    # Theirs is a whole number of rows, ours goes on to where the risk is 5 %.
    apart = float(found.coverage_at(risk=0.05)) - known["coverage_at_5_risk"]
    assert -1e-6 < apart < 1 / n


@regions
def test_glest_grouping_loss_of_given_regions_is_of_the_same_size(data, file):
    # Both take the noise off what regions explain within bins. glest takes the bins' width
    # off with a mean of neighbours, we fit a line in each: two estimates of one number,
    # which is all that can be asked. Theirs are of two classes, so twice ours.
    arrays, known = data(file), KNOWN["regions"][file]
    y, p = read(data, file)
    found = cal.grouping_loss(y, probs=p, explain=arrays[known["column"]])
    parts = known["glest"]
    most = (parts["uncorrected"] - parts["bias"]) / 2
    least = most - parts["induced"] / 2
    low, high = found.interval
    assert low < most * 1.001
    assert least * 0.999 < high
