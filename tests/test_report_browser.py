"""The report in a real browser: what it computes, draws, says and asks for."""

import csv
import io
import json
import os
import re
import threading
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from browser.chromium import Chromium, find_chromium

import calibrant as cal
from calibrant._base.comparison import Comparison
from calibrant._base.text import printed_gap
from calibrant._views.diagram import spans, view
from calibrant.report import report
from calibrant.report._coarse import coarse_sums, estimate
from calibrant.table import table
from calibrant.table._layout import fixed

pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).resolve().parent.parent
EVIL = "</script><img src=x onerror=alert(1)>"
CURVE = "document.querySelector('#panels path.curve').getAttribute('d')"
CASES = [
    (kernel, score, width)
    for kernel in ("gaussian", "epanechnikov")
    for score in ("brier", "log")
    for width in (0.005, 0.013, 0.05, 0.25)
]


@pytest.fixture(scope="session")
def browser(absent):
    if find_chromium() is None:
        absent("no Chromium: `apt install chromium`")
    with Chromium() as started:
        yield started


@pytest.fixture(scope="session")
def axe(absent):
    package = find_spec("axe_playwright_python")  # for the script in it
    if package is None and "CALIBRANT_AXE" not in os.environ:
        absent("no axe-core: `make parts`")
    path = os.environ.get("CALIBRANT_AXE") or Path(package.origin).with_name(
        "axe.min.js"
    )
    return Path(path).read_text(encoding="utf-8")


