"""Agreement with what other libraries answered, each in its own conventions.

Their answers are frozen in benchmarks/peer_outputs.json, to twelve digits; how they
were asked is described in benchmarks/record_peers.py. Tolerances are about those
digits unless a comment says otherwise.
"""

import json
from math import inf, nextafter
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant._verbs.metric_functions import _torch_edges

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "benchmarks" / "peer_outputs.json").read_text(encoding="utf-8")
FILES, ARRAYS = (json.loads(TEXT)[key] for key in ("files", "arrays"))

RESNET, EFFICIENTNET = "cifar10_akamaster_resnet32", "imagenet5k_efficientnet_lite0"
both_files = pytest.mark.parametrize("file", [RESNET, EFFICIENTNET])


def same(value):
    """Equal to twelve digits."""
    return pytest.approx(value, rel=1e-11, abs=1e-11)


def read_file(data, file):
    arrays = data(file)
    return arrays["labels"], {"logits": arrays["logits"].astype(float)}


def top_label(labels, logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return (p.argmax(axis=1) == labels).astype(float), p.max(axis=1)


def read_array(name):
    case = ARRAYS[name]
    if "probs" in case:
        return np.array(case["labels"]), {"probs": np.array(case["probs"])}
    times = case.get("repeat", 1)
    correct, h = (np.tile(case[key], times) for key in ("correct", "confidence"))
    return correct, {"confidence": h}


def test_every_answer_on_file_is_asked_about():
    # Who adds a case or a peer to the recording adds it below, too.
    assert set(FILES) == {RESNET, EFFICIENTNET}
    asked = [
        *(*NETCAL, "tenths"),
        *(*TORCHMETRICS, *TORCHMETRICS_ONES),
        *(*SKLEARN_BINS, *SKLEARN_LOSSES),
        *RELPLOT,
        *SHARPCAL,
    ]
    assert set(ARRAYS) == set(asked)


# -- netcal: left-closed bins -----------------------------------------------------


def netcal_errors(y, scores, bins):
    left = {"bins": bins, "closed": "left"}
    return {
        "ece": cal.ece(y, **scores, **left),
        "ace": cal.ace(y, **scores, **left),
        "mce": cal.mce(y, **scores, **left),
    }


@both_files
def test_netcal_errors_of_real_models(data, file):
    y, scores = read_file(data, file)
    assert netcal_errors(y, scores, 15) == same(FILES[file]["netcal"])


@both_files
def test_paper_preset_reports_netcal_and_relplot(data, file):
    y, scores = read_file(data, file)
    metrics = cal.evaluate(y, **scores, preset="paper").metrics
    netcal, relplot = FILES[file]["netcal"], FILES[file]["relplot"]
    assert metrics["ece"] == same(netcal["ece"])
    assert metrics["ace"] == same(netcal["ace"])
    assert metrics["mce"] == same(netcal["mce"])
    assert metrics["smooth_ece"] == same(relplot["smooth_ece"])


NETCAL = [
    *("middle_edge", "one_when_right", "one_when_wrong", "zero"),
    *("three_to_one", "zero_at_the_true_class", "few_values"),
]


@pytest.mark.parametrize("name", NETCAL)
def test_netcal_errors_at_edges(name):
    y, scores = read_array(name)
    found = netcal_errors(y, scores, ARRAYS[name]["bins"])
    assert found == same(ARRAYS[name]["answers"]["netcal"])


def test_netcal_moves_three_tenths_below_their_edge():
    # Its edges are np.linspace(0, 1, 11), where .3, .6 and .7 come out one unit in the
    # last place too large, so these decimals fall into the bin below. Ours are i / 10,
    # which decimals meet exactly: each of the nine has a bin of its own.
    case = ARRAYS["tenths"]
    correct, h = np.array(case["correct"]), np.array(case["confidence"])
    alone = np.abs(correct - h).mean()
    for closed in ("left", "right"):
        assert cal.ece(correct, confidence=h, bins=10, closed=closed) == same(alone)
    low = np.where(np.isin(h, [0.3, 0.6, 0.7]), [nextafter(x, 0) for x in h], h)
    found = netcal_errors(correct, {"confidence": low}, 10)
    assert found == same(case["answers"]["netcal"])


# -- torchmetrics: left-closed bins, one more for confidence 1, in float32 --------


def torchmetrics_error(correct, h, bins, norm):
    """Our left-closed error, with the confidences of exactly 1 set apart."""
    one = h == 1
    parts = [
        (rows.mean(), cal.ece(correct[rows], confidence=h[rows], **bins, norm=norm))
        for rows in (one, ~one)
        if rows.any()
    ]
    if norm == "max":
        return max(error for _, error in parts)
    return sum(share * error**norm for share, error in parts) ** (1 / norm)


def torchmetrics_errors(correct, h, bins):
    left = {"bins": bins, "closed": "left"}
    norms = {"l1": 1, "l2": 2, "max": "max"}
    return {
        name: torchmetrics_error(correct, h, left, norm) for name, norm in norms.items()
    }


@both_files
def test_torchmetrics_errors_of_real_models(data, file):
    # It casts to float32, in which 28% of the ResNet's confidences are exactly 1,
    # and adds them up in float32, which drifts by 5e-6 over 10 000 rows.
    labels, scores = read_file(data, file)
    correct, h = top_label(labels, scores["logits"])
    found = torchmetrics_errors(correct, h.astype(np.float32), 15)
    known = FILES[file]["torchmetrics"]
    assert found == pytest.approx(known, rel=0, abs=1e-5)
    assert cal.ece(labels, **scores, closed="left") == pytest.approx(
        known["l1"], rel=0, abs=1e-5
    )


NORMS = {"l1": 1, "l2": 2, "max": "max"}


def like_torchmetrics(y, scores, **options):
    compat = {"compat": "torchmetrics", **options}
    return {name: cal.ece(y, **scores, norm=q, **compat) for name, q in NORMS.items()}


@both_files
def test_compat_with_torchmetrics_reproduces_it_on_real_models(data, file):
    # To the last digits of single precision, in which it adds up its bins.
    labels, scores = read_file(data, file)
    found = like_torchmetrics(labels, scores)
    assert found == pytest.approx(FILES[file]["torchmetrics"], rel=2e-7)


MATRICES = ["three_to_one", "zero_at_the_true_class", "few_values"]


@pytest.mark.parametrize("name", MATRICES)
def test_compat_with_torchmetrics_reproduces_it_on_a_matrix(name):
    labels, scores = read_array(name)
    found = like_torchmetrics(labels, scores, bins=ARRAYS[name]["bins"])
    assert found == pytest.approx(ARRAYS[name]["answers"]["torchmetrics"], rel=2e-7)


@pytest.mark.parametrize(
    "name", ["middle_edge", "zero", "one_when_right", "one_when_wrong"]
)
def test_compat_with_torchmetrics_reproduces_it_at_edges(name):
    correct, scores = read_array(name)
    found = like_torchmetrics(correct, scores, bins=ARRAYS[name]["bins"])
    assert found == same(ARRAYS[name]["answers"]["torchmetrics"])


def test_compat_with_torchmetrics_has_the_edges_of_its_linspace(part):
    torch = part("torch")
    for bins in (1, 2, 3, 9, 10, 15, 20, 100, 1000):
        for dtype in (np.float32, np.float64):
            given = torch.as_tensor(np.zeros(1, dtype)).dtype
            want = torch.linspace(0, 1, bins + 1, dtype=given).numpy()
            np.testing.assert_array_equal(_torch_edges(bins, dtype), want)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"strategy": "mass"}, {"norm": 3}, {"debias": True, "norm": 2}),
        *({"sample_weight": [1.0, 2.0]}, {"closed": "right"}),
    ],
)
def test_compat_with_torchmetrics_refuses_what_it_has_not(wrong):
    with pytest.raises(ValueError, match="compat='torchmetrics' has equal-width bins"):
        cal.ece([0, 1], probs=[0.2, 0.7], compat="torchmetrics", **wrong)
    left = cal.ece([0, 1], probs=[0.2, 0.7], compat="torchmetrics", closed="left")
    assert left == cal.ece([0, 1], probs=[0.2, 0.7], compat="torchmetrics")


