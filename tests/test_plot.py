"""Figures: what the artists hold is what the record says, and nothing else changes."""

import re

import numpy as np
import pytest
from matplotlib.axes import Axes
from plot_models import (
    edge_cases,
    ordinary,
    study,
)

import calibrant as cal
from calibrant import plot
from calibrant._views.diagram import bins_of, view

pytestmark = pytest.mark.xdist_group("figures")

ONE = ("calibration_sharpness", "reliability", "smooth_reliability", "corp", "residual")
MANY = ("calibration_sharpness", "bandwidth_sweep", "score_map", "compare_methods")


def artist(ax, gid):
    (found,) = [child for child in ax.get_children() if child.get_gid() == gid]
    return found


def texts(ax):
    return " ".join(text.get_text() for text in ax.texts)


def draw(name, evs, **options):
    """Call a figure and give its Figure."""
    out = getattr(plot, name)(evs, **options)
    while not isinstance(out, Axes):
        out = out[0]
    return out.get_figure(root=True)


# -- the diagram reads the record ---------------------------------------------------


@pytest.mark.parametrize(("off", "decimals"), [(0.4, 1), (0.05, 2)])
def test_the_numbers_of_the_sum_in_a_title_have_equally_many_decimals(off, decimals):
    rng = np.random.default_rng(0)
    h = rng.uniform(0.5, 1, 400)
    ev = cal.evaluate_pairs(rng.random(400) < h - off, h)
    (line,) = [
        x.get_text()
        for x in plot.calibration_sharpness(ev).texts
        if "gap" in x.get_text()
    ]
    told = re.findall(r"\d+\.(\d+)", line)
    assert [len(x) for x in told] == [decimals] * 5


@pytest.mark.parametrize("bandwidth", [None, 0.05, 0.1])
def test_the_line_is_the_curve_of_the_record(bandwidth):
    ev = ordinary()
    ax = plot.calibration_sharpness(ev, bandwidth=bandwidth)
    curve = view(ev, bandwidth=bandwidth).curve
    if bandwidth is None:
        assert curve is ev.curve
    if bandwidth == 0.05:
        assert curve is ev.paper_curve
    line, dotted = artist(ax, "accuracy"), artist(ax, "accuracy-doubtful")
    for one in (line, dotted):
        x, y = one.get_data()
        np.testing.assert_array_equal(x, curve.confidence)
        drawn = np.isfinite(y)
        np.testing.assert_array_equal(y[drawn], curve.accuracy[drawn])
    solid = np.isfinite(line.get_ydata())
    assert solid.mean() > 0.5
    if bandwidth is None:
        either = solid | np.isfinite(dotted.get_ydata())
        np.testing.assert_array_equal(either, np.isfinite(curve.accuracy))


@pytest.mark.parametrize("bandwidth", [0.03, 0.05])
def test_the_band_is_accuracy_and_half_of_density_times_gap(bandwidth):
    ev = ordinary()
    ax = plot.calibration_sharpness(ev, bandwidth=bandwidth, ylim="full")
    curve = view(ev, bandwidth=bandwidth).curve
    half = curve.density * curve.sharpness_gap / 2
    low, high = artist(ax, "band-low").get_ydata(), artist(ax, "band-high").get_ydata()
    drawn = np.isfinite(low)
    assert drawn.mean() > 0.5
    np.testing.assert_allclose(
        low[drawn], np.maximum(curve.accuracy - half, 0)[drawn], rtol=1e-12
    )
    np.testing.assert_allclose(high[drawn], (curve.accuracy + half)[drawn], rtol=1e-12)
    assert ax.get_ylim()[1] > np.nanmax(high)


def test_the_filled_band_lies_between_its_edges():
    ax = plot.calibration_sharpness(ordinary(), bandwidth=0.05)
    (path,) = artist(ax, "band").get_paths()
    low, high = artist(ax, "band-low").get_ydata(), artist(ax, "band-high").get_ydata()
    assert path.vertices[:, 1].min() == pytest.approx(np.nanmin(low))
    assert path.vertices[:, 1].max() == pytest.approx(np.nanmax(high))


