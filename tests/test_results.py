"""Records: the same numbers as dict, JSON, frame and text."""

import json
import pickle
from unittest.mock import ANY

import numpy as np
import pytest

import calibrant as cal
from calibrant._base.records import as_plain as plain
from calibrant._base.records import to_frame


@pytest.fixture(scope="module")
def evaluation():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(400, 3))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    return cal.evaluate(y, logits=z, name="a </script> & b")


@pytest.fixture(scope="module")
def infinite():
    return cal.evaluate([2, 0, 0], probs=[[0.5, 0.5, 0.0]] * 3, target="class-wise")


def strict(text):
    """Parse JSON, refusing the words NaN and Infinity."""

    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("which", ["evaluation", "infinite"])
def test_json_is_strict_and_comes_back_the_same(which, request):
    ev = request.getfixturevalue(which)
    again = cal.Evaluation.from_json(ev.to_json())
    assert strict(ev.to_json()) == {**ev.to_dict(), "digest": ANY}
    assert again.to_dict() == ev.to_dict()
    assert str(again) == str(ev)
    np.testing.assert_array_equal(again.curve.accuracy, ev.curve.accuracy)
    assert again.metrics["accuracy"].interval == ev.metrics["accuracy"].interval
    assert again.decomposition.calibration.method == ev.decomposition.calibration.method


def test_infinities_and_nan_are_words(infinite):
    assert infinite.to_dict()["metrics"]["nll"]["value"] == "inf"
    assert plain([np.nan, -np.inf, 1.0]) == ["nan", "-inf", 1.0]
    assert np.isnan(cal.Estimate.from_dict(cal.Estimate(np.nan).to_dict()))


def test_each_record_turns_into_plain_data(evaluation):
    parts = evaluation.decomposition.to_dict()
    assert parts["total"]["value"] == evaluation.metrics["brier"]
    assert (
        cal.Bins.from_dict(evaluation.bins.to_dict()).to_dict()
        == evaluation.bins.to_dict()
    )
    assert strict(evaluation.curve.to_json())["support"]


def test_records_cannot_be_changed(evaluation):
    with pytest.raises(AttributeError):
        evaluation.name = "other"
    with pytest.raises(AttributeError):
        evaluation.decomposition.total = 0.0


def test_an_estimate_is_a_float_that_remembers():
    estimate = cal.Estimate(0.25, (0.2, 0.3), "score")
    assert estimate * 2 == 0.5
    assert isinstance(estimate + 1, float)
    again = pickle.loads(pickle.dumps(estimate))
    assert (again, again.interval, again.method) == (0.25, (0.2, 0.3), "score")


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_are_of_the_library_installed(library, part, evaluation, monkeypatch):
    frames = part(library)
    installed = {library: True}.get
    monkeypatch.setattr("calibrant._base.records.find_spec", installed)
    frame = evaluation.frame()
    assert isinstance(frame, frames.DataFrame)
    values = dict(zip(frame["metric"], frame["value"], strict=True))
    assert values["ece"] == evaluation.metrics["ece"]
    assert values["total"] == evaluation.decomposition.total
    assert len(evaluation.curve.frame()) == len(evaluation.curve.confidence)
    assert len(evaluation.bins.frame()) == 15


