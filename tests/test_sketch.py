"""Sketches: any pieces in any order, files that are whole or refused, no row twice."""

import io
import subprocess
import sys
import time
import zipfile
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs

import calibrant as cal
from calibrant._base.records import RecordError
from calibrant._inputs.predictions import hash_names
from calibrant._rows.columns import Columns
from calibrant._sketch import cells as cells_module
from calibrant._sketch import sketch as sketch_module
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import (
    CELLS,
    STEPS,
    add_moments,
    cell_number,
    cell_of,
    log_odds_cell,
    path,
)
from calibrant._sketch.storage import is_sketch

BRIER_AND_LOG = cal.Sketch()._divergences


def rows(n=4000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    z = 3 * rng.normal(size=(n, k))
    return (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1), z


def assert_same_sums(one, two, tolerance=1e-12):
    """All sums agree, relative to the largest of their kind."""
    one, two = one.cells, two.cells
    assert one.rows == two.rows
    scale = np.abs(one.table).max(axis=0) + 1e-300
    assert (np.abs(one.table - two.table) / scale).max() < tolerance
    np.testing.assert_array_equal(one.low, two.low)
    np.testing.assert_array_equal(one.high, two.high)
    for name, total in one.totals.items():
        np.testing.assert_allclose(
            total.as_array(), two.totals[name].as_array(), rtol=tolerance
        )
    assert one.exact == two.exact
    if one.exact:
        np.testing.assert_allclose(one.distinct, two.distinct, atol=1e-12)


# -- what is summed ------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_a_cell_lies_in_its_cells_on_either_grid(h):
    h = np.array([*h, 0.0, 0.5, 1.0])
    p, z = path()
    cell = cell_number(h)
    assert ((cell >= 0) & (cell < STEPS)).all()
    np.testing.assert_array_equal(p[cell], cell_of(h, CELLS))
    with np.errstate(divide="ignore"):
        place = np.clip(np.log(h) - np.log1p(-h), -20, 20) + 20
    np.testing.assert_array_equal(z[cell], np.minimum((place * 50).astype(int), 1999))


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "count"), [(50_000, CELLS), (50_000, 3 * CELLS), (9, CELLS)]
)
def test_cells_add_up_to_the_sums_of_the_rows_on_either_grid(
    built, engine, soft, weighted, n, count
):
    rng = np.random.default_rng(1)
    h = rng.beta(2, 0.3, n)
    h[:3] = 0.0, 1.0, 0.5
    a = rng.random(n) if soft else (rng.random(n) < h).astype(float)
    w = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    columns = Columns(h, None, a, {}, w if weighted else None)
    got = Cells(BRIER_AND_LOG, count).update(columns, engine)
    z, losses = columns.log_odds, [columns.loss(d) for d in BRIER_AND_LOG.values()]
    lost = [w * np.isinf(x) for x in losses]
    brier, log, finite_z = (
        np.where(np.isinf(x), 0, w * x) for x in (*losses, w * z / w)
    )
    moments = np.zeros((6, 5, count))
    add_moments(moments, h, [w, w * a, brier, w * 2 * h, log, finite_z])
    infinite = np.zeros((2, 1, count))
    add_moments(infinite, h, lost)
    cell = np.clip(log_odds_cell(z) - 1, 0, 1999)
    powers = [w * (a - h) ** j for j in range(1, 5)]
    values = [w, w * a, w * a * a, *powers, w * h, w * np.clip(z, -20, 20), brier, log]
    want = {
        "moments": moments,
        "infinite": infinite[:, 0],
        "log_odds_sums": np.array([np.bincount(cell, x, 2000) for x in values]),
    }
    assert (got.rows, got.weight) == (n, w.sum())
    assert (got.certain_no, got.certain_yes) == (w[h == 0].sum(), w[h == 1].sum())
    for name, two in want.items():
        one = getattr(got, name)
        assert np.abs(one - two).max() <= 1e-12 * max(np.abs(two).max(), 1), name
    assert got.totals["brier"].loss == pytest.approx(brier.sum(), rel=1e-12)
    assert got.totals["log"].loss == pytest.approx(log.sum(), rel=1e-12)


