"""The compiled loops against the NumPy code, row by row and edge by edge."""

import os
import re
import subprocess
import sys
from functools import partial
from itertools import product

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs

import calibrant as cal
from calibrant import recalibration
from calibrant._inputs.arrays import sigmoid
from calibrant._inputs.divergences import BRIER, LOG
from calibrant._inputs.predictions import Predictions, read_predictions
from calibrant._rows import compiled, engines
from calibrant._rows import reduce as reduction
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch import ordered
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import (
    CELLS,
    STEPS,
    add_moments,
    add_residual,
    cell_near,
    node_weights,
)
from calibrant._sketch.kernels import GAUSSIAN, sums_at
from calibrant._stats import platt, platt_error, quantiles
from calibrant._stats.intervals import Family, total_size
from calibrant._stats.ladder import Ladder, Level, Residuals
from calibrant._stats.ladder import pairs as pairs_of_rows
from calibrant._stats.neighbours import cells_of_rows

DTYPES = [np.float16, np.float32, np.float64]
BUILT_IN = {"brier": BRIER, "log": LOG}
INF, NAN = np.inf, np.nan

pytestmark = pytest.mark.usefixtures("built")


# -- the gate ---------------------------------------------------------------------

SMALL = np.zeros((2, 3))


def test_the_compiled_loops_are_the_default(monkeypatch):
    monkeypatch.delenv("CALIBRANT_ENGINE", raising=False)
    assert engines.wanted()
    assert engines.wanted("compiled")
    assert not engines.wanted("numpy")
    monkeypatch.setenv("CALIBRANT_ENGINE", "numpy")
    assert not engines.wanted("auto")
    assert engines.wanted("compiled")
    monkeypatch.setenv("CALIBRANT_ENGINE", "cuda")
    with pytest.raises(
        ValueError, match="CALIBRANT_ENGINE must be one of 'auto', 'numpy'"
    ):
        engines.wanted("auto")


def test_what_the_loops_do_not_cover_is_left_to_numpy():
    assert not engines.wanted("compiled", plain=False)
    soft = read_predictions(np.full((2, 3), 1 / 3), logits=SMALL)
    found = reduce_to_columns(soft, engine="compiled").hit
    assert found == pytest.approx([1 / 3, 1 / 3])


@pytest.mark.parametrize("engine", ["cuda", None, 3, ["numpy"]])
def test_an_unknown_engine_is_named(engine):
    with pytest.raises(ValueError, match=r"'auto', 'numpy', 'compiled', got"):
        engines.wanted(engine)


def test_numba_is_refused_with_what_to_write_instead():
    with pytest.raises(
        ValueError, match="built in now, without numba: engine='compiled'"
    ):
        cal.evaluate([0, 1], probs=[0.2, 0.7], engine="numba")


def test_without_the_module_auto_makes_do_and_compiled_says_why(monkeypatch):
    monkeypatch.setattr(compiled, "loops", None)
    monkeypatch.delenv("CALIBRANT_ENGINE", raising=False)
    assert not engines.wanted("auto")
    with pytest.raises(ImportError, match="was not built when calibrant was installed"):
        engines.wanted("compiled", plain=False)


# -- rows -------------------------------------------------------------------------


def reduce(engine, kind, scores, y):
    """The columns, and the numbers of rows that break a rule."""
    classes = tuple(range(scores.shape[1]))
    predictions = Predictions(scores, kind, np.asarray(y), None, "top-label", classes)
    out = reduction.Output(len(scores), {})
    if engine == "compiled":
        return out, reduction.reduce_compiled(predictions, out, 0, len(scores))
    return out, reduction._reduce_range(predictions, {}, out, 0, len(scores))


def assert_twins(kind, scores, y):
    """Same offenders, classes and hits; the rest to the precision of the scores."""
    got, bad = reduce("compiled", kind, scores, y)
    want, bad_too = reduce("numpy", kind, scores, y)
    np.testing.assert_array_equal(bad, bad_too)
    good = np.delete(np.arange(len(scores)), bad)
    np.testing.assert_array_equal(got.predicted[good], want.predicted[good])
    np.testing.assert_array_equal(got.hit[good], want.hit[good])
    precision = 1e-12 if scores.dtype == np.float64 else 2e-6
    for name in ("confidence", "brier", "log", "log_odds"):
        np.testing.assert_allclose(
            getattr(got, name)[good],
            getattr(want, name)[good],
            rtol=precision,
            # log(1 + tiny), or squares below what float32 holds; log-odds near 0
            atol=precision if name == "log_odds" else 1e-30,
            err_msg=name,
        )
    return got


