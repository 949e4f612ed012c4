"""Figures in the user's world: style sheets, fonts, sizes, forecasts, several models."""

import inspect
from contextlib import nullcontext
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import style as sheets
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from plot_models import edge_cases, ordinary, study

import calibrant as cal
from calibrant import plot
from calibrant.plot._smooth_reliability import _bands as bands
from calibrant.plot._smooth_reliability import _support as support
from calibrant.plot._style import contrast

pytestmark = pytest.mark.xdist_group("figures")

ONE = ("calibration_sharpness", "reliability", "smooth_reliability", "corp", "residual")
PAPER = {"font.family": "serif", "font.size": 8}


@cache
def forecasts(n=800, power=1.5, name="forecaster"):
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 1.6, n)
    y = (rng.random(n) < p**power).astype(int)
    return cal.evaluate(y, probs=p, target="positive", name=name)


def figure_of(out):
    """The Figure behind whatever a function gave back, drawn once."""
    figure = np.ravel(out)[0].get_figure(root=True)
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    return figure


def shown(figure):
    """Texts that can be seen."""
    texts = (text for text in figure.findobj(Text) if text.get_visible())
    return [text for text in texts if text.get_text().strip()]


def every_figure(**where):
    ev, several = ordinary(), study()
    yield from (getattr(plot, name)(ev, **where) for name in ONE)
    yield plot.score_map(several, **where)
    yield plot.calibration_sharpness(ev, style="paper", **where)


def own_figures():
    yield from every_figure()
    yield plot.compare_methods(study())
    yield plot.bandwidth_sweep(study()[:2], (0.05, 0.1))
    yield plot.classwise_grid(edge_cases()["class-wise"])


def assert_inside(figure):
    """No text, tick or key reaches over the edge of the figure."""
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(box.x0, box.y0) > -0.01
    assert box.x1 < width + 0.01
    assert box.y1 < height + 0.01


# -- style sheets -----------------------------------------------------------------------


def assert_legible(figure):
    ground = figure.get_facecolor()
    for text in shown(figure):
        assert contrast(text.get_color(), ground) > 3, text.get_text()
    for ax in figure.axes:
        assert ax.get_facecolor()[:3] == (0, 0, 0)
        for line in ax.lines:
            if line.get_gid() in ("accuracy", "diagonal", "residual", "band-high"):
                assert contrast(line.get_color(), "black") > 2.5
        for spine in ax.spines.values():
            assert (
                not spine.get_visible() or contrast(spine.get_edgecolor(), "black") > 3
            )


def test_every_figure_is_legible_on_a_dark_ground():
    with sheets.context("dark_background"):
        for out in own_figures():
            assert_legible(figure_of(out))


@pytest.mark.parametrize("name", [*ONE, "score_map"])
def test_axes_of_a_dark_figure_stay_dark(name):
    with sheets.context("dark_background"):
        ax = Figure().subplots()
    for context in (sheets.context("dark_background"), nullcontext()):
        with context:
            models = study() if name == "score_map" else ordinary()
            assert_legible(figure_of(getattr(plot, name)(models, ax=ax)))
        ax = Figure(facecolor="black").subplots()
        ax.set_facecolor("black")


def test_one_font_in_all_texts_of_a_figure():
    with mpl.rc_context(PAPER):
        for out in (*own_figures(), plot.corp(ordinary(), ax=Figure().subplots())):
            for text in shown(figure_of(out)):
                assert text.get_fontfamily()[0] == "DejaVu Serif", text.get_text()
                if "$" in text.get_text():
                    assert text.get_math_fontfamily() == "dejavuserif", text.get_text()
    given = Figure().subplots()  # made before, in another font
    with mpl.rc_context(PAPER):
        plot.residual(ordinary(), ax=given)
    fonts = {text.get_fontfamily()[0] for text in shown(figure_of(given))}
    assert fonts == {"DejaVu Serif"}