def test_an_adaptive_line_has_the_band_of_the_papers_bandwidth():
    ev = ordinary()
    ax = plot.calibration_sharpness(ev, ylim="full")
    middle = np.interp(
        ev.paper_curve.confidence, ev.curve.confidence, ev.curve.accuracy
    )
    height = ev.paper_curve.density * ev.paper_curve.sharpness_gap
    high = artist(ax, "band-high").get_ydata()
    drawn = np.isfinite(high)
    np.testing.assert_allclose(high[drawn], (middle + height / 2)[drawn], rtol=1e-12)


def test_the_ribbon_is_the_interval_of_the_record():
    ev = ordinary()
    ribbon = artist(plot.calibration_sharpness(ev), "interval")
    y = np.concatenate([path.vertices[:, 1] for path in ribbon.get_paths()])
    ends = np.concatenate([ev.curve.low, ev.curve.high])
    assert all(np.abs(ends - value).min() < 1e-12 for value in y)
    wider = artist(plot.calibration_sharpness(ev), "interval-everywhere")
    y = np.concatenate([path.vertices[:, 1] for path in wider.get_paths()])
    ends = np.concatenate([ev.curve.band_low, ev.curve.band_high])
    assert all(np.abs(ends - value).min() < 1e-12 for value in y)


@pytest.mark.parametrize(
    "draw", [plot.calibration_sharpness, plot.residual, plot.smooth_reliability]
)
def test_each_band_can_be_had_alone_or_not_at_all(draw):
    wanted = {
        True: {"interval", "interval-everywhere"},
        "pointwise": {"interval"},
        "simultaneous": {"interval-everywhere"},
        False: set(),
    }
    for interval, want in wanted.items():
        children = draw(ordinary(), interval=interval).get_children()
        assert {child.get_gid() for child in children} & wanted[True] == want
    with pytest.raises(ValueError, match="interval must be"):
        draw(ordinary(), interval="wide")


def test_numbers_above_the_axes_are_those_of_the_record():
    ev = ordinary()
    parts = ev.decomposition
    low, high = (100 * end for end in parts.calibration.interval)
    text = texts(plot.calibration_sharpness(ev))
    assert f"{100 * parts.calibration:.2f} [{low:.2f}, {high:.2f}]" in text
    assert f"gap {100 * parts.sharpness_gap:.2f}" in text
    assert f"{100 * parts.total:.2f}" in text
    note = plot.calibration_sharpness(ev).figure.legends[0].get_title().get_text()
    assert note == "numbers: Brier ×100, [95% interval]"
    fixed = plot.calibration_sharpness(ev, bandwidth=0.05).figure.legends[0]
    assert "Gaussian kernel, bandwidth 0.05" in fixed.get_title().get_text()


def test_atoms_are_markers_at_their_plain_accuracy_and_stems():
    ev = study()[2]
    assert 5 < len(ev.atoms.count) <= 15
    ax = plot.calibration_sharpness(ev)
    expected = np.column_stack([ev.atoms.confidence, ev.atoms.accuracy])
    np.testing.assert_array_equal(artist(ax, "atoms").get_offsets(), expected)
    strip = ax.figure.axes[1]
    tops = artist(strip, "rows-tops")
    np.testing.assert_allclose(tops.get_ydata().sum(), 1)
    assert ordinary().atoms.count.size == 0


def test_a_cut_band_says_how_high_it_is():
    axes = plot.calibration_sharpness(study())
    assert {ax.get_ylim() for ax in axes} == {(0.0, 1.25)}
    mean = axes[4]
    high = np.nanmax(artist(mean, "band-high").get_ydata())
    assert high > 1.25
    assert f"band to {high:.2f}" in texts(mean)
    assert artist(mean, "cut").get_ydata().max(initial=0, where=np.isfinite(artist(mean, "cut").get_ydata())) == 1.25  # fmt: skip
    full = plot.calibration_sharpness(study(), ylim="full")
    assert len({ax.get_ylim() for ax in full}) == 1
    assert full[0].get_ylim()[1] > high
    assert "band to" not in texts(full[4])
    free = plot.calibration_sharpness(study(), ylim="free")
    assert len({ax.get_ylim() for ax in free}) > 1