def cast(scores, dtype):
    with np.errstate(over="ignore"):
        return np.asarray(scores, dtype=np.float64).astype(dtype)


ODD = (0.0, -0.0, 1.0, 90.0, -90.0, 750.0, 1e4, -1e4, 3e38, -3e38, INF, -INF, NAN)


@st.composite
def matrices(draw, entries):
    n, k = draw(st.integers(1, 5)), draw(st.sampled_from([2, 3, 10, 32, 33, 70, 150]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * draw(st.sampled_from([0.1, 3.0, 30.0]))
    for _ in range(draw(st.integers(0, 4))):
        z[draw(st.integers(0, n - 1)), draw(st.integers(0, k - 1))] = draw(entries)
    return z, rng.integers(0, k, n)


@given(matrices(st.sampled_from(ODD)), st.sampled_from(DTYPES))
def test_rows_of_logits_agree(problem, dtype):
    z, y = problem
    assert_twins("logits", cast(z, dtype), y)


@given(matrices(st.just(0.0)), st.sampled_from(DTYPES), st.data())
def test_rows_of_probabilities_agree(problem, dtype, data):
    z, y = problem
    p = oracles.softmax(z)
    at = st.integers(0, p.shape[0] - 1), st.integers(0, p.shape[1] - 1)
    for _ in range(data.draw(st.integers(0, 2))):
        wrong = st.sampled_from([NAN, INF, -INF, -0.1, -1e-7, 1.5, -0.0])
        p[data.draw(at[0]), data.draw(at[1])] = data.draw(wrong)
    assert_twins("probs", cast(p, dtype), y)


def widen(row, k, fill):
    """The row, followed by classes that add nothing to any sum."""
    return np.r_[row, np.full(k - len(row), fill)]


@pytest.mark.parametrize("k", [3, 33, 200, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("row", "log_odds"),
    [
        ([0.0, 0.0, -INF], 0.0),
        ([0.0, 0.0, 0.0], -np.log(2)),
        ([200.0, 0.0, 0.0], 200 - np.log(2)),
        ([0.0, 1e4, -1e4], 1e4),
        ([-INF, -INF, 5.0], INF),
        ([3e38, 0.0, 0.0], np.float64(np.float32(3e38))),
        ([-3e38, 3e38, -INF], 2 * np.float64(np.float32(3e38))),
        ([5.0, -INF, -95.0], 100.0),
        ([0.0, -84.0, -85.0], 84 - np.log1p(np.exp(-1))),
    ],
)
def test_log_odds_are_exact_however_large(row, log_odds, dtype, k):
    z = widen(np.array(row, np.float32), k, -INF)[None].astype(dtype)
    for y in range(3):
        out = assert_twins("logits", z, [y])
    precision = 3e-7 if dtype == np.float32 else 1e-14
    assert out.log_odds[0] == pytest.approx(log_odds, rel=precision, abs=precision)


@pytest.mark.parametrize("k", [3, 33, 200, 5000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "row",
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [0.5, 0.25, 0.25]],
)
def test_probabilities_of_exactly_0_and_1(row, dtype, k):
    p = widen(row, k, 0.0)[None].astype(dtype)
    for y in range(3):
        out = assert_twins("probs", p, [y])
        with np.errstate(divide="ignore"):
            assert out.log[0] == pytest.approx(-np.log(row[y]))


@pytest.mark.parametrize("tiny", [1e-45, 1e-300, 5e-324])
def test_probabilities_close_to_0(tiny):
    p = np.array([[1.0, tiny, 0.0]])
    for y in range(3):
        assert_twins("probs", p, [y])


@pytest.mark.parametrize("k", [2, 32, 33, 65, 150])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_ties_go_to_the_first_class(kind, k):
    z = np.full((k, k), -5.0, np.float32)
    z[np.triu_indices(k)] = 0.0  # row i has its largest entries from column i on
    scores = z if kind == "logits" else oracles.softmax(z).astype(np.float32)
    for y in (np.arange(k), np.full(k, k - 1)):
        out = assert_twins(kind, scores, y)
        np.testing.assert_array_equal(out.predicted, np.arange(k))


@pytest.mark.parametrize("k", [2, 10, 33, 150])
@pytest.mark.parametrize("value", [NAN, -NAN, INF, -0.25])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_offenders_are_found_wherever_they_are(kind, value, k):
    rng = np.random.default_rng(k)
    z = rng.normal(size=(3 * k, k))
    scores = (z if kind == "logits" else oracles.softmax(z)).astype(np.float32)
    scores[np.arange(0, 3 * k, 3), np.arange(k)] = value
    assert_twins(kind, scores, rng.integers(0, k, 3 * k))
    _, bad = reduce("compiled", kind, scores, np.zeros(3 * k, int))
    expected = [] if kind == "logits" and value < 0 else np.arange(0, 3 * k, 3)
    np.testing.assert_array_equal(bad, expected)


@pytest.mark.parametrize("k", [2, 40])
def test_a_row_without_any_possible_class_offends(k):
    z = np.zeros((3, k), np.float32)
    z[1] = -INF
    assert_twins("logits", z, [0, 0, 0])
    np.testing.assert_array_equal(reduce("compiled", "logits", z, [0, 0, 0])[1], [1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("off", [0.5, 2.0])
def test_how_far_a_row_may_be_from_1_depends_on_its_dtype(dtype, off):
    tolerance = reduction.ROW_SUM_TOLERANCE[np.dtype(dtype).name]
    p = np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25 + off * tolerance]], dtype)
    assert_twins("probs", p, [0, 1])
    np.testing.assert_array_equal(
        reduce("compiled", "probs", p, [0, 1])[1], [1] if off > 1 else []
    )


def test_offenders_are_reported_in_the_same_words():
    z = np.zeros((300, 3))
    z[200, 1] = NAN
    errors = []
    for engine in ("numpy", "compiled"):
        predictions = read_predictions(np.zeros(300, int), logits=z)
        with pytest.raises(ValueError, match="row 200 holds NaN in column 1") as error:
            reduce_to_columns(predictions, engine=engine)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


def unaligned(scores):
    raw = np.empty(scores.nbytes + 1, np.uint8)
    copy = raw[1:].view(scores.dtype).reshape(scores.shape)
    copy[...] = scores
    return copy


def read_only(scores):
    copy = scores.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("k", [10, 100])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "lay_out",
    [
        np.asfortranarray,
        lambda z: np.repeat(z, 2, axis=1)[:, ::2],
        lambda z: z[::-1].copy()[::-1],
        unaligned,
        read_only,
    ],
)
def test_results_do_not_depend_on_the_layout_in_memory(lay_out, dtype, k):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(2000, k)).astype(dtype), rng.integers(0, k, 2000)
    other = lay_out(z)
    np.testing.assert_array_equal(other, z)
    got, want = (reduce("compiled", "logits", x, y)[0] for x in (other, z))
    for name in ("confidence", "log_odds", "hit", "brier", "log", "predicted"):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name))


