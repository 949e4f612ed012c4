"""Histogram binning: bins, edges, what they give, and netcal's answers."""

import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import effective, softmax
from strategies import problems

from calibrant._rows.engines import built
from calibrant._sketch.ordered import Ordered
from calibrant._stats.bins import mass_bins
from calibrant.recalibration import FitWarning
from calibrant.recalibration._histogram import (
    HistogramBinning,
    mass_edges,
    place,
    width_edges,
)
from calibrant.recalibration._modes import give

PEER = np.load(Path(__file__).parent / "peer_recalibration.npz")
MODES, STRATEGIES = ("one-vs-rest", "top-label"), ("width", "mass")
SMOOTHINGS = st.sampled_from([0.0, 0.5, 3.0])

needs_loops = pytest.mark.usefixtures("built")
quiet = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


def fitted(p, y, weight=None, **options):
    """Fitted to probabilities; absent classes are what many of these are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return HistogramBinning("probs", **options).fit(p, y, weight)


@st.composite
def weighted_problems(draw):
    z, y = draw(problems())
    w = st.sampled_from([1.0, 2.0, 0.25, 0.1])
    weight = draw(st.one_of(st.none(), st.lists(w, min_size=len(y), max_size=len(y))))
    return softmax(z), y, weight


# -- slow twins: one probability, one bin at a time -----------------------------------


def slow_bin(p, edges):
    """The first bin whose right edge is not below p."""
    return next((b for b in range(len(edges) - 2) if p <= edges[b + 1]), len(edges) - 2)


def slow_value(p, hits, weight, at, edges, smoothing):
    inside = [i for i in range(len(p)) if slow_bin(p[i], edges) == at]
    middle = (edges[at] + edges[at + 1]) / 2
    total = sum(weight[i] for i in inside) + smoothing
    positive = sum(weight[i] for i in inside if hits[i])
    return (positive + smoothing * middle) / total if total > 0 else middle


def slow_one_vs_rest(p, y, weight, new, edges, smoothing):
    rows = []
    for row in new:
        values = [
            slow_value(
                p[:, c], y == c, weight, slow_bin(x, edges[c]), edges[c], smoothing
            )
            if c in y
            else x
            for c, x in enumerate(row)
        ]
        values = values if sum(values) > 0 else row
        rows.append(np.array(values) / sum(values))
    return np.array(rows)


def slow_top_label(row, v):
    """The predicted class gets v; the others share the rest by the rules."""
    k, best = len(row), int(np.argmax(row))
    others = [row[j] for j in range(k) if j != best]
    whole = sum(others)
    share = [x / whole if whole > 0 else 1 / (k - 1) for x in others]
    largest, even = max(share), 1 / (k - 1)
    if v < 1 and (1 - v) * largest > v * (1 - 1e-6) and largest > even:
        t = min((largest - v / (1 - v) * (1 - 1e-6)) / (largest - even), 1)
        share = [(1 - t) * s + t * even for s in share]
    return np.insert([(1 - v) * s for s in share], best, v)


@given(weighted_problems(), SMOOTHINGS, st.integers(1, 20), st.sampled_from(STRATEGIES))
def test_one_vs_rest_is_its_definition(problem, smoothing, bins, strategy):
    p, y, weight = problem
    method = fitted(p, y, weight, bins=bins, strategy=strategy, smoothing=smoothing)
    edges = np.broadcast_to(method.edges_, (p.shape[1], bins + 1))
    w = effective(weight, len(y))
    slow = slow_one_vs_rest(p, y, w, p, edges, smoothing)
    np.testing.assert_allclose(method.predict_proba(p), slow, atol=1e-12)


@given(weighted_problems(), SMOOTHINGS, st.integers(1, 20), st.sampled_from(STRATEGIES))
def test_top_label_is_its_definition(problem, smoothing, bins, strategy):
    p, y, weight = problem
    options = {"bins": bins, "strategy": strategy, "smoothing": smoothing}
    method = fitted(p, y, weight, mode="top-label", **options)
    h, hit = p.max(axis=1), p.argmax(axis=1) == y
    w = effective(weight, len(y))
    edges = method.edges_
    for row, got in zip(p, method.predict_proba(p), strict=True):
        v = slow_value(h, hit, w, slow_bin(max(row), edges), edges, smoothing)
        np.testing.assert_allclose(got, slow_top_label(row, v), atol=1e-12)


# -- closed forms ---------------------------------------------------------------------


def test_a_bin_gives_its_share_of_hits():
    # 4 rows say 0.9 and 3 of them hit; with s = 2 pseudo-rows at the middle 0.75 of the
    # bin (0.5, 1], (3 + 1.5) / (4 + 2).
    p, y = [0.9, 0.9, 0.9, 0.9, 0.2], [1, 1, 1, 0, 0]
    assert fitted(p, y, bins=2).values_.tolist() == [[0.25, 1.0], [0.0, 0.75]]
    smooth = fitted(p, y, bins=2, smoothing=2.0)
    assert smooth.values_[1].tolist() == [0.5 / 3, 0.75]
    assert smooth.counts_[1].tolist() == [1, 4]


def test_an_empty_bin_gives_its_middle():
    method = fitted([0.9, 0.1], [1, 0], bins=4)
    np.testing.assert_array_equal(method.values_[1], [0, 0.375, 0.625, 1])


def test_a_class_without_rows_keeps_its_probability():
    p = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    method = HistogramBinning("probs", bins=2)
    with pytest.warns(FitWarning) as told:
        method.fit(p, [0, 1])
    assert "1 of 3 classes have no row to fit on; they keep their own" in str(told[0])
    assert method.absent_.tolist() == [2]
    np.testing.assert_allclose(method.predict_proba(p[:1]), [[1 / 1.1, 0, 0.1 / 1.1]])


def test_a_row_of_zeros_keeps_its_probabilities():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
    method = fitted(p, [0, 1, 2], bins=2)  # below 0.5, never
    new = [[0.4, 0.35, 0.25]]
    np.testing.assert_allclose(method.predict_proba(new), new, rtol=1e-15)
    # netcal divides 0 by 0 there
    alike = fitted(p, [0, 1, 2], bins=2, compat="netcal").predict_proba(new)
    np.testing.assert_array_equal(alike, np.full((1, 3), 1 / 3))


def test_the_others_share_equally_what_they_did_not_have():
    p = np.array([[1.0, 0.0, 0.0]] * 4)
    method = fitted(p, [0, 0, 0, 1], mode="top-label")
    np.testing.assert_allclose(method.predict_proba(p[:1]), [[0.75, 0.125, 0.125]])


def test_the_others_are_blended_just_enough():
    # 0.5 : 0.4 : 0.1 with v = 0.4 would give the second 0.48; it gets next to 0.4.
    p = np.array([[0.5, 0.4, 0.1]])
    give(p, np.array([0]), np.array([0.4]), np.array([0.6]))
    np.testing.assert_allclose(p, [[0.4, 0.4 * (1 - 1e-6), 0.2]], atol=1e-6)
    assert p[0, 1] < 0.4
    assert p.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_next_to_nothing_is_shared_too(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    p = np.array([[1, tiny, 3 * tiny]], dtype)
    give(p, np.array([0]), np.array([0.5]), np.array([0.5]))
    np.testing.assert_allclose(p, [[0.5, 0.125, 0.375]], rtol=1e-6)


# -- edges ----------------------------------------------------------------------------


@needs_loops
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 2, 7, 10, 15, 49, 1000])
def test_bins_are_closed_on_the_right(bins, dtype):
    edges = (np.arange(bins + 1) / bins).astype(dtype)
    x = np.concatenate([np.nextafter(edges, dtype(-1)), edges])
    x = np.concatenate([x, np.nextafter(edges, dtype(2))]).clip(0, 1)
    p = np.stack([x, 1 - x], axis=1)
    expected = [slow_bin(float(h), np.arange(bins + 1) / bins) for h in x]
    assert place(x, width_edges(bins)).tolist() == expected
    for engine in ("numpy", "compiled"):
        method = fitted([[0.5, 0.5]], [0], bins=bins, engine=engine)
        method.absent_ = method.absent_[:0]
        method.values_ = np.stack([np.arange(bins) + 1.0, np.full(bins, 3.0)])
        got = method.predict_proba(p)
        found = 3 * got[:, 0].astype(float) / got[:, 1] - 1
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_0_and_1_are_in_bins():
    method = fitted([0.0, 0.0, 1.0, 1.0], [0, 1, 1, 1], bins=10)
    assert method.counts_[1].tolist() == [2, *[0] * 8, 2]
    assert method.predict_proba([0.0, 1.0])[:, 1].tolist() == [0.5, 1.0]


@given(
    st.lists(st.floats(0, 1).map(lambda x: round(x, 2)), min_size=1, max_size=60),
    st.integers(1, 20),
    st.data(),
)
def test_mass_bins_are_those_of_the_metrics(p, bins, data):
    weights = st.sampled_from([1.0, 2.0, 0.5])
    weight = np.array(data.draw(st.lists(weights, min_size=len(p), max_size=len(p))))
    p = np.array(p)
    assume(p.min() > 0)  # 0 is in the first bin, whatever its rank
    value, inverse = np.unique(p, return_inverse=True)
    w = np.bincount(inverse, weight)
    expected = mass_bins(Ordered.of(value, w, w, w), bins)
    edges = mass_edges(p, weight, bins)
    assert (np.diff(edges) >= 0).all()
    counts = np.bincount(place(p, edges), weight, bins)
    np.testing.assert_allclose(counts[counts > 0], expected.count, rtol=1e-12)


def test_neighbouring_numbers_are_parted():
    low = 0.3
    high = np.nextafter(low, 1)
    edges = mass_edges(np.array([low, high]), np.ones(2), 2)
    assert place(np.array([low, high]), edges).tolist() == [0, 1]


def test_constant_scores_share_a_bin():
    p = np.full((8, 2), 0.5)
    for mode in MODES:
        method = fitted(p, [0, 0, 0, 0, 0, 0, 1, 1], mode=mode, strategy="mass")
        np.testing.assert_allclose(method.predict_proba(p[:1]), [[0.75, 0.25]])


def test_edges_between_float32_are_not_rounded_away():
    p32 = np.array([0.2, 0.4, 0.6, 0.8], np.float32)
    method = fitted(p32.astype(float), [0, 1, 0, 1], bins=4, strategy="mass")
    for p in (p32, np.nextafter(p32, np.float32(0))):
        fine, coarse = method.predict_proba(p.astype(float)), method.predict_proba(p)
        np.testing.assert_allclose(coarse, fine, atol=1e-6)


# -- invariance -----------------------------------------------------------------------

OPTIONS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(MODES),
        "strategy": st.sampled_from(STRATEGIES),
        "smoothing": SMOOTHINGS,
        "bins": st.integers(1, 20),
    }
)


@needs_loops
@given(weighted_problems(), SMOOTHINGS, st.sampled_from([np.float32, np.float64]))
def test_the_loops_give_the_same(problem, smoothing, dtype):
    p, y, weight = problem
    p = p.astype(dtype)
    slow = fitted(p, y, weight, smoothing=smoothing, engine="numpy")
    fast = fitted(p, y, weight, smoothing=smoothing, engine="compiled")
    precision = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(
        fast.predict_proba(p), slow.predict_proba(p), rtol=0, atol=precision
    )


@given(problems(), OPTIONS)
def test_top_label_keeps_the_prediction_above_chance(problem, options):
    z, y = problem
    p, k = softmax(z), z.shape[1]
    method = fitted(p, y, **(options | {"mode": "top-label"}))
    new = method.predict_proba(p)
    best = p.argmax(axis=1)
    kept = method.values_[place(p.max(axis=1), method.edges_)] > (1 + 1e-5) / k
    np.testing.assert_array_equal(new.argmax(axis=1)[kept], best[kept])


def test_several_threads_count_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    p = softmax(rng.normal(size=(3000, 100))).astype(np.float32)
    y = rng.integers(0, 100, len(p))
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("CALIBRANT_THREADS", threads)
        answers.append(fitted(p, y).predict_proba(p))
    np.testing.assert_array_equal(*answers)


# -- bad and odd input ----------------------------------------------------------------


def test_sums_a_little_off_are_divided_too():
    p = np.array([[1.00004, 0.0, 0.0], [0.3, 0.3, 0.40005]])
    for strategy in STRATEGIES:
        for mode in MODES:
            new = fitted(p, [0, 1], strategy=strategy, mode=mode).predict_proba(p)
            np.testing.assert_allclose(new.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_memory_stays_small_beside_the_matrix(kind, monkeypatch):
    monkeypatch.setenv("CALIBRANT_THREADS", "1")
    rng = np.random.default_rng(0)
    z = rng.standard_normal((8000, 1000), np.float32)
    scores = z if kind == "logits" else softmax(z).astype(np.float32)
    y = rng.integers(0, 1000, len(z))
    for strategy in STRATEGIES:
        method = HistogramBinning(kind, strategy=strategy, engine="numpy")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            tracemalloc.start()
            new = method.fit(scores, y).predict_proba(scores)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak - new.nbytes < 0.25 * scores.nbytes


# -- netcal ---------------------------------------------------------------------------


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
    row, column = PEER[f"{name}.{how}.entries"]
    precise = {"rtol": 0, "atol": 1e-12}
    wanted = PEER[f"{name}.{how}.histogram.entries"]
    np.testing.assert_allclose(got[row, column], wanted, **precise)
    squares = (got[PEER[f"{name}.{how}.rows"]] ** 2).sum(axis=1)
    wanted = PEER[f"{name}.{how}.histogram.squares"]
    np.testing.assert_allclose(squares, wanted, **precise)
    assert PEER[f"{name}.{how}.histogram.lost"].size == 0


def slow_netcal(p, y, new, bins):
    """Fit with [a, b), apply with (a, b], divide by the sum; all in double precision."""
    edges = np.linspace(0, 1, bins + 1)
    out = np.zeros(new.shape)
    for c in sorted(set(y)):
        to = np.clip(np.searchsorted(edges, p[:, c], side="right") - 1, 0, bins - 1)
        at = np.clip(np.searchsorted(edges, new[:, c], side="left") - 1, 0, bins - 1)
        for b in range(bins):
            inside = y[to == b] == c
            middle = (edges[b] + edges[b + 1]) / 2
            out[at == b, c] = inside.mean() if inside.size else middle
    return out


@given(problems(classes=(3, 6)), st.integers(1, 20))
def test_netcal_bit_for_bit(problem, bins):
    z, y = problem
    p = softmax(np.round(z))  # some on edges
    raw = slow_netcal(p, y, p, bins)
    total = raw.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        slow = np.where(total > 0, raw / total, 1 / z.shape[1])
    got = fitted(p, y, bins=bins, compat="netcal").predict_proba(p)
    np.testing.assert_array_equal(got, slow)


def test_of_two_classes_netcal_recalibrates_the_second():
    p, y = np.array([0.1, 0.1, 0.1, 0.8, 0.8, 0.5]), np.array([0, 0, 1, 1, 0, 1])
    pairs = np.stack([1 - p, p], axis=1)
    got = fitted(pairs, y, bins=2, compat="netcal").predict_proba(pairs)
    np.testing.assert_allclose(got[:, 1], [1 / 3] * 3 + [2 / 3] * 2 + [1 / 3])
    np.testing.assert_allclose(got.sum(axis=1), 1)
    only = fitted(pairs, np.zeros(6, int), bins=2, compat="netcal")
    assert only.notes_ == ()
    assert only.predict_proba(pairs)[:, 1].tolist() == [0] * 6


# -- real data ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_smoothing_makes_the_log_loss_finite(data, mode):
    p, y, new, truth = split(data, "cifar10_akamaster_resnet32", "first")
    at = np.arange(len(truth)), truth
    assert (fitted(p, y, mode=mode).predict_proba(new)[at] == 0).any()
    smooth = fitted(p, y, mode=mode, smoothing=1.0).predict_proba(new)
    assert smooth.min() > 0
    assert -np.log(smooth[at]).mean() < -np.log(new[at]).mean()


@quiet
def test_logits_and_their_probabilities_give_the_same(data):
    z, y = (data("cifar10_akamaster_resnet32")[key] for key in ("logits", "labels"))
    from_logits = HistogramBinning().fit(z[:2000], y[:2000]).predict_proba(z[2000:])
    p, _, new, _ = split(data, "cifar10_akamaster_resnet32", "first")
    from_probs = fitted(p, y[:2000]).predict_proba(new)
    assert from_logits.dtype == np.float32
    # A handful of 80,000 lie within single precision of an edge.
    assert (np.abs(from_logits - from_probs) > 1e-5).any(axis=1).sum() <= 5


@needs_loops
@quiet
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_by_the_compiled_loop_are_those_of_numpy(dtype, weighted):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(70, 0.05), 500).astype(dtype)
    p[:20] = 0  # on an edge, and at both ends
    p[:10, 3], p[:10, 7] = 0.2, 0.8
    p[10:20, 69] = 1
    y = rng.integers(0, 70, 500)
    weight = rng.random(500) if weighted else None
    slow, fast = (
        fitted(p, y, weight, bins=5, engine=engine) for engine in ("numpy", "compiled")
    )
    np.testing.assert_allclose(fast.counts_, slow.counts_, rtol=1e-12)
    np.testing.assert_allclose(fast.values_, slow.values_, rtol=1e-12)
    assert np.array_equal(fast.counts_ > 0, slow.counts_ > 0)


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("bad", [-0.1, np.nan])
@pytest.mark.parametrize("place", [0, 35, 69])
def test_an_entry_that_is_no_probability_is_refused_by_either(
    engine, bad, place, monkeypatch
):
    monkeypatch.setenv("CALIBRANT_ENGINE", engine if built() else "numpy")
    p = np.full((40, 70), 1 / 70)
    p[31, place], p[31, place - 1] = bad, 2 / 70 - bad
    with pytest.raises(ValueError, match="row 31"):
        HistogramBinning("probs").fit(p, np.arange(40))