TORCHMETRICS = ["middle_edge", "zero"]
TORCHMETRICS_ONES = ["one_when_right", "one_when_wrong"]


@pytest.mark.parametrize("name", [*TORCHMETRICS, *TORCHMETRICS_ONES])
def test_torchmetrics_errors_at_edges(name):
    correct, scores = read_array(name)
    found = torchmetrics_errors(correct, scores["confidence"], ARRAYS[name]["bins"])
    assert found == same(ARRAYS[name]["answers"]["torchmetrics"])


@pytest.mark.parametrize("name", TORCHMETRICS)
def test_torchmetrics_agrees_where_nobody_is_certain(name):
    correct, scores = read_array(name)
    error = cal.ece(correct, **scores, bins=ARRAYS[name]["bins"], closed="left")
    assert error == same(ARRAYS[name]["answers"]["torchmetrics"]["l1"])


def test_torchmetrics_gives_certainty_a_bin_of_its_own():
    # (1 * 2 + .05 * 2) / 4 = .525 in two bins, |.975 - .5| = .475 in one.
    correct, scores = read_array("one_when_wrong")
    error = cal.ece(correct, **scores, bins=10, closed="left")
    assert error == pytest.approx(0.475)
    known = ARRAYS["one_when_wrong"]["answers"]["torchmetrics"]["l1"]
    assert known == pytest.approx(0.525)


