"""The paper's kernel regression, against its O(n^2) definition."""

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import pairs, problems

import calibrant as cal
from calibrant._inputs.divergences import BUILT_IN
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.kernels import EPANECHNIKOV, GAUSSIAN
from calibrant._stats.published import LEAST_SUPPORT, PLACES, calibration_error, regress

INSIDE = (0.5, 0.2, 0.6, 1 / 3, 1 - 1e-9, 1e-12)
BANDWIDTHS = st.sampled_from([0.01, 0.03, 0.05, 0.25, 1.0])


def columns_of(h, a, w) -> Columns:
    read = read_predictions(a, confidence=h, sample_weight=w)
    return reduce_to_columns(read)


def of_mean_one(h, a, w):
    """The same rows with weights free of their unit, as the library reads them."""
    return h, a, w / w.mean()


def sketch_in_shards(columns, shards=3):
    """Add up sketches of parts of the rows."""
    parts = np.array_split(np.arange(len(columns)), shards)
    sketches = [
        Cells(BUILT_IN).update(columns.take(part)) for part in parts if len(part)
    ]
    return sum(sketches[1:], sketches[0])


@given(pairs(), BANDWIDTHS, st.sampled_from(["none", "reflect"]))
def test_curve_from_merged_sketches_equals_the_definition(rows, bandwidth, boundary):
    h, a, w = of_mean_one(*rows)
    sketch = sketch_in_shards(columns_of(h, a, w))
    curve = regress(sketch, GAUSSIAN, bandwidth, boundary)
    m, support = oracles.nadaraya_watson(PLACES, h, a, w, bandwidth, boundary=boundary)
    loss, _ = oracles.nadaraya_watson(
        PLACES, h, oracles.unit("brier", a, h), w, bandwidth, boundary=boundary
    )
    seen = support >= LEAST_SUPPORT * (1 + 1e-6)
    np.testing.assert_allclose(curve.accuracy[seen], m[seen], atol=1e-8)
    np.testing.assert_allclose(curve.losses["brier"][seen], loss[seen], atol=1e-8)
    np.testing.assert_allclose(curve.support, support, atol=1e-7 * w.sum())
    assert np.isnan(curve.accuracy[support < LEAST_SUPPORT * (1 - 1e-6)]).all()


@given(pairs(edges=INSIDE), BANDWIDTHS, st.sampled_from(["none", "reflect"]))
@pytest.mark.parametrize("divergence", ["brier", "log"])
@pytest.mark.parametrize("estimator", ["direct", "plugin"])
def test_calibration_error_equals_the_definition(
    divergence, estimator, rows, bandwidth, boundary
):
    h, a, w = of_mean_one(*rows)
    sketch = sketch_in_shards(columns_of(h, a, w))
    regression = regress(sketch, GAUSSIAN, bandwidth, boundary)
    got = calibration_error(regression, sketch, divergence, estimator)
    want = oracles.paper_error(
        h, a, w, divergence, bandwidth, estimator, boundary=boundary
    )
    assert got == pytest.approx(want, abs=1e-10, rel=1e-10)


@given(
    pairs(),
    st.sampled_from([0.003, 0.05, 0.3, 1.7]),
    st.sampled_from(["none", "reflect"]),
)
@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_epanechnikov_from_rows_equals_the_definition(
    divergence, rows, bandwidth, boundary
):
    h, a, w = of_mean_one(*rows)
    options = {"kernel": "epanechnikov", "boundary": boundary}
    ev = cal.evaluate_pairs(
        a, h, sample_weight=w, bandwidth=bandwidth, divergence=divergence, **options
    )
    want = oracles.paper_error(h, a, w, divergence, bandwidth, **options)
    assert ev.decomposition.calibration == pytest.approx(want, abs=1e-12)
    m, support = oracles.nadaraya_watson(PLACES, h, a, w, bandwidth, **options)
    seen = ~np.isnan(ev.curve.accuracy)
    assert np.array_equal(
        seen[support > 2 * LEAST_SUPPORT],
        np.ones((support > 2 * LEAST_SUPPORT).sum(), bool),
    )
    np.testing.assert_allclose(ev.curve.accuracy[seen], m[seen], atol=1e-12)


@pytest.mark.parametrize("bandwidth", [0.01, 0.05])
def test_five_thousand_rows_keep_the_promise(bandwidth):
    rng = np.random.default_rng(1)
    h = np.round(rng.beta(4, 0.6, 5000), 5)
    a = (rng.random(5000) < h**1.5).astype(float)
    w = np.ones(5000)
    h = np.clip(h, 1e-5, 1 - 1e-9)
    sketch = sketch_in_shards(columns_of(h, a, w), 7)
    regression = regress(sketch, GAUSSIAN, bandwidth)
    for divergence in ("brier", "log"):
        got = calibration_error(regression, sketch, divergence, "direct")
        want = oracles.paper_error(h, a, w, divergence, bandwidth)
        assert got == pytest.approx(want, abs=1e-10)
    m, support = oracles.nadaraya_watson(PLACES, h, a, w, bandwidth)
    seen = support > 2 * LEAST_SUPPORT
    np.testing.assert_allclose(regression.accuracy[seen], m[seen], atol=1e-8)


def test_epanechnikov_from_a_sketch_is_close():
    rng = np.random.default_rng(2)
    h = rng.random(4000)
    a = (rng.random(4000) < h**2).astype(float)
    sketch = Cells(BUILT_IN).update(columns_of(h, a, None))
    curve = regress(sketch, EPANECHNIKOV, 0.05)
    m, _ = oracles.nadaraya_watson(
        PLACES, h, a, np.ones(4000), 0.05, kernel="epanechnikov"
    )
    np.testing.assert_allclose(curve.accuracy, m, atol=2e-4)


