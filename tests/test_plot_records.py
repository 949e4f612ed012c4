"""What figures read: atoms, blocks, histograms, the smooth curve, and their words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plot_models import edge_cases, hundred_classes, ordinary, study

import calibrant as cal
from calibrant._sketch.ordered import Ordered
from calibrant._stats.bins import Isotonic, atoms, consistency_band

pytestmark = pytest.mark.xdist_group("figures")

UNIT = st.floats(0, 1)
ROWS = st.lists(st.tuples(UNIT, st.booleans()), min_size=1, max_size=60)


def evaluated(rows):
    h, y = (np.array(column, float) for column in zip(*rows, strict=True))
    return cal.evaluate_pairs(y, h), h, y


# -- atoms and bins ---------------------------------------------------------------------


def test_atoms_are_the_distinct_confidences():
    ev = cal.evaluate_pairs([1, 0, 1, 1, 0], [0.5, 0.5, 0.9, 0.9, 0.1 + 0.2])
    assert ev.atoms.confidence.tolist() == [0.1 + 0.2, 0.5, 0.9]
    assert ev.atoms.count.tolist() == [1, 2, 2]
    assert ev.atoms.accuracy.tolist() == [0, 0.5, 1]
    np.testing.assert_array_equal(ev.atoms.lower, ev.atoms.upper)


def test_forty_values_are_atoms_and_forty_one_are_not():
    for values in (40, 41):
        h = np.tile(np.linspace(0.1, 0.9, values), 3)
        ev = cal.evaluate_pairs(np.ones(len(h)), h)
        assert len(ev.atoms.count) == (40 if values == 40 else 0)


def test_round_off_twins_are_one_atom():
    h = np.array([0.3, 0.1 + 0.2, 0.3, 0.7])
    ev = cal.evaluate_pairs([1, 0, 1, 1], h)
    assert len(ev.atoms.count) == ev.distinct == 2
    assert ev.largest_share == 0.75


@given(ROWS)
def test_bins_of_every_kind_hold_all_rows_and_hits(rows):
    ev, h, y = evaluated(rows)
    for bins in (ev.bins, ev.mass_bins, ev.isotonic):
        assert bins.count.sum() == len(h)
        assert np.nansum(bins.count * bins.accuracy) == pytest.approx(y.sum())
        assert np.nansum(bins.count * bins.confidence) == pytest.approx(h.sum())
    assert ev.histogram.sum() == ev.log_odds_histogram.sum() == len(h)


def naive_blocks(h, y):
    """Pool neighbours by hand until accuracies increase: the textbook's loop."""
    blocks = []
    for value in np.unique(h):
        hits = y[h == value]
        blocks.append([value, value, hits.sum(), len(hits)])
        while len(blocks) > 1 and (
            blocks[-2][2] * blocks[-1][3] >= blocks[-1][2] * blocks[-2][3]
        ):
            _, upper, hits, count = blocks.pop()
            blocks[-1][1:] = [upper, blocks[-1][2] + hits, blocks[-1][3] + count]
    return np.array(blocks, float)


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=60))
def test_isotonic_blocks_are_those_pooled_by_hand(rows):
    ev, h, y = evaluated([(place / 12, hit) for place, hit in rows])
    lower, upper, hits, count = naive_blocks(h, y).T
    np.testing.assert_array_equal(ev.isotonic.lower, lower)
    np.testing.assert_array_equal(ev.isotonic.upper, upper)
    np.testing.assert_allclose(ev.isotonic.accuracy, hits / count, rtol=1e-12)
    np.testing.assert_array_equal(ev.isotonic.count, count)


def test_blocks_and_atoms_keep_the_variance_of_soft_labels():
    values = Ordered.of(*np.array([[0.2, 0.8], [2, 2], [1, 1.2], [0.6, 0.8]]))
    np.testing.assert_allclose(atoms(values).variance, [0.05, 0.04])
    np.testing.assert_allclose(Isotonic.of(values).bins().variance, [0.05, 0.04])


def test_histograms_count_rows_in_cells():
    h = np.random.default_rng(0).random(5000)
    ev = cal.evaluate_pairs(h < 0.5, h)
    counts, _ = np.histogram(h, 480, (0, 1))
    np.testing.assert_array_equal(ev.histogram, counts)
    counts, _ = np.histogram(np.log(h / (1 - h)), 200, (-20, 20))
    np.testing.assert_array_equal(ev.log_odds_histogram, counts)


def test_a_fine_bandwidth_does_not_change_the_histogram():
    h = np.random.default_rng(0).random(500)
    fine = cal.evaluate_pairs(h < 0.5, h, bandwidth=0.004)
    np.testing.assert_array_equal(
        fine.histogram, cal.evaluate_pairs(h < 0.5, h).histogram
    )


# -- the smooth curve -------------------------------------------------------------------