def test_what_was_computed_is_computed_again_after_more_rows():
    one, two = (Columns(np.array([h]), None, np.ones(1)) for h in (0.3, 0.8))
    cells = Cells(BRIER_AND_LOG).update(one)
    before = cells.moments, cells.log_odds_sums, cells.infinite, cells.weight
    cells.update(two)
    both = Cells(BRIER_AND_LOG).update(one) + Cells(BRIER_AND_LOG).update(two)
    assert before[3] == 1
    assert cells.weight == 2
    np.testing.assert_array_equal(cells.moments, both.moments)
    np.testing.assert_array_equal(cells.log_odds_sums, both.log_odds_sums)


@pytest.mark.slow
def test_ten_million_rows_are_summed_to_twelve_digits():
    """Against exact sums, on rows that all share one cell: the worst that can be."""
    n, pieces = 10_000_000, 10
    h = 0.70001 + 2e-5 * np.random.default_rng(2).random(n // pieces)
    sketch = cal.Sketch(engine="numpy")
    for _ in range(pieces):
        sketch.update_pairs(np.ones(len(h)), h)
    cells = sketch.cells
    assert (cells["weight_0"] > 0).sum() == 1
    assert cells["weight_0"].sum() == n
    for name, value in {"h": h, "r1": 1 - h, "r4": (1 - h) ** 4}.items():
        exact = pieces * fsum(value.tolist())
        assert cells[name].sum() == pytest.approx(exact, rel=1e-12)


def test_counts_are_whole_numbers_beyond_single_precision():
    big = 2.0**52
    one = cal.Sketch().update_pairs([1, 0], [0.5, 0.5], sample_weight=[big, 1.0])
    total = (one + one).cells["weight_0"].sum()
    assert total == 2 * big + 2


# -- adding up -----------------------------------------------------------------------


@given(pairs(least=3, most=30), st.sampled_from([0, 8, 1 << 17]), st.data())
def test_sketches_add_up_in_any_order_and_any_brackets(found, most, draw):
    h, a, w = found
    cuts = sorted(
        draw.draw(st.sets(st.integers(1, len(h) - 1), min_size=2, max_size=2))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "MOST_VALUES", most)
        one, two, three = (
            cal.Sketch().update_pairs(a[i:j], h[i:j], sample_weight=w[i:j])
            for i, j in zip([0, *cuts], [*cuts, len(h)], strict=True)
        )
        left, right = (one + two) + three, one + (two + three)
        other = three.merge(two, one)
        whole = cal.Sketch().update_pairs(a, h, sample_weight=w)
        for sketch in (right, other, whole):
            assert_same_sums(left, sketch)


def weighed(n=3000, clusters=200, seed=0):
    rng = np.random.default_rng(seed)
    h = rng.beta(3, 1, n)
    h[: n // 4] = h[: n // 4].round(2)
    a = rng.random(n) < h
    given = {
        "sample_weight": rng.exponential(size=n),
        "frequency": rng.integers(0, 3, n),
    }
    return a, h, {**given, "cluster": rng.integers(0, clusters, n)}


@pytest.mark.parametrize("clusters", [40, 100, 500])
@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_merged_weights_and_clusters_are_those_of_the_rows(clusters, unit):
    a, h, given = weighed(clusters=clusters)
    shards = [
        cal.Sketch().update_pairs(
            a[i::3], h[i::3], **{name: x[i::3] for name, x in given.items()}
        )
        for i in range(3)
    ]
    whole = cal.Sketch().update_pairs(a, h, **given)
    scaled = {**given, "sample_weight": unit * given["sample_weight"]}
    rows = cal.evaluate_pairs(a, h, **scaled)
    for merged in (shards[0].merge(*shards[1:]), shards[2] + shards[1] + shards[0]):
        assert_same_sums(merged, whole)
        assert merged.cells.clusters.folded == (clusters > 128)
        ours, theirs = merged.cells.clusters, whole.cells.clusters
        np.testing.assert_array_equal(ours.cluster, theirs.cluster)
        np.testing.assert_allclose(ours.sums, theirs.sums, rtol=1e-12, atol=1e-12)
        ev = cal.evaluate(merged)
        assert (ev.n, ev.rows) == (rows.n, rows.rows)
        assert ev.n_effective == pytest.approx(rows.n_effective, rel=1e-12)
        for name in ("accuracy", "brier", "nll", "ece", "smooth_ece", "ks_error"):
            assert ev.metrics[name] == pytest.approx(rows.metrics[name], abs=1e-10)
        assert abs(ev.decomposition.calibration - rows.decomposition.calibration) < 2e-3


def test_each_row_of_a_cluster_is_in_its_own_cell_whatever_the_round_off():
    rng = np.random.default_rng(1)
    h = np.concatenate([rng.random(45) * 0.05, rng.random(45)]).round(5).repeat(3)
    y, cluster = (rng.random(90) < h[::3]).repeat(3), np.arange(90).repeat(3)
    sketch = cal.Sketch().update(y, probs=h, cluster=cluster)
    ours, theirs = cal.evaluate(sketch), cal.evaluate(y, probs=h, cluster=cluster)
    for key in ("ece", "ace", "smooth_ece"):
        want = theirs.metrics[key].interval
        assert ours.metrics[key].interval == pytest.approx(want, abs=1e-12)


def test_a_sketch_tells_what_weights_and_clusters_leave():
    a, h, given = weighed(clusters=50)
    sketch = cal.Sketch().update_pairs(a, h, **given)
    facts, w = sketch.facts(), given["frequency"] * given["sample_weight"]
    assert facts["weight"] == pytest.approx(w.sum())
    assert facts["count"] == given["frequency"].sum()
    left = w.sum() ** 2 / (w @ given["sample_weight"])
    assert facts["effective"] == pytest.approx(left)
    assert facts["clusters"] == 50
    assert f"effective {left:,.6g}" in str(sketch)
    assert "clusters 50" in str(sketch)
    plain = cal.Sketch().update_pairs(a, h)
    assert plain.facts()["clusters"] is None
    assert "effective" not in str(plain)
    many = cal.Sketch().update_pairs(a, h, cluster=np.arange(len(h)))
    assert "clusters 128 or more" in str(many)
    some = cal.Sketch().update_pairs(a, h, cluster=np.arange(len(h)) % 150)
    count = cal.evaluate(some).n_clusters
    assert count < 128  # some of its 128 groups of clusters are empty
    assert f"in {count} or more clusters" in str(cal.evaluate(some))
    again = cal.Evaluation.from_json(cal.evaluate(some).to_json())
    assert f"in {count} or more clusters" in str(again)


def test_classes_of_a_sketch_of_many_clusters_are_of_so_many_or_more():
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 300)
    sketch = cal.Sketch(target="class-wise")
    sketch.update(np.arange(300) % 3, probs=p, cluster=np.arange(300))
    assert " or more clusters" in str(cal.evaluate(sketch))


@pytest.mark.parametrize("digits", [2, 17])
def test_weights_that_depend_on_the_label_are_those_of_the_rows(digits):
    a, h, given = weighed()
    h, w = h.round(digits), np.where(a, 10.0, 1.0) * given["sample_weight"]
    rows = cal.evaluate_pairs(a, h, sample_weight=w)
    sketch = cal.evaluate(cal.Sketch().update_pairs(a, h, sample_weight=w))
    for name in ("accuracy", "brier", "ece", "auroc", "confidence_gap", "mcb"):
        got, want = sketch.metrics[name], rows.metrics[name]
        assert got == pytest.approx(want, abs=1e-10), name
        # Of equal confidences only the mean weight is known, not how far each row pulls.
        assert got.interval == pytest.approx(want.interval, rel=1e-4), name
    ours, theirs = (ev.decomposition.calibration for ev in (sketch, rows))
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert ours.interval == pytest.approx(theirs.interval, rel=0.03)


def test_soft_labels_are_counted_free_of_unit():
    given = {"y": np.array([[0.5, 0.5], [1, 0]]), "probs": np.full((2, 2), 0.5)}
    w = np.array([3.0, 1.0])
    sketch = cal.Sketch(target="top-label").update(**given, sample_weight=8 * w)
    rows = cal.evaluate(**given, target="top-label", sample_weight=w)
    assert sketch.soft_rows == pytest.approx(rows.soft_rows)


@pytest.mark.parametrize(
    "names",
    [
        np.array([5, 7, 5]),
        np.array([5.0, 7.0, 5.0]),
        np.array(["5", "7", "5"]),
        np.array(["5.0", "7", "5"]),
        np.array([b"5", b"7", b"5"]),
        np.array([5, "7", 5.0], object),
        np.uint8([5, 7, 5]),
    ],
    ids=lambda x: str(x.dtype),
)
def test_a_cluster_is_known_by_its_name_whatever_its_type(names):
    np.testing.assert_array_equal(hash_names(names), hash_names(np.array([5, 7, 5])))
    assert len(set(hash_names(np.array(["1.5", "v5", "5.", "-5", "5"])).tolist())) == 5


def test_merging_leaves_the_parts_as_they_were():
    y, z = rows(100)
    one, two = cal.Sketch().update(y, logits=z), cal.Sketch().update(y, logits=z)
    before = one.to_bytes()
    both = one + two
    both.update(y, logits=z)
    assert one.to_bytes() == before
    assert (one.rows, both.rows) == (100, 300)


def test_a_sketch_without_rows_adds_nothing():
    some = cal.Sketch().update_pairs([1], [0.5])
    assert (some + cal.Sketch()).rows == (cal.Sketch() + some).rows == 1
    assert cal.Sketch().merge(cal.Sketch()).rows == 0


def test_a_merged_sketch_takes_more_rows():
    y, z = rows(300)
    both = cal.Sketch().update(y[:100], logits=z[:100]) + cal.Sketch()
    both.update(y[100:], logits=z[100:])
    assert_same_sums(both, cal.Sketch().update(y, logits=z))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            lambda y, z: cal.Sketch().update(y, logits=z[:, :3]),
            "numbers of classes: 4 an",
        ),
        (
            lambda y, z: cal.Sketch().update_pairs(y == 0, [0.5] * len(y)),
            "targets: 'top",
        ),
        (
            lambda y, z: cal.Sketch(classes=list("wxyz")).update(
                np.array(list("wxyz"))[y], logits=z
            ),
            "classes:",
        ),
        (
            lambda y, z: cal.Sketch(divergence=CUBIC).update(y, logits=z),
            "different scores: .'brier', 'log'. and .'brier', 'log', 'cubic'.",
        ),
    ],
)
def test_sketches_of_another_kind_are_refused(other, message):
    y, z = rows(50)
    y = np.minimum(y, 2)
    with pytest.raises(ValueError, match=message):
        cal.Sketch().update(y, logits=z) + other(y, z)


