"""Cells: sums that add up, and stand for the rows."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs

from calibrant._inputs.divergences import BRIER, BUILT_IN, LOG
from calibrant._inputs.predictions import read_predictions, read_weights
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import (
    CELLS,
    add_moments,
    cell_of,
    coarsen,
    node_places,
    node_weights,
)


def sketch_of(h, a, w=None):
    read = read_predictions(a, confidence=h)
    weight, squared = read_weights(w, None, len(h), part=True)
    read = replace(read, weight=weight, squared=squared)
    return Cells(BUILT_IN).update(reduce_to_columns(read))


def sums(sketch):
    totals = [total.as_array() for total in sketch.totals.values()]
    scalars = [sketch.rows, sketch.count, sketch.weight]
    scalars += [sketch.certain_no, sketch.certain_yes]
    parts = [sketch.moments, sketch.log_odds_sums, sketch.infinite, sketch.squared_sums]
    return np.concatenate([*totals, scalars, *(part.ravel() for part in parts)])


@given(pairs(most=15), pairs(most=15), pairs(most=15))
def test_shards_add_up_in_any_order(a, b, c):
    x, y, z = (sketch_of(*rows) for rows in (a, b, c))
    whole = sketch_of(*(np.concatenate(parts) for parts in zip(a, b, c, strict=True)))
    for merged in ((x + y) + z, x + (y + z), z + x + y):
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(
                sums(merged), sums(whole), rtol=1e-12, atol=1e-12
            )
    assert (x + y).rows == x.rows + y.rows


def test_adding_changes_neither_part():
    x, y = sketch_of([0.2], [1]), sketch_of([0.7], [0])
    before = sums(x).copy()
    _ = x + y
    np.testing.assert_array_equal(sums(x), before)


def test_incompatible_sketches_are_refused():
    with pytest.raises(
        ValueError, match=r"same divergences and number: \['brier'\], 9600"
    ):
        Cells({"brier": BRIER}) + Cells({"log": LOG})
    with pytest.raises(ValueError, match="same divergences and number"):
        Cells({"brier": BRIER}) + Cells({"brier": BRIER}, cells=2 * CELLS)
    with pytest.raises(TypeError):
        Cells({"brier": BRIER}) + 1


@given(pairs(weighted=False), st.sampled_from([np.cos, np.exp, lambda x: x**4 - x]))
def test_nodes_stand_for_the_rows_under_any_smooth_function(rows, function):
    h, a, _ = rows
    weights = node_weights(sketch_of(h, a).moments)
    places = node_places(CELLS)
    assert weights[0] @ function(places) == pytest.approx(function(h).sum(), rel=1e-12)
    assert weights[1] @ function(places) == pytest.approx(
        (a * function(h)).sum(), abs=1e-11
    )


@given(pairs())
def test_coarsening_keeps_moments_exactly(rows):
    h, _, w = rows
    fine = np.zeros((1, 5, 600))
    add_moments(fine, h, [w])
    direct = np.zeros((1, 5, 150))
    add_moments(direct, h, [w])
    np.testing.assert_allclose(coarsen(fine, 150), direct, atol=1e-12)


@pytest.mark.parametrize("cells", [1, 3, 7, 10, 15, 49, 100, 4800, CELLS])
def test_edges_belong_to_the_cell_on_their_left(cells):
    edges = np.arange(cells + 1) / cells
    want = np.maximum(np.arange(-1, cells), 0)
    np.testing.assert_array_equal(cell_of(edges, cells), want)
    above = np.nextafter(edges[:-1], 1)
    np.testing.assert_array_equal(cell_of(above, cells), np.arange(cells))


def test_a_million_rows_sum_as_exactly_as_fsum():
    rng = np.random.default_rng(0)
    h = rng.random(1_000_000)
    a = (rng.random(1_000_000) < h).astype(float)
    sketch = sketch_of(h, a)
    assert sketch.moments[1, 0].sum() == a.sum()
    total = sketch.totals["brier"].loss
    assert total == pytest.approx(math.fsum((a - h) ** 2), rel=1e-13)
    assert sketch.table.nbytes < 4e6