def test_a_line_is_solid_only_where_rows_are():
    ev = edge_cases()["empty middle"]
    line = artist(plot.calibration_sharpness(ev, bandwidth=0.05), "accuracy")
    x, y = line.get_data()
    assert np.isnan(y[(x > 0.32) & (x < 0.68)]).all()
    assert np.isfinite(y[(x > 0.05) & (x < 0.2)]).all()
    few = plot.calibration_sharpness(edge_cases()["five rows"])
    assert np.isnan(artist(few, "accuracy").get_ydata()).all()
    assert np.isnan(artist(few, "accuracy-doubtful").get_ydata()).all()


def test_infinite_loss_is_hatched_and_counted():
    ev = edge_cases()["infinite loss"]
    ax = plot.calibration_sharpness(ev)
    assert artist(ax, "infinite").get_hatch()
    assert f"{ev.infinite_rows:,.0f} examples" in texts(ax)
    assert "∞" in texts(ax)


def test_another_divergence_shrinks_its_band_and_says_so():
    ev = ordinary(divergence="brier")
    ax = plot.calibration_sharpness(ev, divergence="log")
    curve = ev.paper_curves["log"]
    high = artist(ax, "band-high").get_ydata()
    middle = np.interp(
        curve.confidence, ev.curves["log"].confidence, ev.curves["log"].accuracy
    )
    drawn = np.isfinite(high) & (curve.sharpness_gap > 0)
    scale = 2 * (high - middle)[drawn] / (curve.density * curve.sharpness_gap)[drawn]
    assert scale.std() < 1e-9
    assert scale[0] < 1
    labels = [t.get_text() for t in ax.figure.legends[0].get_texts()]
    assert any(f"×{scale[0]:g}" in label for label in labels)


def test_the_log_odds_axis_keeps_the_area_of_the_band():
    ev = ordinary()
    ax = plot.calibration_sharpness(ev, scale="logit", ylim="full")
    assert ax.get_xscale() == "logit"
    low, high = artist(ax, "band-low"), artist(ax, "band-high")
    x, height = high.get_xdata(), high.get_ydata() - low.get_ydata()
    label = next(t.get_text() for t in ax.figure.legends[0].get_texts() if "gap" in t.get_text())  # fmt: skip
    scale = float(label.split(" at ×")[1]) if " at ×" in label else 1.0
    z = np.log(x) - np.log1p(-x)
    area = np.nansum(height) * (z[1] - z[0]) / scale
    # The bottom is cut at 0, so the drawn area falls a little short.
    assert area == pytest.approx(ev.decomposition.sharpness_gap, rel=0.15)


# -- the paper's own figure ------------------------------------------------------------


def test_the_paper_style_has_every_element_of_the_papers_figure():
    ev = ordinary()
    ax = plot.calibration_sharpness(ev, style="paper")
    curve = ev.paper_curve
    half = curve.density * curve.sharpness_gap / 2
    line, band, density = (artist(ax, g) for g in ("accuracy", "band", "density"))
    np.testing.assert_array_equal(line.get_ydata(), curve.accuracy)
    assert line.get_color() == "#d62728"
    vertices = band.get_paths()[0].vertices[:, 1]
    assert vertices.min() == pytest.approx(
        np.nanmin(np.maximum(curve.accuracy - half, 0))
    )
    assert vertices.max() == pytest.approx(np.nanmax(curve.accuracy + half))
    assert band.get_alpha() == 0.5
    assert density.get_hatch() == "/"
    assert density.get_alpha() == 0.3
    assert density.get_paths()[0].vertices[:, 1].max() == pytest.approx(1)
    assert artist(ax, "diagonal").get_linestyle() == "--"
    box = next(t for t in ax.texts if t.get_bbox_patch() is not None)
    assert f"{100 * ev.paper.calibration:.2f}" in box.get_text()
    assert f"{100 * ev.paper.total:.2f}" in box.get_text()
    assert box.get_bbox_patch().get_alpha() == 0.2