CUBIC = cal.Divergence(
    "cubic",
    phi=lambda x: (x**3).sum(axis=1),
    gradient=lambda x: 3 * x**2,
    phi_1d=lambda p: p**3,
    derivative_1d=lambda p: 3 * p**2,
)


# -- evaluation ----------------------------------------------------------------------


def test_probabilities_and_logits_add_up():
    y, z = rows()
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    sketch = cal.Sketch().update(y[:1000], logits=z[:1000])
    got = cal.evaluate(sketch.update(y[1000:], probs=p[1000:]), name="both")
    want = cal.evaluate(y, logits=z)
    assert got.name == "both"
    for name, value in want.metrics.items():
        assert got.metrics[name] == pytest.approx(value, abs=1e-9), name


def test_groups_are_those_of_evaluate():
    y, z = rows()
    group = np.array(["a", "b", "c"])[np.arange(len(y)) % 3]
    sketch = cal.Sketch()
    for part in np.array_split(np.arange(len(y)), 5):
        sketch.update(y[part], logits=z[part], group=group[part])
    merged = sketch + cal.Sketch().update(y[:30], logits=z[:30], group=["d"] * 30)
    assert [*cal.evaluate(merged).per_group] == ["a", "b", "c", "d"]
    got, want = cal.evaluate(sketch), cal.evaluate(y, logits=z, group=group)
    assert [*got.per_group] == [*want.per_group]
    for name, ev in want.per_group.items():
        assert got.per_group[name].n == ev.n
        for metric in ("ece", "brier", "smooth_ece", "auroc"):
            value = pytest.approx(ev.metrics[metric], abs=1e-10)
            assert got.per_group[name].metrics[metric] == value


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_each_class_on_request(kind):
    y, z = rows()
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    scores = {"probs": p, "logits": z}[kind]
    sketch = cal.Sketch(target="class-wise")
    for part in np.array_split(np.arange(len(y)), 3):
        sketch.update(y[part], **{kind: scores[part]})
    sketch = cal.Sketch.from_bytes(sketch.to_bytes())
    got = cal.evaluate(sketch)
    want = cal.evaluate(y, **{kind: scores}, target="class-wise")
    assert [ev.name for ev in got.per_class] == [ev.name for ev in want.per_class]
    for name, value in want.metrics.items():
        assert got.metrics[name] == pytest.approx(value, abs=1e-10), name
    for name, parts in want.decompositions.items():
        error = pytest.approx(parts.calibration, rel=1e-6)
        assert got.decompositions[name].calibration == error