@pytest.mark.parametrize("name", MATRICES)
def test_torchmetrics_errors_of_a_matrix(name):
    labels, scores = read_array(name)
    p = scores["probs"]
    correct, h = (p.argmax(axis=1) == labels).astype(float), p.max(axis=1)
    found = torchmetrics_errors(correct, h, ARRAYS[name]["bins"])
    known = ARRAYS[name]["answers"]["torchmetrics"]  # in float32
    assert found == pytest.approx(known, rel=0, abs=2e-7)


# -- scikit-learn -----------------------------------------------------------------


@both_files
def test_scikit_learn_scores_of_real_models(data, file):
    y, scores = read_file(data, file)
    known = FILES[file]["sklearn"]
    assert cal.nll(y, **scores) == same(known["log_loss"])
    assert cal.brier(y, **scores) == same(known["brier"])
    assert cal.auroc(y, **scores) == same(known["auroc"])


@both_files
def test_scikit_learn_isotonic_regression_gives_our_corp(data, file):
    y, scores = read_file(data, file)
    parts, known = cal.corp(y, **scores), FILES[file]["sklearn"]["corp"]
    assert parts.score == same(known["score"])
    assert parts.miscalibration == same(known["miscalibration"])
    assert parts.discrimination == same(known["discrimination"])
    assert parts.uncertainty == same(known["uncertainty"])


def assert_same_bins(bins, known):
    """scikit-learn's bins are right-closed; it leaves out the empty ones."""
    some = bins.count > 0
    assert bins.accuracy[some].tolist() == same(known["accuracy"])
    assert bins.confidence[some].tolist() == same(known["confidence"])


@both_files
def test_scikit_learn_calibration_curve_of_real_models(data, file):
    y, scores = read_file(data, file)
    bins = cal.evaluate(y, **scores).bins
    assert_same_bins(bins, FILES[file]["sklearn"]["calibration_curve"])


SKLEARN_BINS = ["middle_edge", "one_when_right", "one_when_wrong", "tenths", "zero"]


@pytest.mark.parametrize("name", SKLEARN_BINS)
def test_scikit_learn_calibration_curve_at_edges(name):
    correct, scores = read_array(name)
    case = ARRAYS[name]
    bins = cal.evaluate_pairs(correct, scores["confidence"], bins=case["bins"]).bins
    assert_same_bins(bins, case["answers"]["sklearn"]["calibration_curve"])


SKLEARN_LOSSES = MATRICES


@pytest.mark.parametrize("name", SKLEARN_LOSSES)
def test_scikit_learn_brier_score_of_a_matrix(name):
    y, scores = read_array(name)
    known = ARRAYS[name]["answers"]["sklearn"]
    assert cal.brier(y, **scores) == same(known["brier"])


