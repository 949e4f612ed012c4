"""Records decode themselves: strictly, by the types of their fields."""

import json
import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from make import softmax, unrelated

import calibrant as cal
from calibrant._base.records import Record, RecordError

Y, Z = unrelated(120, 3)
P = softmax(Z)


def _subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


@pytest.fixture(scope="module")
def made():
    """One record of each class, by its name."""
    y, probs = Y, {"probs": P}
    ev = cal.evaluate(y, **probs, group=y % 2, name="a")
    each = cal.evaluate(y, **probs, target="class-wise", name="b")
    study = cal.study(y, **probs)
    watched = cal.monitor(y, **probs, period=y % 2)
    groups = cal.compare_groups(y, **probs, group=y % 2)
    records = [
        ev,
        ev.decomposition,
        ev.curve,
        ev.bins,
        ev.smooth,
        ev.audit()[0],
        each,
        study,
        study.effects["Temperature"],
        study.select(),
        cal.Comparison((ev, each), protocol="two"),
        cal.compare(*study),
        cal.corp(y == 0, confidence=P[:, 0]),
        cal.calibration_test(y == 0, confidence=P[:, 0]),
        cal.calibration_bracket(y, **probs),
        cal.confidence_split(y, **probs),
        cal.choose_bandwidth(y, **probs),
        cal.canonical_calibration_error(y, **probs),
        cal.kernel_calibration_error(y, **probs),
        cal.t_cal(y, **probs),
        cal.risk_coverage(y, **probs),
        cal.decision_curve(y == 0, probs=P[:, 0]),
        cal.murphy(y == 0, probs=P[:, 0]),
        cal.cutoff_error(y, **probs),
        cal.clinical(y == 0, probs=P[:, 0]),
        cal.multicalibration_error(y, **probs, groups={"even": y % 2 == 0}),
        cal.loss_parts(y, **probs, explain=y % 2),
        groups,
        groups.equality,
        watched,
        watched.alarm,
        cal.by_group(ev),
    ]
    return {type(record).__name__: record for record in records} | {"grouped": ev}


def test_every_class_of_record_comes_back(made):
    ours = [c for c in _subclasses(Record) if c.__module__.startswith("calibrant.")]
    public = {c.__name__ for c in ours} - {"Columnar"}
    assert public == set(made) - {"grouped"}
    for record in made.values():
        again = type(record).from_json(record.to_json())
        assert again.to_json() == record.to_json()


def test_what_was_read_back_says_which_metrics_there_are(made):
    again = cal.Evaluation.from_json(made["Evaluation"].to_json())
    with pytest.raises(KeyError, match="no 'ECE'; choose from accuracy, nll, brier"):
        again.metrics["ECE"]


def test_the_order_of_fields_in_a_file_does_not_matter(made):
    for record in made.values():
        plain = record.to_dict()
        turned = dict(reversed(plain.items()))
        assert type(record).from_dict(turned).to_dict() == plain


def test_an_estimate_comes_back():
    for one in (cal.Estimate(0.5), cal.Estimate(np.inf, (0.0, np.nan), "Wilson")):
        assert cal.Estimate.from_dict(one.to_dict()).to_dict() == one.to_dict()


def _leaves(plain, path=()):
    """Where each value of plain data is: one of each list, and `settings` left out."""
    items = plain.items() if isinstance(plain, dict) else list(enumerate(plain))[:1]
    for key, value in items:
        if key != "settings":
            yield (*path, key)
            if isinstance(value, dict | list):
                yield from _leaves(value, (*path, key))