@pytest.mark.parametrize("own", [True, False])
def test_all_texts_grow_with_the_size_of_the_font(own):
    def sizes():
        for name in ONE:
            place = {} if own else {"ax": Figure((4, 4)).subplots()}
            figure = figure_of(getattr(plot, name)(ordinary(), **place))
            yield {t.get_text(): t.get_fontsize() for t in shown(figure)}

    with mpl.rc_context({"font.size": 8}):
        small = list(sizes())
    with mpl.rc_context({"font.size": 12}):
        large = list(sizes())
    for one, other in zip(small, large, strict=True):
        shared = one.keys() & other.keys()
        assert len(shared) > 6
        assert {round(other[x] / one[x], 2) for x in shared if len(x) < 15} == {1.5}


def test_sizes_and_colours_that_were_chosen_are_used():
    chosen = {"axes.labelsize": 11, "xtick.labelsize": 5, "ytick.labelsize": 5}
    chosen |= {"axes.labelcolor": "#004400", "axes.facecolor": "#fff8e8"}
    chosen |= {"axes.prop_cycle": mpl.cycler(color=["#0000aa", "#00aa00"])}
    with mpl.rc_context(chosen):
        ax = plot.calibration_sharpness(ordinary())
    assert ax.yaxis.label.get_fontsize() == 11
    assert ax.yaxis.label.get_color() == "#004400"
    assert mpl.colors.to_hex(ax.get_facecolor()) == "#fff8e8"
    figure_of(ax)
    assert {label.get_fontsize() for label in ax.get_yticklabels()} == {5}
    line = next(line for line in ax.lines if line.get_gid() == "accuracy")
    assert line.get_color() == "#0000aa"


@pytest.mark.parametrize("sheet", ["fivethirtyeight", "ggplot", "seaborn-v0_8-paper"])
def test_nothing_is_cut_off_in_other_styles(sheet):
    with sheets.context(sheet):
        for out in own_figures() if sheet == "fivethirtyeight" else every_figure():
            assert_inside(figure_of(out))


def test_names_of_a_colour_that_cannot_be_seen_are_not_written_in_it():
    yellow = mpl.cycler(color=["#ffff00", "#ffffaa"])
    with mpl.rc_context({"axes.prop_cycle": yellow, "text.color": "#eeeeee"}):
        figure = figure_of(plot.bandwidth_sweep(study()[:2], (0.05,)))
    for text in shown(figure):
        assert contrast(text.get_color(), "white") >= 3, text.get_text()


# -- sizes ------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
@pytest.mark.parametrize("settings", [{}, PAPER], ids=["default", "serif"])
def test_nothing_is_cut_off_on_a_small_figure_of_the_user(layout, settings):
    with mpl.rc_context(settings):
        for name in (*ONE, "score_map"):
            figure = Figure((3.25, 2.4), layout=layout)
            models = study() if name == "score_map" else ordinary()
            getattr(plot, name)(models, ax=figure.subplots())
            FigureCanvasAgg(figure)
            figure.draw_without_rendering()
            assert_inside(figure)


@pytest.mark.parametrize("settings", [{}, PAPER], ids=["default", "serif"])
def test_nothing_is_cut_off_at_a_small_figsize(settings):
    with mpl.rc_context(settings):
        for out in every_figure(figsize=(3.25, 2.4)):
            figure = figure_of(out)
            assert figure.get_size_inches().tolist() == [3.25, 2.4]
            assert_inside(figure)
            main = figure.axes[0].get_position()
            assert main.height * 2.4 > 0.7


