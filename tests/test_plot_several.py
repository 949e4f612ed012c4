"""Figures of several models: the sweep, the map, the bars, and the range of a ranking."""

import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.text import Text
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


def middles(ax):
    """Middles of names, in pixels, and the markers they are of."""
    ax.get_figure().draw_without_rendering()
    names = [text for text in ax.texts if text.get_gid() == "name"]
    boxes = [Text.get_window_extent(text) for text in names]
    return boxes, ax.transData.transform([text.xy for text in names])


def away(box, places):
    out = np.maximum(np.maximum(box.min - places, places - box.max), 0)
    return np.linalg.norm(out, axis=1)


def test_a_name_in_the_score_map_is_nearest_to_its_own_marker():
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 2000)
    y = rng.random(2000) < h
    powers = (1.0, 1.015, 1.4, 0.6)  # two that nearly coincide
    models = [cal.evaluate_pairs(y, h**p, name=f"method {p:g}") for p in powers]
    boxes, places = middles(plot.score_map(models))
    assert [away(box, places).argmin() for box in boxes] == [0, 1, 2, 3]


def test_names_of_close_methods_of_a_network_are_nearest_to_their_own_markers(data):
    file = data("cifar10_akamaster_resnet32")
    z, y = file["logits"], file["labels"]
    found = cal.study(y[:5000], y[5000:], logits=(z[:5000], z[5000:]))
    boxes, places = middles(plot.score_map(found))
    assert [away(box, places).argmin() for box in boxes] == list(range(len(found)))


def test_many_models_of_the_score_map_are_numbered_with_a_key():
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 900)
    y = rng.random(900) < h
    models = [
        cal.evaluate_pairs(y, h ** (1 + i / 20), name=f"model {i}") for i in range(12)
    ]
    ax = plot.score_map(models)
    names = [text.get_text() for text in ax.texts if text.get_gid() == "name"]
    assert names == [f"{i}" for i in range(1, 13)]
    key = [text.get_text().split("  ") for text in ax.get_legend().get_texts()]
    assert key == [[f"{i + 1}", f"model {i}"] for i in range(12)]


def test_mean_replacement_of_forecasts_is_told_as_in_the_table():
    """It gives two forecasts, one for each predicted class."""
    p = np.random.default_rng(0).random(2000)
    y = np.random.default_rng(1).random(2000) < p**2
    found = cal.study(y, probs=p, target="positive", split=0.5, methods=["platt"])
    figure = plot.compare_methods(found)[0].figure
    said = "gives the class it predicts (nearly) the same probability everywhere"
    assert said in " ".join(found.table().split())
    assert said in " ".join(" ".join(x.get_text() for x in figure.texts).split())


def test_groups_of_few_rows_are_drawn_as_curves_not_as_single_outcomes():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 93)
    found = cal.compare_groups(
        (rng.random(93) < p).astype(int), probs=p, group=np.repeat(list("abc"), 31)
    )
    ax = np.ravel(plot.groups(found))[0]
    for line in (line for line in ax.lines if line.get_gid() in "abc"):
        drawn = line.get_ydata()[np.isfinite(line.get_ydata())]
        assert len(drawn) > 10
        assert np.abs(np.diff(drawn)).max() < 0.2


@pytest.mark.parametrize(("last", "end"), [(0.05, 0.05), (0.9, 1.0)])
def test_a_decision_curve_is_as_wide_as_the_thresholds_asked_for(last, end):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 50, 2000)
    at = np.linspace(0.002, last, 20)
    found = cal.decision_curve(rng.random(2000) < p, probs=p, thresholds=at)
    assert plot.decision_curve(found).get_xlim() == pytest.approx((0, end))


def test_the_brier_score_of_a_confidence_is_not_called_that_of_the_classes():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(300, 4))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    top, event = cal.evaluate(y, logits=z), cal.evaluate(y == 0, probs=rng.random(300))
    for draw in (plot.murphy, plot.triptych):
        for ev, word in (
            (top, ": Brier of the confidence ×100"),
            (event, ": Brier ×100"),
        ):
            figure = np.ravel(draw(ev))[0].get_figure()
            keys = [*figure.legends, *(ax.get_legend() for ax in figure.axes)]
            texts = [x.get_text() for key in keys if key for x in key.get_texts()]
            assert any(word in text for text in texts)


def test_calibration_errors_estimated_in_two_ways_are_told_apart_in_figures():
    rng = np.random.default_rng(4)
    p = rng.beta(2, 2, 500)
    y = (rng.random(500) < p).astype(int)
    one = cal.evaluate(y, probs=p**2, name="one", interval=None)
    other = cal.evaluate(y, probs=p**2, name="other", preset="paper", interval=None)
    for draw in (plot.score_map, lambda models: plot.compare_methods(models)[0]):
        for models, alike in (([one, other], False), ([one, one], True)):
            figure = draw(models).figure
            told = [x.get_text() for ax in figure.axes for x in ax.texts]
            told += [x.get_text() for x in figure.texts]
            assert any("is not estimated alike" in x for x in told) is not alike
