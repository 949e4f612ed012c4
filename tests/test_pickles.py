"""Results and sketches travel to other processes whole: with the sums behind them."""

import copy
import pickle

import numpy as np
import pytest
from make import unrelated

import calibrant as cal

Y, Z = unrelated(600, 3)
CLUSTER, GROUP = np.arange(600) % 60, np.arange(600) % 2


def again(x):
    return pickle.loads(pickle.dumps(x))


def twice(x):
    return 2 * (x**2).sum(axis=1)


def slope(x):
    return 4 * x


def twice_1d(p):
    return 2 * p**2


@pytest.mark.parametrize("copied", [again, copy.deepcopy])
def test_an_evaluation_keeps_its_sums_and_rows(copied):
    weight = 1 + Y % 2
    beside = {"sample_weight": weight, "cluster": CLUSTER, "group": GROUP}
    ev, other = (cal.evaluate(Y, logits=t * Z, **beside, name=str(t)) for t in (1, 2))
    found = copied(ev)
    assert found.to_dict() == ev.to_dict()
    np.testing.assert_array_equal(found.sketch.moments, ev.sketch.moments)
    assert found.per_group["0"].sketch.count == ev.per_group["0"].sketch.count
    assert (
        cal.compare(found, copied(other)).to_dict() == cal.compare(ev, other).to_dict()
    )
    np.testing.assert_array_equal(
        found.plot(bandwidth=0.1).lines[0].get_xydata(),
        ev.plot(bandwidth=0.1).lines[0].get_xydata(),
    )


def test_a_study_keeps_its_sums_and_recalibrators():
    study = cal.study(Y, logits=Z, methods=["temperature"])
    found = again(study)
    assert found.to_dict() == study.to_dict()
    assert [ev.sketch.rows for ev in found] == [480] * 3
    fitted = found.recalibrators["Temperature"]
    np.testing.assert_array_equal(
        fitted.predict_proba(Z), study.recalibrators["Temperature"].predict_proba(Z)
    )
    found[0].plot(bandwidth=0.1)


def test_a_sketch_goes_on_where_it_was():
    whole, half = cal.Sketch(), cal.Sketch()
    for part in (slice(300), slice(300, 600)):
        given = {"logits": Z[part], "group": GROUP[part], "cluster": CLUSTER[part]}
        whole.update(Y[part], **given)
        half = again(half.update(Y[part], **given))
    assert half.facts() == whole.facts()
    assert cal.evaluate(half).to_dict() == cal.evaluate(whole).to_dict()
    assert again(cal.Sketch()).rows == 0


def test_classwise_evaluations_travel_too():
    ev = cal.evaluate(Y, logits=Z, target="class-wise")
    assert again(ev).to_dict() == ev.to_dict()
    sketch = cal.Sketch(target="class-wise").update(Y, logits=Z)
    assert again(sketch).facts() == sketch.facts()


def test_zeros_do_not_travel():
    assert len(pickle.dumps(cal.evaluate(Y, logits=Z))) < 1_000_000  # dense: 2.7 MB


def test_a_divergence_of_functions_travels_and_one_of_lambdas_stays():
    named = cal.Divergence("twice", twice, slope, twice_1d, slope)
    ev = again(cal.evaluate(Y, logits=Z, divergence=named))
    assert ev.sketch.divergences["twice"].name == "twice"
    own = cal.Divergence(
        "own", lambda x: 2 * (x**2).sum(axis=1), slope, twice_1d, slope
    )
    ev = cal.evaluate(Y, logits=Z, divergence=own)
    assert again(ev).to_dict() == ev.to_dict()
    assert again(ev).sketch is None
    assert again(ev).columns is not None


def test_joblib_takes_and_gives_them(part):
    joblib = part("joblib")
    parts = np.array_split(np.arange(600), 2)
    with joblib.Parallel(n_jobs=2, backend="loky") as parallel:
        calls = (joblib.delayed(cal.evaluate)(Y[i], logits=Z[i]) for i in parts)
        found = parallel(calls)
        shards = [cal.Sketch().update(Y[i], logits=Z[i]) for i in parts]
        here = parallel(joblib.delayed(cal.evaluate)(shard) for shard in shards)
        study = cal.study(Y, logits=Z, methods=["temperature"])
        (table,) = parallel([joblib.delayed(cal.Study.table)(study)])
    for ev, sketched, i in zip(found, here, parts, strict=True):
        want = cal.evaluate(Y[i], logits=Z[i])
        assert ev.metrics["ece"] == want.metrics["ece"] == sketched.metrics["ece"]
        assert ev.sketch.rows == sketched.sketch.rows == len(i)
    assert str(table) == str(study.table())