@pytest.mark.parametrize("settings", [{}, PAPER], ids=["default", "serif"])
def test_methods_and_bandwidths_fit_a_column_of_a_paper(settings):
    size = (3.25, 2.4)
    with mpl.rc_context(settings):
        axes = plot.compare_methods(study(), figsize=size)
        sweep = plot.bandwidth_sweep(study()[:3], figsize=size)
        for out in (axes, sweep):
            assert_inside(figure_of(out))
            assert figure_of(out).get_size_inches().tolist() == list(size)
    texts = [text for text in shown(figure_of(axes)) if text.get_text().strip()]
    boxes = [Text.get_window_extent(text) for text in texts]
    for i, box in enumerate(boxes):
        for other in boxes[i + 1 :]:
            assert overlap(box, other) < 0.1 * min(box.width * box.height, other.width)
    numbers = [text.get_text() for text in axes[2].texts]
    assert numbers == [f"{100 * ev.metrics['ece']:.2f}" for ev in study()]
    assert figure_of(sweep).axes == [sweep]  # no room for diagrams
    wide = plot.bandwidth_sweep(study()[:1], (0.05, 0.1), figsize=(6, 5))
    assert len(wide.figure.axes) == 3


@pytest.mark.parametrize("width", [3.25, 4.7, 5, 5.5, 6])
def test_methods_keep_their_names_at_any_width(width):
    axes = plot.compare_methods(study(), figsize=(width, 3))
    assert_inside(figure_of(axes))
    names = [text.get_text() for text in axes[0].get_yticklabels()]
    assert [x.replace("\n", " ") for x in names] == [ev.name for ev in study()]
    above = [ax.texts[0].get_window_extent() for ax in axes]
    key = axes[0].get_legend().get_window_extent()
    assert not any(overlap(key, box) > 0 for box in above)


@pytest.mark.parametrize("size", [None, (3.25, 2.4), (3.25, 3), (5, 4)])
def test_the_sentence_on_the_ranking_is_not_cut_off(size):
    ax = plot.bandwidth_sweep(study(), figsize=size)
    assert "ranking at 0.05 (trivial models aside) holds" in " ".join(ax.get_xlabel().split())  # fmt: skip
    assert_inside(figure_of(ax))
    assert_inside(figure_of(plot.bandwidth_sweep(ordinary(), figsize=size)))


def accurate():
    """Models whose elementary scores take long numbers."""
    rng = np.random.default_rng(0)
    p = rng.beta(8, 0.6, 1500)
    y = rng.random(1500) < p
    return [cal.evaluate_pairs(y, p**k, name=f"to the power {k}") for k in range(1, 6)]


@pytest.mark.parametrize("size", [None, (5, 3)])
def test_the_triptych_is_not_cut_off(size):
    for models in (accurate(), study()):
        assert_inside(figure_of(plot.triptych(models, figsize=size)[0]))
    with pytest.raises(ValueError, match=r"figsize is too small .* got \(3.25, 2.4\)"):
        plot.triptych(models[0], figsize=(3.25, 2.4))


@pytest.mark.parametrize(("name", "low"), [("murphy", 2.8), ("risk_coverage", 2.4)])
def test_the_name_of_a_low_axis_is_broken_or_the_size_is_refused(name, low):
    draw = getattr(plot, name)
    for models, size in ((study(), (3.25, 3)), (study()[0], (3.25, 2.4))):
        assert_inside(figure_of(draw(models, figsize=size)))
    found = []  # how low depends on the fonts of Matplotlib's release
    for height in np.arange(low + 0.2, low - 0.6, -0.1):
        try:
            ax = draw(study(), figsize=(3.25, height))
        except ValueError:
            break
        assert_inside(figure_of(ax))
        found.append("\n" in ax.get_ylabel())
    assert any(found)
    with pytest.raises(ValueError, match=r"figsize is too small .* at least \(3.25, "):
        draw(study(), figsize=(3.25, low - 0.6))


def test_every_figure_has_the_size_asked_for():
    size = [8.0, 6.0]
    outs = [
        plot.bandwidth_sweep(study()[:2], (0.05, 0.1), figsize=size),
        plot.compare_methods(study(), figsize=size),
        plot.classwise_grid(edge_cases()["class-wise"], figsize=size),
        plot.calibration_sharpness(study(), figsize=size),
        plot.residual(study(), figsize=size),
    ]
    for out in outs:
        assert figure_of(out).get_size_inches().tolist() == size
        assert_inside(figure_of(out))