def test_the_paper_style_draws_a_constant_confidence_as_a_flat_line():
    ev = study()[4]
    line = artist(plot.calibration_sharpness(ev, style="paper"), "accuracy")
    accuracy = float(ev.atoms.accuracy[0])
    np.testing.assert_allclose(line.get_ydata(), accuracy, rtol=1e-9)
    assert line.get_xdata()[[0, -1]].tolist() == [0, 1]


def test_the_paper_style_ends_each_panel_where_its_band_does():
    free = plot.calibration_sharpness(study(), style="paper")
    assert len({ax.get_ylim() for ax in free}) > 1
    full = plot.calibration_sharpness(study(), style="paper", ylim="full")
    assert len({ax.get_ylim() for ax in full}) == 1


# -- the other figures ------------------------------------------------------------------


def test_reliability_bars_are_the_bins():
    ev = ordinary()
    for strategy, bins in (("width", ev.bins), ("mass", ev.mass_bins)):
        ax = plot.reliability(ev, strategy=strategy)
        bars = [p for p in ax.patches if p.get_gid() == "accuracy"]
        full = bins.count > 0
        np.testing.assert_allclose([b.get_height() for b in bars], bins.accuracy[full])
        gaps = [p.get_height() for p in ax.patches if p.get_gid() == "gap"]
        np.testing.assert_allclose(gaps, (bins.confidence - bins.accuracy)[full])
    assert f"ECE ×100: {100 * ev.metrics['ece']:.2f}" in texts(plot.reliability(ev))


def test_other_bins_come_from_the_sums_and_agree_with_the_rows():
    z = np.random.default_rng(3).normal(size=(3000, 4))
    y = (z + np.random.default_rng(4).gumbel(size=z.shape)).argmax(axis=1)
    ev = cal.evaluate(y, logits=2 * z)
    for count in (10, 25):
        exact = cal.evaluate(y, logits=2 * z, bins=count)
        found = bins_of(ev, count, "width")
        np.testing.assert_array_equal(found.count, exact.bins.count)
        np.testing.assert_allclose(found.confidence, exact.bins.confidence, rtol=1e-9)
        np.testing.assert_allclose(found.accuracy, exact.bins.accuracy, rtol=1e-12)
        mass = bins_of(ev, count, "mass")
        cell = ev.sketch.log_odds_sums[0].max()  # rows that the sums cannot tell apart
        np.testing.assert_allclose(mass.count, exact.mass_bins.count, atol=cell + 1)


def test_the_smooth_curve_is_as_wide_as_the_density():
    ev = ordinary()
    line = artist(plot.smooth_reliability(ev), "accuracy")
    x = np.array([s[0, 0] for s in line.get_segments()])
    widths = line.get_linewidths()
    density = np.interp(x, ev.smooth.confidence, ev.smooth.density)
    assert np.corrcoef(np.sqrt(density), widths)[0, 1] > 0.999


def test_corp_draws_the_blocks():
    ev = ordinary()
    line = artist(plot.corp(ev), "accuracy")
    np.testing.assert_array_equal(line.get_ydata()[::2], ev.isotonic.accuracy)
    np.testing.assert_array_equal(line.get_xdata()[::2], ev.isotonic.lower)
    np.testing.assert_array_equal(line.get_xdata()[1::2], ev.isotonic.upper)


def test_residual_is_accuracy_less_confidence():
    ev = ordinary()
    _, y = artist(plot.residual(ev), "residual").get_data()
    drawn = np.isfinite(y)
    np.testing.assert_array_equal(
        y[drawn], (ev.curve.accuracy - ev.curve.confidence)[drawn]
    )