def test_too_many_classes_for_a_sketch_of_each_are_refused(monkeypatch):
    monkeypatch.setattr(sketch_module, "MOST_CLASSES", 3)
    y, z = rows(10)
    with pytest.raises(
        ValueError, match=r"4 classes are more than 3\. Use target='top"
    ):
        cal.Sketch(target="class-wise").update(y, logits=z)


def test_pairs_with_their_full_losses_are_a_top_label():
    y, z = rows()
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    h, hit = p.max(axis=1), p.argmax(axis=1) == y
    brier = ((p - np.eye(4)[y]) ** 2).sum(axis=1)
    log = -np.log(p[np.arange(len(y)), y])
    want = cal.evaluate(y, probs=p)
    for loss in (brier, {"brier": brier, "log": log}):
        got = cal.evaluate(cal.Sketch().update_pairs(hit, h, loss=loss))
        for name in ("brier", "ece", "smooth_ece", "accuracy", "auroc"):
            assert got.metrics[name] == pytest.approx(want.metrics[name], abs=1e-10)
        assert ("nll" in got.metrics) == isinstance(loss, dict)
        parts = got.decomposition
        assert parts.total == pytest.approx(want.decomposition.total, abs=1e-12)
        assert parts.calibration == pytest.approx(want.decomposition.calibration, 1e-6)
        assert "Brier" in str(got)
        assert cal.Evaluation.from_dict(got.to_dict()).metrics == got.metrics


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            [0.1, -0.2],
            r"loss must be neither negative nor immense \(brier\); row 1 is -0.2",
        ),
        ([0.1, np.nan], r"row 1 is nan"),
        ([0.1], r"one entry per row: \(1,\) for 2 rows"),
        (
            {"log": [0.1, 0.2]},
            r"a mapping with 'brier' and perhaps 'log'; got \['log'\]",
        ),
    ],
)
def test_losses_that_cannot_be_are_refused(loss, message):
    sketch = cal.Sketch()
    with pytest.raises(ValueError, match=message):
        sketch.update_pairs([1, 0], [0.9, 0.4], loss=loss)
    assert sketch.rows == 0