# -- several models ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE[1:])
def test_several_models_have_a_panel_each(name):
    draw = getattr(plot, name)
    for count in (2, 6):
        models = (*study(), forecasts(name="another"))[:count]
        axes = draw(models)
        assert len(axes) == count
        assert len({ax.get_ylim() for ax in axes}) == 1
        figure = figure_of(axes)
        assert_inside(figure)
        for ax, ev in zip(axes, models, strict=True):
            assert ev.name[:5] in " ".join(t.get_text() for t in ax.texts)
    given = Figure((8, 3)).subplots(1, 2)
    assert draw(study()[:2], ax=given).tolist() == given.tolist()
    assert isinstance(draw(ordinary()), Axes)
    assert len(draw([ordinary()])) == 1


# -- the smooth curve -------------------------------------------------------------------


@pytest.mark.parametrize(
    "ev",
    [ordinary(), edge_cases()["empty middle"], forecasts(50)],
    ids=["usual", "empty middle", "fifty"],
)
def test_the_smooth_curve_stays_where_examples_are_and_inside_its_ribbon(ev):
    ax = plot.smooth_reliability(ev)
    found = {child.get_gid(): child for child in ax.get_children() if child.get_gid()}
    points = np.concatenate(found["accuracy"].get_segments())
    cells = (np.flatnonzero(ev.histogram) + 0.5) / len(ev.histogram)
    assert np.abs(points[:, :1] - cells).min(axis=1).max() < 0.06
    assert cells[0] - 0.01 < points[:, 0].min()
    assert points[:, 0].max() < cells[-1] + 0.01
    for gid in ("interval", "interval-everywhere"):
        paths = found[gid].get_paths()
        grown = [path.contains_points(points, radius=1e-3) for path in paths]
        grown += [path.contains_points(points, radius=-1e-3) for path in paths]
        assert np.any(grown, axis=0).mean() > 0.99, gid
    key = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert key[0].startswith("smoothed")
    assert {"95% pointwise", "95% simultaneous"} <= set(key)


def test_the_ribbons_of_the_smooth_curve_hold_the_mean_of_repeated_samples():
    rng = np.random.default_rng(3)
    h, evs = rng.random(400), []
    for _ in range(25):
        y = rng.random(400) < h**2
        evs.append(cal.evaluate_pairs(y, h, interval=None))
    at = [144, 288, 384]  # 0.3, 0.6 and 0.8
    mean = np.mean([ev.smooth.accuracy[at] for ev in evs], axis=0)
    held = {"pointwise": [], "simultaneous": []}
    for ev in evs:
        for kind, (low, high) in bands(ev, support(ev)).items():
            held[kind].append((low[at] <= mean) & (mean <= high[at]))
    assert np.mean(held["pointwise"]) > 0.85
    assert np.all(held["simultaneous"], axis=1).mean() > 0.85


def test_the_ribbons_of_the_smooth_curve_are_wider_for_clusters_and_weights():
    rng = np.random.default_rng(3)
    h = np.repeat(rng.random(60), 5)
    y = np.repeat(rng.random(60), 5) < h
    plain = cal.evaluate_pairs(y, h)
    clustered = cal.evaluate_pairs(y, h, cluster=np.repeat(np.arange(60), 5))
    uneven = cal.evaluate_pairs(y, h, sample_weight=rng.lognormal(0, 1.5, 300))
    wide = [
        np.subtract(*bands(ev, support(ev))["pointwise"]).mean()
        for ev in (plain, clustered, uneven)
    ]
    assert wide[1] < 1.3 * wide[0] < 0
    assert wide[2] < 1.2 * wide[0]


# -- labels that do not collide ---------------------------------------------------------


def overlap(one, other):
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    tall = min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(wide, 0) * max(tall, 0)


def crowd():
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 900)
    y = rng.random(900) < h
    powers = (1.0, 1.02, 1.04, 1.3, 1.32, 0.7, 0.72)
    return [cal.evaluate_pairs(y, h**p, name=f"method {p:g}") for p in powers]