def over_confident(n=6000, k=4, scale=2.5, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return y, z * scale


@pytest.fixture(scope="session")
def study():
    y, z = over_confident()
    return cal.study(y, logits=z, methods="paper")


@pytest.fixture(scope="session")
def address(study, tmp_path_factory):
    path = report(study, tmp_path_factory.mktemp("report") / "study.html")
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    with browser.page() as tab:
        yield tab.open(address)
        assert tab.problems() == []


def written(folder, models, **options):
    return report(models, folder / "page.html", **options).as_uri()


def cell(name, column):
    """A selector's worth of JavaScript: the text of a cell, without hidden words."""
    return (
        "[...document.querySelectorAll('#metrics tbody tr')].find(r => r.cells[0].title "
        f"=== {json.dumps(name)}).querySelector('[data-column={column}]')"
        ".childNodes[0].textContent"
    )


def drawn(tab, width, kernel, score):
    """Wait until the page shows these settings; the state changes before the drawing."""
    text = json.dumps([width, kernel, score], separators=(",", ":"))
    tab.wait(f"document.documentElement.dataset.drawn === {json.dumps(text)}")


def choose(tab, name, value):
    tab.run(f"document.querySelector('input[name={name}][value={value}]').click()")
    tab.settle()


# -- numbers ----------------------------------------------------------------------


def compare(tab, models):
    """The largest difference between browser and Python, over all cases."""
    worst = 0.0
    for place, ev in enumerate(models):
        sums = coarse_sums(ev)
        for kernel, score, width in CASES:
            got = tab.run(
                f"(e => ({{m: e.accuracy, e: e.error, d: e.density, g: e.gap.map(String), "
                "r: e.rows, c: String(e.calibration), t: String(e.total)}))"
                f"(calibrant.estimate({place}, {width}, '{kernel}', '{score}'))"
            )
            live = estimate(sums, width, kernel, score)
            seen = live.rows >= 1
            inside = seen & np.isfinite(live.sharpness_gap)
            parts = [
                (got["m"], live.accuracy, seen),
                (got["e"], live.error, seen),
                (got["d"], live.density, seen),
                (got["r"], live.rows, seen),
                (np.array(got["g"], float), live.sharpness_gap, inside),
            ]
            for mine, theirs, where in parts:
                apart = np.abs(np.array(mine, float)[where] - theirs[where])
                scale = np.maximum(np.abs(theirs[where]), 1)
                worst = max(worst, float(np.max(apart / scale)))
            for text, theirs in ((got["c"], live.calibration), (got["t"], live.total)):
                mine = float(text.replace("Infinity", "inf"))
                assert np.isfinite(mine) == np.isfinite(theirs)
                worst = max(worst, abs(mine - theirs) if np.isfinite(theirs) else 0.0)
    return worst


def test_live_numbers_equal_python_for_both_kernels_and_scores(page, study):
    assert compare(page, study) < 1e-9


def test_live_numbers_equal_python_at_a_mirror_and_for_the_plug_in(browser, tmp_path):
    y, z = over_confident(1500)
    models = [
        cal.evaluate(y, logits=z, boundary="reflect", bandwidth=0.05, name="mirror"),
        cal.evaluate(y, logits=z, estimator="plugin", bandwidth=0.05, name="plug-in"),
        cal.evaluate(y, logits=z, counterpart="tight", name="tight"),
    ]
    with browser.page() as tab:
        tab.open(written(tmp_path, models))
        assert compare(tab, models) < 1e-9


def test_live_numbers_equal_python_on_real_data(browser, data, tmp_path):
    file = data("cifar10_akamaster_resnet32")
    models = cal.study(file["labels"], logits=file["logits"], methods="paper")
    with browser.page() as tab:
        tab.open(written(tmp_path, models))
        assert compare(tab, models) < 1e-9


def test_the_first_view_shows_what_python_evaluated(page, study):
    for ev in study:
        parts = ev.decomposition
        shown = [
            page.run(cell(ev.name, c))
            for c in ("calibration", "sharpness_gap", "brier")
        ]
        gap = printed_gap(parts, 2, factor=100)
        asked = (100 * parts.calibration, gap, 100 * parts.total)
        assert shown == [fixed(x, 2) for x in asked]
        for key in ("accuracy", "ece", "ace", "smooth_ece", "nll", "brier"):
            assert page.run(cell(ev.name, key)) == fixed(100 * ev.metrics[key], 2)
    first, last = spans(view(study[0]).trusted())[0]
    line, shown = study[0].curve, slice(first, last + 1)
    h, m = curve_on_page(page)
    np.testing.assert_allclose(h, line.confidence[shown], atol=1e-4)
    np.testing.assert_allclose(m, line.accuracy[shown], atol=1e-4)


def curve_on_page(tab):
    """Confidences and accuracies of the first curve, read off the drawing."""
    points = np.array(re.findall(r"[\d.]+", tab.run(CURVE)), float).reshape(-1, 2)
    left = tab.run("parseFloat(document.querySelector('.hit').style.left)")
    wide = tab.run("document.querySelector('.hit').getBoundingClientRect().width")
    diagonal = tab.run("document.querySelector('#panels .diagonal').getAttribute('d')")
    _, floor, _, top = np.array(re.findall(r"[\d.]+", diagonal), float)
    return (points[:, 0] - left) / wide, (floor - points[:, 1]) / (floor - top)


def test_slider_and_kernel_change_curve_and_numbers_and_reset_restores(page, study):
    before, table_before = page.run(CURVE), page.text("#metrics tbody")
    page.focus("#width")
    page.press("ArrowRight", 60)
    width = page.run("calibrant.state.width")
    assert width > 0.05
    drawn(page, width, "gaussian", "brier")
    assert page.run(CURVE) != before
    for kernel in ("gaussian", "epanechnikov"):
        choose(page, "kernel", kernel)
        for score in ("brier", "log"):
            choose(page, "score", score)
            drawn(page, width, kernel, score)
            for ev in study:
                live = estimate(coarse_sums(ev), width, kernel, score)
                assert page.run(cell(ev.name, "calibration")) == fixed(
                    100 * live.calibration, 2
                )
                whole = {"brier": "brier", "log": "nll"}[score]
                assert page.run(cell(ev.name, whole)) == fixed(100 * live.total, 2)
    page.click("#reset")
    drawn(page, None, "gaussian", "brier")
    assert page.run(CURVE) == before
    assert page.text("#metrics tbody") == table_before


def test_the_drawn_curve_is_the_estimate(page, study):
    page.run("location.hash = 'width=0.08'")
    drawn(page, 0.08, "gaussian", "brier")
    live = estimate(coarse_sums(study[0]), 0.08, "gaussian", "brier")
    h, m = curve_on_page(page)
    nodes = np.round(h * (len(live.accuracy) - 1)).astype(int)
    assert len(nodes) > 200
    np.testing.assert_allclose(m, live.accuracy[nodes], atol=1e-4)  # 0.02 pixels


def test_a_kernel_chosen_while_the_width_adapts_starts_at_the_papers_bandwidth(page):
    choose(page, "kernel", "epanechnikov")
    drawn(page, 0.05, "epanechnikov", "brier")
    page.click("#auto")
    drawn(page, None, "epanechnikov", "brier")
    assert page.run("document.getElementById('width-number').placeholder") == "auto"


def test_the_number_box_and_the_sweep_set_the_bandwidth(page, study):
    page.run(
        "(e => { e.focus(); e.value = '0.02'; e.dispatchEvent(new Event('input')); })"
        "(document.getElementById('width-number'))"
    )
    drawn(page, 0.02, "gaussian", "brier")
    page.point("#sweep svg", 0.5, 0.4, press=True)
    page.wait("calibrant.state.width !== 0.02")
    assert 0.02 < page.run("calibrant.state.width") < 0.1
    assert page.run("document.querySelectorAll('#sweep .now').length") == 1
    words = page.text("#sweep-words")
    assert "trivial models aside" in words
    assert "ranking at bandwidth 0.05" in words


def test_score_map_places_every_finite_model(page, study):
    assert page.run("document.querySelectorAll('#map circle').length") == len(study)
    choose(page, "score", "log")
    lost = [ev.name for ev in study if np.isinf(ev.decompositions["log"].sharpness_gap)
            or np.isnan(ev.decompositions["log"].sharpness_gap)]  # fmt: skip
    assert page.run("document.querySelectorAll('#map circle').length") == 5 - len(lost)
    assert all(name in page.text("#map-words") for name in lost)


# -- hands ------------------------------------------------------------------------


def test_columns_sort_both_ways_and_say_so(page, study):
    page.click("#metrics th[data-column=accuracy] button")
    state = "document.querySelector('#metrics th[data-column=accuracy]').ariaSort"
    assert page.run(state) == "descending"
    page.click("#metrics th[data-column=ece] button")
    names = page.run(
        "[...document.querySelectorAll('#metrics tbody th')].map(e => e.title)"
    )
    assert names == sorted(study.names, key=lambda name: study[name].metrics["ece"])
    page.click("#metrics th[data-column=ece] button")
    assert page.run("document.querySelector('#metrics tbody th').title") == names[-1]
    assert "descending" in page.text("#say")


def test_models_of_different_examples_have_no_best(browser, tmp_path):
    models = []
    for name, n in (("a", 400), ("b", 400), ("c", 500)):
        y, z = over_confident(n)
        models.append(cal.evaluate(y, logits=z * (1 + 0.1 * len(models)), name=name))
    best = "[...document.querySelectorAll('#metrics td.best')].map(e => e.parentNode.cells[0].title)"
    for some, marked in ((models, {"a", "b"}), (models[1:], set())):
        with browser.page() as tab:
            tab.open(report(some, tmp_path / "page.html", force=True).as_uri())
            assert set(tab.run(best)) == marked


def test_models_of_different_targets_have_no_best(browser, tmp_path):
    y, z = over_confident(400)
    some = [
        cal.evaluate(y, logits=z, target=target, name=target)
        for target in ("top-label", "class-wise")
    ]
    with browser.page() as tab:
        tab.open(report(some, tmp_path / "page.html").as_uri())
        assert tab.run("document.querySelectorAll('#metrics td.best').length") == 0
        assert "(class-wise). No best is marked." in tab.text("body")


def test_estimates_that_differ_have_a_best_only_at_one_bandwidth(browser, tmp_path):
    y, z = over_confident(400)
    some = [
        cal.evaluate(y, logits=z, preset="paper", name="fixed"),
        cal.evaluate(y, logits=1.2 * z, name="adaptive"),
    ]
    best = (
        "[...document.querySelectorAll('#metrics td.best')].map(e => e.dataset.column)"
    )
    apart = {"calibration", "sharpness_gap", "smooth_ece", "ece", "ace"}
    with browser.page() as tab:
        tab.open(report(some, tmp_path / "page.html").as_uri())
        marked = set(tab.run(best))
        assert not marked & apart
        assert {"accuracy", "brier"} <= marked
        assert "d_CAL is not estimated alike, and cannot be compared" in tab.text(
            "#parts"
        )
        tab.run("location.hash = 'width=0.05'")
        drawn(tab, 0.05, "gaussian", "brier")
        assert set(tab.run(best)) & apart == {"calibration", "sharpness_gap"}


BEST = "[...document.querySelectorAll('#metrics td.best')].map(e => e.dataset.column)"


def page_of_two(tmp_path, one, two):
    """The page of a model, evaluated with two sets of options."""
    y, z = over_confident(400)
    some = [
        cal.evaluate(y, logits=z, name="a", **one),
        cal.evaluate(y, logits=z, name="b", **two),
    ]
    return report(some, tmp_path / "page.html").as_uri()


def test_bins_and_levels_that_differ_are_told_on_the_page(browser, tmp_path):
    with browser.page() as tab:
        tab.open(page_of_two(tmp_path, {"bins": 15}, {"bins": 5, "level": 0.9}))
        assert not set(tab.run(BEST)) & {"ece", "ace"}
        assert {"accuracy", "calibration"} <= set(tab.run(BEST))
        text = tab.text("body")
        assert "of a 15 bins of equal width; of b 5 bins of equal width." in text
        assert "intervals of 95% (a) and 90% (b)" in tab.text("#key")
        z = tab.run(
            "JSON.parse(document.getElementById('data').textContent).models.map(m => m.z)"
        )
        assert [round(x, 3) for x in z] == [1.96, 1.645]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"estimator": "plugin"}, "plug-in"),
        ({"boundary": "reflect"}, "direct, reflected at 0 and 1"),
        (
            {"counterpart": "tight"},
            "direct, times k / (k - 1) (tight counterpart)",
        ),
    ],
)
def test_estimates_of_two_kinds_have_no_best_at_one_bandwidth(
    browser, tmp_path, option, said
):
    parts = {"calibration", "sharpness_gap"}
    with browser.page() as tab:
        tab.open(
            page_of_two(tmp_path, {"bandwidth": 0.05}, {"bandwidth": 0.05, **option})
        )
        assert not set(tab.run(BEST)) & parts
        tab.run("location.hash = 'width=0.03'")
        drawn(tab, 0.03, "gaussian", "brier")
        assert not set(tab.run(BEST)) & parts
        assert f"of a it is direct; of b it is {said}." in tab.text("#parts")
        assert "No ranking: d_CAL of these models cannot be compared." in tab.text(
            "#sweep-words"
        )


