"""Records decode themselves: strictly, by the types of their fields."""

from copy import deepcopy

import numpy as np
import pytest
from make import softmax, unrelated

import calibrant as cal
from calibrant._base.records import Record

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
        cal.Comparison((ev, each), protocol="two"),
        cal.compare(*study),
        cal.corp(y == 0, confidence=P[:, 0]),
        cal.calibration_test(y == 0, confidence=P[:, 0]),
        cal.calibration_bracket(y, **probs),
        cal.confidence_split(y, **probs),
        cal.choose_bandwidth(y, **probs),
        cal.canonical_calibration_error(y, **probs),
    ]
    return {type(record).__name__: record for record in records} | {"grouped": ev}


def test_every_class_of_record_comes_back(made):
    ours = [c for c in _subclasses(Record) if c.__module__.startswith("calibrant.")]
    public = {c.__name__ for c in ours} - {"Columnar"}
    assert public == set(made) - {"grouped"}
    for record in made.values():
        again = type(record).from_json(record.to_json())
        assert again.to_json() == record.to_json()


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