def test_scikit_learn_log_loss_is_clipped_where_ours_is_infinite():
    y, scores = read_array("three_to_one")
    known = ARRAYS["three_to_one"]["answers"]["sklearn"]["log_loss"]
    assert cal.nll(y, **scores) == same(known)
    y, scores = read_array("zero_at_the_true_class")
    assert cal.nll(y, **scores) == inf
    # scikit-learn says 2**-52 for 0: (52 log 2 + the other three rows) / 4.
    rest = cal.nll(y, **scores, sample_weight=[0, 1, 1, 1])
    known = ARRAYS["zero_at_the_true_class"]["answers"]["sklearn"]["log_loss"]
    assert (52 * np.log(2) + 3 * rest) / 4 == same(known)


# -- relplot: SmoothECE -----------------------------------------------------------


@both_files
def test_relplot_smooth_ece_of_real_models(data, file):
    y, scores = read_file(data, file)
    known = FILES[file]["relplot"]
    error = cal.smooth_ece(y, **scores, compat="relplot")
    assert error == same(known["smooth_ece"])
    error = cal.smooth_ece(y, **scores, compat="relplot", bandwidth=0.05)
    assert error == same(known["smooth_ece_at_0.05"])
    # Its bandwidth is a multiple of 1/1024, just above the error it gives.
    error = cal.smooth_ece(y, **scores, compat="relplot", bandwidth=known["bandwidth"])
    assert error == same(known["smooth_ece"])
    assert 0 < known["bandwidth"] - error < 1 / 1024


RELPLOT = [
    *("constant", "six_pairs", "full_weight_near_one"),
    *("half_weight_at_one", "half_weight_at_zero"),
]


@pytest.mark.parametrize("name", RELPLOT)
def test_relplot_smooth_ece_of_pairs(name):
    correct, scores = read_array(name)
    known = ARRAYS[name]["answers"]["relplot"]
    error = cal.smooth_ece(correct, **scores, compat="relplot")
    assert error == same(known["smooth_ece"])
    error = cal.smooth_ece(correct, **scores, compat="relplot", bandwidth=0.05)
    assert error == same(known["smooth_ece_at_0.05"])


def test_relplot_agrees_with_us_where_nobody_is_certain(data):
    # Confidences of EfficientNet-Lite0 rarely come within .001 of 1; relplot's grid
    # and its bisection to 1/1024 remain.
    y, scores = read_file(data, EFFICIENTNET)
    known = FILES[EFFICIENTNET]["relplot"]["smooth_ece"]
    assert cal.smooth_ece(y, **scores) == pytest.approx(known, rel=0, abs=5e-4)


def test_relplot_overstates_the_error_of_a_saturated_model(data):
    # Half the weight of the many rows at 1 is lost: .0747 where .0507 is right.
    y, scores = read_file(data, RESNET)
    known = FILES[RESNET]["relplot"]["smooth_ece"]
    assert known - cal.smooth_ece(y, **scores) > 0.02


# -- sharpcal: the paper's own code -----------------------------------------------


@both_files
def test_sharpcal_decomposition_of_real_models(data, file):
    y, scores = read_file(data, file)
    paper, known = cal.evaluate(y, **scores).paper, FILES[file]["sharpcal"]
    assert paper.total == same(known["total"])
    assert paper.calibration == same(known["calibration"])
    gap = known["total"] - known["calibration"]
    assert paper.sharpness_gap == same(gap)


@pytest.mark.parametrize(("file", "shown"), [(RESNET, 19), (EFFICIENTNET, 21)])
def test_sharpcal_curve_of_real_models(data, file, shown):
    # We show nothing where no row is near: below .1 for the ResNet. There sharpcal
    # divides two numbers of about 1e-7.
    y, scores = read_file(data, file)
    curve, known = (
        cal.evaluate(y, **scores).paper_curve,
        FILES[file]["sharpcal"]["curve"],
    )
    at = np.searchsorted(curve.confidence, np.array(known["confidence"]) - 1e-9)
    assert curve.confidence[at].tolist() == same(known["confidence"])
    assert curve.density[at].tolist() == pytest.approx(known["density"], abs=1e-9)
    near = np.isfinite(curve.accuracy[at])
    assert near.sum() == shown
    for name in ("accuracy", "loss"):
        expected = np.array(known[name])[near]
        np.testing.assert_allclose(getattr(curve, name)[at][near], expected, atol=1e-9)