def test_a_gap_below_0_is_explained_on_the_page(browser, tmp_path):
    hit, h = np.repeat([1, 1, 0], [900, 50, 50]), np.repeat([1 - 1e-9, 0.7], [900, 100])
    ev = cal.evaluate_pairs(
        hit, h
    )  # a wide kernel blends what is certain with the rest
    told = "A sharpness gap below 0 cannot be"
    with browser.page() as tab:
        tab.open(report(ev, tmp_path / "page.html").as_uri())
        assert told not in tab.text("#parts")
        tab.run("location.hash = 'width=0.25&score=log'")
        drawn(tab, 0.25, "gaussian", "log")
        assert told in tab.text("#parts")


def test_a_page_begins_with_a_score_that_all_models_have(browser, tmp_path):
    y, z = over_confident(400)
    some = [
        cal.evaluate(y, logits=z, divergence="rps", name="ranked"),
        cal.evaluate(y, logits=z, name="plain"),
    ]
    with browser.page() as tab:
        tab.open(report(some, tmp_path / "page.html").as_uri())
        assert tab.run("calibrant.state.score") == "brier"
        assert "sharpness gap = Brier" in tab.text("#parts")


def test_gaps_that_print_alike_are_marked_alike(browser, tmp_path):
    """Printed as what d_CAL leaves of the score, 12.79 and 12.77 may both read 12.78."""
    y, z = over_confident(400)
    some = []
    for name, total, error in (
        ("low", 0.134964, 0.007247),
        ("high", 0.136637, 0.008751),
    ):
        ev = cal.evaluate(y, logits=z, name=name)
        known = {"total": cal.Estimate(total), "calibration": cal.Estimate(error)}
        parts = replace(ev.decompositions["brier"], **known, gap=None)
        every = {**ev.decompositions, "brier": parts}
        metrics = {**ev.metrics, "brier": known["total"]}
        some.append(replace(ev, metrics=metrics, decompositions=every))
    cells = "[...document.querySelectorAll('#metrics td[data-column=sharpness_gap]')]"
    with browser.page() as tab:
        tab.open(report(some, tmp_path / "page.html").as_uri())
        assert tab.run(f"{cells}.map(e => e.firstChild.data)") == ["12.78", "12.78"]
        assert tab.run(f"{cells}.map(e => e.className)") == ["best", "best"]