@pytest.mark.parametrize("name", ["HistogramBinning", "IsotonicCalibration"])
def test_recalibrators_read_rows_from_any_place_in_memory(name):
    rng = np.random.default_rng(0)
    probs, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    method = getattr(recalibration, name)(scores="probs", smoothing=1)
    expected = method.fit(probs, y).predict_proba(probs)
    elsewhere = unaligned(probs)
    found = method.fit(elsewhere, y).predict_proba(elsewhere)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bytes_in_the_other_order_are_read(dtype):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(50, 7)).astype(dtype), rng.integers(0, 7, 50)
    other = read_predictions(y, logits=z.astype(z.dtype.newbyteorder()))
    plain = read_predictions(y, logits=z.astype(other.scores.dtype))
    found = (reduce_to_columns(x, engine="compiled").log_odds for x in (other, plain))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("n", [1, 127, 128, 129, 1000])
@pytest.mark.parametrize("k", [2, 3, 32, 33, 64, 65, 1000, 5000])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_rows_of_any_number_and_length(kind, n, k):
    rng = np.random.default_rng(n + k)
    z, y = rng.normal(size=(n, k)) * 4, rng.integers(0, k, n)
    scores = (z if kind == "logits" else oracles.softmax(z)).astype(np.float32)
    out = assert_twins(kind, scores, y)
    exact = oracles.softmax(z).max(axis=1)
    np.testing.assert_allclose(out.confidence, exact, rtol=2e-6)