def _said(path):
    """A path as errors spell it."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def _parent(plain, path):
    for key in path[:-1]:
        plain = plain[key]
    return plain


NAMES = ["Evaluation", "Contrast", "Bracket", "BandwidthChoice", "CanonicalError"]


@pytest.mark.parametrize("name", NAMES)
def test_one_changed_field_is_refused_by_its_path(made, name):
    kind, plain = type(made[name]), made[name].to_dict()
    paths = list(_leaves(plain))
    for place in np.random.default_rng(1).permutation(len(paths))[:60]:
        path, changed = paths[place], deepcopy(plain)
        _parent(changed, path)[path[-1]] = {"off": {}}
        with pytest.raises(ValueError, match=r"must be|has no field|missing") as error:
            kind.from_dict(changed)
        assert _said(path) in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda e: e["metrics"]["ece"].update(interval="x"),
            'evaluation: metrics.ece.interval must be two numbers or null, got "x".',
        ),
        (
            lambda e: e["metrics"]["ece"].update(interval=[0.1, None]),
            "evaluation: metrics.ece.interval[1] must be a number, got null.",
        ),
        (lambda e: e.update(rows=True), "rows must be a whole number, got true."),
        (lambda e: e.update(name=3), "evaluation: name must be text, got 3."),
        (lambda e: e.update(n="NaN"), 'n must be a number, got "NaN".'),
        (lambda e: e.pop("bins"), "evaluation: bins is missing."),
        (lambda e: e.update(extra=1), "evaluation has no field 'extra'."),
        (lambda e: e.update(columns=None), "evaluation has no field 'columns'."),
        (lambda e: e["per_group"]["0"].pop("k"), "per_group.0.k is missing."),
        (
            lambda e: e["curves"]["brier"]["loss"].pop(),
            "curves.brier must have columns of one length; confidence has ",
        ),
        (
            lambda e: e.update(divergence="spherical"),
            "evaluation has no 'spherical' among its decompositions.",
        ),
        (
            lambda e: e["histogram"].__setitem__(2, "x"),
            'evaluation: histogram[2] must be a number, got "x".',
        ),
    ],
)
def test_a_broken_evaluation_is_refused_in_words(made, change, said):
    plain = made["grouped"].to_dict()
    change(plain)
    with pytest.raises(ValueError, match=r"^evaluation") as error:
        cal.Evaluation.from_dict(plain)
    assert said in str(error.value)


def test_what_is_no_record_is_refused():
    with pytest.raises(
        ValueError, match=r"^canonical error must be a mapping, got \[\]"
    ):
        cal.CanonicalError.from_json("[]")


def test_rules_of_a_comparison_hold_for_files_too(made):
    plain = made["Contrast"].to_dict()
    with pytest.raises(ValueError, match="compares 'nobody', which is no model"):
        cal.Contrast.from_dict(plain | {"baseline": "nobody"})
    with pytest.raises(
        ValueError, match=r"contrast is off: .* at least one evaluation"
    ):
        cal.Contrast.from_dict(plain | {"evaluations": []})


def test_fields_that_came_later_have_defaults(made):
    plain = made["Evaluation"].to_dict()
    for later in ("per_group", "soft_rows", "fingerprint"):
        plain.pop(later)
    again = cal.Evaluation.from_dict(plain)
    assert (again.per_group, again.soft_rows, again.fingerprint) == ({}, 0.0, None)


# -- what was damaged or made up ---------------------------------------------------------

SMALL = [
    "Corp",
    "CalibrationTest",
    "ConfidenceSplit",
    "CanonicalError",
    "Decomposition",
]


@pytest.mark.parametrize("name", [*SMALL, "Finding", "Effect", "Bracket", "Bins"])
def test_a_flipped_bit_is_noticed_or_means_nothing(made, name):
    text = made[name].to_json().encode()
    for place in range(len(text)):
        damaged = bytearray(text)
        damaged[place] ^= 1 << place % 8
        try:
            again = type(made[name]).from_json(bytes(damaged))
        except RecordError:
            continue
        assert again.to_json() == made[name].to_json()


@pytest.mark.parametrize("name", ["grouped", "Contrast", "Study"])
def test_a_damaged_byte_of_a_large_record_is_noticed(made, name):
    text = made[name].to_json()
    digits = [place for place, x in enumerate(text) if x in "123456789"]
    for place in np.random.default_rng(0).choice(digits, 40):
        other = str(int(text[place]) % 9 + 1)
        try:
            again = type(made[name]).from_json(text[:place] + other + text[place + 1 :])
        except RecordError:
            continue
        assert again.to_json() == text  # beyond the digits of a double


def test_a_dictionary_needs_no_digest_but_one_that_is_there_must_be_right(made):
    ev = made["grouped"]
    given = json.loads(ev.to_json())
    assert cal.Evaluation.from_dict(given).to_dict() == ev.to_dict()
    assert cal.Evaluation.from_dict(ev.to_dict()).to_dict() == ev.to_dict()
    with pytest.raises(RecordError, match=r"^evaluation: digest is not that"):
        cal.Evaluation.from_dict(given | {"name": "b"})


def setter(*path):
    """A change of one value of an evaluation."""
    *above, last, value = path

    def change(plain):
        for key in above:
            plain = plain[key]
        plain[last] = value

    return change


HOSTILE = [
    (setter("n", -1), "n must be a number above 0, got -1"),
    (setter("n", 1e300), "contradicts itself in rows"),
    (setter("n", 10**400), "n must be a number"),
    (setter("rows", 0), "rows must be a number from 1"),
    (setter("rows", 119), "contradicts itself in rows"),
    (setter("k", 1), "k must be a number from 2"),
    (setter("target", "all"), "target must be one of top-label"),
    (setter("target", "class-wise"), "contradicts itself|per class"),
    (setter("distinct", 121), "has distinct 121, more than 120"),
    (setter("largest_share", 2), "largest_share must be a number above 0 to 1"),
    (setter("infinite_rows", 500), "has infinite_rows 500, more than 120"),
    (setter("duplicates", -1), "duplicates must be a number from 0"),
    (setter("n_effective", 1e9), "has n_effective 1e+09"),
    (setter("metrics", {}), "metrics.accuracy is missing"),
    (setter("metrics", "accuracy", "value", 0.99), "contradicts itself in accuracy"),
    (setter("metrics", "accuracy", "value", 3), "metrics.accuracy must be a number"),
    (setter("metrics", "ece", "value", 0.9), "contradicts itself in ece"),
    (setter("metrics", "brier", "value", 0.1), "contradicts itself in brier"),
    (setter("metrics", "nll", "value", "inf"), "contradicts itself in nll"),
    (setter("metrics", "ece", "interval", [0.9, 0.1]), "an interval from 0.9 down to"),
    (setter("metrics", "auroc", "interval", [-1, 0.9]), "auroc.interval[0] must be"),
    (setter("bins", "count", 3, -4), "bins.count[3] must be a number from 0 on"),
    (
        setter("bins", "accuracy", -1, 7),
        "bins.accuracy[14] must be a number from 0 to 1",
    ),
    (setter("histogram", 3, "nan"), "histogram[3] must be a number from 0 on"),
    (setter("histogram", [120.0]), "histograms of 480 and 200 cells"),
    (
        setter("curves", "brier", "confidence", 0, 1.0),
        "must have increasing confidence",
    ),
    (setter("curves", "brier", "support", 0, 1e9), "has support of brier 1e+09"),
    (setter("smooth", "bandwidth", 0), "smooth.bandwidth must be a number above 0"),
    (setter("settings", "level", 5), "settings.level must be a number above 0 to 1"),
    (setter("settings", {}), "settings.level is missing"),
    (setter("settings", "rng", {}), "settings.rng must be text"),
    (setter("decompositions", "log", {}), "decompositions.log.divergence is missing"),
    (
        setter("decompositions", "brier", "p_value", -1),
        "p_value must be a number from 0",
    ),
    (setter("decompositions", "brier", "bandwidth", -1), "bandwidth must be a number"),
    (
        setter("decompositions", "brier", "divergence", "x"),
        "decompositions by divergence",
    ),
    (
        setter("decompositions", "brier", "calibration", "value", "inf"),
        "has a calibration of inf in a total",
    ),
    (setter("per_class", [{}]), "per_class[0].name is missing"),
    (lambda e: e["per_group"].pop("0"), "contradicts itself in rows"),
    (lambda e: e["curves"].pop("log"), "each with its curve"),
]


@pytest.mark.parametrize(("change", "said"), HOSTILE)
def test_an_evaluation_that_no_rows_have_is_refused(made, change, said):
    plain = made["grouped"].to_dict()
    change(plain)
    with pytest.raises(RecordError, match=r"^evaluation") as error:
        cal.Evaluation.from_dict(plain)
    if "|" not in said:
        assert said in str(error.value)


def test_differences_are_those_of_the_models(made):
    plain = made["Contrast"].to_dict()
    plain["differences"]["Temperature"]["ece"]["value"] = 0.5
    with pytest.raises(
        RecordError, match=r"difference 0.5 of 'Temperature' and 'Uncal"
    ):
        cal.Contrast.from_dict(plain)


WORDS = r"(method|divergence|code|text|advice|law|sentence|estimator|kernel|boundary)$"
UNBOUNDED = (
    r"interval|(calibration|lower|debiased|held_out|plugin|statistic|n|\w+_seconds)"
    r"(\.value)?$|gains|standard_error|evidence|models|notes|chosen|changed|tied|impossible"
    r"|gap_|bandwidth|second_opinion|density|support|loss|sharpness_gap|low|high"
)
"""What may be any number, of which nothing else in the record tells; NaN where none is."""


@pytest.mark.parametrize(
    "name", [*SMALL, "Bracket", "Bins", "Curve", "BandwidthChoice"]
)
def test_mutants_are_refused_where_the_rest_tells(made, name):
    kind, plain = type(made[name]), made[name].to_dict()
    for path in _leaves(plain):
        for value in (-1, "nan", "inf", 1e300, 10**400, "x", None, True, [], {}):
            changed = deepcopy(plain)
            _parent(changed, path)[path[-1]] = value
            try:
                kind.from_dict(changed)
            except RecordError as error:
                said = str(error)
            else:
                said = ""
            same = changed == plain or (value is None and path[-1] in OPTIONAL)
            spelled = ".".join(map(str, path))
            free = isinstance(value, str) and re.search(WORDS, spelled)
            loose = not isinstance(value, bool) and re.search(UNBOUNDED, spelled)
            assert said or same or free or loose, (spelled, value)
            assert "\n" not in said


OPTIONAL = ("method", "bandwidth", "gap", "resolution", "p_value", "interval")


@pytest.mark.parametrize("name", [*SMALL, "Bracket", "Bins", "Curve", "SmoothCurve"])
def test_columns_of_another_length_and_extra_fields_are_refused(made, name):
    kind, plain = type(made[name]), made[name].to_dict()
    with pytest.raises(RecordError, match="has no field 'extra'"):
        kind.from_dict(plain | {"extra": 1})
    columns = [key for key, x in plain.items() if isinstance(x, list) and len(x) > 5]
    for key in columns:
        for other in (plain[key][:-1], [*plain[key], 0.5], plain[key] * 2):
            with pytest.raises(RecordError, match="columns of one length"):
                kind.from_dict(plain | {key: other})


@pytest.mark.parametrize("path", ["found.json", Path("found.json")])
def test_the_name_of_a_file_is_no_json(path):
    for kind in (cal.Evaluation, cal.Study):
        told = r"must be the text of the file, not its name, got .*found\.json"
        with pytest.raises(RecordError, match=told):
            kind.from_json(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "has 'a' twice"),
        ('{"a": Infinity}', "is not JSON: Infinity is no number"),
        ("[" * 100_000, "is not JSON"),
        ("9" * 10_000, "is not JSON"),
    ],
)
def test_what_is_no_json_is_refused_in_a_line(text, said):
    with pytest.raises(RecordError, match=rf"^corp {said}"):
        cal.Corp.from_json(text)


def _moved(steps):
    """Hits of the last step of a curve become those of the first: no sum changes."""
    count, share = steps["count"], steps["accuracy"]
    hits = min(count[0] * (1 - share[0]), count[-1] * share[-1])
    share[0] += hits / count[0]
    share[-1] -= hits / count[-1]
    steps["variance"][0] = steps["variance"][-1] = 0.0


DISAGREE = [
    ("RiskCoverage", setter("coverage", 0, 2.0), "coverage[0] must be a number"),
    ("RiskCoverage", setter("coverage", -1, 0.9), "must have coverages that rise to 1"),
    ("RiskCoverage", lambda e: e["risk"].pop(), "must have columns of one length"),
    (
        "BandwidthChoice",
        setter("bandwidth", 0.0123),
        "a bandwidth among its candidates",
    ),
    ("BandwidthChoice", setter("flat_to", 0.0123), "a flat_to among its candidates"),
    (
        "BandwidthChoice",
        lambda e: e.update(flat_from=e["candidates"][-1], bandwidth=e["candidates"][0]),
        "its bandwidth between flat_from and flat_to",
    ),
    ("CutoffError", lambda e: e["difference"].pop(), "must have columns of one length"),
    ("CanonicalError", setter("rows_used", 121), "must use at most its 120 rows"),
    ("Selection", setter("by", "ece"), "must be by one of brier, nll"),
    ("Selection", setter("chosen", "luck"), "must have votes for the chosen"),
    (
        "Groups",
        setter("worst_group", "brier", "9"),
        "name a group for each worst value",
    ),
    ("Groups", lambda e: e["worst"].pop("brier"), "name a group for each worst value"),
    (
        "grouped",
        lambda e: e["per_group"]["0"].update(target="positive"),
        "has a part of the target 'positive'",
    ),
    (
        "grouped",
        lambda e: _moved(e["isotonic"]),
        "must have an isotonic accuracy that does not fall",
    ),
    (
        "grouped",
        lambda e: e["metrics"].pop("nll"),
        "must have both 'log' in decompositions and 'nll'",
    ),
]


@pytest.mark.parametrize(("name", "change", "said"), DISAGREE)
def test_records_that_contradict_themselves_say_in_what(made, name, change, said):
    plain = made[name].to_dict()
    change(plain)
    with pytest.raises(RecordError) as error:
        type(made[name]).from_dict(plain)
    assert said in str(error.value)


def test_only_class_wise_evaluations_have_those_of_classes(made):
    plain = made["grouped"].to_dict()
    plain["per_class"] = made["Evaluation"].to_dict()["per_class"]
    with pytest.raises(RecordError, match="if it is class-wise, and only then"):
        cal.Evaluation.from_dict(plain)


def test_records_nested_too_deeply_are_refused():
    from calibrant._base.records import told

    with pytest.raises(RecordError, match="corp is nested too deeply"), told("corp"):
        raise RecursionError


def test_short_names_of_records_say_the_numbers(made):
    curve, risk = made["SmoothCurve"], made["RiskCoverage"]
    places = len(curve.confidence)
    said = f"SmoothCurve({places} places, bandwidth {curve.bandwidth:.3g})"
    assert repr(curve) == said
    assert repr(risk) == f"RiskCoverage({risk.name}, AURC {risk.aurc:.4f})"
    one = made["Clinical"]
    assert repr(one) == (
        f"Clinical({one.name}, O:E {one.oe_ratio:.3f}, slope {one.slope:.3f})"
    )
    assert repr(made["Monitor"]) == "Monitor('model', 2 periods, alarm: 0)"


def test_a_notebook_shows_what_is_printed(made):
    shown = made["TCal"]._repr_html_()
    assert shown.startswith('<pre style="white-space:pre-wrap">T-Cal on 120 examples')
    assert "(p = " in shown