def test_a_trivial_model_is_never_best_in_a_calibration_column(page, study):
    best = "[...document.querySelectorAll('#metrics td.best')].map(e => [e.parentNode.cells[0].title, e.dataset.column])"
    for width in (None, 0.05, 0.25):
        page.run(
            f"location.hash = {json.dumps('' if width is None else f'width={width}')}"
        )
        drawn(page, width, "gaussian", "brier")
        marked = page.run(best)
        assert not [
            (name, column)
            for name, column in marked
            if name == "Mean replacement"
            and column in ("ece", "ace", "smooth_ece", "calibration")
        ]
        assert {column for _, column in marked} >= {
            "accuracy",
            "nll",
            "brier",
            "calibration",
        }
    assert page.run("document.querySelectorAll('#metrics td.hollow').length") >= 3


def test_a_model_can_be_hidden_and_shown(page):
    page.click("#chips .chip:nth-child(2)")
    page.wait("document.querySelectorAll('#panels figure').length === 4")
    assert page.run("document.querySelectorAll('#metrics tbody tr').length") == 4
    assert (
        page.run("document.querySelector('#chips .chip:nth-child(2)').ariaPressed")
        == "false"
    )
    page.click("#chips .chip:nth-child(2)")
    page.wait("document.querySelectorAll('#panels figure').length === 5")


