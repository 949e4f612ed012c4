"""Comparisons: a sequence with names, and a best that cannot be trivial."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from handmade import constant, model, seeded, small, studied
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant._base.comparison import Comparison, Effect, as_comparison
from calibrant._base.measures import MEASURES, columns, is_trivial
from calibrant._base.records import with_digest
from calibrant._views.words import can_show, describe_comparison
from calibrant.table import table

INF, NAN = float("inf"), float("nan")
NUMBERS = st.one_of(
    st.floats(-0.05, 1.5).map(lambda x: round(x, 3)), st.sampled_from([INF, NAN])
)


# -- sequence ---------------------------------------------------------------------


def test_it_is_a_sequence_that_can_be_asked_by_name():
    found = small()
    assert len(found) == 3
    assert [ev.name for ev in found] == list(found.names)
    assert found[0] is found["ViT + TS"] is next(iter(found))
    assert found[-1].name == "ViT + MRR"
    assert "ViT + TS" in found
    assert found[1] in found
    assert "ResNet" not in found
    assert repr(found) == "Comparison('ViT + TS', 'ViT + IR', 'ViT + MRR')"


def test_a_slice_is_a_comparison_of_fewer_models():
    part = studied()[1:]
    assert part.names == ("ViT + IR", "ViT + MRR")
    assert set(part.effects) == {"ViT + IR", "ViT + MRR"}
    assert part.protocol == studied().protocol


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"model must be one of 'ViT \+ TS', .*'ViT'"):
        small()["ViT"]
    with pytest.raises(IndexError):
        small()[3]


def test_names_must_differ_and_effects_must_belong_to_models():
    with pytest.raises(ValueError, match=r"'a' occurs more than once.*name="):
        Comparison((model("a"), model("b"), model("a")))
    with pytest.raises(
        ValueError, match=r"a dict of them: {'A': study_a, 'B': study_b}"
    ):
        Comparison((model("a"), model("a")))
    assert Comparison((model("a"), replace(model("a"), name="b"))).names == ("a", "b")
    with pytest.raises(ValueError, match="needs at least one evaluation"):
        Comparison(())
    effect = Effect("X", 0, 0, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="effects must belong to models; 'b' is none"):
        Comparison((model("a"),), effects={"b": effect})


def test_models_may_be_given_in_three_ways():
    ev, found = seeded(), small()
    assert as_comparison(found) is found
    assert as_comparison(ev).evaluations == (ev,)
    assert as_comparison(iter(found)).evaluations == found.evaluations
    with pytest.raises(TypeError, match=r"a list of Evaluations, .*; item 1 is int"):
        as_comparison([ev, 3])
    for wrong in ("ViT", 3):
        with pytest.raises(TypeError, match=f"got {type(wrong).__name__}"):
            as_comparison(wrong)


def test_a_dict_names_models_and_puts_its_names_before_those_of_comparisons():
    effect = Effect("X", 0, 0, 0.1, 0, 0, 0)
    study = Comparison((model("a"), model("b")), "split", {"b": effect}, shared_rows=2)
    found = as_comparison({"one": study, "two": [model("a")], "three": model("a")})
    assert found.names == ("one: a", "one: b", "two: a", "three")
    assert found.effect("one: b", "accuracy_change") == 0.1
    assert (found.protocol, found.shared_rows) == ("", 2)
    assert as_comparison({"x": study, "y": study}).protocol == "split"
    assert "one: b" in table({"one": study, "two": study})
    with pytest.raises(TypeError, match="a name in models must be"):
        as_comparison({3: study})
    with pytest.raises(TypeError, match=r"models\['one'\] must be .* got int"):
        as_comparison({"one": 3})


# -- best -------------------------------------------------------------------------


def test_best_goes_by_the_direction_of_the_column():
    a, b = model("a", accuracy=0.9, brier=0.3), model("b", accuracy=0.8, brier=0.2)
    found = Comparison((a, b))
    assert found.best("accuracy") is a
    assert found.best() is found.best("brier") is b


def test_the_first_of_equals_is_best():
    found = Comparison((model("a", nll=0.5), model("b", nll=0.5)))
    assert found.best("nll").name == "a"


def test_nan_and_infinity_are_never_best():
    for bad in (NAN, INF, -INF):
        found = Comparison((model("a", nll=bad), model("b", nll=7.0)))
        assert found.best("nll").name == "b"
    found = Comparison((model("a", nll=INF), model("b", nll=NAN)))
    with pytest.raises(ValueError, match="'nll': it is infinite or missing for each"):
        found.best("nll")


def test_below_zero_a_calibration_error_counts_as_none():
    found = Comparison((model("a", calibration=-0.001), model("b", calibration=-0.01)))
    assert found.best("calibration").name == "a"


def test_a_trivial_model_is_passed_over_and_the_warning_says_why():
    with pytest.warns(
        UserWarning, match=r"'ViT \+ MRR' has the least ECE.*'ViT \+ TS'"
    ):
        assert small().best("ece").name == "ViT + TS"


@pytest.mark.filterwarnings("error")
def test_no_warning_where_the_trivial_model_does_not_lead():
    found = Comparison((model("t", trivial=True, ece=0.2), model("a", ece=0.1)))
    assert found.best("ece").name == "a"
    found = Comparison((model("t", trivial=True, ece=0.1), model("a", ece=0.1)))
    assert found.best("ece").name == "a"


@pytest.mark.filterwarnings("error")
def test_a_trivial_model_may_win_a_proper_score():
    found = Comparison((model("t", trivial=True, brier=0.1), model("a", brier=0.2)))
    assert found.best("brier").name == "t"


def test_among_trivial_models_none_is_best_calibrated():
    found = Comparison((replace(constant(), name="t"), replace(constant(), name="u")))
    with pytest.raises(ValueError, match=r"no model can be best by 'ece'.*by='brier'"):
        found.best("ece")


def test_best_by_an_unknown_column():
    with pytest.raises(ValueError, match=r"by must be one of 'accuracy', .*got 'size'"):
        small().best("size")


@given(st.lists(NUMBERS, min_size=1, max_size=6), st.sampled_from(["accuracy", "nll"]))
def test_best_is_the_extreme_of_the_finite_values(values, by):
    found = Comparison(tuple(model(str(i), **{by: x}) for i, x in enumerate(values)))
    finite = [x for x in values if np.isfinite(x)]
    if not finite:
        with pytest.raises(ValueError, match="infinite or missing"):
            found.best(by)
        return
    best = max(finite) if by == "accuracy" else min(finite)
    assert found.best(by) is found[values.index(best)]


def test_trivial_is_a_question_of_shares():
    assert is_trivial(constant())
    assert not is_trivial(seeded())
    assert is_trivial(replace(seeded(), largest_share=0.99))
    assert not is_trivial(replace(seeded(), largest_share=0.98))
    assert not is_trivial(cal.evaluate_pairs([1], [0.7]))  # one row is no pattern


@pytest.mark.parametrize(("apart", "trivial"), [(0.004, True), (0.1, False)])
def test_a_few_confidences_close_together_are_as_trivial_as_one(apart, trivial):
    h = 0.7 + apart * (np.arange(2000) % 5 - 2)
    assert is_trivial(cal.evaluate_pairs(np.arange(2000) % 2, h)) is trivial


def test_a_measure_that_a_target_lacks_is_nan():
    classwise = cal.evaluate([0, 1, 2], probs=np.eye(3), target="class-wise")
    assert np.isnan(MEASURES["dsc"].of(classwise))
    for measure in MEASURES.values():
        assert isinstance(measure.of(seeded()), cal.Estimate)


# -- words ------------------------------------------------------------------------


def test_print_shows_protocol_table_effects_and_remarks():
    head, scores, notes, title, effects, words, remarks = str(studied()).split("\n\n")
    assert head.splitlines() == [
        "3 models, 400 examples, 3 classes",
        "target: top-label (is the predicted class as likely as claimed?)",
        "protocol: fitted on 100 examples, tested on 400 others",
    ]
    assert scores == small().table(footnotes=False)
    assert "* best of its column" in notes
    assert "Recalibration changed" not in notes  # the second table shows it
    assert title == "What recalibration did:"
    assert effects.splitlines()[3].split() == [
        "ViT",
        "+",
        "IR",
        "-1.32",
        "12",
        "5",
        "3",
    ]
    assert "tied (several classes share the largest probability)" in words
    assert remarks.startswith("Over-confident on average: ViT + TS (")
    assert remarks.endswith("may be chance. [too-few-rows]\nViT + IR: a note")


def test_print_of_models_without_effects_is_one_table():
    assert str(small()).count("Model  ") == 1


def test_remarks_name_who_they_are_about():
    def about(**metrics):
        return str(Comparison((model("a", **metrics), model("b", confidence_gap=0.0))))

    assert "Over-confident on average: a (4.0 points)." in about(confidence_gap=0.04)
    assert "Under-confident on average: a (4.0 points)." in about(confidence_gap=-0.04)
    assert "-confident on average" not in about(confidence_gap=0.0049)
    few = cal.evaluate_pairs([1, 0, 1] * 400, [0.9, 0.2, 0.8] * 400, name="few")
    text = str(Comparison((few,)))
    assert (
        "few has only 3 distinct confidences in 1,200 examples. [few-confidences]"
        in text
    )
    assert "[too-few-rows]" not in text


def test_a_stream_is_asked_what_it_can_show():
    ascii_only = SimpleNamespace(encoding="ascii")
    assert not can_show(ascii_only, "∞")
    assert can_show(ascii_only, "inf")
    assert can_show(SimpleNamespace(encoding="utf-8"), "∞")
    assert can_show(None, "∞")
    assert not can_show(SimpleNamespace(encoding="no-such"), "∞")
    assert describe_comparison(studied(), unicode=False).isascii()


# -- records ----------------------------------------------------------------------


def test_json_is_strict_and_comes_back_the_same():
    ev, effects = seeded(), studied().effects
    models = tuple(replace(ev, name=name, columns=None) for name in effects)
    found = Comparison(models, small().protocol, effects)
    again = Comparison.from_json(found.to_json())
    assert json.loads(found.to_json()) == with_digest(found.to_dict())
    assert again.to_dict() == found.to_dict()
    assert again.effects == found.effects
    assert str(again) == str(found)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fit_seconds": NAN}, "effects.a.fit_seconds must be a number from 0 on"),
        (
            {"accuracy_change": INF},
            "effects.a.accuracy_change must be a number from -1",
        ),
        ({"tied": 1e9}, "has an effect of 'a' with tied above its 400 rows"),
    ],
)
def test_effects_of_a_file_are_possible_ones(changes, said):
    effect = replace(Effect("X", 1.0, 0.0, 0.5, 1.0, 2.0, 3.0, ("a", "b")), **changes)
    found = Comparison((replace(seeded(), name="a"),), effects={"a": effect})
    with pytest.raises(ValueError, match=said):
        Comparison.from_json(found.to_json())


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_the_frame_has_a_row_per_model(library, part, monkeypatch):
    frames = part(library)
    monkeypatch.setattr("calibrant._base.records.find_spec", {library: True}.get)
    frame = studied().frame()
    assert isinstance(frame, frames.DataFrame)
    assert list(frame["model"]) == list(studied().names)
    assert list(frame["nll"]) == [0.5683, INF, 1.4466]
    assert list(frame["changed"]) == [0.0, 12.0, 0.0]
    for key, measure in columns().items():
        values = [float(measure.of(ev)) for ev in studied()]
        np.testing.assert_array_equal(list(frame[key]), values)


def test_the_frame_without_a_frame_library_is_a_dict_of_arrays(monkeypatch):
    monkeypatch.setattr("calibrant._base.records.find_spec", lambda name: None)
    for name in ("polars", "pandas"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    frame = small().frame()
    assert isinstance(frame, dict)
    assert frame["accuracy"].tolist() == [0.8514, 0.8382, 0.8514]
    assert "changed" not in frame


def test_the_frame_leaves_out_what_no_model_has(monkeypatch):
    monkeypatch.setattr("calibrant._base.comparison.to_frame", lambda x, kind: dict(x))
    classwise = cal.evaluate([0, 1, 2], probs=np.eye(3), target="class-wise")
    frame = as_comparison(classwise).frame()
    assert "dsc" not in frame
    assert "ece" in frame
    mixed = Comparison((replace(classwise, name="a"), model("b", dsc=0.5))).frame()
    assert np.isnan(mixed["dsc"][0])
    assert mixed["dsc"][1] == 0.5


def test_effects_are_missing_for_models_that_have_none():
    effects = {"a": Effect("X", 0.5, 0, 0, 1, 0, 0)}
    found = Comparison((model("a"), model("b")), effects=effects)
    assert found.effect("a", "fit_seconds") == 0.5
    assert np.isnan(found.effect("b", "fit_seconds"))


def test_a_list_of_studies_is_told_to_be_a_dict():
    with pytest.raises(TypeError, match=r"or a dict of any of these, \{'A': study_a"):
        cal.table.table([studied(), studied()])


def test_figures_take_a_dict_of_studies():
    from calibrant import plot

    ax = plot.score_map({"A": small(), "B": small()})
    names = {line.get_gid() for line in ax.lines}
    assert {"A: ViT + TS", "B: ViT + TS"} <= names
    assert len(plot.calibration_sharpness({"A": small()[0], "B": small()[0]})) == 2


def test_of_all_classes_one_confidence_is_trivial_and_certainty_is_not():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 600)
    said = np.where(rng.random(600) < 0.8, y, (y + 1) % 4)
    hard = np.eye(4)[said]
    models = {
        name: cal.evaluate(y, probs=p, target="class-wise", interval=None)
        for name, p in {"mean": 0.8 * hard + (1 - hard) / 15, "hard": hard}.items()
    }
    assert is_trivial(models["mean"])
    assert not is_trivial(models["hard"])
    assert "†" in table(models)
    assert Comparison(tuple(models.values())[1:]).best("ece").name == "model"