def test_a_sketch_is_evaluated_alone():
    sketch = cal.Sketch().update_pairs([1, 0], [0.9, 0.4])
    with pytest.raises(TypeError, match="already holds its rows"):
        cal.evaluate(sketch, probs=[0.5, 0.5])
    with pytest.raises(ValueError, match="holds brier, log, not 'cubic'"):
        cal.evaluate(sketch, divergence=CUBIC)
    with pytest.raises(ValueError, match="no row of positive weight"):
        cal.evaluate(cal.Sketch())


def test_bounds_hold_on_many_distinct_confidences():
    rng = np.random.default_rng(4)
    h = rng.beta(4, 0.4, 200_000)
    a = rng.random(len(h)) < h**1.2
    sketch = cal.Sketch().update_pairs(a, h)
    got = cal.evaluate(sketch, bins=13, interval=None)
    want = cal.evaluate_pairs(a, h, bins=13, interval=None)
    bounds = sketch.bounds(bins=13)
    assert {"auroc", "ks_error", "ece_mass", "ece"} <= set(bounds)
    for name, bound in bounds.items():
        if name in want.metrics:
            assert abs(got.metrics[name] - want.metrics[name]) <= bound
    assert bounds["auroc"] < 1e-3
    few = cal.Sketch().update_pairs(a, h.round(3))
    assert few.bounds(bins=13) == {}


