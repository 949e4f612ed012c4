"""Figures: their manners towards the user's settings, files, odd models and errors."""

import io
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from plot_models import LONG, edge_cases, hundred_classes, ordinary, study, twelve

import calibrant as cal
from calibrant import plot

pytestmark = pytest.mark.xdist_group("figures")

ONE = ("calibration_sharpness", "reliability", "smooth_reliability", "corp", "residual")
MANY = ("calibration_sharpness", "bandwidth_sweep", "score_map", "compare_methods")


def figure_of(out):
    """The Figure behind whatever a function gave back."""
    while not isinstance(out, Axes):
        out = out[0]
    return out.get_figure(root=True)


def saved(figure, kind, **options):
    file = io.BytesIO()
    figure.savefig(file, format=kind, **options)
    return file.getvalue()


# -- settings ---------------------------------------------------------------------------


def every_figure():
    ev, several = ordinary(), study()
    yield from (getattr(plot, name)(ev) for name in ONE)
    yield from (getattr(plot, name)(several) for name in MANY)
    yield plot.calibration_sharpness(several, style="paper")
    yield plot.calibration_sharpness(ev, scale="logit")
    yield plot.classwise_grid(edge_cases()["class-wise"])


def test_no_setting_and_no_figure_of_pyplot_changes():
    import matplotlib.pyplot as plt

    plt.close("all")
    mine = plt.figure()
    with mpl.rc_context({"font.size": 17, "axes.facecolor": "black"}):
        before = dict(mpl.rcParams)
        for out in every_figure():
            saved(figure_of(out), "png", dpi=20)
        assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == [mine.number]
    assert plt.gcf() is mine
    plt.close(mine)