def test_ranges_of_rows_make_the_whole():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(1000, 7)), rng.integers(0, 7, 1000)
    z[[5, 700], 3] = NAN
    whole, bad = reduce("compiled", "logits", z, y)
    predictions = Predictions(z, "logits", y, None, "top-label", tuple(range(7)))
    out = reduction.Output(1000, {})
    parts = [(start, start + 250) for start in range(0, 1000, 250)]
    found = [reduction.reduce_compiled(predictions, out, *part) for part in parts]
    found = np.concatenate(found)
    np.testing.assert_array_equal(found, bad)
    np.testing.assert_array_equal(out.brier, whole.brier)


# -- sums of a sketch -------------------------------------------------------------


def columns_of(h, a, weight=None):
    with np.errstate(divide="ignore"):
        z = np.log(h) - np.log1p(-h)
    return Columns(h, z, a, weight=weight)


def assert_same_sketch(columns):
    got = Cells(BUILT_IN).update(columns, engine="compiled")
    want = Cells(BUILT_IN).update(columns, engine="numpy")
    for name in ("moments", "log_odds_sums", "infinite"):
        ours, theirs = getattr(got, name), getattr(want, name)
        scale = np.abs(theirs).max(axis=-1, keepdims=True)
        assert np.all(np.abs(ours - theirs) <= 1e-12 * (np.abs(theirs) + 1e-3 * scale))
        np.testing.assert_array_equal(ours == 0, theirs == 0)
    np.testing.assert_allclose(
        got.totals["log"].as_array(), want.totals["log"].as_array(), rtol=1e-13
    )


@given(pairs(), st.booleans())
def test_sketches_agree(rows, weighted):
    h, a, w = rows
    assert_same_sketch(columns_of(h, a, w if weighted else None))


def test_sketches_agree_on_the_edges_of_cells():
    h = np.arange(CELLS + 1) / CELLS
    h = np.unique(np.r_[h, np.nextafter(h, 0), np.nextafter(h, 1)])
    assert_same_sketch(columns_of(h, np.ones_like(h)))


@pytest.mark.parametrize("weighted", [False, True])
def test_sketches_of_many_rows_agree(weighted):
    rng = np.random.default_rng(0)
    z = rng.normal(1, 3, 300_000)
    z[:100_000] = 1.7  # the same number over and over: rounding all in one direction
    h = sigmoid(z)
    a = (rng.random(len(h)) < h).astype(float)
    assert_same_sketch(columns_of(h, a, rng.random(len(h)) if weighted else None))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", [3, 5])
def test_moments_of_the_residual_agree(order, weighted):
    rng = np.random.default_rng(0)
    h = np.r_[np.round(rng.random(300_000), 4), 0.0, 1.0]
    columns = columns_of(
        h, rng.random(len(h)), rng.random(len(h)) if weighted else None
    )
    got, want = np.zeros((2, order, CELLS))
    add_residual(got, columns)
    r = columns.hit - h
    add_moments(want[None], h, [r * columns.weight if weighted else r], cell_near)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


# -- sorting ----------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), max_size=300), st.sampled_from([1, 3, 17]))
def test_sorting_by_digits_is_a_stable_sort(values, digits):
    h = np.abs(np.round(values, digits))
    want = np.argsort(h, kind="stable")
    np.testing.assert_array_equal(ordered.order_of(h), want)
    key = np.random.default_rng(0).integers(0, 2**63 - 1, len(h)) >> digits
    np.testing.assert_array_equal(ordered._in_order(key.copy()), np.sort(key))


# -- local Platt scaling ----------------------------------------------------------


def assert_same_fit(cells, width, nodes, start=None):
    got, want = (
        platt.fit(cells, width, nodes, start, engine=e) for e in ("compiled", "numpy")
    )
    for name in ("shift", "slope", "leverage", "variance"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(want, name), rtol=1e-9, atol=1e-9, err_msg=name
        )
    return want


@pytest.mark.parametrize("n", [20, 400, 3000])
@pytest.mark.parametrize("T", [0.5, 1.0, 3.0])
def test_fits_agree(n, T):
    rng = np.random.default_rng(n)
    z = rng.normal(1, 3, n)
    a = (rng.random(n) < sigmoid(z / T)).astype(float)
    cells = cells_of_rows(columns_of(sigmoid(z), a, rng.random(n) + 0.1))
    nodes, fitted = platt.choose_nodes(cells), None
    for width in platt.WIDTHS:
        fitted = assert_same_fit(cells, float(width), nodes, fitted)


@given(pairs(least=2))
def test_fits_of_a_few_rows_agree(rows):
    cells = cells_of_rows(columns_of(*rows))
    nodes = platt.choose_nodes(cells)
    for width in (1.5, 0.1):
        assert_same_fit(cells, width, nodes)


