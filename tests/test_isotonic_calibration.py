"""Isotonic calibration: the curves, scikit-learn's and netcal's, and both engines."""

import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import effective, softmax
from strategies import problems

from calibrant.recalibration import FitWarning
from calibrant.recalibration._isotonic import (
    Curves,
    IsotonicCalibration,
    differs_as_sklearn,
    pool,
)

PEER = np.load(Path(__file__).parent / "peer_recalibration.npz")
MODES, ENGINES = ("one-vs-rest", "top-label"), ("numpy", "compiled")
SMOOTHINGS = st.sampled_from([0.0, 0.5, 3.0])

needs_loops = pytest.mark.usefixtures("built")
quiet = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


def fitted(p, y, weight=None, **options):
    """Fitted to probabilities; absent classes are what many of these are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return IsotonicCalibration("probs", **options).fit(p, y, weight)


@st.composite
def weighted_problems(draw, classes=(2, 5)):
    z, y = draw(problems(classes=classes))
    w = st.sampled_from([1.0, 2.0, 0.25, 0.1])
    weight = draw(st.one_of(st.none(), st.lists(w, min_size=len(y), max_size=len(y))))
    return softmax(z), y, weight


# -- slow twins -----------------------------------------------------------------------


def slow_curve(x, hit, weight):
    """Levels [least, greatest, hits, weight], pooled until they rise."""
    levels = []
    for value in sorted(set(x)):
        here = [i for i in range(len(x)) if x[i] == value]
        hits = sum(weight[i] for i in here if hit[i])
        levels.append([value, value, hits, sum(weight[i] for i in here)])
        while len(levels) > 1 and levels[-2][2] / levels[-2][3] >= (
            levels[-1][2] / levels[-1][3]
        ):
            _, high, hits, total = levels.pop()
            levels[-1] = [
                levels[-1][0],
                high,
                levels[-1][2] + hits,
                levels[-1][3] + total,
            ]
    knots = [end for low, high, _, _ in levels for end in (low, high)]
    return knots, [hits / total for *_, hits, total in levels for _ in range(2)]


def slow_one_vs_rest(p, y, weight, new, smoothing):
    out, n = np.array(new), sum(weight)
    for c in sorted(set(y)):
        f = np.interp(new[:, c], *slow_curve(p[:, c], y == c, weight))
        out[:, c] = (n * f + smoothing * new[:, c]) / (n + smoothing)
    for i in range(len(out)):
        row = out[i] if out[i].sum() > 0 else new[i]
        out[i] = row / row.sum()
    return out


@given(weighted_problems(), SMOOTHINGS, st.randoms(use_true_random=False))
def test_one_vs_rest_is_its_definition(problem, smoothing, random):
    p, y, weight = problem
    new = np.array([[0.01 + random.random() for _ in row] for row in p])
    new = np.concatenate([p, new / new.sum(axis=1, keepdims=True)])
    got = fitted(p, y, weight, smoothing=smoothing).predict_proba(new)
    w = effective(weight, len(y))
    slow = slow_one_vs_rest(p, y, w, new, smoothing)
    # Where all new values are next to nothing, their ratios are round-off.
    np.testing.assert_allclose(got, slow, atol=1e-9)


@given(weighted_problems(), SMOOTHINGS)
def test_top_label_follows_one_curve(problem, smoothing):
    p, y, weight = problem
    w = effective(weight, len(y))
    method = fitted(p, y, weight, mode="top-label", smoothing=smoothing)
    h, best = p.max(axis=1), p.argmax(axis=1)
    f = np.interp(h, *slow_curve(h, best == y, w))
    v = (sum(w) * f + smoothing * h) / (sum(w) + smoothing)
    new = method.predict_proba(p)
    np.testing.assert_allclose(new[np.arange(len(p)), best], v, atol=1e-12)
    np.testing.assert_allclose(new.sum(axis=1), 1, atol=1e-12)


def by_sklearn(part, p, y, new):
    """One regression per class on doubles, as netcal does; classes without rows are 0."""
    regression = part("sklearn.isotonic").IsotonicRegression
    out = np.zeros(new.shape)
    for c in sorted(set(y)):
        curve = regression(y_min=0, y_max=1, out_of_bounds="clip")
        out[:, c] = curve.fit(p[:, c], (y == c) * 1.0).transform(new[:, c])
    return out


def test_curves_are_those_of_sklearn(part):
    rng = np.random.default_rng(0)
    p, new = (softmax(rng.normal(size=(400, 5))) for _ in range(2))
    y = np.array([rng.choice(5, p=row) for row in p])
    values = by_sklearn(part, p, y, new)
    assert (values.sum(axis=1) > 0).all()
    expected = values / values.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted(p, y).predict_proba(new), expected, atol=1e-12)


def test_small_scores_are_not_tied_in_single_precision():
    # scikit-learn takes float32 scores within 1e-6 as tied
    p = np.array([1e-9, 2e-8, 3e-7, 5e-7, 9e-7, 0.5], np.float32)
    method = fitted(p, [0, 0, 1, 1, 1, 1])
    np.testing.assert_allclose(method.predict_proba(p)[:, 1], [0, 0, 1, 1, 1, 1])


@given(weighted_problems(classes=(3, 5)))
def test_netcal_is_sklearn_class_by_class(part, problem):
    p, y, _ = problem
    values = by_sklearn(part, p, y, p)
    total = values.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        expected = np.where(total > 0, values / total, 1 / p.shape[1])
    got = fitted(p, y, compat="netcal").predict_proba(p)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def slow_groups(x):
    begins, anchor = [], -np.inf
    for value in x:
        begins.append(value - anchor >= 1e-15)
        anchor = value if begins[-1] else anchor
    return begins


@given(st.lists(st.floats(0, 1e-14), min_size=1, max_size=40))
def test_close_scores_are_grouped_as_sklearn_does(x):
    x = np.sort(x)
    assert differs_as_sklearn(x).tolist() == slow_groups(x)


# -- closed forms ---------------------------------------------------------------------


def test_levels_and_the_lines_between():
    # 0 1 0 1 1 at .1 .2 .3 .4 .9 pools to 0, then 1/2 on [.2, .3], then 1 on [.4, .9].
    method = fitted([0.1, 0.2, 0.3, 0.4, 0.9], [0, 1, 0, 1, 1])
    mine = slice(*method.starts_[1:3])
    assert method.knots_[mine].tolist() == [0.1, 0.2, 0.3, 0.4, 0.9]
    assert method.values_[mine].tolist() == [0, 0.5, 0.5, 1, 1]
    new = method.predict_proba([0.0, 0.15, 0.25, 0.35, 1.0])
    np.testing.assert_allclose(new[:, 1], [0, 0.25, 0.5, 0.75, 1], atol=1e-12)


def test_ties_count_together():
    method = fitted([0.5, 0.5, 0.5, 0.5], [1, 1, 1, 0])
    assert method.values_[method.starts_[1] :].tolist() == [0.75]
    np.testing.assert_allclose(method.predict_proba([0.1, 0.9])[:, 1], [0.75, 0.75])


def test_smoothing_adds_rows_that_agree():
    # 4 rows at 0.5, 3 hits, s = 4: half of 0.75 and half of p, for both classes.
    method = fitted([0.5] * 4, [1, 1, 1, 0], smoothing=4.0)
    np.testing.assert_allclose(method.predict_proba([0.25])[:, 1], [0.5])


def test_a_class_without_rows_keeps_its_probability():
    p = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    for engine in ("numpy", "auto"):
        method = IsotonicCalibration("probs", engine=engine)
        with pytest.warns(FitWarning) as told:
            method.fit(p, [0, 1])
        assert "1 of 3 classes have no row to fit on; they keep" in str(told[0])
        assert method.absent_.tolist() == [2]
        new = method.predict_proba(p[:1])
        np.testing.assert_allclose(new, [[1 / 1.1, 0, 0.1 / 1.1]])


def test_a_row_of_zeros_keeps_its_probabilities():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
    new = [[0.2, 0.2, 0.2]] / np.float64(0.6)
    method = fitted(np.concatenate([p, new]), [0, 1, 2, 0])
    method.values_[:] = 0
    np.testing.assert_allclose(method.predict_proba(new), new, rtol=1e-15)


def test_netcal_gives_nan_where_all_classes_become_as_likely():
    p = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    method = fitted(p, [0, 1, 1], compat="netcal")  # the third class becomes 0
    np.testing.assert_array_equal(
        method.predict_proba([[0.05, 0.05, 0.9]]).round(12), [[0, 1, 0]]
    )
    method = fitted(p, [0, 0, 0], compat="netcal")
    method.values_[:] = 0
    np.testing.assert_array_equal(method.predict_proba(p[:1]), np.full((1, 3), 1 / 3))


def test_of_two_classes_netcal_recalibrates_the_second():
    p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    got = fitted(p, y, compat="netcal").predict_proba(p)
    assert got.tolist() == [[1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1]]
    only = fitted(p, np.zeros(4, int), compat="netcal")
    assert only.notes_ == ()
    assert only.predict_proba(p)[:, 1].tolist() == [0] * 4


@needs_loops
@pytest.mark.parametrize("engine", ENGINES)
def test_knots_next_to_each_other(engine):
    tiny = np.finfo(np.float64).smallest_subnormal
    p = np.array([[0.0, 1.0], [tiny, 1.0], [0.5, 0.5]])
    method = fitted(p, [1, 0, 0], engine=engine)
    np.testing.assert_array_equal(method.predict_proba(p)[:, 0], [0, 1 / 1.5, 1])
    np.testing.assert_array_equal(method.values_[: method.starts_[1]], [0, 1, 1])


def test_levels_that_differ_by_round_off_are_one():
    # All of them are 1/3, but not to SciPy, whose running means are rounded.
    weight = np.array([1 / 3, 0.3, 0.3, 0.1])
    given = np.arange(4), np.arange(4), weight * (1 / 3), weight
    knots, values, _ = pool(*given, np.zeros(4, int))
    assert knots.tolist() == [0, 3]
    np.testing.assert_allclose(values, 1 / 3)


# -- the engines ----------------------------------------------------------------------


@needs_loops
@given(
    weighted_problems(classes=(2, 9)),
    SMOOTHINGS,
    st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_engines_agree(problem, smoothing, dtype):
    p, y, weight = problem
    p = p.astype(dtype)
    slow, fast = (
        fitted(p, y, weight, smoothing=smoothing, engine=engine) for engine in ENGINES
    )
    np.testing.assert_array_equal(slow.starts_, fast.starts_)
    np.testing.assert_array_equal(slow.knots_, fast.knots_)
    np.testing.assert_allclose(slow.values_, fast.values_, rtol=1e-12)
    fast.values_ = slow.values_
    np.testing.assert_array_equal(slow.predict_proba(p), fast.predict_proba(p))


@quiet
@needs_loops
@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_engines_agree_on_many_classes(kind, dtype, monkeypatch):
    rng = np.random.default_rng(1)
    z = 3 * rng.normal(size=(2500, 120)).astype(dtype)
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    scores = z if kind == "logits" else softmax(z).astype(dtype)
    count = rng.integers(0, 4, len(y))
    monkeypatch.setenv("CALIBRANT_THREADS", "3")
    slow, fast = (
        IsotonicCalibration(kind, engine=engine).fit(scores, y, frequency=count)
        for engine in ENGINES
    )
    np.testing.assert_array_equal(slow.knots_, fast.knots_)
    np.testing.assert_array_equal(slow.values_, fast.values_)
    monkeypatch.setenv("CALIBRANT_THREADS", "1")
    shuffled = scores[rng.permutation(len(scores))]
    np.testing.assert_array_equal(
        slow.predict_proba(shuffled), fast.predict_proba(shuffled)
    )


@needs_loops
@given(st.data())
def test_curves_of_doubles_read_single_precision_exactly(data):
    unit = st.floats(0, 1)
    x = np.unique(data.draw(st.lists(unit, min_size=1, max_size=6)))
    v = np.sort(data.draw(st.lists(unit, min_size=len(x), max_size=len(x))))
    curves = Curves.of([(x, v), (np.empty(0), np.empty(0)), (x[:1], v[:1])])
    near = np.concatenate([x.astype(np.float32), [0, 1]])
    near = np.concatenate([near, np.nextafter(near, np.float32(0))])
    p = np.repeat(near[:, None], 3, axis=1).astype(np.float32)
    slow, fast = np.empty((2, *p.shape), p.dtype)
    curves.evaluate(p, slow)
    curves.in_one_loop(p.dtype)(p, fast)
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_allclose(slow[:, 0], np.interp(p[:, 0], x, v), atol=1e-7)
    assert (slow[:, 1] == 0).all()


@quiet
@needs_loops
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_memory_stays_small_beside_the_matrix(kind, engine, monkeypatch):
    monkeypatch.setenv("CALIBRANT_THREADS", "1")
    rng = np.random.default_rng(0)
    z = rng.standard_normal((8000, 1000), np.float32)
    scores = z if kind == "logits" else softmax(z).astype(np.float32)
    y = np.arange(len(z)) % 1000
    method = IsotonicCalibration(kind, engine=engine)
    method.fit(scores[:1000], y[:1000]).predict_proba(scores[:2])  # what compiles
    tracemalloc.start()
    new = method.fit(scores, y).predict_proba(scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - new.nbytes < 0.25 * scores.nbytes


# -- invariance -----------------------------------------------------------------------

OPTIONS = st.fixed_dictionaries(
    {"mode": st.sampled_from(MODES), "smoothing": SMOOTHINGS}
)


@given(problems())
def test_top_label_keeps_the_order_of_confidences(problem):
    z, y = problem
    p = softmax(z)
    h, best = p.max(axis=1), p.argmax(axis=1)
    order, at = np.argsort(h), np.arange(len(h))

    new = fitted(p, y, mode="top-label").predict_proba(p)[at, best]
    assert (np.diff(new[order]) >= 0).all()

    smooth = fitted(p, y, mode="top-label", smoothing=1.0).predict_proba(p)[at, best]
    apart = np.diff(h[order]) > 1e-9
    assert (np.diff(smooth[order])[apart] > 0).all()


@given(problems(), SMOOTHINGS)
def test_top_label_keeps_the_prediction_above_chance(problem, smoothing):
    z, y = problem
    p, k = softmax(z), z.shape[1]
    new = fitted(p, y, mode="top-label", smoothing=smoothing).predict_proba(p)
    best = p.argmax(axis=1)
    kept = new[np.arange(len(p)), best] > (1 + 1e-5) / k
    np.testing.assert_array_equal(new.argmax(axis=1)[kept], best[kept])


@given(problems())
def test_smoothing_leaves_no_zeros(problem):
    z, y = problem
    z = z.clip(-30, 30)
    smooth = fitted(softmax(z), y, smoothing=1.0).predict_proba(softmax(z))
    assert smooth.min() > 0


# -- bad and odd input ----------------------------------------------------------------


@needs_loops
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", MODES)
def test_nan_is_refused(mode, engine):
    p = np.array([[0.5, 0.5], [np.nan, 0.5]])
    with pytest.raises(ValueError, match="row 1"):
        fitted(p, [0, 1], mode=mode, engine=engine)
    good = fitted(p[[0, 0]], [0, 1], mode=mode, engine=engine)
    with pytest.raises(ValueError, match="row 1"):
        good.predict_proba(p)


# -- netcal and real data -------------------------------------------------------------


def split(data, name, how):
    arrays = data(name)
    p, y = softmax(arrays["logits"]), arrays["labels"]
    n = len(p)
    fit = np.arange(n) < n // 5 if how == "first" else np.arange(n) % 5 == 0
    return p[fit], y[fit], p[~fit], y[~fit]


@pytest.mark.parametrize("how", ["first", "every"])
@pytest.mark.parametrize("name", PEER["names"])
def test_netcal_is_reproduced(data, name, how):
    p, y, new, _ = split(data, name, how)
    got = fitted(p, y, compat="netcal").predict_proba(new)
    lost = np.zeros(len(got), bool)
    lost[PEER[f"{name}.{how}.isotonic.lost"]] = True
    np.testing.assert_array_equal(got[lost], 1 / got.shape[1])
    got[lost] = np.nan  # as netcal has it
    precise = {"rtol": 0, "atol": 1e-12}
    row, column = PEER[f"{name}.{how}.entries"]
    wanted = PEER[f"{name}.{how}.isotonic.entries"]
    np.testing.assert_allclose(got[row, column], wanted, **precise)
    squares = (got[PEER[f"{name}.{how}.rows"]] ** 2).sum(axis=1)
    wanted = PEER[f"{name}.{how}.isotonic.squares"]
    np.testing.assert_allclose(squares, wanted, **precise)


def test_netcal_loses_rows_where_most_classes_are_absent():
    # The first fifth of ImageNet, which is sorted by class, has 200 of 1000 classes.
    lost = PEER["imagenet5k_efficientnet_lite0.first.isotonic.lost"]
    assert len(lost) == 1976


def test_netcal_works_in_double_precision(data):
    p, y, new, _ = split(data, "cifar10_akamaster_resnet32", "first")
    method = fitted(p.astype(np.float32), y, compat="netcal")
    assert method.predict_proba(new[:5].astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("mode", MODES)
def test_smoothing_makes_the_log_loss_finite(data, mode):
    p, y, new, truth = split(data, "cifar10_akamaster_resnet32", "first")
    at = np.arange(len(truth)), truth
    assert (fitted(p, y, mode=mode).predict_proba(new)[at] == 0).any()
    smooth = fitted(p, y, mode=mode, smoothing=1.0).predict_proba(new)
    assert smooth.min() > 0
    assert -np.log(smooth[at]).mean() < -np.log(new[at]).mean()


@pytest.mark.parametrize("mode", MODES)
def test_smoothing_helps_confidences_that_round_to_1_too(data, mode):
    z, y = (data("cifar10_akamaster_resnet32")[key] for key in ("logits", "labels"))
    method = IsotonicCalibration(mode=mode, smoothing=1.0).fit(z[:2000], y[:2000])
    new = method.predict_proba(z[2000:])
    assert (new == 1).any()
    assert new.min() > 0


@quiet
@needs_loops
def test_engines_agree_on_imagenet(data):
    arrays = data("imagenet5k_efficientnet_lite0")
    z, y = arrays["logits"], arrays["labels"]  # stored as float16
    slow, fast = (
        IsotonicCalibration(engine=engine).fit(z[::2], y[::2]) for engine in ENGINES
    )
    np.testing.assert_array_equal(slow.knots_, fast.knots_)
    np.testing.assert_array_equal(slow.values_, fast.values_)
    new = fast.predict_proba(z[1::2])
    np.testing.assert_array_equal(slow.predict_proba(z[1::2]), new)
    assert new.dtype == np.float32
