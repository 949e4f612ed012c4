"""Mean replacement: the paper's six rows follow from accuracy and ECE alone."""

import json
from math import log

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibration import FitWarning, MeanReplacement

ROWS = {  # table of the paper: classes, rows to fit, rows to test; printed x 100
    "ViT-B/16": (1000, 10_000, 40_000, "85.14", "0.18", "144.66", "27.51"),
    "ResNet-50": (1000, 10_000, 40_000, "80.33", "0.28", "185.48", "35.48"),
    "EfficientNet-B3": (1000, 10_000, 40_000, "81.47", "0.07", "175.92", "33.62"),
    "ConvNeXt-T": (1000, 10_000, 40_000, "84.13", "0.13", "153.34", "29.22"),
    "CIFAR-10 ResNet-32": (10, 2000, 8000, "93.46", "0.34", "38.52", "12.60"),
    "CIFAR-100 ResNet-32": (100, 2000, 8000, "70.20", "0.20", "197.85", "50.63"),
}


def closed_form(k, a, q):
    """NLL and Brier x 100 of mean replacement at accuracy a with confidence q."""
    other = (1 - q) / (k - 1)
    nll = -a * log(q) - (1 - a) * log(other)
    rest = (k - 2) * other**2
    brier = a * ((1 - q) ** 2 + (k - 1) * other**2)
    brier += (1 - a) * (q**2 + (1 - other) ** 2 + rest)
    return 100 * nll, 100 * brier


HALF = 0.005
"""Half a unit of the last digit that the paper prints."""


def allowed(k, accuracy, ece, sign):
    """Ranges of NLL and Brier, given that accuracy and ECE are rounded too."""
    corners = np.array(
        [
            closed_form(k, a / 100, (a + sign * e) / 100)
            for a in (accuracy - HALF, accuracy + HALF)
            for e in (ece - HALF, ece + HALF)
        ]
    )
    return corners.min(axis=0) - HALF, corners.max(axis=0) + HALF


@pytest.mark.parametrize("model", ROWS)
def test_rows_of_the_paper_in_closed_form(model):
    k, _, _, *printed = ROWS[model]
    accuracy, ece, *scores = (float(x) for x in printed)
    for sign in (
        1,
        -1,
    ):  # the paper prints |q - a|, not its sign; here it does not matter
        low, high = allowed(k, accuracy, ece, sign)
        assert (low <= scores).all()
        assert (scores <= high).all()
        assert (high - low < 0.11).all()  # the ranges are narrow


def counted(right, n, k):
    """Rows of two kinds, right and wrong, and how many there are of each."""
    z = np.zeros((2, k))
    z[:, 2] = 5
    return z, np.array([2, 3]), np.array([right, n - right])


def fit_counted(right, n, k):
    z, y, count = counted(right, n, k)
    return MeanReplacement().fit(z, y, frequency=count)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("model", ROWS)
def test_rows_of_the_paper_from_data_of_those_accuracies(model, sign):
    k, n_fit, n_test, *printed = ROWS[model]
    accuracy, ece, *scores = (float(x) for x in printed)
    test, y, count = counted(round(accuracy * n_test / 100), n_test, k)
    right = round((accuracy + sign * ece) * n_fit / 100)
    fitted = fit_counted(right, n_fit, k)
    ev = cal.evaluate(y, probs=fitted.predict_proba(test), frequency=count)
    assert 100 * ev.metrics["accuracy"] == pytest.approx(accuracy, abs=HALF)
    one_row = 100 / n_fit
    for name in ("ece", "ace", "smooth_ece"):
        assert 100 * ev.metrics[name] == pytest.approx(
            ece, abs=HALF + one_row / 2 + 1e-9
        )
    got = 100 * ev.metrics["nll"], 100 * ev.metrics["brier"]
    assert got == pytest.approx(scores, abs=0.06)


def test_the_predicted_class_keeps_its_place_above_chance_only():
    z, *_ = counted(3, 10, 4)
    fitted = fit_counted(3, 10, 4)
    assert fitted.accuracy_ == 0.3
    assert fitted.predict(z).tolist() == [2, 2]
    with pytest.warns(FitWarning, match="below 1/4"):
        worse = fit_counted(2, 10, 4)
    assert worse.predict(z).tolist() == [0, 0]


