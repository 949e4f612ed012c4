"""Rows for the tests of engines, and what it means that two sketches are the same."""

import numpy as np
import pytest

import calibrant as cal

EDGES = (0.0, 1.0, 0.5, 0.6, 0.2, 1 / 3, 1 - 1e-10, 1 - 2.0**-53, 1e-12, 1e-300)


def pairs(n=12_000, seed=0):
    """Columns of pairs, with certain and nearly certain rows and edges of cells."""
    rng = np.random.default_rng(seed)
    h = rng.beta(3, 1, n)
    h[: len(EDGES)] = h[-len(EDGES) :] = EDGES
    h[50:9651] = np.arange(9601) / 9600
    a = (rng.random(n) < h).astype(np.int8)
    a[0], a[1] = 1, 0  # infinite losses
    with np.errstate(divide="ignore"):
        log_loss = -1.2 * np.log(np.where(a == 1, h, 1 - h))
    return {
        "h": h,
        "a": a,
        "brier": 1.3 * (a - h) ** 2,
        "log": log_loss,
        "w": rng.integers(0, 4, n).astype(float),
        "g": rng.choice(["north", "south"], n),
        "v": rng.integers(0, 8, n) / 4,
        "c": rng.integers(0, 300, n),
    }


def forecasts(n=4000, k=4, seed=1):
    """Columns of probabilities with a label, its name, a weight; some rows certain."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.3), n)
    p[:5], p[5:9] = np.eye(k)[0], 1 / k
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    y[:3] = 1  # certain and wrong
    columns = {f"p_{i}": p[:, i] for i in range(k)}
    names = np.array(list("abcdefghij"))[y]
    return columns | {"y": y, "name": names, "w": rng.integers(0, 3, n).astype(float)}


def matrix(columns):
    return np.stack([x for name, x in columns.items() if name.startswith("p_")], axis=1)


PAIRS = {
    "plain": {},
    "loss": {"loss": "brier"},
    "losses": {"loss": {"brier": "brier", "log": "log"}},
    "weight": {"sample_weight": "v"},
    "weight and losses": {
        "sample_weight": "v",
        "loss": {"brier": "brier", "log": "log"},
    },
    "weight, group and loss": {"sample_weight": "w", "group": "g", "loss": "brier"},
    "frequency": {"frequency": "w"},
    "weight and frequency": {"sample_weight": "v", "frequency": "w"},
    "cluster": {"cluster": "c", "sample_weight": "v", "frequency": "w"},
    "cluster and group": {"cluster": "c", "group": "g"},
}


def sketch_pairs(rows, loss=None, **columns):
    """The sketch of the same rows, added by NumPy at once."""
    if isinstance(loss, dict):
        loss = {name: rows[column] for name, column in loss.items()}
    elif loss is not None:
        loss = rows[loss]
    given = {name: rows[x] for name, x in columns.items()}
    return cal.Sketch(engine="numpy").update_pairs(
        rows["a"], rows["h"], loss=loss, **given
    )


def assert_same_sums(got, want, tolerance=1e-12):
    """Every sum of every cell, to a share of the sum over all cells or of the weight."""
    assert got.kind == want.kind
    assert list(got.groups) == list(want.groups)
    assert_same_cells(got.cells, want.cells, tolerance)
    for name, cells in want.groups.items():
        assert_same_cells(got.groups[name], cells, tolerance)
    for mine, theirs in zip(got.per_class, want.per_class, strict=True):
        assert_same_cells(mine, theirs, tolerance)


def assert_same_cells(got, want, tolerance):
    assert got.rows == want.rows
    np.testing.assert_array_equal(got.low, want.low)
    np.testing.assert_array_equal(got.high, want.high)
    assert got.certain_no == want.certain_no
    assert got.certain_yes == want.certain_yes
    weight = want["weight_0"].sum()
    for name in want.fields:
        allowed = tolerance * max(np.abs(want[name]).sum(), weight)
        off = np.abs(got[name] - want[name]).max()
        assert off <= allowed, name
    for name, totals in want.totals.items():
        np.testing.assert_allclose(
            got.totals[name].as_array(),
            totals.as_array(),
            rtol=tolerance,
            atol=tolerance * weight,
        )
    assert got.count == want.count
    assert (got.squares is None) == (want.squares is None)
    if want.squares is not None:
        size = np.abs(want.squares).sum(axis=1, keepdims=True)
        allowed = tolerance * np.maximum(size, size[0])
        assert (np.abs(got.squares - want.squares) <= allowed).all()
    assert_same_clusters(got.clusters, want.clusters, tolerance * weight)
    assert (got.within is None) == (want.within is None)
    if want.within is not None:
        np.testing.assert_allclose(got.within, want.within, atol=tolerance * weight)


def assert_same_clusters(got, want, tolerance):
    assert (got is None) == (want is None)
    if want is not None:
        assert got.folded == want.folded
        np.testing.assert_array_equal(got.cluster, want.cluster)
        np.testing.assert_array_equal(got.cell, want.cell)
        np.testing.assert_allclose(got.sums, want.sums, atol=tolerance)


def assert_same_metrics(got, want):
    """Metrics of an evaluation of the rows, as near as the bounds of the sketch say."""
    found, bounds = cal.evaluate(got, interval=None), got.bounds()
    if not got.cells.exact:
        bounds |= OF_ORDER
    for name, value in want.metrics.items():
        near = pytest.approx(float(value), abs=bounds.get(name, 0) + 1e-9, nan_ok=True)
        assert float(found.metrics[name]) == near, name


OF_ORDER = {"mcb": 1e-4, "dsc": 1e-4, "ece_debiased": 1e-3}
"""Metrics that depend on the order within cells, and have no bound of their own."""