def test_matplotlib_is_loaded_when_a_figure_is_asked_for_and_not_before():
    code = (
        "import sys, calibrant, calibrant.plot; assert 'matplotlib' not in sys.modules; "
        "calibrant.plot.corp; assert 'matplotlib' in sys.modules; "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", [*ONE, "score_map"])
def test_the_axes_given_are_drawn_on_and_returned(name):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert getattr(plot, name)(ordinary(), ax=left) is left
    assert left.lines
    assert not right.lines
    saved(figure, "png", dpi=30)


def test_axes_without_a_grid_are_shared_with_the_strip():
    figure = Figure()
    ax = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    plot.calibration_sharpness(ordinary(), ax=ax)
    strip = figure.axes[1].get_position()
    assert strip.y0 == pytest.approx(0.1)
    assert strip.y1 < ax.get_position().y0 < ax.get_position().y1 <= 0.9 + 1e-9


def test_a_row_takes_one_axes_for_each_model():
    axes = Figure().subplots(1, 5)
    assert plot.calibration_sharpness(study(), ax=axes).tolist() == axes.tolist()
    with pytest.raises(
        ValueError, match="one matplotlib Axes for each model: 5 wanted"
    ):
        plot.calibration_sharpness(study(), ax=axes[:2])


def test_the_method_of_the_record_draws_the_same():
    ax = ordinary().plot(bandwidth=0.05, legend=False)
    assert ax.figure.legends == []
    assert ax.get_ylabel() == "accuracy"


# -- files ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_data_give_the_same_bytes(kind):
    draw = plot.calibration_sharpness
    first, second = (saved(draw(study())[0].figure, kind) for _ in range(2))
    assert first == second


def test_text_stays_text():
    svg = saved(plot.calibration_sharpness(ordinary()).figure, "svg").decode()
    assert ">network</text>" in svg
    assert ordinary().describe() in svg
    pdf = saved(plot.calibration_sharpness(ordinary()).figure, "pdf")
    assert b"/Type /Font" in pdf
    assert b"/Subtype /Type3" not in pdf


def test_drawing_costs_the_same_for_any_number_of_rows():
    rng = np.random.default_rng(0)
    artists = []
    for n in (500, 50_000):
        h = rng.random(n)
        ev = cal.evaluate_pairs(rng.random(n) < h, h, bandwidth=0.05)
        ax = plot.calibration_sharpness(cal.Evaluation.from_json(ev.to_json()))
        artists.append(sum(len(line.get_xdata()) for line in ax.lines))
    assert artists[0] == artists[1]


# -- odd models -------------------------------------------------------------------------


@pytest.mark.parametrize("case", edge_cases())
@pytest.mark.parametrize("name", [*ONE, "score_map", "compare_methods"])
def test_edge_cases_draw_without_a_warning(name, case):
    assert saved(figure_of(getattr(plot, name)(edge_cases()[case])), "png", dpi=30)


@pytest.mark.parametrize("case", edge_cases())
@pytest.mark.parametrize("options", [{"style": "paper"}, {"scale": "logit"}, {"ylim": "free"}])  # fmt: skip
def test_edge_cases_draw_in_every_style(case, options):
    ax = plot.calibration_sharpness(edge_cases()[case], **options)
    assert saved(ax.figure, "png", dpi=30)


@pytest.mark.parametrize(
    "name", ["calibration_sharpness", "score_map", "compare_methods"]
)
def test_twelve_models_with_long_names_fit(name):
    figure = figure_of(getattr(plot, name)(twelve()))
    saved(figure, "png", dpi=50)
    assert figure.get_figwidth() <= 7
    shown = [
        t.get_text() for ax in figure.axes for t in (*ax.texts, *ax.get_yticklabels())
    ]
    shown += [t.get_text() for key in figure.findobj(Legend) for t in key.texts]
    assert sum("…" in text for text in shown) == 12
    assert not any(LONG in text for text in shown)


def test_text_stays_inside_the_figure():
    for evs in (study(), twelve(), [edge_cases()["empty middle"]]):
        figure = figure_of(plot.calibration_sharpness(evs))
        figure.draw_without_rendering()
        frame = figure.bbox
        for ax in figure.axes:
            for text in ax.texts:
                box = text.get_window_extent()
                assert box.x1 <= frame.x1 + 2, text.get_text()
                assert box.y1 <= frame.y1 + 2, text.get_text()


def test_dollars_in_a_name_are_no_formula():
    ev = edge_cases()["dollars"]
    for name in (*ONE, "score_map", "compare_methods", "bandwidth_sweep"):
        svg = saved(figure_of(getattr(plot, name)(ev)), "svg").decode()
        assert "costs $1 and $2 _{x}</text>" in svg, name


def test_panels_of_a_row_are_of_one_size():
    axes = plot.calibration_sharpness(study())
    sizes = np.array([ax.get_position().bounds[2:] for ax in axes])
    np.testing.assert_allclose(sizes, sizes[:1].repeat(5, axis=0), rtol=1e-9)


def test_a_hundred_classes_show_the_worst_twenty():
    ev = hundred_classes()
    axes = plot.classwise_grid(ev)
    assert len(axes) == 20
    worst = max(ev.per_class, key=lambda one: one.decomposition.calibration)
    assert axes[0].texts[-1].get_text() == worst.name
    note = " ".join(t.get_text() for t in axes[0].figure.texts)
    assert "20 of 100 classes" in note
    chosen = plot.classwise_grid(ev, classes=[3, 5])
    assert [ax.texts[-1].get_text() for ax in chosen] == ["3", "5"]


# -- scikit-learn -----------------------------------------------------------------------


def test_the_display_of_an_estimator(part):
    part("sklearn")
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    model = LogisticRegression().fit(X[:200], y[:200])
    display = plot.CalibrationSharpnessDisplay.from_estimator(model, X[200:], y[200:])
    assert display.evaluation.target == "positive"
    assert display.evaluation.name == "LogisticRegression"
    assert display.ax_.get_figure(root=True) is display.figure_
    ax = Figure().subplots()
    assert display.plot(ax=ax).ax_ is ax
    with pytest.raises(TypeError, match="has no predict_proba"):
        plot.CalibrationSharpnessDisplay.from_estimator(object(), X, y)


# -- errors -----------------------------------------------------------------------------


def test_errors_name_the_way_out():
    ev = ordinary()
    restored = cal.Evaluation.from_json(ev.to_json())
    with pytest.raises(ValueError, match="another bandwidth needs the sums behind"):
        plot.calibration_sharpness(restored, bandwidth=0.1)
    with pytest.raises(ValueError, match="another number of bins needs"):
        plot.reliability(restored, bins=7)
    with pytest.raises(ValueError, match="a bandwidth sweep needs"):
        plot.bandwidth_sweep(edge_cases()["class-wise"])
    with pytest.raises(ValueError, match="at least one evaluation"):
        plot.score_map([])
    with pytest.raises(TypeError, match="item 0 is str"):
        plot.score_map(["network"])
    with pytest.raises(TypeError, match="one Evaluation"):
        plot.classwise_grid([ev])
    with pytest.raises(ValueError, match="models must be at most 12 for this figure"):
        plot.corp([ev] * 13)
    with pytest.raises(
        ValueError, match=r"figsize must be \(width, height\), each from"
    ):
        plot.corp(ev, figsize=3)
    with pytest.raises(ValueError, match=r"too small .* at least \(3, 1.7\) inches"):
        plot.corp(ev, figsize=(3, 1))
    with pytest.raises(ValueError, match="Give one of them"):
        plot.corp(ev, figsize=(3, 3), ax=Figure().subplots())
    with pytest.raises(ValueError, match="style must be one of 'modern', 'paper'"):
        plot.calibration_sharpness(ev, style="grand")
    with pytest.raises(ValueError, match="divergence must be one of 'brier', 'log'"):
        plot.calibration_sharpness(ev, divergence="spherical")
    with pytest.raises(ValueError, match="bandwidth must be"):
        plot.calibration_sharpness(ev, bandwidth=-1)
    with pytest.raises(ValueError, match="target='class-wise'"):
        plot.classwise_grid(ev)
    with pytest.raises(ValueError, match="'x' is not one"):
        plot.classwise_grid(hundred_classes(), classes=["x"])
    with pytest.raises(AttributeError, match="attribute pie"):
        plot.pie  # noqa: B018


@pytest.mark.parametrize("name", ["calibration_sharpness", "murphy", "score_map"])
def test_options_that_a_figure_has_not_are_refused_by_name(name):
    with pytest.raises(TypeError, match=f"{name} has no option 'title'; "):
        getattr(plot, name)(ordinary(), title="a title")
    with pytest.raises(TypeError, match=r"did you mean 'figsize'\?"):
        ordinary().plot(figsiz=(3, 3))


@pytest.mark.parametrize("name", ["bandwidth_sweep", "classwise_grid", "reliability"])
def test_figures_of_labels_and_scores_say_what_to_evaluate(name):
    call = rf"{name} draws what was evaluated: {name}\(calibrant.evaluate\(y, probs="
    with pytest.raises(TypeError, match=call):
        getattr(plot, name)([0, 1], probs=[0.2, 0.7])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("figure", ["risk_coverage", "murphy"])
def test_the_key_of_a_narrow_figure_is_not_cut(figure, own):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y, names = rng.random(300) < p, ("model", "temperature_scaled_model_of_a_long_name")
    models = [cal.evaluate(y, probs=p, target="positive", name=x) for x in names]
    if own:
        ax = getattr(plot, figure)(models, figsize=(2.5, 3))
    else:
        sheet = Figure((2.5, 3), layout="constrained")
        ax = getattr(plot, figure)(models, ax=sheet.subplots())
    drawn = figure_of(ax)
    drawn.draw_without_rendering()
    (key,) = drawn.findobj(Legend)
    for text in key.texts:
        box = text.get_window_extent()
        assert drawn.bbox.x0 <= box.x0 < box.x1 <= drawn.bbox.x1, text.get_text()
