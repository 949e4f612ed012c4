"""The report: sums it carries, the arithmetic of the page, and the file itself."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from handmade import seeded, small, studied
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import calibrant as cal
import calibrant.report as reporting
from calibrant import terminal
from calibrant._base.checks import one_line
from calibrant._base.comparison import Comparison
from calibrant._views.words import SHOWN_BY_TABLES
from calibrant.report import build, report
from calibrant.report._coarse import (
    NODES,
    calibrations,
    coarse_sums,
    estimate,
    page_error,
    split,
)
from calibrant.report._payload import as_json, payload, sums_of
from calibrant.report._report import SCRIPTS, STYLES, in_powers
from calibrant.table import make_table
from calibrant.table._layout import Style

EVIL = "</script><img src=x onerror=alert(1)>"
FOLDER = Path(reporting.__file__).parent
CASES = [(k, s) for k in ("gaussian", "epanechnikov") for s in ("brier", "log")]


def pairs(n=3000, power=1.5, name="model", **options):
    rng = np.random.default_rng(n)
    h = rng.random(n)
    return cal.evaluate_pairs(rng.random(n) < h**power, h, name=name, **options)


@pytest.fixture(scope="module")
def studied_cifar(data):
    file = data("cifar10_akamaster_resnet32")
    return cal.study(file["labels"], logits=file["logits"], methods="paper")


# -- oracles ----------------------------------------------------------------------


def linear_binning(h, values, nodes):
    """Each row gives its two neighbouring nodes a share, row by row."""
    sums = np.zeros(nodes)
    for place, value in zip(h * (nodes - 1), values, strict=True):
        left = min(int(place), nodes - 2)
        sums[left] += (1 - (place - left)) * value
        sums[left + 1] += (place - left) * value
    return sums


def kernel_matrix(sums, bandwidth, kernel):
    """Weights of every node at every node, with images one by one."""
    x = sums.places
    shifts = (0.0,) if sums.boundary == "none" else range(-6, 7, 2)
    images = [x + s for s in shifts]
    if sums.boundary == "reflect":
        images += [s - x for s in shifts]
    total = 0.0
    for image in images:
        u = (x[:, None] - image[None, :]) / bandwidth
        total = total + (
            np.exp(-u * u / 2) if kernel == "gaussian" else np.clip(1 - u * u, 0, None)
        )
    return total


def kl(m, h):
    with np.errstate(all="ignore"):
        parts = [
            np.where(a > 0, a * np.log(a / b), 0) for a, b in ((m, h), (1 - m, 1 - h))
        ]
    return parts[0] + parts[1]


# -- coarse sums ------------------------------------------------------------------


@given(arrays(float, st.integers(1, 30), elements=st.floats(0, 1)))
def test_splitting_the_sketch_is_linear_binning_of_the_rows(h):
    correct = (np.arange(len(h)) % 2).astype(float)
    sums = coarse_sums(cal.evaluate_pairs(correct, h))
    np.testing.assert_allclose(
        sums.weight, linear_binning(h, 1 + 0 * h, NODES), atol=1e-5
    )
    np.testing.assert_allclose(sums.hits, linear_binning(h, correct, NODES), atol=1e-5)
    brier = linear_binning(h, (h - correct) ** 2, NODES)
    np.testing.assert_allclose(sums.losses["brier"], brier, atol=1e-5)
    assert sums.weight.sum() == pytest.approx(len(h), rel=1e-6)
    assert sums.weight @ sums.places == pytest.approx(h.sum(), abs=1e-4)


def test_nodes_that_cut_a_cell_are_refused():
    with pytest.raises(ValueError, match="nodes must divide 9600 cells"):
        split(np.zeros((1, 2, 9600)), 1025)


def test_rows_of_infinite_loss_are_kept_apart():
    ev = cal.evaluate_pairs([0, 1, 1, 0], [1.0, 1.0, 0.5, 0.25])
    sums = coarse_sums(ev)
    assert sums.infinite.sum() == 1
    assert sums.infinite[-1] == 1
    assert np.isfinite(sums.losses["log"]).all()
    assert estimate(sums, 0.05, "gaussian", "log").total == np.inf


@pytest.mark.parametrize(("kernel", "score"), CASES)
@pytest.mark.parametrize("boundary", ["none", "reflect"])
@pytest.mark.parametrize("bandwidth", [0.012, 0.05, 0.2])
def test_estimate_is_the_textbook_sum_over_nodes(kernel, score, boundary, bandwidth):
    sums = coarse_sums(pairs(bandwidth=0.05, boundary=boundary), 601)
    live = estimate(sums, bandwidth, kernel, score)
    k, x, n, c = (
        kernel_matrix(sums, bandwidth, kernel),
        sums.places,
        sums.weight,
        sums.hits,
    )
    m = (k @ c) / (k @ n)
    np.testing.assert_allclose(live.accuracy, m, atol=1e-12)
    np.testing.assert_allclose(live.support, k @ n, rtol=1e-10)
    variance = (k**2 @ c) * (1 - m) ** 2 + (k**2 @ (n - c)) * m**2
    if boundary == "none":  # images of one node are no independent rows
        np.testing.assert_allclose(live.error, np.sqrt(variance) / (k @ n), rtol=1e-9)
    inside = slice(1, -1)
    distance = (m - x) ** 2 if score == "brier" else kl(m, x)
    gap = (k @ sums.losses[score]) / (k @ n) - distance
    np.testing.assert_allclose(live.sharpness_gap[inside], gap[inside], atol=1e-10)
    if score == "brier":
        assert live.calibration == pytest.approx(
            (n * (m - x) ** 2).sum() / n.sum(), rel=1e-6
        )
    assert calibrations(sums, bandwidth, kernel)[score] == live.calibration


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_one_confidence_errs_by_its_distance_at_any_bandwidth(kernel):
    # Always 75% sure, right 60% of the time; 0.75 is a node.
    sums = coarse_sums(cal.evaluate_pairs([1, 1, 1, 0, 0] * 40, [0.75] * 200))
    for bandwidth in (0.005, 0.05, 0.25):
        found = calibrations(sums, bandwidth, kernel)
        assert found["brier"] == pytest.approx(0.15**2, abs=1e-9)
        expected = 0.6 * np.log(0.6 / 0.75) + 0.4 * np.log(0.4 / 0.25)
        assert found["log"] == pytest.approx(expected, abs=1e-6)


def test_a_certain_forecast_that_does_not_hold_has_no_finite_calibration_error():
    sums = coarse_sums(cal.evaluate_pairs([1, 1, 1, 0] * 20, [1.0] * 80))
    assert calibrations(sums, 0.05, "gaussian")["log"] == np.inf


@pytest.mark.parametrize("estimator", ["direct", "plugin"])
@pytest.mark.parametrize("score", ["brier", "log"])
def test_coarse_numbers_are_those_of_the_evaluation(estimator, score):
    ev = pairs(bandwidth=0.05, estimator=estimator)
    found = calibrations(coarse_sums(ev), 0.05, "gaussian")[score]
    assert found == pytest.approx(float(ev.decompositions[score].calibration), abs=3e-6)


def test_rows_one_bandwidth_away_do_not_count_for_a_kernel_that_ends_there():
    sums = coarse_sums(cal.evaluate_pairs([1] * 30, [0.5] * 30))
    live = estimate(sums, 0.05, "epanechnikov", "brier")
    at = 540  # 0.45, exactly one bandwidth below
    assert live.support[at] == 0
    assert live.rows[at] == 0
    assert live.rows[at + 1] == 30


def test_the_page_error_is_what_a_count_over_all_rows_finds(studied_cifar, data):
    ev = studied_cifar["Uncalibrated"]
    sums = coarse_sums(ev)
    stated = page_error(ev.sketch, sums, "gaussian", 0.05)
    assert 0 < stated.curve < 1e-4
    assert 0 < stated.calibration < 1e-5
    paper = {s: float(ev.paper_decompositions[s].calibration) for s in ("brier", "log")}
    found = calibrations(sums, 0.05, "gaussian")
    apart = max(abs(found[s] - paper[s]) for s in paper)
    assert stated.calibration == pytest.approx(apart, rel=1e-6)
    coarser = page_error(ev.sketch, coarse_sums(ev, 601), "gaussian", 0.05)
    assert coarser.curve > 2 * stated.curve


# -- the file ---------------------------------------------------------------------


class Markup(HTMLParser):
    """Elements, attributes and texts, as a browser without script would see them."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.content, self.stack = [], {}, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.stack.append(tag)

    def handle_data(self, data):
        if self.stack:
            self.content.setdefault(self.stack[-1], []).append(data)