# -- parts that count once -----------------------------------------------------------


def test_a_part_counts_once():
    y, z = rows(60)
    sketch = cal.Sketch()
    for _ in range(2):
        for i in range(3):
            part = slice(20 * i, 20 * i + 20)
            sketch.update(y[part], logits=z[part], part=f"shard {i}")
    assert sketch.rows == 60
    assert sketch.parts == {"shard 0", "shard 1", "shard 2"}
    with pytest.raises(ValueError, match=r"part 'shard 0' is in both .*count twice"):
        sketch + sketch


def test_rows_that_are_refused_leave_no_trace():
    sketch = cal.Sketch().update_pairs([1, 0], [0.9, 0.4])
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match="row 1"):
        sketch.update_pairs([1, 0], [0.9, 1.4], part="bad")
    with pytest.raises(ValueError, match="distinct values"):
        sketch.update_pairs(np.ones(300), np.full(300, 0.5), group=np.arange(300))
    assert sketch.to_bytes() == before


def test_an_interrupted_update_is_not_used(monkeypatch):
    y, z = rows(50)
    sketch = cal.Sketch().update(y, logits=z)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Cells, "_add_values", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sketch.update(y, logits=z)
    for use in (lambda: sketch.rows, sketch.to_bytes, lambda: cal.evaluate(sketch)):
        with pytest.raises(RuntimeError, match="was interrupted"):
            use()


STREAM = """
import sys
from pathlib import Path
import numpy as np
import calibrant as cal

path, slow = Path(sys.argv[1]), sys.argv[2] == "slow"
sketch = cal.Sketch.load(path) if path.exists() else cal.Sketch()
for shard in range(12):
    rng = np.random.default_rng(shard)
    h = rng.random(2_000)
    sketch.update_pairs(rng.random(2_000) < h**2, h, part=f"shard {shard}")
    sketch.save(path, force=True)
    if slow:
        print(shard, flush=True)
        if shard == 10:
            input()  # whoever is to kill it may be late
"""


@pytest.mark.slow
def test_a_stream_killed_again_and_again_gives_the_same_bits(tmp_path):
    def command(path, speed):
        return [sys.executable, "-c", STREAM, str(path), speed]

    whole, path = tmp_path / "whole.npz", tmp_path / "killed.npz"
    subprocess.run(command(whole, "fast"), check=True)
    for after in (2, 5):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command(path, "slow"), **pipes) as process:
            while int(process.stdout.readline()) < after:
                pass
            time.sleep(0.003 * after)
            process.kill()
        assert after <= len(cal.Sketch.load(path).parts) < 12
    subprocess.run(command(path, "fast"), check=True)
    assert path.read_bytes() == whole.read_bytes()


