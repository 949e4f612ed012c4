"""Curves are drawn when they are asked for, and are then those of an evaluation."""

import copy
import pickle

import numpy as np
import pytest

import calibrant as cal
from calibrant._base.later import Later
from calibrant._stats import curve
from calibrant._stats.metrics import METRICS
from calibrant._verbs import evaluate


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(400, 3))
    return (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1), z


@pytest.fixture
def fits(monkeypatch):
    """Fits of curves so far."""
    made, plain = [], curve.fit_places
    monkeypatch.setattr(curve, "fit_places", lambda *a: made.append(a) or plain(*a))
    return made


def test_classes_fit_their_curves_on_demand(scores, fits):
    y, z = scores
    ev = cal.evaluate(y, logits=z, target="class-wise")
    assert not fits
    one = ev.per_class[1].curve
    assert len(fits) == 1
    assert ev.per_class[1].curve is one
    assert len(fits) == 1


def test_what_is_shown_of_a_class_is_made_on_demand(scores, monkeypatch):
    """And is that of the rows that were given, whatever becomes of their array."""
    y, z = scores[0].copy(), scores[1].copy()
    ev = cal.evaluate(y, logits=z, target="class-wise")
    wanted = cal.evaluate(y, logits=z, target="class-wise").per_class[1].to_dict()
    y[:], z[:] = 0, 0.0
    made, whole = [], evaluate._with_curves
    monkeypatch.setattr(
        evaluate, "_with_curves", lambda *a: made.append(a) or whole(*a)
    )
    assert str(ev)
    assert ev.table()
    assert not made
    assert ev.per_class[1].to_dict() == wanted
    assert len(made) == 1
    assert ev.per_class[1].smooth is ev.per_class[1].smooth
    assert len(made) == 1


def test_of_many_rows_all_is_made_at_once(scores, monkeypatch):
    y, z = scores
    wanted = cal.evaluate(y, logits=z, target="class-wise").to_dict()
    monkeypatch.setattr(evaluate, "MOST_KEPT", 0)
    assert cal.evaluate(y, logits=z, target="class-wise").to_dict() == wanted


def test_a_metric_that_came_later_is_in_no_earlier_record(scores, monkeypatch):
    y, z = scores
    ev = cal.evaluate(y, logits=z, target="class-wise")
    monkeypatch.setitem(METRICS, "later", METRICS["ece"])
    assert "later" not in ev.per_class[0].metrics


def test_an_unknown_field_is_unknown_before_and_after(scores):
    y, z = scores
    one = cal.evaluate(y, logits=z, target="class-wise").per_class[0]
    for _ in range(2):
        with pytest.raises(AttributeError, match="nothing"):
            _ = one.nothing
        assert one.smooth


def test_written_and_sent_records_have_them(scores):
    y, z = scores
    ev = cal.evaluate(y, logits=z, target="class-wise")
    written = cal.Evaluation.from_json(ev.to_json())
    for other in (written, pickle.loads(pickle.dumps(ev)), copy.deepcopy(ev)):
        assert type(other.per_class[2].curves) is dict
        for name in ("brier", "log"):
            mine, theirs = ev.per_class[2].curves[name], other.per_class[2].curves[name]
            np.testing.assert_array_equal(mine.accuracy, theirs.accuracy)


def test_a_class_is_what_its_column_is(scores):
    """Curves too, bands and all."""
    y, z = scores
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    own = cal.evaluate(y, probs=p, target="class-wise", interval=None).per_class[1]
    alone = cal.evaluate(y == 1, probs=p[:, 1], interval=None)
    for curves in ("curves", "paper_curves"):
        for name in ("brier", "log"):
            found, wanted = (getattr(x, curves)[name] for x in (own, alone))
            np.testing.assert_allclose(found.accuracy, wanted.accuracy, rtol=1e-9)
            np.testing.assert_allclose(found.low, wanted.low, rtol=1e-9)


def test_names_ask_for_nothing():
    def fail():
        raise AssertionError

    later = Later(["a"], fail)
    assert "a" in later
    assert "b" not in later
    assert len(later) == 1
    with pytest.raises(KeyError):
        later["b"]
    assert repr(Later(["a"], lambda: {"a": 1})) == "{'a': 1}"