def test_hover_and_keys_read_the_diagram(page, study):
    page.run("location.hash = 'width=0.05'")
    drawn(page, 0.05, "gaussian", "brier")
    page.point(".hit", 0.9, 0.3)
    at = page.run("calibrant.state.at")
    assert at == pytest.approx(0.9, abs=0.01)
    live = estimate(coarse_sums(study[0]), 0.05, "gaussian", "brier")
    places = np.linspace(0, 1, len(live.accuracy))
    said = page.text("#panels figure .read")
    assert f"accuracy {np.interp(at, places, live.accuracy):.3f} [" in said
    assert f"sharpness gap {np.interp(at, places, live.sharpness_gap):.3f}" in said
    assert "examples within ±0.05" in said
    assert (
        page.run("document.querySelectorAll('#panels g > line').length") >= 5
    )  # one per panel
    page.focus(".hit")
    now = "document.querySelector('.hit').ariaValueNow"
    for key, shift, value in (
        ("Home", False, "0.000"), ("PageUp", False, "0.100"), ("ArrowRight", False, "0.110"),
        ("ArrowRight", True, "0.111"), ("End", False, "1.000"), ("ArrowLeft", False, "0.990"),
    ):  # fmt: skip
        page.press(key, shift=shift)
        assert page.run(now) == value
    assert page.run("document.activeElement.className") == "hit"
    assert "At confidence 0.990: accuracy" in page.run(
        "document.activeElement.ariaValueText"
    )
    page.press("Escape")
    assert page.run("calibrant.state.at") is None


def test_overlay_reads_all_models_and_shows_one_band(page, study):
    choose(page, "view", "overlay")
    page.point(".hit", 0.8, 0.3)
    assert page.run("document.querySelectorAll('#panels figure').length") == 1
    assert page.run("document.querySelectorAll('#panels .read tbody tr').length") == 5
    bands = "new Set([...document.querySelectorAll('#panels .band')].map(e => e.getAttribute('stroke'))).size"
    assert page.run(bands) == 1


def test_intervals_show_in_table_and_diagrams(page, study):
    assert page.run("document.querySelectorAll('#panels .ribbon').length") >= 4
    low, high = study["Uncalibrated"].decomposition.calibration.interval
    text = page.run(
        cell("Uncalibrated", "calibration").replace("childNodes[0]", "lastChild")
    )
    assert text == f"[{100 * low:.2f}, {100 * high:.2f}]"
    page.click("#show-intervals")
    assert page.run("document.querySelectorAll('#panels .ribbon').length") == 0
    page.wait("!document.querySelector('td .interval').checkVisibility()")


def test_a_view_can_be_sent_as_an_address(browser, address):
    with browser.page() as tab:
        tab.open(
            f"{address}#width=0.031&kernel=epanechnikov&score=log&view=overlay&off=1,4&at=0.7"
        )
        drawn(tab, 0.031, "epanechnikov", "log")
        assert tab.run("document.querySelectorAll('#metrics tbody tr').length") == 3
        choose(tab, "view", "panels")
        assert "view" not in tab.run("location.hash")
        assert "kernel=epanechnikov" in tab.run("location.hash")
        assert tab.problems() == []
    with browser.page() as tab:
        tab.open(
            f"{address}#width=x&kernel=%3Cb%3E&score=1&off=99,z&at=two&sort=__proto__&constructor=1"
        )
        drawn(tab, None, "gaussian", "brier")
        assert tab.problems() == []


def test_diagrams_are_saved_as_an_svg_that_stands_alone(browser, address, tmp_path):
    with browser.page() as tab:
        tab.open(address)
        browser.call("Browser.setDownloadBehavior", behavior="allow",
                     downloadPath=str(tmp_path), browserContextId=tab.context)  # fmt: skip
        tab.click("#save")
        tab.wait("true")
        file = tmp_path / "diagrams.svg"
        for _ in range(200):
            if file.exists():
                break
            tab.settle()
        text = file.read_text(encoding="utf-8")
        assert tab.problems() == []
    root = ET.fromstring(text)
    names = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "Temperature" in names
    assert "var(" not in text
    assert "light-dark" not in text
    assert " class=" not in text


def test_the_table_is_copied_as_numbers(browser, address, study):
    with browser.page() as tab:
        tab.open(address)
        browser.call("Browser.grantPermissions", browserContextId=tab.context,
                     permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])  # fmt: skip
        tab.run("window.focus()")
        tab.run(
            "window.copied = null, navigator.clipboard.writeText = async t => { window.copied = t; }"
        )
        tab.click("#copy")
        tab.wait("window.copied")
        rows = list(csv.DictReader(io.StringIO(tab.run("window.copied"))))
    frame = table(study, "csv", columns=[c for c in rows[0] if c != "model"])
    expected = {row["model"]: row for row in csv.DictReader(io.StringIO(frame))}
    for row in rows:
        for key in ("accuracy", "nll", "calibration", "brier"):
            assert float(row[key]) == pytest.approx(
                float(expected[row["model"]][key]), rel=1e-12
            )


# -- readers ----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", ["", "view=overlay&at=0.8&score=log&intervals=1"])
def test_axe_finds_nothing(browser, address, axe, scheme, state):
    with browser.page(scheme=scheme) as tab:
        tab.open(f"{address}#{state}")
        tab.settle()
        assert violations(tab, axe) == []