# -- kernel sums, laws and moments ---------------------------------------------------


def both_ways(monkeypatch, work):
    """What a function of no arguments gives by the loops, and without them."""
    monkeypatch.setenv("CALIBRANT_ENGINE", "compiled")
    got = work()
    monkeypatch.setenv("CALIBRANT_ENGINE", "numpy")
    return got, work()


def some_cells(n, weighted):
    rng = np.random.default_rng(n)
    h = rng.beta(2, 1, n)
    weight = rng.random(n) + 0.1 if weighted else None
    return cells_of_rows(columns_of(h, rng.random(n) < h**1.5, weight))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [3, 60, 3000])
def test_ladders_and_their_laws_agree(monkeypatch, n, weighted):
    cells = some_cells(n, weighted)
    got, want = both_ways(monkeypatch, lambda: Ladder.of(cells))
    assert want.law.shape[1] == 400
    scale = np.abs(want.law).max()
    for name in ("rungs", "tested", "law"):
        one, other = (getattr(x, name) / scale for x in (got, want))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11, err_msg=name)
    table = np.random.default_rng(0).normal(size=(len(cells.h), 37))
    for level, power in product(want.levels, (1, 2)):
        sums = both_ways(monkeypatch, partial(level.sums, table, power))
        np.testing.assert_allclose(*sums, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("columns", [1, 3, 7, 8, 9, 40, 47, 85])
@pytest.mark.parametrize("places", [3, 4000])
def test_any_number_of_columns_and_importances_agrees(monkeypatch, columns, places):
    """However far apart the places are; an importance of nothing gives nothing."""
    rng, cells = np.random.default_rng(columns), some_cells(200, weighted=True)
    level = Level.of(cells.coordinate, 0.05, cells.weight, places)
    table, base = rng.normal(size=(200, columns)), rng.normal(size=(6, 200))
    found = Residuals(table, base[:3], base[3:])
    importance = rng.random((7, 200)) * np.array([1, 1, 0, 1, 1, 1, 0])[:, None]
    for work in (
        partial(level.sums, table),
        partial(level.sums, table, 2),
        partial(pairs_of_rows, cells, level, found, importance),
        partial(pairs_of_rows, cells, level, found, 0 * importance),
    ):
        np.testing.assert_allclose(*both_ways(monkeypatch, work), 1e-10, 1e-11)


@pytest.mark.parametrize("p", [0.025, 0.5, 0.975])
@pytest.mark.parametrize("freedom", [0.05, 1.0, 40.0, 1900.0, 1e5])
def test_quantiles_agree(monkeypatch, freedom, p):
    work = [
        lambda: quantiles.gamma_quantile(freedom, p),
        lambda: [
            quantiles.noncentrality_at(times * freedom, freedom, p)
            for times in (0.3, 1.0, 2.0, 60.0)
            if freedom < 1e4
        ],
    ]
    for one in work:
        np.testing.assert_allclose(*both_ways(monkeypatch, one), rtol=1e-8, atol=1e-12)


def test_rows_left_out_agree(monkeypatch):
    rng = np.random.default_rng(0)
    eta, leverage = 6 * rng.normal(size=400), rng.uniform(1e-4, 15, 400)
    leverage[7] = NAN
    hit = np.stack([np.ones(400), np.zeros(400), rng.random(400)])
    wide = np.broadcast_to(eta, hit.shape)
    got, want = both_ways(
        monkeypatch, lambda: platt_error.left_out(wide, leverage, hit)
    )
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("cells", [1, 16, 45])
def test_scales_at_which_sizes_cross_a_bound_agree(monkeypatch, cells):
    rng = np.random.default_rng(cells)
    family = Family(rng.normal(size=cells), rng.normal(size=(300, cells)), total_size)
    for bound in (0.1, float(np.median(family.null)), 9.0 * cells):
        found = both_ways(monkeypatch, partial(family.crossings, bound, family.null))
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


def test_moments_and_kernel_sums_agree(monkeypatch):
    rng = np.random.default_rng(0)
    moments = rng.normal(size=(3, 5, 600))

    def work():
        weights = node_weights(moments)
        places = np.linspace(0, 1, 70)
        sums = sums_at(places, weights, GAUSSIAN, 0.02, "reflect")
        far = sums_at(places, weights, GAUSSIAN, 1e-3)
        return np.concatenate([weights.ravel(), sums.ravel(), far.ravel()])

    got, want = both_ways(monkeypatch, work)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11)