SHARPCAL = [*RELPLOT, *MATRICES]


@pytest.mark.parametrize("name", SHARPCAL)
def test_sharpcal_decomposition_of_few_rows(name):
    y, scores = read_array(name)
    known = ARRAYS[name]["answers"]["sharpcal"]
    assert cal.brier(y, **scores) == same(known["total"])
    assert cal.calibration_error(y, **scores, bandwidth=0.05) == same(
        known["calibration"]
    )


# -- uncertainty-calibration: right-closed bins -----------------------------------

WIDTH = {
    "ece": {},
    "l2_width": {"norm": 2},
    "debiased_l2_width": {"norm": 2, "debias": True},
}
MASS = {
    "ece_mass": {"strategy": "mass"},
    "l2_mass": {"strategy": "mass", "norm": 2},
    "debiased_l2_mass": {"strategy": "mass", "norm": 2, "debias": True},
}


@both_files
@pytest.mark.parametrize("key", WIDTH)
def test_uncertainty_calibration_equal_width_errors_of_real_models(data, file, key):
    y, scores = read_file(data, file)
    known = FILES[file]["uncertainty_calibration"][key]
    assert cal.ece(y, **scores, **WIDTH[key]) == same(known)


@both_files
@pytest.mark.parametrize("key", MASS)
def test_uncertainty_calibration_equal_mass_errors_of_real_models(data, file, key):
    # 15 does not divide n: it gives the first bins a row more, we spread them evenly.
    y, scores = read_file(data, file)
    known = FILES[file]["uncertainty_calibration"][key]
    assert cal.ece(y, **scores, **MASS[key]) == pytest.approx(known, rel=0, abs=1e-4)


@pytest.mark.parametrize("name", MATRICES)
def test_uncertainty_calibration_marginal_error_of_a_matrix(name):
    labels, scores = read_array(name)
    known = ARRAYS[name]["answers"]["uncertainty_calibration"]["marginal"]
    found = cal.classwise_ece(labels, **scores, compat="uncertainty-calibration")
    assert found == same(known)


@pytest.mark.parametrize("name", SKLEARN_BINS)
@pytest.mark.parametrize("key", [*WIDTH, *MASS])
def test_uncertainty_calibration_errors_at_edges(name, key):
    # Among these a value whose mid-rank is just on an edge (`middle_edge`): it goes to
    # the lower bin.
    correct, scores = read_array(name)
    known = ARRAYS[name]["answers"]["uncertainty_calibration"][key]
    options = (WIDTH | MASS)[key]
    found = cal.ece(correct, **scores, bins=ARRAYS[name]["bins"], **options)
    assert found == same(known)


@both_files
def test_uncertainty_calibration_marginal_error_of_real_models(data, file):
    y, scores = read_file(data, file)
    known = FILES[file]["uncertainty_calibration"]["marginal"]
    found = cal.classwise_ece(y, **scores, compat="uncertainty-calibration")
    assert found == same(known)
    own = {"strategy": "mass", "norm": 2, "debias": True, "reduce": "norm"}
    # 15 does not divide n, and ties stay together: bins differ by a row here and there.
    assert cal.classwise_ece(y, **scores, **own) == pytest.approx(known, rel=1e-3)


def test_class_wise_debiased_error_by_hand():
    # One bin: .9 - .6 for class 0, and minus that for class 1; noise of .6 * .4 / 9.
    y, p = [0] * 6 + [1] * 4, [[0.9, 0.1]] * 10
    options = {"norm": 2, "debias": True}
    each = cal.classwise_ece(y, probs=p, **options, reduce="none")
    assert each**2 == pytest.approx([0.09 - 0.24 / 9] * 2)
    p = [[0.9, 0.1, 0.0]] * 10
    three = cal.classwise_ece(y, probs=p, **options, reduce="norm")
    assert three**2 == pytest.approx(2 / 3 * (0.09 - 0.24 / 9))
    plain = cal.classwise_ece(y, probs=p, **options)
    assert plain == pytest.approx(2 / 3 * (0.09 - 0.24 / 9) ** 0.5)
