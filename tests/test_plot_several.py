"""Figures of several models: the sweep, the map, the bars, and the range of a ranking."""

import numpy as np
import pytest
from matplotlib.colors import same_color
from plot_models import study

import calibrant as cal
from calibrant import plot
from calibrant.plot._bandwidth_sweep import errors_at, ranking_range


def test_the_sweep_draws_what_the_sums_give():
    several = [study()[0], study()[1]]
    ax = plot.bandwidth_sweep(several, [0.03, 0.1], kernel="both")
    assert len(ax.figure.axes) == 4 * 2 + 1
    line = next(x for x in ax.lines if x.get_gid() == "network, gaussian")
    at = line.get_xdata()
    np.testing.assert_allclose(
        line.get_ydata(), 100 * errors_at(several[0], at, "gaussian")
    )
    assert "ranking at 0.05 holds" in ax.get_xlabel()


def test_the_numbers_of_the_sweep_are_to_be_had():
    several = [study()[0], study()[1]]
    ax = plot.bandwidth_sweep(several, [0.03, 0.1])
    found = plot.BandwidthSweep.of(several, [0.03, 0.1])
    frame, names = found.frame(), ("model", "bandwidth", "calibration_error")
    columns = {name: np.asarray(frame[name]) for name in names}
    for line, ev in zip(ax.lines, several, strict=False):
        rows = columns["model"] == ev.name
        np.testing.assert_array_equal(columns["bandwidth"][rows], line.get_xdata())
        drawn = line.get_ydata() / 100
        np.testing.assert_allclose(columns["calibration_error"][rows], drawn)
    both = plot.BandwidthSweep.of(several[:1], [0.05], kernel="both")
    assert both.errors.shape == (2, 1, len(both.bandwidths))
    assert set(both.frame()["kernel"]) == {"gaussian", "epanechnikov"}


def test_errors_at_a_bandwidth_are_those_of_an_evaluation_at_it():
    rng = np.random.default_rng(5)
    h = rng.random(1000)
    y = rng.random(1000) < h**2
    ev = cal.evaluate_pairs(y, h)
    for width in (0.02, 0.2):
        exact = cal.evaluate_pairs(y, h, bandwidth=width).decomposition.calibration
        assert errors_at(ev, [width], "gaussian")[0] == pytest.approx(exact, abs=1e-9)
        rough = cal.evaluate_pairs(y, h, bandwidth=width, kernel="epanechnikov")
        assert errors_at(ev, [width], "epanechnikov")[0] == pytest.approx(
            rough.decomposition.calibration, abs=1e-3
        )


def test_the_range_of_a_ranking_ends_where_two_models_swap():
    at = np.array([0.01, 0.03, 0.05, 0.1, 0.25])
    errors = np.array([[3.0, 1.0, 1.0, 1.0, 5.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
    assert ranking_range(errors, at) == (0.03, 0.1)
    assert ranking_range(errors[:, ::-1] * [[1], [0]], at) == (0.01, 0.25)


def test_the_score_map_places_models_by_gap_and_error():
    ax = plot.score_map(study())
    for ev in study():
        (marker,) = [x for x in ax.lines if x.get_gid() == ev.name]
        parts = ev.decomposition
        assert marker.get_xdata()[0] == pytest.approx(100 * parts.sharpness_gap)
        assert marker.get_ydata()[0] == pytest.approx(100 * parts.calibration)
        hollow = same_color(marker.get_markerfacecolor(), "white")
        assert hollow == (ev.name == "mean replacement")
    for line in (x for x in ax.lines if x.get_gid() == "equal score"):
        assert np.ptp(line.get_xdata() + line.get_ydata()) < 1e-9


def test_methods_are_bars_that_add_up():
    axes = plot.compare_methods(study())
    assert [ax.get_title(loc="left") for ax in axes][2:] == [
        "ECE ×100",
        "accuracy ×100",
    ]
    for gid in ("gap", "calibration"):
        bars = [p for p in axes[0].patches if p.get_gid() == gid]
        assert len(bars) == 5
    ends = [p.get_x() + p.get_width() for p in axes[0].patches if p.get_gid() == "gap"]
    np.testing.assert_allclose(ends, [100 * ev.decomposition.total for ev in study()])
    note = " ".join(t.get_text() for t in axes[0].figure.texts)
    assert "mean replacement, a baseline" in note


def test_a_real_study_is_drawn_with_its_own_numbers(data):
    rows = data("cifar10_akamaster_resnet32")
    y, z = rows["labels"].astype(int), rows["logits"].astype(float)
    cut = len(y) // 5
    found = cal.study(y[:cut], y[cut:], logits=(z[:cut], z[cut:]))
    axes = plot.calibration_sharpness(found)
    assert len(axes) == len(found)
    for ax, ev in zip(axes, found, strict=True):
        text = " ".join(t.get_text() for t in ax.texts)
        assert f"{100 * ev.decomposition.sharpness_gap:.2f}" in text
        assert ev.name in text
    # Saturated: the band leaves the shared axes, and its top is said.
    assert "band to" in " ".join(t.get_text() for t in axes[0].texts)
    assert "band to" in " ".join(t.get_text() for t in axes[-1].texts)