@pytest.mark.parametrize("size", [None, (3.25, 2.4)])
def test_names_in_the_score_map_do_not_collide(size):
    models = crowd()
    ax = plot.score_map(models, figsize=size)
    figure_of(ax)
    names = [text for text in ax.texts if text.get_gid() == "name"]
    assert len(names) == len(models)
    boxes = [Text.get_window_extent(text) for text in names]
    frame = ax.get_figure().bbox
    for i, box in enumerate(boxes):
        assert box.x0 >= 0
        assert box.x1 <= frame.x1
        for other in boxes[i + 1 :]:
            assert overlap(box, other) < 0.05 * box.width * box.height
    places = ax.transData.transform([line.get_xydata()[0] for line in ax.lines if line.get_gid() in {ev.name for ev in models}])  # fmt: skip
    covered = [sum(box.contains(*place) for place in places) for box in boxes]
    assert sum(covered) <= 1


@pytest.mark.parametrize("middle", [0.12, 0.35, 0.5, 0.9])
def test_the_top_of_a_cut_band_is_named_inside_its_panel(middle):
    rng = np.random.default_rng(0)
    h = np.clip(rng.normal(middle, 0.02, 2000), 0, 1)
    ev = cal.evaluate_pairs(rng.random(2000) < 0.5, h, interval=None)
    for out in (plot.calibration_sharpness([ev] * 5), [plot.calibration_sharpness(ev)]):
        figure_of(out)
        (text,) = [t for t in out[0].texts if "band to" in t.get_text()]
        box, frame = text.get_window_extent(), out[0].get_window_extent()
        assert box.x0 >= frame.x0
        assert box.x1 <= frame.x1 + 1


# -- words ------------------------------------------------------------------------------


def words(out):
    figure = figure_of(out)
    return " ".join([figure.alt_text, *(text.get_text() for text in shown(figure))])


def test_forecasts_are_called_so():
    ev = forecasts()
    for name in (*ONE, "score_map", "bandwidth_sweep"):
        text = words(getattr(plot, name)(ev))
        assert "accuracy" not in text, name
        assert "confiden" not in text.replace("95% conf", ""), name
        if name in ONE:
            assert "observed frequency" in text
            assert "forecast" in text
    assert "forecasts too high" in words(plot.residual(ev))
    grid = words(plot.classwise_grid(edge_cases()["class-wise"]))
    assert "observed frequency" in grid
    assert "forecast" in grid


def test_figures_speak_of_examples():
    for out in own_figures():
        text = words(out).split()
        assert not {"rows", "hits", "row"} & set(text)


def test_methods_list_their_options():
    for method, function in (
        (cal.Evaluation.plot, plot.calibration_sharpness),
        (cal.Study.plot, plot.calibration_sharpness),
        (cal.Evaluation.table, cal.table.table),
        (cal.Study.table, cal.table.table),
    ):
        for name in list(inspect.signature(function).parameters)[1:]:
            assert f"``{name}``" in method.__doc__ or name == "format", name


def test_a_curve_of_few_examples_is_no_noise():
    rng = np.random.default_rng(0)
    for _ in range(12):
        h = rng.beta(3, 1.2, 50)
        ev = cal.evaluate_pairs(rng.random(50) < h**1.3, h, interval=None)
        drawn = next(
            line.get_ydata()
            for line in plot.calibration_sharpness(ev).lines
            if line.get_gid() == "accuracy"
        )
        drawn = drawn[np.isfinite(drawn)]
        assert np.abs(np.diff(drawn)).sum() < 1.5


def test_a_key_can_be_added_to_axes_that_were_given():
    ax = plot.calibration_sharpness(ordinary(), ax=Figure().subplots())
    key = [text.get_text() for text in ax.legend().get_texts()]
    assert {"accuracy", "sharpness gap × density", "95% pointwise"} <= set(key)