def test_sums_over_cells_agree(monkeypatch):
    rng = np.random.default_rng(0)
    cells = Cells(BUILT_IN).update(columns_of(rng.random(500), rng.random(500) < 0.5))

    def work():
        cells._forget()
        return np.concatenate([cells.moments.ravel(), cells.log_odds_sums.ravel()])

    got, want = both_ways(monkeypatch, work)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


# -- all of it --------------------------------------------------------------------


def numbers_of(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [x for branch in tree for x in numbers_of(branch)]
    return [tree] if isinstance(tree, float) else []


@pytest.mark.parametrize("weighted", [False, True])
def test_evaluations_agree(weighted):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2000, 5)) * 3
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    weight = rng.random(len(y)) if weighted else None
    got, want = (
        numbers_of(cal.evaluate(y, logits=z, sample_weight=weight, engine=e).to_dict())
        for e in ("compiled", "numpy")
    )
    assert len(want) > 1000
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


class Untouchable:
    """Loops that must not be called."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} is called")


@pytest.mark.parametrize("target", ["top-label", "class-wise"])
def test_numpy_is_all_that_an_evaluation_by_numpy_uses(monkeypatch, target):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    y = rng.integers(3, size=300)
    sketch = cal.Sketch(target=target).update(y, logits=z)
    monkeypatch.setattr(compiled, "loops", Untouchable())
    monkeypatch.delenv("CALIBRANT_ENGINE", raising=False)
    with pytest.raises(AssertionError, match="is called"):
        cal.evaluate(y, logits=z, target=target)
    cal.evaluate(y, logits=z, target=target, engine="numpy")
    cal.evaluate(sketch, engine="numpy")
    assert engines.wanted()


# -- the same bits, whatever the process and the threads -----------------------------

REPORT = r"""
import sys
import numpy as np
if "hidden" in sys.argv:
    sys.modules["calibrant._rows._compiled"] = None
import calibrant as cal
from calibrant import recalibration as methods
from calibrant._rows import engines
print(engines.wanted())
rng = np.random.default_rng(0)
z = rng.normal(size=(6000, 60)) * 3
y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
weight = rng.random(6000)
found = [cal.evaluate(y, logits=z), cal.evaluate(y, logits=z, sample_weight=weight)]
found.append(cal.evaluate(cal.Sketch().update(y, logits=z)))
print(*(repr(x.to_dict()) for x in found), sep="\n")
for name in ("TemperatureScaling", "HistogramBinning", "IsotonicCalibration"):
    method = getattr(methods, name)()
    print(repr(method.fit(z, y, sample_weight=weight).predict_proba(z[::50]).tolist()))