def test_five_models_stay_below_half_a_megabyte(studied_cifar):
    assert len(build(studied_cifar).encode()) < 500_000


def test_the_page_refers_to_nothing_outside_itself(studied_cifar):
    page = build(studied_cifar)
    markup = Markup(page)
    loading = {"src", "href", "srcset", "action", "style", "background", "poster"}
    for tag, attributes in markup.elements:
        assert not loading & set(attributes), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], tag
    addresses = set(re.findall(r"https?://[^\"'\s<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert not re.search(r"@import|fetch\(|XMLHttpRequest|WebSocket|sendBeacon", page)


def test_only_the_own_script_and_style_may_run(studied_cifar):
    page = build(studied_cifar)
    policy = dict(Markup(page).elements[3][1])["content"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize(
    "name",
    [EVIL, '" onload="x', "a&b<!--", "\u2028line\u2029", "\ud800", "$title ${x}"],
)
def test_a_name_is_never_markup(name):
    one = replace(pairs(), name=name)
    page = build(Comparison((one,), name), title=name, groups={name: [one]})
    plain = build(pairs(), title="t", groups={"g": [pairs()]})
    kinds = [tag for tag, _ in Markup(page).elements]
    same = [tag for tag, _ in Markup(plain).elements]
    assert sorted(set(kinds)) == sorted(set(same))
    assert kinds.count("script") == 2
    assert "img" not in kinds
    page.encode("utf-8")
    carried = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(carried)["models"][0]["name"] == one_line(name)


def test_json_has_no_sign_that_could_end_a_script():
    text = as_json({"name": EVIL + "&\u2028"})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text)["name"] == EVIL + "&\u2028"


def test_equal_models_make_equal_bytes():
    first, second = studied(), studied()
    slower = {n: replace(e, fit_seconds=9.9) for n, e in second.effects.items()}
    again = Comparison(second.evaluations, second.protocol, slower)
    assert build(first) == build(again)
    assert build(first) != build(first, title="other")


def test_the_table_of_the_page_marks_what_the_tables_mark():
    page = build(small())
    rows = re.findall(r'<tr><th scope="row".*?</tr>', page.split("h-diagrams")[0])
    by_name = {re.search(r'title="(.*?)"', row)[1]: row for row in rows}
    trivial, zeros = by_name["ViT + MRR"], by_name["ViT + IR"]
    assert (
        '<td class="hollow" data-label="ECE">0.18<span class="unseen"> lower, but meaningless</span>'
        in trivial
    )
    assert '<td class="infinite" data-label="NLL">∞' in zeros
    assert 'class="badge bad">✕ constant confidence<' in trivial
    assert "infinite NLL (3 examples)" in zeros
    best = re.findall(
        r'<td class="best" data-label="\w+">([\d.]+)', by_name["ViT + TS"]
    )
    assert best[0] == "85.14"
    assert list(by_name) == ["ViT + TS", "ViT + IR", "ViT + MRR"]  # by score


def findings_of(page):
    """What the page lists: severity, text, code, advice and evidence of each finding."""
    section = re.search(r'<h2 id="h-findings">.*?</section>', page, re.DOTALL)[0]
    return section, re.findall(
        r'<li><details><summary><span class="badge \w+">. (\w+)</span> (.*?) '
        r"<code>(.*?)</code></summary><p>(.*?) <span>Evidence: (.*?)\.</span></p>",
        section,
    )


@pytest.mark.parametrize("make", [studied, lambda: pairs(3000)], ids=["study", "fine"])
def test_findings_are_those_of_the_audit(make):
    models = make()
    section, listed = findings_of(build(models))
    found = models.audit()
    assert [(x.severity, x.text, x.code, x.advice) for x in found] == [
        tuple(map(html.unescape, one[:4])) for one in listed
    ]
    for one, (*_, evidence) in zip(found, listed, strict=True):
        words = dict(part.rsplit(" ", 1) for part in evidence.split(", "))
        assert words == {
            key.replace("_", " "): f"{x:.4g}" for key, x in one.evidence.items()
        }
    assert ("No pitfalls detected." in section) == (not found)


def test_the_summary_says_what_is_no_finding():
    section, _ = findings_of(build(studied()))
    assert "<p>ViT + TS has the lowest Brier score, 0.2195." in section
    assert "<p>Over-confident on average: ViT + TS (16.8 points)" in section
    assert "<p>ViT + IR: a note</p>" in section
    mixed = Comparison((pairs(300, name="a"), replace(seeded(), name="b")))
    told = "<p>The models differ in target: a (pairs) and b (top-label).</p>"
    assert told in build(mixed)


# -- what a page says first, once, and of several models ---------------------------


def section_of(page, name):
    """One section of the page, as text."""
    found = re.search(rf'<h2 id="h-{name}">.*?</section>', page, re.DOTALL)[0]
    return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", found)))


def two_models(n=3000, power=1.0):
    """A fair model, and one that is over-confident, on the same examples."""
    rng = np.random.default_rng(1)
    h = rng.random(n)
    a = rng.random(n) < h
    shifted = (h - 0.5) * power + 0.5
    return (
        cal.evaluate_pairs(a, shifted, name="shifted"),
        cal.evaluate_pairs(a, h, name="fair"),
    )


def test_content_comes_before_controls_and_reading_beside_the_first_figure():
    page = build(pairs())
    order = ["h-findings", 'class="verdict"', 'id="smoothing"', "h-metrics"]
    order += ["h-diagrams", "How to read this", "<figure", "h-methods"]
    places = [page.index(word) for word in order]
    assert places == sorted(places)


def test_several_models_are_compared_as_compare_does():
    models = two_models(power=0.8)
    page = build(list(models))
    found = cal.compare(*models)
    text = section_of(page, "differences")
    assert "Differences from shifted" in text
    for sentence in found.sentences:
        assert sentence in text
    low, high = found.differences["fair"]["brier"].interval
    assert f"[{100 * low:+.2f}, {100 * high:+.2f}]" in text
    assert "significantly better" in text
    assert "h-differences" not in build(models[0])


def test_a_contrast_keeps_its_own_baseline_and_level(tmp_path):
    models = two_models(power=0.8)
    found = cal.compare(*models, baseline="fair", level=0.9)
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    text = section_of(page, "differences")
    assert "Differences from fair" in text
    assert "[90% interval]" in text
    assert found.sentences[0] in text


def test_models_that_cannot_be_paired_say_so_in_place_of_differences():
    page = build([pairs(400, name="a"), pairs(500, name="b")])
    text = section_of(page, "differences")
    assert "b cannot be compared with a" in text
    assert "it has 500 examples, and a has 400." in text
    assert "400 to 500 examples" in page
    assert "was tested on different examples; they are not compared." in page
    assert "significantly" not in section_of(page, "findings")
    assert 'class="best"' not in page
    assert "● best" not in page


def labelled(y, name, shift=0.0, **options):
    p = np.random.default_rng(7).random(len(y)) * 0.9
    return cal.evaluate(y, probs=p + shift, name=name, **options)


ODD = {
    "its labels or weights differ from those of fair": lambda y: labelled(1 - y, "odd"),
    "it has 300 examples, and fair has 400": lambda y: labelled(y[:300], "odd"),
    "bins is 20 for 'odd' and 15 for 'fair'": lambda y: labelled(y, "odd", bins=20),
    "the examples of odd are not kept": lambda y: cal.Evaluation.from_json(
        labelled(y, "odd").to_json()
    ),
    "the clusters of the two differ": lambda y: labelled(
        y, "odd", cluster=np.arange(400) // 4
    ),
}


@pytest.mark.parametrize("why", ODD)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_odd_model_keeps_no_others_from_being_paired(why, place):
    y = (np.random.default_rng(3).random(400) < 0.5).astype(int)
    fair, shifted = labelled(y, "fair"), labelled(y, "shifted", 0.05)
    models = [fair, shifted]
    models.insert(place, ODD[why](y))
    page = build(models)
    text = section_of(page, "differences")
    assert "Differences from fair" in text
    assert f"odd cannot be compared with fair, example by example: {why}" in text
    found = cal.compare(fair, shifted)
    assert found.sentences[0] in text


def test_the_lead_is_paired_where_a_third_model_has_other_labels():
    fair, shifted = two_models(power=0.8)
    alone = section_of(build([fair, shifted]), "findings")
    lead = re.search(r"by 0\.\d+ \[[^]]*\]", alone)[0]
    third = pairs(3001, power=9.0, name="odd")
    assert lead in section_of(build([third, fair, shifted]), "findings")


def test_many_sentences_are_folded_below_the_table_of_differences():
    one = pairs(400, name="a")
    models = [one, *(replace(one, name=x) for x in "bcd")]
    page = build(models)
    assert "<details><summary>In 21 sentences</summary>" in page
    assert build(models[:2]).count('<ul class="told">') == 1
    assert "sentences</summary>" not in build(models[:2])


@pytest.mark.parametrize(
    ("power", "words"),
    [
        (0.8, "the next, shifted, is significantly higher: by"),
        (0.98, "The lead over the next, fair, is not significant: 0.0"),
        (1.0, "is the same to four digits"),
    ],
)
def test_the_best_score_is_told_with_the_interval_of_its_lead(power, words):
    text = section_of(build(list(two_models(power=power))), "findings")
    assert "has the lowest Brier score, 0." in text
    assert words in text


def test_one_model_is_called_miscalibrated_or_not_by_its_interval():
    text = section_of(build(two_models(power=0.6)[0]), "findings")
    assert "shifted is miscalibrated: calibration error 0." in text
    text = section_of(build(two_models()[1]), "findings")
    assert "No evidence of miscalibration" in text
    assert "is miscalibrated" not in text


def test_no_column_comes_twice():
    both = Comparison(two_models(300, 0.9))
    both = payload(both, sums_of(both))
    assert [score["column"] for score in both["scores"]] == ["brier", "nll"]
    head = re.search(r'<table id="metrics"><thead>.*?</thead>', build(pairs()))[0]
    assert "<sub>TOT</sub>" not in head
    assert "<sub>CAL</sub>" in head
    # Class by class the log score is no NLL of the table, so it has a column.
    y = np.tile([0, 1, 2], 100)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    ev = cal.evaluate(y, probs=p, target="class-wise", divergence="log")
    head = re.search(r'<table id="metrics"><thead>.*?</thead>', build(ev))[0]
    assert "<sub>TOT</sub>" in head


def test_forecasts_are_called_forecasts_of_an_observed_frequency():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.1, 0.7, 2000)
    ev = cal.evaluate(rng.random(2000) < p, probs=p + 0.2, target="positive")
    made = payload(Comparison((ev,)), sums_of(Comparison((ev,))))
    assert made["words"] == {"hit": "observed frequency", "said": "forecast"}
    text = ev.describe()
    assert "observed frequency of the positive class against forecast." in text
    assert "lies below the diagonal (forecasts too high)" in text
    assert "confidence" not in text
    (found,) = [one for one in ev.audit() if one.code == "miscalibrated"]
    assert "where mean forecast is" in found.text


def test_groups_are_sorted_by_the_numbers_in_their_names():
    rng = np.random.default_rng(0)
    h = rng.random(600)
    names = np.array([f"group {i}" for i in range(12)])[np.arange(600) % 12]
    ev = cal.evaluate_pairs(rng.random(600) < h, h, group=names, name="a")
    text = re.search(r'"kind":"group".*?"names":(\[.*?\])', build_with_groups(ev))[1]
    assert json.loads(text) == [f"group {i}" for i in range(12)]


def build_with_groups(ev):
    return build(ev, groups=reporting._report.groups_of(ev))


def test_notes_are_folded_where_findings_are_many(studied_cifar):
    found = studied_cifar.audit()
    notes = sum(one.severity == "note" for one in found)
    section, listed = findings_of(build(studied_cifar))
    assert f'<details class="more"><summary>{notes} notes</summary>' in section
    assert len(listed) == len(found)
    assert 'class="more"' not in build(pairs())


def test_a_value_above_its_own_interval_is_explained_on_the_page():
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 1.6, 20_000)
    ev = cal.evaluate(rng.random(20_000) < p, probs=p, target="positive")
    assert ev.metrics["smooth_ece"] > ev.metrics["smooth_ece"].interval[1]
    assert "SmoothECE is biased up by noise" in build(ev)
    page = ev._repr_html_()
    assert "SmoothECE is biased up by noise" in page
    assert "AURC" not in page  # it has no column, and so no interval to be named
    (line,) = [x for x in str(ev).splitlines() if x.startswith("  SmoothECE")]
    assert line.endswith("biased up by noise")
    assert "even for a calibrated model" in " ".join(str(ev).split())


def told_by_tables(models):
    """Models named below the tables of a comparison, by the code they stand for."""
    notes = [note.text for note in make_table(models, Style()).notes if note.finding]
    starts = {
        "trivial-confidence": "lower, but meaningless: ",
        "infinite-loss": "NLL is infinite where",
        "accuracy-changed": "Recalibration changed predictions: ",
    }
    texts = {
        code: " ".join(text for text in notes if text.startswith(start))
        for code, start in starts.items()
    }
    return {
        code: {name for name in models.names if re.search(rf"\b{name}\b", text)}
        for code, text in texts.items()
    }


def test_tables_and_prints_name_the_models_of_the_audit(studied_cifar):
    found = studied_cifar.audit()
    for code, models in told_by_tables(studied_cifar).items():
        assert models == {x.models[0] for x in found if x.code == code}, code
        assert models
    plain = " ".join(str(studied_cifar).split())
    shown = " ".join(terminal.render(studied_cifar, width=100, colour=False).split())
    for x in found:
        said = f"{x.text} [{x.code}]"
        assert (said in plain) == (x.code not in SHOWN_BY_TABLES)
        assert (said in shown) == (x.code not in SHOWN_BY_TABLES)
    for ev in studied_cifar:
        text = " ".join(str(ev).split())
        assert all(f"{x.text} [{x.code}]" in text for x in ev.audit())


def test_badges_are_findings_in_short():
    made = payload(studied(), sums_of(studied()), found=studied().audit())
    told = {
        model["name"]: [(badge["level"], badge["text"]) for badge in model["badges"]]
        for model in made["models"]
    }
    assert told["ViT + IR"] == [
        ("warn", "infinite NLL (3 examples)"),
        ("warn", "accuracy -1.32 points"),
        ("warn", "over-confident by 16.8 points"),
    ]
    assert told["ViT + MRR"][0] == ("bad", "constant confidence")


@pytest.mark.parametrize(
    ("shift", "words"), [(0.1, "Forecasts too high"), (-0.1, "Forecasts too low")]
)
def test_forecasts_of_one_class_are_high_or_low_not_confident(shift, words):
    rng = np.random.default_rng(5)
    p = rng.uniform(0.2, 0.8, 4000)
    y = (rng.random(4000) < p).astype(int)
    ev = cal.evaluate(y, probs=p + shift, target="positive", name="rain")
    both = Comparison((ev, replace(ev, name="again")))
    text = " ".join(str(both).split())
    points = f"{100 * abs(ev.metrics['confidence_gap']):.1f} points"
    assert f"{words} on average: rain ({points}) and again ({points})." in text
    assert f"{words.lower()} by {points}" in build(both)
    assert "-confident" not in text + str(ev)


def test_a_page_states_its_own_error_and_origin(studied_cifar):
    page = build(studied_cifar)
    errors = [page_error(ev.sketch, coarse_sums(ev)) for ev in studied_cifar]
    assert f"{in_powers(max(e.curve for e in errors))} in a curve" in page
    assert f"calibrant {cal.__version__}" in page
    assert "fitted on 2,000 examples" in page
    assert "top-label: is the predicted class as likely as claimed?" in page
    digest = hashlib.sha256()
    for ev in studied_cifar:
        digest.update(ev.to_json().encode())
    assert digest.hexdigest() in page


def test_a_restored_evaluation_has_curves_but_no_sums(studied_cifar):
    whole = Comparison(studied_cifar.evaluations, studied_cifar.protocol)
    restored = Comparison.from_json(whole.to_json())
    made = payload(restored, sums_of(restored))
    assert [model["sums"] for model in made["models"]] == [None] * 5
    assert made["sweep"] is None
    assert len(made["models"][0]["mass"]["density"]) > 1000
    page = build(restored)
    assert "came without the sums behind them" in page
    assert page.count('<figure class="panel') == 5


def test_numbers_of_the_payload_are_those_of_the_record():
    ev = pairs(400)
    model = payload(Comparison((ev,)), [coarse_sums(ev)])["models"][0]
    parts = ev.decompositions["log"]
    assert model["reported"]["log"]["calibration"][0] == float(parts.calibration)
    assert model["metrics"]["accuracy"][1:] == list(ev.metrics["accuracy"].interval)
    sums = np.frombuffer(base64.b64decode(model["sums"]["weight"]), "<f4")
    assert sums.sum() == pytest.approx(400)


def test_classes_are_shown_one_by_one_and_many_of_them_as_the_worst(data):
    file = data("cifar10_akamaster_resnet32")
    ev = cal.evaluate(file["labels"], logits=file["logits"], target="class-wise")
    (view,) = payload(Comparison((ev,)), [None])["views"]
    assert view["names"] == [str(i) for i in range(10)]
    assert view["models"][0][3]["calibration"][0] == float(
        ev.per_class[3].decomposition.calibration
    )
    many = tuple(replace(ev.per_class[i % 10], name=str(i)) for i in range(40))
    (view,) = payload(Comparison((replace(ev, per_class=many),)), [None])["views"]
    assert len(view["names"]) == 24
    assert "24 of 40 classes" in view["note"]
    assert {int(name) % 10 for name in view["names"][:4]} == {3}  # class 3 is the worst


def test_groups_must_hold_the_same_models():
    a, b = pairs(300, name="a"), pairs(300, name="b")
    with pytest.raises(
        ValueError, match=r"groups must hold the models a; .*'night' holds b"
    ):
        build(a, groups={"night": b})
    views = payload(Comparison((a,)), sums_of(Comparison((a,))), {"all": a})["views"]
    assert views[0]["names"] == ["all"]
    assert views[0]["models"][0][0]["rows"] == 300


def test_a_model_may_lack_a_group_that_another_has(tmp_path):
    u = np.random.default_rng(1).random(300)
    halves = np.repeat(["x", "y"], 150)
    a = cal.evaluate_pairs(u < 0.7, u**0.5, group=halves, name="a")
    b = cal.evaluate_pairs(u < 0.7, u**0.6, group=["y"] * 300, name="b")
    none = cal.evaluate_pairs(u < 0.7, u**0.8, name="none")
    models = Comparison((a, b, none))
    found = payload(models, sums_of(models), reporting._report.groups_of(models))
    (view,) = found["views"]
    assert view["names"] == ["x", "y"]
    sizes = [[part and part["rows"] for part in parts] for parts in view["models"]]
    assert sizes == [[150, 150], [None, 300], [None, None]]
    assert report(models, tmp_path / "page.html").exists()


def test_models_of_other_clusters_are_not_on_the_same_examples():
    u = np.random.default_rng(1).random(300)
    a = cal.evaluate_pairs(u < 0.5, u, cluster=np.arange(300) // 2, name="a")
    b = cal.evaluate_pairs(u < 0.7, u, cluster=np.arange(300) // 3, name="b")
    again = [cal.Evaluation.from_json(one.to_json()) for one in (a, b)]
    page = build([a, b])
    assert "300 examples each" in page
    assert "300 examples in 150 clusters ·" not in page
    assert "was tested on different examples; they are not compared" in page
    assert "no best is marked" in page
    assert "these 300" not in str(Comparison((a, b)))
    assert "300 examples each" not in str(Comparison((a, replace(a, name="same"))))
    ids = [replace(one, fingerprint="ids of both") for one in again]  # read back
    assert "300 examples each" in str(Comparison(tuple(ids)))


def test_what_is_no_evaluation_is_refused():
    with pytest.raises(TypeError, match="models must be a Comparison"):
        build(3)


def test_report_writes_the_page_and_says_where(tmp_path):
    ev = pairs(200)
    path = report(ev, tmp_path / "page.html", title="One")
    with pytest.raises(FileExistsError, match="pass force=True"):
        report(ev, path)
    assert report(ev, path, title="One", force=True) == path
    assert path.read_text(encoding="utf-8") == build(ev, title="One")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        report(ev, tmp_path / "none" / "page.html")


@pytest.mark.parametrize(
    "ev",
    [
        cal.evaluate_pairs(
            [1, 0, 1, 1, 1], [0.2, 0.4, 0.6, 0.8, 0.9], name="five rows"
        ),
        cal.evaluate_pairs([0] * 300, np.linspace(0.4, 0.9, 300), name="always wrong"),
        cal.evaluate_pairs([1, 1, 0] * 100, np.ones(300), name="all ones"),
        cal.evaluate_pairs([1, 0], [0.0, 1.0], name="certain and wrong"),
    ],
    ids=lambda ev: ev.name,
)
def test_strange_data_make_a_page(ev):
    page = build(ev)
    assert not re.search(r'[ "]nan|NaN', page.split('id="data"')[0])


def luminance(colour):
    full = "".join(2 * sign for sign in colour) if len(colour) == 3 else colour
    parts = [int(full[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_stand_out_from_what_is_behind_them(scheme):
    css = (FOLDER / "page.css").read_text()
    found = re.findall(r"--([\w-]+): light-dark\(#(\w+), #(\w+)\);", css)
    colours = {name: pair[scheme] for name, *pair in found}
    inks = [
        "ink",
        "muted",
        "link",
        "warn",
        "bad",
        "rows-edge",
        *(f"c{i}" for i in range(8)),
    ]
    for ink in inks:
        for paper in ("bg", "panel"):
            assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    assert contrast(colours["warn"], colours["warn-bg"]) >= 4.5
    assert contrast(colours["bad"], colours["bad-bg"]) >= 4.5
    assert contrast(colours["muted"], colours["soft"]) >= 4.5


def test_files_of_the_page_are_short_and_all_in_use():
    parts = [*FOLDER.glob("*.css"), *FOLDER.glob("*.html"), *FOLDER.glob("script/*.js")]
    assert {
        p.name: n for p in parts if (n := len(p.read_text().splitlines())) > 300
    } == {}
    assert {p.stem for p in FOLDER.glob("script/*.js")} == set(SCRIPTS)
    assert {p.name for p in FOLDER.glob("*.css")} == set(STYLES)


def test_pairs_with_a_brier_score_alone_have_a_page_of_that_score(tmp_path):
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 2000)
    a = rng.random(2000) < h**1.3
    sketch = cal.Sketch().update_pairs(a, h, loss=1.2 * (a - h) ** 2)
    ev = cal.evaluate(sketch, name="of a sketch")
    report([ev], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "of a sketch" in page
    assert f"{100 * ev.metrics['brier']:.2f}" in page
    assert '"scores":[{"key":"brier",' in page
    assert '"key":"log"' not in page