@pytest.mark.parametrize("n", [2, 5, 400])
def test_where_all_or_none_are_right_half_a_row_more_goes_each_way(n):
    with pytest.warns(FitWarning, match="every row is right"):
        right = fit_counted(n, n, 4)
    assert right.accuracy_ == pytest.approx((n + 0.5) / (n + 1), rel=1e-15)
    with pytest.warns(FitWarning, match="no longer the likeliest"):
        wrong = fit_counted(0, n, 4)
    assert wrong.accuracy_ == pytest.approx(0.5 / (n + 1), rel=1e-15)
    for fitted in (right, wrong):
        p = fitted.predict_proba([[0.0, 0.0, 5.0, 0.0]])
        assert np.isfinite(np.log(p)).all()
        assert len(fitted.notes_) == 1


def test_one_row_that_is_wrong():
    with pytest.warns(FitWarning, match="no row is right; .* so it is 0.25"):
        fit_counted(0, 1, 4)


def test_at_the_edge_weights_count_as_their_effective_number():
    z, y = np.array([[2.0, 0.0]] * 4), np.zeros(4, int)
    with pytest.warns(FitWarning, match="every row is right"):
        fitted = MeanReplacement().fit(z, y, [1, 1, 1, 3])
    n = 6**2 / 12
    assert fitted.accuracy_ == pytest.approx((n + 0.5) / (n + 1), rel=1e-15)


# -- mean replacement of stated confidences ----------------------------------------------


def low_answers(n=1000):
    """Answers that are correct more often than confidences from 0.1 to 0.9 say."""
    rng = np.random.default_rng(7)
    sure = rng.integers(1, 10, n) / 10
    return (rng.random(n) < 0.5 + 0.4 * sure).astype(int), sure


@pytest.mark.parametrize("name", [None, "mine"])
def test_mean_replacement_gives_every_answer_the_mean_accuracy(name):
    """Also those of a confidence below 1/2, where being wrong seems likelier."""
    right, sure = low_answers()
    own = MeanReplacement(scores="probs")
    found = cal.study(
        right[:400],
        right[400:],
        confidence=(sure[:400], sure[400:]),
        methods="platt" if name is None else {name: own},
    )
    mean = found[name or "Mean replacement"]
    np.testing.assert_allclose(mean.columns.confidence, right[:400].mean(), rtol=1e-12)
    assert mean.metrics["accuracy"] == found[0].metrics["accuracy"]
    gap = abs(right[:400].mean() - right[400:].mean())
    assert mean.metrics["ece"] == pytest.approx(gap, abs=1e-12)
    kept = found.recalibrators[name or "Mean replacement"]
    assert len({*kept.predict_proba([0.1, 0.5, 0.9])[:, 1].tolist()}) == 1
    assert kept.notes_ == ()


def test_mean_replacement_of_folds_has_one_confidence_per_fold():
    right, sure = low_answers()
    mean = cal.study(right, confidence=sure, folds=5)["Mean replacement"]
    assert len(np.unique(mean.columns.confidence)) <= 5
    assert mean.columns.confidence == pytest.approx(right.mean(), abs=0.01)
    assert mean.metrics["ece"] < 0.01


def test_mean_replacement_of_answers_mostly_wrong_is_below_a_half_without_a_warning():
    found = MeanReplacement(scores="probs", pairs=True).fit(
        [0.9, 0.3] * 4, [0, 0, 0, 1] * 2
    )
    assert found.predict_proba([0.99, 0.01])[:, 1].tolist() == [0.25, 0.25]


def test_pairs_have_two_classes():
    with pytest.raises(ValueError, match="there are 3 classes"):
        MeanReplacement(pairs=True).fit(np.eye(3), [0, 1, 2])


def test_a_file_from_before_pairs_is_read(tmp_path):
    path = tmp_path / "mean.json"
    MeanReplacement().fit([[2.0, 0.0], [0.0, 1.0]] * 2, [0, 1, 1, 1]).save(path)
    content = json.loads(path.read_text())
    del content["parameters"]["pairs"], content["digest"]
    path.write_text(json.dumps(content))
    assert MeanReplacement.load(path).pairs is False
