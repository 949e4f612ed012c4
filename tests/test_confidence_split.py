"""Over- and under-confidence: parts that add up, slow twins, mirror images, real data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import nadaraya_watson, unit
from strategies import pairs

from calibrant._inputs.divergences import Divergence
from calibrant._rows.columns import Columns
from calibrant._stats.ladder import Ladder
from calibrant._stats.neighbours import cells_of_rows
from calibrant._verbs.confidence_split import ConfidenceSplit, confidence_split
from calibrant._verbs.evaluate import evaluate_pairs
from calibrant._verbs.metric_functions import confidence_gap

DIVERGENCES = ["brier", "log"]
BANDWIDTHS = ["auto", 0.05]


def crossing(n, seed):
    """Over-confident above one half and under-confident below: accuracy 1/4 + h/2."""
    rng = np.random.default_rng(seed)
    h = rng.random(n)
    return h, (rng.random(n) < 0.25 + 0.5 * h).astype(float)


# -- parts add up -----------------------------------------------------------------


@given(
    pairs(least=1, most=30, edges=(0.5, 0.2, 0.9)),
    st.sampled_from(DIVERGENCES),
    st.sampled_from(BANDWIDTHS),
)
def test_parts_add_up_to_the_whole(rows, divergence, bandwidth):
    h, a, w = rows
    options = {"divergence": divergence, "bandwidth": bandwidth}
    found = confidence_split(a, confidence=h, sample_weight=w, **options)
    whole = evaluate_pairs(a, h, sample_weight=w, interval=None, **options)
    parts = found.overconfidence + found.underconfidence
    expected = whole.decomposition.calibration
    assert float(found.calibration) == pytest.approx(expected, abs=1e-14, nan_ok=True)
    few = bandwidth == "auto" and divergence != "brier" and w.sum() < 100
    if not (few and np.isnan(parts)):
        assert parts == pytest.approx(expected, abs=1e-12, nan_ok=True)
    gap = confidence_gap(a, confidence=h, sample_weight=w)
    assert found.gap == pytest.approx(gap, abs=1e-12)
    assert 0 <= found.share_over <= 1


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("n", [150, 5000])
def test_parts_of_the_adaptive_estimate_add_up(n, divergence):
    h, a = crossing(n, seed=n)
    found = confidence_split(a, confidence=h, divergence=divergence)
    parts = found.overconfidence + found.underconfidence
    assert parts == pytest.approx(float(found.calibration), abs=1e-12)
    assert found.bandwidth is None
    assert 0.3 < found.share_over < 0.7


@given(pairs(least=2, most=40))
def test_contributions_add_up_to_the_debiased_error(rows):
    h, a, w = rows
    cells = cells_of_rows(Columns(h, None, a, {}, w))
    ladder = Ladder.of(cells)
    found = ladder.rungs[0] + ladder.belief @ ladder.steps
    assert ladder.contributions.sum() == pytest.approx(found, abs=1e-12)


# -- slow twins -------------------------------------------------------------------


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_parts_of_the_papers_estimate_are_those_of_each_row(divergence):
    h, a = crossing(300, seed=1)
    m, _ = nadaraya_watson(h, h, a, np.ones(300), 0.05)
    d, over = unit(divergence, m, h), m < h
    found = confidence_split(a, confidence=h, divergence=divergence, bandwidth=0.05)
    assert found.overconfidence == pytest.approx((d * over).mean(), abs=1e-6)
    assert found.underconfidence == pytest.approx((d * ~over).mean(), abs=1e-6)
    assert found.gap_over == pytest.approx(((h - a) * over).mean(), abs=1e-12)
    assert found.share_over == pytest.approx(over.mean())


def test_parts_of_the_debiased_error_are_those_of_each_side():
    # All of the lower half is under-confident, all of the upper over-confident, and
    # they are too far apart to see each other: each side has its own mean square.
    h = np.r_[np.linspace(0.1, 0.15, 2000), np.linspace(0.85, 0.9, 2000)]
    a = np.r_[np.tile([0.0, 1.0], 1000), np.tile([0.0, 1.0, 1.0, 1.0], 500)]
    found = confidence_split(a, confidence=h)
    assert found.underconfidence == pytest.approx(0.5 * 0.375**2, rel=0.01)
    assert found.overconfidence == pytest.approx(0.5 * 0.125**2, rel=0.02)
    assert (found.gap_over, found.gap_under) == pytest.approx((0.0625, -0.1875))


def test_parts_of_the_log_error_are_wholes_where_all_rows_are_on_one_side():
    h = np.linspace(0.6, 0.95, 120)
    a = np.tile([0.0, 1.0], 60)
    found = confidence_split(a, confidence=h, divergence="log")
    assert found.overconfidence == pytest.approx(found.calibration, abs=1e-9)
    assert found.underconfidence == pytest.approx(0, abs=1e-9)


# -- closed forms -----------------------------------------------------------------


def test_two_confidences_have_a_part_each():
    # Half of the rows at .9 are right half the time, half at .6 nine times in ten.
    h = np.repeat([0.9, 0.6], 4000)
    a = np.r_[np.tile([0, 1], 2000), np.tile([0, *[1] * 9], 400)]
    found = confidence_split(a, confidence=h, bandwidth=0.01)
    assert found.overconfidence == pytest.approx(0.5 * 0.4**2, abs=1e-9)
    assert found.underconfidence == pytest.approx(0.5 * 0.3**2, abs=1e-9)
    found = confidence_split(a, confidence=h, divergence="log")
    parts = found.overconfidence, found.underconfidence
    truth = unit("log", np.array([0.5, 0.9]), np.array([0.9, 0.6])) / 2
    assert parts == pytest.approx(truth.tolist(), rel=0.01)
    assert (found.gap_over, found.gap_under) == pytest.approx((0.2, -0.15))


def test_half_a_divergence_has_half_the_parts():
    half = Divergence(
        "half Brier",
        phi=lambda x: 0.5 * (x**2).sum(axis=1),
        gradient=lambda x: x,
        phi_1d=lambda p: 0.5 * p**2,
        derivative_1d=lambda p: p,
    )
    h, a = crossing(500, seed=7)
    whole = confidence_split(a, confidence=h, bandwidth=0.05)
    found = confidence_split(a, confidence=h, bandwidth=0.05, divergence=half)
    assert 2 * found.overconfidence == pytest.approx(whole.overconfidence, abs=1e-12)
    assert 2 * found.underconfidence == pytest.approx(whole.underconfidence, abs=1e-12)
    adaptive = confidence_split(a, confidence=h, divergence=half)
    parts = adaptive.overconfidence + adaptive.underconfidence
    assert parts == pytest.approx(float(adaptive.calibration), abs=1e-12)


@pytest.mark.parametrize(("certain", "side"), [(1.0, "over"), (0.0, "under")])
def test_a_certain_forecast_that_fails_is_infinite_on_its_side(certain, side):
    h, a = crossing(400, seed=3)
    h[:20], a[:20] = certain, np.tile([0.0, 1.0], 10)
    found = confidence_split(a, confidence=h, divergence="log")
    other = "under" if side == "over" else "over"
    assert found.calibration == np.inf
    assert getattr(found, f"{side}confidence") == np.inf
    assert np.isfinite(getattr(found, f"{other}confidence"))


def test_losses_beyond_the_grid_stay_on_their_side():
    # Log-odds of 40 count as 20 on the grid, but cost 40 each when they are wrong.
    z = np.repeat([2.0, 40.0], 100)
    y = np.tile([0, 1], 100)
    found = confidence_split(y, logits=z, divergence="log")
    assert found.overconfidence > 9
    assert found.underconfidence == pytest.approx(0, abs=1e-9)


# -- mirror images ----------------------------------------------------------------


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_the_other_class_is_over_confident_where_this_one_is_under(
    divergence, bandwidth
):
    h, a = crossing(400, seed=4)
    h = np.r_[h, h**2]  # not its own mirror image
    a = np.r_[a, a]
    options = {"divergence": divergence, "bandwidth": bandwidth}
    one = confidence_split(a, confidence=h, **options)
    other = confidence_split(1 - a, confidence=1 - h, **options)
    mirrored = other.underconfidence, other.overconfidence, -other.gap_under
    found = one.overconfidence, one.underconfidence, one.gap_over
    assert found == pytest.approx(mirrored, abs=1e-6)


# -- the record -------------------------------------------------------------------


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_record_survives_json_and_prints(divergence):
    h, a = crossing(60, seed=5)
    h[0], a[0] = 1.0, 0.0
    found = confidence_split(a, confidence=h, divergence=divergence)
    again = ConfidenceSplit.from_json(found.to_json())
    assert str(again) == str(found)
    assert again.to_dict() == found.to_dict()
    assert f"= {found.overconfidence:.5f} over-confident" in str(found)


def test_few_rows_have_no_parts_of_the_log_error():
    h, a = crossing(40, seed=6)
    found = confidence_split(a, confidence=h, divergence="log")
    assert np.isnan([found.calibration, found.overconfidence]).all()
    assert np.isfinite(found.gap_over)


# -- real data --------------------------------------------------------------------


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("cifar10_akamaster_resnet32", "over"),
        ("cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT", "under"),
    ],
)
def test_networks_known_to_err_to_one_side(data, name, side, divergence):
    file = data(name)
    kind = "logits" if "logits" in file else "probs"
    found = confidence_split(
        file["labels"], **{kind: file[kind]}, divergence=divergence
    )
    part = getattr(found, f"{side}confidence")
    assert part == pytest.approx(float(found.calibration), rel=0.02)
    assert (found.share_over > 0.9) == (side == "over")