def exact_smoothing(x, h, y, sigma):
    """The textbook sum, one kernel for each row and its images beyond 0 and 1."""
    images = np.concatenate([s + side * h for s in (-2, 0, 2) for side in (1, -1)])
    K = np.exp(-0.5 * ((x[:, None] - images) / sigma) ** 2)
    mass = K.sum(axis=1)
    density = mass / (len(h) * sigma * np.sqrt(2 * np.pi))
    return K @ np.tile(y, 6) / mass, density


def test_the_smooth_curve_is_the_textbooks_at_the_bandwidth_of_smooth_ece():
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 800)
    y = (rng.random(800) < h**2).astype(float)
    curve = cal.evaluate_pairs(y, h).smooth
    assert curve.bandwidth == pytest.approx(cal.smooth_ece(y, confidence=h), abs=1e-9)
    accuracy, density = exact_smoothing(curve.confidence, h, y, curve.bandwidth)
    np.testing.assert_allclose(curve.density, density, atol=1e-7)
    known = np.isfinite(curve.accuracy)
    np.testing.assert_allclose(curve.accuracy[known], accuracy[known], atol=1e-6)


def test_a_calibrated_model_is_smoothed_as_finely_as_can_be_drawn():
    ev = cal.evaluate_pairs([0, 1] * 50, [0.5] * 100)
    assert ev.metrics["smooth_ece"] < 1e-3
    assert ev.smooth.bandwidth == 1 / 480


# -- the record -------------------------------------------------------------------------


def test_the_sums_are_kept_but_not_written_to_json():
    ev = ordinary()
    assert ev.sketch.rows == ev.rows
    assert "sketch" not in ev.to_dict()
    again = cal.Evaluation.from_json(ev.to_json())
    assert again.sketch is None
    assert again.to_dict() == ev.to_dict()


def test_classes_share_no_sums_but_have_bins_and_atoms():
    ev = hundred_classes()
    assert ev.sketch is None
    assert all(one.sketch is None for one in ev.per_class)
    assert ev.mass_bins.count.sum() == ev.isotonic.count.sum() == 100 * ev.n
    assert np.all(np.diff(ev.isotonic.accuracy) > 0)
    assert len(ev.atoms.count) == 0


def test_atoms_of_classes_are_pooled():
    probs = np.tile([0.6, 0.3, 0.1], (30, 1))
    ev = cal.evaluate(np.arange(30) % 3, probs=probs, target="class-wise")
    assert ev.atoms.confidence.tolist() == [0.1, 0.3, 0.6]
    assert ev.atoms.count.tolist() == [30, 30, 30]
    np.testing.assert_allclose(ev.atoms.accuracy, 1 / 3)


# -- the consistency band ---------------------------------------------------------------


@pytest.mark.simulation
def test_calibrated_models_lie_in_the_consistency_band():
    rng = np.random.default_rng(0)
    h, count = np.linspace(0.05, 0.95, 19), np.full(19, 60.0)
    low, high = consistency_band(h, count)
    inside = []
    for _ in range(40):
        y = rng.random((60, 19)) < h
        fit = cal.evaluate_pairs(y.ravel(), np.tile(h, 60), interval=None).isotonic
        at = np.repeat(fit.accuracy, np.searchsorted(h, fit.upper) - np.searchsorted(h, fit.lower) + 1)  # fmt: skip
        inside.append((at >= low) & (at <= high))
    assert 0.9 < np.mean(inside) < 0.99
    again = consistency_band(h, count)
    np.testing.assert_array_equal(low, again[0])
    assert np.all(high - low < np.subtract(*consistency_band(h, count / 10)[::-1]))


# -- words ------------------------------------------------------------------------------


def test_the_description_has_the_numbers_of_the_record():
    ev = ordinary()
    text, parts = ev.describe(), ev.decomposition
    low, high = parts.calibration.interval
    assert "\n" not in text
    assert (
        f"{parts.total:.4f} is a calibration error of {parts.calibration:.4f}" in text
    )
    assert f"(95% interval {low:.4f} to {high:.4f})" in text
    assert f"sharpness gap of {parts.sharpness_gap:.4f}" in text
    assert "below the diagonal (over-confident)" in text
    assert f"{ev.paper.calibration:.4f}" in ev.describe("paper")
    with pytest.raises(ValueError, match="style must be one of"):
        ev.describe("grand")


def test_the_description_follows_the_model():
    binned, flat, constant = study()[2:]
    assert f"only {len(binned.atoms.count)} distinct confidences" in binned.describe()
    assert "above the diagonal (under-confident)" in flat.describe()
    assert "Every example has the confidence" in constant.describe()
    infinite = edge_cases()["infinite loss"]
    assert (
        f"loss of {infinite.infinite_rows:.0f} examples is infinite"
        in infinite.describe()
    )


@pytest.mark.parametrize("case", edge_cases())
def test_every_model_can_be_described(case):
    for style in ("modern", "paper"):
        text = edge_cases()[case].describe(style)
        assert text.startswith("Calibration-sharpness diagram of ")
        assert "nan" not in text