def test_without_a_frame_library_a_dict_of_arrays_does(monkeypatch):
    monkeypatch.setattr("calibrant._base.records.find_spec", lambda name: None)
    for name in ("polars", "pandas"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    assert to_frame({"x": np.arange(2)})["x"].tolist() == [0, 1]


def test_print_shows_the_numbers_of_the_record(evaluation):
    text = str(evaluation)
    parts = evaluation.decomposition
    low, high = parts.calibration.interval
    assert (
        f"{parts.total:.4f} = {parts.calibration:.4f} [{low:.4f}, {high:.4f}]" in text
    )
    for name in ("ece", "nll", "brier", "smooth_ece", "ace", "accuracy"):
        assert f"{evaluation.metrics[name]:.4f}" in text
    assert "top-label" in text
    assert "over-confident" in text


def test_print_warns_of_constant_confidence():
    ev = cal.evaluate_pairs([1, 0, 1, 1], [0.75] * 4)
    assert "[trivial-confidence]" in str(ev)
    assert "needs at least 50 examples" in str(ev)


def test_every_record_comes_back_from_json(evaluation, infinite):
    parts = cal.corp([1, 0, 1], confidence=[0.0, 0.3, 0.9], divergence="log")
    assert parts.score == np.inf
    for record in (parts, evaluation.decomposition, infinite.decomposition, evaluation.curve, evaluation.bins):  # fmt: skip
        again = type(record).from_json(record.to_json())
        assert again.to_dict() == record.to_dict()


def test_repr_is_one_line(evaluation):
    parts = evaluation.decomposition
    assert f"{parts.total:.4f} = {parts.calibration:.4f} + " in repr(evaluation)
    for record in (evaluation, evaluation.curve, evaluation.bins):
        assert len(repr(record)) < 130
        assert "\n" not in repr(record)


def test_print_speaks_of_events_for_a_positive_class():
    rng = np.random.default_rng(0)
    p = 0.3 + 0.6 * rng.random(400)
    text = str(cal.evaluate(rng.random(400) < p - 0.2, probs=p))
    assert (
        "forecasts are too high: the mean forecast exceeds the observed frequency by 0."
        in text
    )
    assert "over-confident" not in text


@pytest.mark.simulation
def test_print_explains_an_error_below_zero():
    rng = np.random.default_rng(3)
    texts = []
    for _ in range(20):
        h = rng.random(200)
        ev = cal.evaluate_pairs(rng.random(200) < h, h, resamples=100)
        below = min(parts.calibration for parts in ev.decompositions.values()) < 0
        texts.append(below)
        assert ("below 0 means that none was found" in str(ev)) == below
    assert 0 < sum(texts) < 20


def test_print_names_the_method_of_every_interval_it_shows():
    ev = cal.evaluate_pairs([1, 0] * 40, [0.7, 0.4] * 40)
    told = " ".join(str(ev).split()).partition("intervals: ")[2]
    shown = [ev.metrics[key] for key in ("accuracy", "ece", "ace", "nll", "brier")]
    shown += [parts.calibration for parts in ev.decompositions.values()]
    assert sum(value.interval is not None for value in shown) > 4
    assert all(f"{value.method} (" in told for value in shown if value.interval)
    fewer = str(cal.evaluate_pairs([1, 0] * 40, [0.7, 0.4] * 40, interval=None))
    assert "inversion" not in fewer


def test_print_of_the_paper_preset_promises_no_interval_of_its_decompositions():
    text = str(cal.evaluate_pairs([1, 0] * 40, [0.7, 0.4] * 40, preset="paper"))
    assert "% interval" not in text
    assert "d_CAL as published has no interval; leave out preset= for one." in text


def test_a_frame_has_the_intervals(evaluation):
    frame = evaluation.frame()
    place = list(frame["metric"]).index("accuracy")
    bounds = frame["low"][place], frame["high"][place]
    assert bounds == evaluation.metrics["accuracy"].interval
    assert frame["method"][place] == "Wilson"
    assert frame["model"][place] == evaluation.name


def test_print_shows_the_gap_and_the_published_parts(evaluation):
    parts, paper = evaluation.decomposition, evaluation.paper
    low, high = parts.calibration.interval
    text = str(evaluation)
    assert f"[{low:.4f}, {high:.4f}] + {parts.sharpness_gap:.4f}\n" in text
    shown = f"{paper.total:.4f} = {paper.calibration:.4f} + {paper.sharpness_gap:.4f}"
    assert f"the paper's estimator (bandwidth 0.05): {shown}\n" in text
    assert "d_CAL is" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "direct gaussian kernel estimate of bandwidth 0.05"),
        ({"estimator": "plugin"}, "plug-in gaussian kernel estimate of bandwidth 0.05"),
        (
            {"kernel": "epanechnikov"},
            "direct epanechnikov kernel estimate of bandwidth 0.05",
        ),
    ],
)
def test_a_fixed_bandwidth_is_named_and_the_papers_estimate_told_if_another(
    options, said
):
    rng = np.random.default_rng(0)
    h = rng.random(400)
    hit = (rng.random(400) < h).astype(int)
    text = str(cal.evaluate_pairs(hit, h, bandwidth=0.05, **options))
    assert f"\n  d_CAL is the {said}\n" in text
    assert ("the paper's estimator" in text) == bool(options)


def test_a_sharpness_gap_below_0_is_explained():
    h = np.repeat([0.02, 0.98], 500)
    hit = np.repeat([0, 1], 500)
    wide = cal.evaluate_pairs(hit, h, bandwidth=1.0)
    assert "a sharpness gap below 0 cannot be" in " ".join(str(wide).split())
    assert "sharpness gap below 0" not in str(cal.evaluate_pairs(hit, h))


def test_print_says_under_confident():
    text = str(cal.evaluate_pairs(np.ones(60), np.full(60, 0.7)))
    assert "under-confident: mean confidence is below accuracy by 0.300" in text