# -- files ---------------------------------------------------------------------------


def test_files_keep_every_bit(tmp_path):
    y, z = rows()
    group = np.where(np.arange(len(y)) % 2, "odd", "even \u2603")
    sketch = cal.Sketch(classes=["a", "b", "c", "d"]).update(
        np.array(list("abcd"))[y], logits=z, group=group, part="one"
    )
    path = tmp_path / "rows.npz"
    sketch.save(path)
    assert is_sketch(path)
    loaded = cal.Sketch.load(path)
    assert loaded.to_bytes() == sketch.to_bytes() == path.read_bytes()
    assert loaded.kind == sketch.kind
    assert cal.evaluate(loaded).to_dict() == cal.evaluate(sketch).to_dict()
    loaded.update(np.array(list("abcd"))[y], logits=z)  # it goes on
    assert loaded.rows == 2 * len(y)


def test_an_existing_file_is_kept_unless_told(tmp_path):
    sketch = cal.Sketch().update_pairs([1], [0.5])
    sketch.save(tmp_path / "a.npz")
    with pytest.raises(FileExistsError):
        sketch.save(tmp_path / "a.npz")
    sketch.save(tmp_path / "a.npz", force=True)


def test_nothing_is_saved_of_no_rows(tmp_path):
    with pytest.raises(ValueError, match="no rows yet"):
        cal.Sketch().save(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


SENT = cal.Sketch().update_pairs([1, 0, 1], [0.9, 0.4, 0.6], part="x").to_bytes()


@given(st.integers(0, len(SENT) - 1), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_means_nothing(place, change):
    damaged = bytearray(SENT)
    damaged[place] ^= change
    try:
        sketch = cal.Sketch.from_bytes(bytes(damaged))
    except RecordError:
        return
    assert sketch.to_bytes() == SENT  # a date in the archive, say


@given(st.integers(0, len(SENT) - 1))
def test_a_sketch_cut_short_is_refused(length):
    with pytest.raises(
        RecordError, match="this content is no sketch, or one that is cut"
    ):
        cal.Sketch.from_bytes(SENT[:length])


def repacked(**changes):
    with np.load(io.BytesIO(SENT)) as archive:
        arrays = {**archive, **changes}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_what_is_no_sketch_is_refused(tmp_path):
    other = tmp_path / "other.npz"
    np.savez(other, logits=np.zeros((3, 2)))
    assert not is_sketch(other)
    with pytest.raises(
        RecordError, match=r"other.npz is no sketch; it was not written"
    ):
        cal.Sketch.load(other)
    with pytest.raises(RecordError, match="checksum does not match"):
        cal.Sketch.from_bytes(repacked(**{"0.rows": np.array([4])}))
    objects = io.BytesIO()
    np.savez(objects, calibrant_sketch=np.array([object()], dtype=object))
    with pytest.raises(RecordError):
        cal.Sketch.from_bytes(objects.getvalue())


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr("calibrant._sketch.storage.MOST_BYTES", 1000)
    with pytest.raises(RecordError, match="larger than any sketch"):
        cal.Sketch.from_bytes(SENT)


def test_another_version_of_the_format_is_refused(monkeypatch):
    monkeypatch.setattr("calibrant._sketch.storage.VERSION", 2)
    with pytest.raises(RecordError, match=r"version 1 of the format.*reads version 2"):
        cal.Sketch.from_bytes(SENT)


@pytest.mark.slow
def test_a_sketch_stays_small_whatever_the_rows():
    rng = np.random.default_rng(5)
    sizes = []
    sketch = cal.Sketch()
    for _ in range(4):
        h = rng.beta(1, 0.2, 200_000)
        sketch.update_pairs(rng.random(len(h)) < h, h)
        sizes.append(len(sketch.to_bytes()))
    assert not sketch.cells.exact
    assert max(sizes[1:]) < 5_000_000
    with zipfile.ZipFile(io.BytesIO(sketch.to_bytes())) as archive:
        assert "0.values.npy" not in archive.namelist()


# -- sketches without rows, and rows that come later -----------------------------------


def test_a_sketch_without_rows_says_so():
    empty = cal.Sketch()
    assert empty.facts() == {"rows": 0}
    assert str(empty) == "A sketch without examples."
    assert repr(empty) == "Sketch(rows=0)"
    assert (empty + cal.Sketch()).rows == 0
    with pytest.raises(ValueError, match="holds no row of positive weight"):
        cal.risk_coverage(empty)


def test_a_sketch_says_how_confidences_are_kept():
    few = cal.Sketch().update_pairs([1, 0], [0.9, 0.4])
    assert "every distinct confidence" in str(few)
    many = np.linspace(0, 1, cells_module.MOST_VALUES + cells_module.WAITING + 9)
    assert "sums by cell" in str(cal.Sketch().update_pairs(many > 0.5, many))


def test_only_sketches_add_up():
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = cal.Sketch().update_pairs([1], [0.5]) + 3


def test_classes_that_json_cannot_name_are_not_saved():
    y, z = rows(40, 2)
    odd = [(0, 1), (0, 2)]
    sketch = cal.Sketch(classes=odd, target="top-label").update(
        [odd[i] for i in y], logits=z
    )
    with pytest.raises(
        TypeError, match=r"classes must be text or numbers to be saved, got \(0, 1\)"
    ):
        sketch.to_bytes()


def test_rows_that_count_once_are_added_to_weighted_ones():
    rng = np.random.default_rng(0)
    h, w = rng.random(300), rng.random(300) + 0.5
    hit = rng.random(300) < h
    w[200:] = 1.0
    whole = cal.Sketch().update_pairs(hit, h, sample_weight=w)
    parts = cal.Sketch().update_pairs(hit[:200], h[:200], sample_weight=w[:200])
    parts.update_pairs(hit[200:], h[200:])
    assert_same_sums(parts, whole)
    np.testing.assert_allclose(parts.cells.squares, whole.cells.squares)
    assert parts.cells.effective == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_clusters_stay_folded_when_more_rows_come():
    rng = np.random.default_rng(1)
    h, cluster = rng.random(900), rng.integers(0, 300, 900)
    hit = rng.random(900) < h
    whole = cal.Sketch().update_pairs(hit, h, cluster=cluster).cells.clusters
    parts = cal.Sketch().update_pairs(hit[:600], h[:600], cluster=cluster[:600])
    assert parts.cells.clusters.folded
    found = parts.update_pairs(hit[600:], h[600:], cluster=cluster[600:]).cells.clusters
    np.testing.assert_array_equal(found.cluster, whole.cluster)
    np.testing.assert_array_equal(found.cell, whole.cell)
    np.testing.assert_allclose(found.sums, whole.sums)


def test_sums_of_no_rows_add_up_to_none():
    kind = cal.Sketch().update_pairs([1], [0.5], cluster=["a"]).kind
    both = kind.empty() + kind.empty()
    assert both.exact
    assert both.distinct.shape[1] == 0
    nobody = cells_module.ClusterSums.none(BRIER_AND_LOG)
    assert (nobody + nobody).count == 0


def test_groups_of_all_parts_are_counted_together():
    sketch = cal.Sketch()
    names = np.arange(150).astype(str)
    half = np.full(150, 0.5)
    sketch.update_pairs(half > 0, half, group=names)
    with pytest.raises(
        ValueError, match="group has 300 distinct values, more than 200"
    ):
        sketch.update_pairs(half > 0, half, group=np.char.add("x", names))
    assert sketch.rows == 150