def test_square_curve_integrates_to_one_thirtieth():
    # Accuracy h^2 at uniform confidence h: d_CAL = int (h^2 - h)^2 dh = 1/30.
    h = (np.arange(20_000) + 0.5) / 20_000
    error = cal.calibration_error(h**2, confidence=h, bandwidth=0.004)
    assert error == pytest.approx(1 / 30, rel=2e-3)


@pytest.mark.parametrize("h", [0.0, 1e-9, 0.3, 0.5, 1 - 1e-9, 1.0])
def test_density_of_one_row_integrates_to_one_when_reflected(h):
    ev = cal.evaluate_pairs([1.0], [h], bandwidth=0.05, boundary="reflect")
    assert np.trapezoid(ev.curve.density, ev.curve.confidence) == pytest.approx(
        1, abs=1e-4
    )


def test_nothing_is_estimated_where_no_row_is_near():
    ev = cal.evaluate_pairs([1, 0, 1, 1], [0.1, 0.1, 0.9, 0.9], bandwidth=0.02)
    middle = (ev.curve.confidence > 0.2) & (ev.curve.confidence < 0.8)
    assert np.isnan(ev.curve.accuracy[middle]).all()
    assert (ev.curve.support[middle] < 1e-3).all()
    assert ev.curve.accuracy[48] == pytest.approx(0.5)


def test_certain_and_wrong_costs_infinitely_much_under_log():
    ev = cal.evaluate_pairs(
        [1, 0, 1], [1.0, 1.0, 0.5], divergence="log", bandwidth=0.05
    )
    assert ev.decomposition.calibration == np.inf
    right = cal.evaluate_pairs(
        [1, 1, 1], [1.0, 1.0, 1.0], divergence="log", bandwidth=0.05
    )
    assert right.decomposition.calibration == 0


def test_bandwidth_below_the_grid_gets_a_finer_grid():
    rng = np.random.default_rng(3)
    h = rng.random(2000)
    a = (rng.random(2000) < h).astype(float)
    got = cal.calibration_error(a, confidence=h, bandwidth=0.002)
    want = oracles.paper_error(h, a, np.ones(2000), "brier", 0.002)
    assert got == pytest.approx(want, abs=1e-10)


@settings(max_examples=12)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5000),
    st.sampled_from([0.01, 0.05, 0.25]),
    st.booleans(),
)
def test_any_number_of_rows_up_to_five_thousand_keeps_the_promise(
    seed, n, bandwidth, soft
):
    rng = np.random.default_rng(seed)
    atoms = rng.random(5)
    h = np.where(rng.random(n) < 0.3, rng.choice(atoms, n), rng.beta(3, 0.5, n))
    h = np.clip(h, 1e-9, 1 - 1e-9)
    a = rng.random(n) if soft else (rng.random(n) < h**1.4).astype(float)
    w = rng.integers(1, 4, n).astype(float)
    rows = reduce_to_columns(read_predictions(a, confidence=h, frequency=w))
    sketch = sketch_in_shards(rows, 4)
    regression = regress(sketch, GAUSSIAN, bandwidth)
    for divergence in ("brier", "log"):
        for estimator in ("direct", "plugin"):
            got = calibration_error(regression, sketch, divergence, estimator)
            want = oracles.paper_error(h, a, w, divergence, bandwidth, estimator)
            assert got == pytest.approx(want, abs=1e-10)
    m, support = oracles.nadaraya_watson(PLACES, h, a, w, bandwidth)
    seen = support > 2 * LEAST_SUPPORT
    np.testing.assert_allclose(regression.accuracy[seen], m[seen], atol=1e-8)


@settings(max_examples=20)
@given(problems(classes=(2, 4)), st.sampled_from(["gaussian", "epanechnikov"]))
@pytest.mark.parametrize("target", ["top-label", "positive", "class-wise"])
def test_every_target_is_the_definition_on_its_own_pairs(target, problem, kernel):
    z, y = problem
    z = np.clip(z, -4, 4)  # where 1 - h is exact in the oracle too
    if target == "positive":
        z, y = z[:, :2], y % 2
    p, at = oracles.softmax(z), np.arange(len(y))
    best = z.argmax(axis=1)
    asked = {
        "top-label": [(p[at, best], best == y)],
        "positive": [(p[:, 1], y == 1)],
        "class-wise": [(p[:, j], y == j) for j in range(z.shape[1])],
    }[target]
    options = {"bandwidth": 0.05, "kernel": kernel}
    ev = cal.evaluate(y, logits=z, target=target, **options)
    w = np.ones(len(y))
    for divergence in ("brier", "log"):
        want = sum(
            oracles.paper_error(h, a.astype(float), w, divergence, 0.05, kernel=kernel)
            for h, a in asked
        )
        got = ev.decompositions[divergence].calibration
        assert got == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("h", [0.0, 0.3, 1.0])
def test_density_of_one_row_integrates_to_one_with_every_kernel(h, kernel):
    options = {"bandwidth": 0.05, "boundary": "reflect", "kernel": kernel}
    curve = cal.evaluate_pairs([1.0], [h], **options).curve
    area = np.trapezoid(curve.density, curve.confidence)
    assert area == pytest.approx(1, abs=2e-3)