h = rng.random(300_000)
print(cal.smooth_ece(rng.random(300_000) < h, confidence=h))
"""


def report(*arguments, **variables):
    """What a fresh process prints."""
    env = {k: v for k, v in os.environ.items() if k != "CALIBRANT_ENGINE"} | variables
    command = [sys.executable, "-W", "ignore", "-c", REPORT, *arguments]
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    used, *rest = run.stdout.splitlines()
    return used == "True", rest


@pytest.mark.slow
def test_every_process_gives_the_same_bits_with_any_number_of_threads():
    compiled, first = report(CALIBRANT_THREADS="1")
    assert compiled
    assert report(CALIBRANT_THREADS="1") == (True, first)
    assert report(CALIBRANT_THREADS="3") == (True, first)


BITS = """
import numpy as np, calibrant as cal
from calibrant.recalibration import HistogramBinning, TemperatureScaling
rng = np.random.default_rng(0)
z = rng.normal(size=(2000, 40)).astype(np.float32) * 3
y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
print(repr(cal.evaluate(y, logits=z).to_dict()))
print(TemperatureScaling().fit(z, y).temperature_)
print(HistogramBinning().fit(z, y).predict_proba(z[:50]).tolist())
"""


def test_ten_fresh_processes_give_equal_bits():
    command = [sys.executable, "-W", "ignore", "-c", BITS]
    found = []
    for seed in range(0, 10, 2):  # two at a time; texts are hashed otherwise in each
        each = [os.environ | {"PYTHONHASHSEED": str(seed + i)} for i in range(2)]
        runs = [
            subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for env in each
        ]
        found += [run.communicate()[0] for run in runs]
    assert len(found) == 10
    assert len(found[0]) > 10_000
    assert set(found) == {found[0]}


NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|-?\d+e-?\d+")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hidden", "asked"])
def test_all_of_it_works_where_the_module_was_not_built(how):
    variables = {"CALIBRANT_ENGINE": "numpy"} if how == "asked" else {}
    compiled, found = report(*([how] if how == "hidden" else []), **variables)
    assert not compiled
    _, expected = report()
    for lines in zip(found, expected, strict=True):
        got, want = (np.array(NUMBER.findall(line), float) for line in lines)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


# -- what the loops are given --------------------------------------------------------

N, K = 5, 3
CALLS = {  # arguments that are fine
    "reduce": (
        *(1, 1e-3, K, np.zeros((N, K), np.float32), np.zeros(N, np.int64)),
        *np.zeros((5, N)),
        *(np.zeros(N, np.int32), np.zeros(N, bool)),
    ),
    "bend": (1.0, K, np.zeros((N, K)), np.zeros(N, np.int64), *np.zeros((4, N))),
    "replace": (
        *(K, np.full((N, K), 0.2), np.arange(5) / 4, np.zeros((4, K))),
        *(np.zeros(0, np.int64), np.zeros((N, K))),
    ),
    "tally": (
        *(K, np.full((N, K), 0.2), np.arange(5) / 4, None),
        *(np.zeros(N, np.int64), *np.zeros((2, K, 4))),
    ),
    "add_up": (K, np.full((N, K), 0.2), np.zeros(N)),
    "follow": (
        *(K, np.arange(K + 1), np.zeros((K, 4)), np.zeros(K), np.zeros(K)),
        *(np.full((N, K), 0.2), np.zeros((N, K))),
    ),
    "stretches": (
        *(K, np.full((N, K), 0.2), np.ones(N), np.arange(K + 1), np.full(K, 0.1)),
        *(np.full(K, 0.1), *np.zeros((3, K)), *np.zeros((3, 3 * K))),
    ),
    "residual": (3, *np.full((2, N), 0.5), None, np.zeros((CELLS, 3))),
    "add_rows": (
        *(CELLS, (np.zeros(N, bool),), np.zeros((19, STEPS)), None, None),
        *(np.zeros(STEPS, np.int32), np.zeros(19 * N), None, *np.full((5, N), 0.5)),
    ),
    "add_pairs": (
        24,
        np.zeros((2 * (STEPS + 2), 24)),
        np.full(N, 0.5),
        np.ones(N),
        None,
    ),
    "add_top": (
        *(32, 300, np.zeros((2 * (STEPS + 2), 32)), np.zeros((K, 300))),
        *(*np.full((5, N), 0.5), np.zeros(N, np.int32)),
    ),
    "add_batch": (
        *(15, np.zeros((STEPS, 40)), *np.zeros((2, STEPS)), np.zeros((2, 5))),
        *(np.zeros(2), np.zeros((K, 15)), np.ones(N, bool), np.zeros(N, np.int64)),
        *(*np.full((5, N), 0.5), np.zeros(7 * N)),
    ),
    "fit_platt": (
        *(0.5, 0.0625, 0.0, 1e-6, 50, 1.5, np.arange(N) / N, np.arange(N) / 2 - 1),
        *(*np.ones((3, N)), *np.zeros((2, K)), *np.zeros((4, K))),
    ),
    "sort": (np.arange(N), np.zeros(N, np.int64), np.arange(N), np.zeros(N, np.int64)),
    "poisson": (1, 7, np.ones(K), np.full(K, 21), np.zeros((K, 7))),
    "kernel_sums": (2, np.ones(4), np.arange(K), np.arange(N) // 2, *np.ones((2, N))),
    "pairs": (
        *(0.1, np.ones(4), np.arange(K), np.arange(N) // 2, np.ones((2, N))),
        *(np.ones((N, 1)), *np.ones((8, N)), np.zeros((2, 1))),
    ),
    "events": (*np.full((2, K), 0.5), np.zeros((K, 7), np.float32), np.zeros((K, 7))),
    "quantile": (4.0, 9.0, 0.1, 2.0),
    "crossings": (8, 2.0, np.ones(K), np.ones((N, K)), np.ones(N)),
    "left_out": (0.25, 1.5, 6.0, 6, *np.full((3, N), 0.5), np.zeros(N)),
    "add_cells": (K, np.arange(N) // 2, np.ones((2, N)), np.zeros((2, K))),
    "node_weights": (K, np.ones((5, 5)), np.ones((2, 5, K)), np.zeros((2, K + 4))),
    "bells": (
        *(0.1, 0.86, np.arange(N) / N, np.arange(K) / K, np.ones((2, K))),
        np.zeros((2, N)),
    ),
}


def call(name, arguments):
    return getattr(compiled.loops, name)(*arguments)


def spoilt(x):
    """Arrays that no loop may take, and numbers that are none."""
    if not isinstance(x, np.ndarray):
        return [[], "x", object()]
    wrong = [x.astype(np.complex128), x.astype(np.float16), None, 3]
    if x.size:
        wrong.append(np.repeat(x, 2, axis=-1)[..., ::2])
    if x.itemsize > 1:
        wrong += [x.astype(x.dtype.newbyteorder()), unaligned(x)][: 2 if x.size else 1]
    return wrong


@pytest.mark.parametrize("name", CALLS)
def test_a_loop_takes_what_it_is_for_and_refuses_all_else(name):
    given = CALLS[name]
    call(name, given)
    for place, argument in enumerate(given):
        if argument is None or isinstance(argument, tuple):
            continue
        wrong = spoilt(argument)
        if isinstance(argument, np.ndarray) and len(argument) == N:
            wrong += [argument[1:], np.concatenate([argument, argument])]
        for one in wrong:
            with pytest.raises((TypeError, ValueError, BufferError)):
                call(name, (*given[:place], one, *given[place + 1 :]))
    for count in range(len(given) - (name == "add_rows")):  # any number of columns
        with pytest.raises((TypeError, SystemError, IndexError)):
            call(name, given[:count])
    with pytest.raises(TypeError):
        call(name, (*given, *[np.zeros(N, np.float16)] * 50))


@pytest.mark.parametrize("name", ["reduce", "bend"])
@pytest.mark.parametrize("label", [-1, K, 2**62])
def test_a_label_beyond_the_columns_is_refused(name, label):
    given = list(CALLS[name])
    place = next(i for i, x in enumerate(given) if getattr(x, "dtype", 0) == np.int64)
    given[place] = np.array([0, 1, label, 0, 0])
    with pytest.raises(ValueError, match="a label is no column"):
        call(name, given)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("value", [NAN, INF, -INF, -1.0, 2.0, 1e308, 5e-324, -0.0])
def test_no_number_makes_a_loop_leave_its_arrays(name, value):
    """Sanitizers watch (`make sanitize`): cells and bins are found for any number."""
    given = [x.copy() if isinstance(x, np.ndarray) else x for x in CALLS[name]]
    for x in given:
        if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.shape[0] == N:
            with np.errstate(over="ignore"):
                x.flat[::2] = value
    call(name, given)


def test_no_rows_are_no_rows():
    out, bad = reduce("compiled", "logits", np.zeros((0, 4)), np.zeros(0, int))
    assert len(bad) == len(out.confidence) == 0
    moments = np.zeros((3, CELLS))
    add_residual(moments, columns_of(np.zeros(0), np.zeros(0)))
    assert not moments.any()


def test_parts_of_residuals_add_up(built, monkeypatch):
    rng = np.random.default_rng(0)
    columns = Columns(rng.random(5000), None, rng.integers(0, 2, 5000).astype(float))
    whole, parts = np.zeros((2, 3, CELLS))
    add_residual(whole, columns)
    monkeypatch.setattr("calibrant._sketch.grid.ROWS_OF_RESIDUALS", 300)
    add_residual(parts, columns)
    np.testing.assert_allclose(parts, whole, atol=1e-12)
    assert np.abs(whole).max() > 0


def test_where_no_affinity_is_known_every_core_counts(monkeypatch):
    monkeypatch.delenv("CALIBRANT_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert engines.cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert engines.cores() == 1


def test_smooth_ece_of_weighted_rows_is_that_of_numpy(built, monkeypatch):
    rng = np.random.default_rng(1)
    h, w = rng.random(2000), rng.random(2000) + 0.1
    given = {"confidence": h, "sample_weight": w}
    hit = rng.random(2000) < h**2
    fast = cal.smooth_ece(hit, **given)
    monkeypatch.setenv("CALIBRANT_ENGINE", "numpy")
    assert cal.smooth_ece(hit, **given) == pytest.approx(fast, rel=1e-9)
    assert cal.smooth_ece(hit, confidence=h) != pytest.approx(fast, rel=1e-3)