def test_axe_finds_nothing_on_a_phone_with_controls_unfolded(browser, address, axe):
    with browser.page(width=390, height=844) as tab:
        tab.open(address).settle()
        tab.click("#fold")
        assert violations(tab, axe) == []


def violations(tab, axe):
    tab.run(axe + ";0")
    return tab.run(
        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map("
        "v => [v.id, v.nodes.length, String(v.nodes[0].target), v.nodes[0].failureSummary]))"
    )


def test_dark_is_what_the_reader_prefers_or_presses(browser, address):
    colour = "getComputedStyle(document.body).backgroundColor"
    with browser.page(scheme="dark") as tab:
        tab.open(address)
        assert tab.run(colour) == "rgb(20, 24, 31)"
        tab.click("#theme")
        assert tab.run(colour) == "rgb(255, 255, 255)"
        assert tab.run("document.getElementById('theme').textContent") == "Dark"
        assert (
            tab.run(
                "getComputedStyle(document.getElementById('theme')).transitionDuration"
            )
            == "0s"
        )


@pytest.mark.parametrize(
    "state", ["", "view=overlay", "score=log&width=0.05&intervals=0"]
)
def test_a_phone_needs_no_sideways_scroll(browser, address, state):
    with browser.page(width=390, height=844) as tab:
        tab.open(f"{address}#{state}")
        tab.settle()
        assert tab.run("document.documentElement.scrollWidth") <= 390
        inside = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"  # fmt: skip
        assert set(tab.run(inside)) == {0}


def test_a_phone_shows_the_verdict_first_and_folds_the_controls(browser, address):
    with browser.page(width=390, height=844) as tab:
        tab.open(address).settle()
        end = "document.querySelector('.verdict').getBoundingClientRect().bottom"
        assert tab.run(end) < 844
        seen = "document.querySelector('%s').checkVisibility()"
        assert not tab.run(seen % "#width")
        assert not tab.run(seen % ".reading dl")
        tab.click("#fold")
        assert tab.run(seen % "#width")
        assert tab.run("document.getElementById('fold').ariaExpanded") == "true"
    with browser.page() as tab:
        tab.open(address).settle()
        assert tab.run(seen % "#width")
        assert tab.run(seen % ".reading dl")
        assert not tab.run(seen % "#fold")


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_models_fill_the_width(browser, study, tmp_path, count):
    with browser.page(width=1440) as tab:
        tab.open(written(tmp_path, list(study)[:count])).settle()
        page, *figures = tab.run(
            "['main', ...Array.from(document.querySelectorAll('.panel, .reading'))]"
            ".map(e => (e.tagName ? e : document.querySelector(e)).getBoundingClientRect())"
            ".map(r => r.width)"
        )
        assert len(figures) == count + 1
        assert sum(figures) > 0.9 * page


def test_what_does_not_follow_the_slider_says_so(browser, address, study):
    with browser.page() as tab:
        tab.open(address).settle()
        hint = "document.getElementById('steady-words').checkVisibility()"
        assert not tab.run(hint)
        assert "the debiased adaptive estimate" in tab.text("#parts")
        assert "at auto" not in tab.text("#metrics thead")
        tab.run("location.hash = 'width=0.005'")
        drawn(tab, 0.005, "gaussian", "brier")
        assert tab.run(hint)
        assert "at bandwidth auto" in tab.text("#steady-words")
        assert "at auto" in tab.text("#metrics thead")
        words = tab.text("#parts")
        assert "debiased" not in words
        assert (
            "at bandwidth 0.005 d_CAL is the paper's estimate (gaussian kernel)"
            in words
        )
        tab.run("location.hash = 'score=log'")
        drawn(tab, None, "gaussian", "log")
        assert "d_CAL (calibration error) + sharpness gap = NLL" in tab.text("#parts")
        assert tab.run(hint)


def test_no_column_comes_twice_whatever_the_score(page):
    for score in ("log", "brier"):
        choose(page, "score", score)
        page.settle()
        heads = page.run(
            "[...document.querySelectorAll('#metrics thead th')].map(e => e.dataset.column)"
        )
        assert "total" not in heads
        assert len(set(heads)) == len(heads)
        rising = (
            "document.querySelector('#metrics [aria-sort=ascending]').dataset.column"
        )
        assert page.run(rising) == {"log": "nll", "brier": "brier"}[score]


@pytest.mark.parametrize("width", [1280, 1360])
@pytest.mark.parametrize(
    "state", ["", "intervals=1", "intervals=1&width=0.05", "intervals=1&score=log"]
)
def test_the_whole_table_fits_a_desk_screen(browser, address, width, state):
    with browser.page(width=width) as tab:
        tab.open(f"{address}#{state}").settle()
        room = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"  # fmt: skip
        assert set(tab.run(room)) == {0}
        edge = "document.querySelector('.scroll').getBoundingClientRect().right"
        ends = "Math.max(...[...document.querySelectorAll('td .badge')].map(b => b.getBoundingClientRect().right))"  # fmt: skip
        assert tab.run(ends) < tab.run(edge)


def test_a_finding_opens_to_its_advice_and_is_open_on_paper(browser, address, study):
    advice = "document.querySelector('.findings details p')"
    with browser.page() as tab:
        tab.open(address)
        assert not tab.run(f"{advice}.checkVisibility()")
        tab.run("document.querySelector('.findings summary').click()")
        assert tab.run(f"{advice}.checkVisibility()")
        assert tab.run(f"{advice}.innerText").startswith(study.audit()[0].advice)
        tab.run("document.querySelector('.findings summary').click()")
        tab.call("Emulation.setEmulatedMedia", media="print")
        assert tab.run(f"{advice}.checkVisibility()")


def test_paper_is_a4_and_nothing_is_cut_or_a_raster(browser, address):
    with browser.page(width=1047) as tab:  # 277 mm
        tab.open(address)
        printed = tab.printed()
        sizes = set(re.findall(rb"/MediaBox ?\[([^\]]*)\]", printed))
        assert {tuple(round(float(x)) for x in size.split()) for size in sizes} == {
            (0, 0, 842, 595)
        }
        assert 1 <= len(re.findall(rb"/Type ?/Page\b", printed)) <= 3
        assert b"/Subtype /Image" not in printed
        tab.call("Emulation.setEmulatedMedia", media="print")
        tab.settle()
        assert tab.run("document.documentElement.scrollWidth") <= 1047
        assert (
            tab.run("getComputedStyle(document.querySelector('.bar')).display")
            == "none"
        )


def test_without_script_there_are_table_findings_and_pictures(browser, address, study):
    with browser.page(script=False) as tab:
        tab.open(address)
        visible = "[...document.querySelectorAll('%s')].filter(e => e.checkVisibility()).length"
        assert tab.run(visible % "#metrics tbody tr") == 5
        assert tab.run(visible % "#panels path.curve, #panels .atom") >= 5
        assert tab.run(visible % ".findings li") >= 3
        assert tab.run(visible % "button, input, select") == 0
        shown = tab.texts("#metrics tbody th")
        assert set(shown) == set(study.names)
        assert tab.problems() == []


# -- safety -----------------------------------------------------------------------


def test_a_hostile_name_is_inert_everywhere(browser, tmp_path):
    y, z = over_confident(800)
    one = cal.evaluate(y, logits=z, name=EVIL)
    two = cal.evaluate(y, logits=z / 2, name="=1+1")
    both = Comparison((one, two), EVIL)
    address = written(tmp_path, both, title=EVIL, groups={EVIL: [one, two]})
    with browser.page() as tab:
        tab.open(address)
        for state in ("view=overlay&at=0.8", "score=log&width=0.05", ""):
            tab.run(f"location.hash = {json.dumps(state)}")
            tab.settle()
        assert tab.seen("Page.javascriptDialogOpening") == []
        assert tab.run("document.querySelectorAll('img').length") == 0
        assert tab.run("document.title") == EVIL
        assert EVIL in tab.texts("#panels figcaption b")
        assert tab.problems() == []


def test_the_page_asks_for_itself_and_nothing_else(browser, study, tmp_path):
    report(study, tmp_path / "page.html")
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser.page() as tab:
            tab.open(f"http://127.0.0.1:{server.server_port}/page.html")
            choose(tab, "view", "overlay")
            choose(tab, "kernel", "epanechnikov")
            tab.settle()
            assert len(tab.requests()) == 1
            assert tab.problems() == []
            refused = tab.run(
                "fetch('/page.html').then(() => 'loaded', () => 'refused')"
            )
            assert refused == "refused"
    finally:
        server.shutdown()
        server.server_close()
    assert asked == ["/page.html"]


# -- other contents ---------------------------------------------------------------


def test_a_restored_page_is_frozen_and_says_why(browser, study, tmp_path):
    whole = Comparison(study.evaluations, study.protocol, study.effects)
    restored = Comparison.from_json(whole.to_json())
    with browser.page() as tab:
        tab.open(written(tmp_path, restored))
        assert tab.run("document.getElementById('width').disabled")
        assert "came without the sums" in tab.text("#frozen")
        assert tab.run("document.querySelectorAll('#panels path.curve').length") >= 4
        assert tab.run("document.querySelectorAll('#panels path.band').length") >= 4
        assert tab.run(cell("Temperature", "calibration")) == fixed(
            100 * study["Temperature"].decomposition.calibration, 2
        )
        assert tab.problems() == []


def test_classes_and_groups_have_their_own_diagrams(browser, tmp_path, axe):
    y, z = over_confident(3000)
    ev = cal.evaluate(y, logits=z, target="class-wise", name="a")
    other = replace(ev, name="b")
    half = [cal.evaluate(y[:900], logits=z[:900], name=name) for name in "ab"]
    with browser.page() as tab:
        tab.open(written(tmp_path, [ev, other], groups={"first 900": half}))
        assert tab.texts("#views h2") == [
            "Each class against the rest",
            "Groups of examples",
        ]
        assert tab.run("document.querySelectorAll('#views .small figure').length") == 5
        tab.click("#views th[data-column=calibration] button")
        shown = [float(x) for x in tab.run(
            "[...document.querySelectorAll('#views section:first-child td[data-column=calibration]')]"
            ".map(e => e.childNodes[0].textContent)")]  # fmt: skip
        assert shown == sorted(shown, reverse=True)
        assert sorted(shown) == sorted(
            float(fixed(100 * p.decomposition.calibration, 2)) for p in ev.per_class
        )
        assert violations(tab, axe) == []
        tab.resize(390)
        tab.settle()
        assert tab.run("document.documentElement.scrollWidth") <= 390
        assert tab.problems() == []


def test_of_each_model_its_own_groups_are_drawn(browser, tmp_path):
    y, z = over_confident(900)
    a, b, c = (
        cal.evaluate(y, logits=z / s, name=n)
        for n, s in zip("abc", (1, 2, 3), strict=True)
    )
    groups = {"x": [replace(a)], "y": [replace(b), replace(a)]}
    figures = "document.querySelectorAll('#views .small figure').length"
    with browser.page() as tab:
        tab.open(written(tmp_path, [a, b, c], groups=groups))
        assert tab.run(figures) == 2
        for model, count in (("1", 1), ("2", 0), ("0", 2)):
            tab.run(
                f"(s => {{ s.value = {model}; s.dispatchEvent(new Event('change')); }})"
                "(document.querySelector('#views select'))"
            )
            assert tab.run(figures) == count
            assert (
                tab.run("document.querySelectorAll('#views tbody tr').length") == count
            )
        assert tab.problems() == []


def test_strange_data_draw_without_nan_in_every_setting(browser, tmp_path):
    u = np.random.default_rng(0).random(900)
    models = [
        cal.evaluate_pairs([0, 0, 1, 1, 1], [0.2, 0.4, 0.6, 0.8, 0.9], name="five rows"),
        cal.evaluate_pairs(np.zeros(900), 0.4 + u / 2, name="always wrong"),
        cal.evaluate_pairs(u < 0.7, np.ones(900), name="all ones"),
        cal.evaluate_pairs([1, 0], [0.0, 1.0], name="certain and wrong"),
        *(cal.evaluate_pairs(u < 0.5, u ** (0.3 + i / 5), name=f"a long name, number {i}")
          for i in range(8)),
    ]  # fmt: skip
    bad = (
        "[...document.querySelectorAll('svg *')].flatMap(e => [...e.attributes])"
        ".filter(a => /NaN|Infinity|undefined/.test(a.value)).map(a => a.name + ' ' + a.value).slice(0, 3)"
    )
    with browser.page() as tab:
        tab.open(written(tmp_path, models))
        for kernel, score, width in [*CASES, ("gaussian", "log", None)]:
            for layout in ("panels", "overlay"):
                given = "" if width is None else f"width={width}&"
                tab.run(
                    f"location.hash = '{given}kernel={kernel}&score={score}&view={layout}&at=0.5&intervals=1&axis=free'"
                )
                drawn(tab, width, kernel, score)
                tab.settle()
                assert tab.run(bad) == []
        assert tab.run("document.documentElement.scrollWidth") <= 1360
        assert tab.problems() == []


def test_a_score_of_ones_own_is_shown_as_evaluated(browser, tmp_path):
    half = cal.Divergence(
        "half Brier",
        phi=lambda x: 0.5 * (x**2).sum(axis=1),
        gradient=lambda x: x,
        phi_1d=lambda p: 0.5 * p**2,
        derivative_1d=lambda p: p,
    )
    y, z = over_confident(900)
    ev = cal.evaluate(y, logits=z, divergence=half, name="own")
    with browser.page() as tab:
        tab.open(written(tmp_path, ev))
        assert tab.run(cell("own", "total")) == fixed(100 * ev.decomposition.total, 2)
        assert tab.run("document.getElementById('width').disabled")
        assert "cannot compute this score" in tab.text("#frozen")
        assert tab.run("document.querySelectorAll('#panels .band').length") >= 1
        choose(tab, "score", "brier")
        tab.run("location.hash = 'score=brier&width=0.05'")
        drawn(tab, 0.05, "gaussian", "brier")
        live = estimate(coarse_sums(ev), 0.05, "gaussian", "brier")
        assert tab.run(cell("own", "calibration")) == fixed(100 * live.calibration, 2)
        assert tab.problems() == []
