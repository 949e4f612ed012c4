"""Batches: the evaluation of all rows, whatever the order and the size of the pieces."""

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from math import fsum, isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import fewer, pairs

import calibrant as cal
from calibrant._sketch import cells as state
from calibrant._sketch import cells as values
from calibrant._sketch.grid import STEPS, cell_number
from calibrant._sketch.ordered import order
from calibrant._verbs.stream import evaluate_batches
from calibrant.files import FileError, Found, batches

OF_RISK = {"aurc", "excess_aurc", "augrc"}  # their bounds: tests/test_risk_coverage.py
OF_ORDER = {"ece_mass", "ece_debiased", "ks_error", "auroc", "mcb", "dsc"} | OF_RISK
INSIDE = (0.5, 0.2, 0.6, 1 / 3, 1 - 1e-9, 1e-12)


def cut(kind, scores, y, rows=7, weight=None, classes=None, frequency=None):
    """Pieces of so many rows, or that end where a list of numbers says."""
    ends = [*range(rows, len(y), rows), len(y)] if isinstance(rows, int) else rows
    found, start = [], 0
    for end in ends:
        part, path = slice(start, end), Path("rows.npz")
        w = None if weight is None else weight[part]
        own = kind, scores[part], y[part], w, None, classes, path, start
        counts = None if frequency is None else frequency[part]
        found.append(Found(*own, frequency=counts))
        start = end
    return found


def in_memory(kind, scores, y, weight=None, classes=None, **options):
    if kind == "confidence":
        return cal.evaluate_pairs(y, scores, sample_weight=weight, **options)
    given = {kind: scores, "classes": classes, "sample_weight": weight}
    return cal.evaluate(y, **given, **options)


def numbers(ev):
    """Every number of a record by name, but intervals of metrics."""
    found = {f"metric {name}": float(x) for name, x in ev.metrics.items()}
    for name in ("decompositions", "paper_decompositions"):
        for divergence, parts in getattr(ev, name).items():
            found[f"{name} {divergence} total"] = float(parts.total)
            found[f"{name} {divergence} calibration"] = float(parts.calibration)
            ends = parts.calibration.interval or (np.nan, np.nan)
            found[f"{name} {divergence} ends"] = np.array(ends)
    for name in ("curves", "paper_curves"):
        for divergence, curve in getattr(ev, name).items():
            for field, value in curve.to_dict().items():
                found[f"{name} {divergence} {field}"] = np.array(value, dtype=float)
    for name in ("n", "rows", "k", "infinite_rows", "distinct", "largest_share"):
        found[name] = getattr(ev, name)
    for name in ("bins", "mass_bins", "atoms", "isotonic", "smooth"):
        for field, value in getattr(ev, name).to_dict().items():
            found[f"{name} {field}"] = np.array(value, dtype=float)
    found["histogram"], found["log-odds"] = ev.histogram, ev.log_odds_histogram
    return found


def assert_same(got, want, tolerance=1e-10, leave=(), adaptive=None):
    """Compare all numbers; `adaptive` is a tolerance for what reads log-odds cells."""
    got, want = numbers(got), numbers(want)
    assert [*got] == [x for x in want if x in got or not x.startswith("metric")]
    assert {*want} - {*got} <= {*leave}
    for name in got:
        words = name.split()
        if words[0] in leave or words[-1] in leave:
            continue
        bound = tolerance
        if adaptive is not None and words[0] == "decompositions":
            bound = adaptive
        if name == "curves log sharpness_gap":
            # A logarithm near 0: the order of rows alone moves it by 4e-8, in memory too.
            bound = 1e-6
        np.testing.assert_allclose(
            got[name], want[name], rtol=bound, atol=bound, err_msg=name
        )


ROUNDED = {"adaptive": 1e-4, "leave": {"curves", "log-odds"}}
"""Rows whose probabilities are rounded may change their log-odds cell."""


def assert_same_intervals(got, want, but=()):
    for name, metric in want.metrics.items():
        found = got.metrics[name].interval
        if name == "dsc" and name in but and metric.interval:
            # It is at most UNC's upper end, which the pieces do not know.
            assert found[0] == pytest.approx(metric.interval[0], abs=1e-8)
            assert found[1] >= metric.interval[1] - 1e-8
        elif name in but:
            assert found is None, name
        else:
            assert got.metrics[name].method == metric.method, name
            assert (found is None) == (metric.interval is None)
            if metric.interval:
                # Of losses that are all alike the error is the square root of round-off.
                ends = pytest.approx(metric.interval, abs=1e-8)
                assert found == ends, name


@pytest.fixture
def no_values(monkeypatch):
    """Gather rows in cells from the first row on."""
    monkeypatch.setattr(values, "MOST_VALUES", 0)


# -- the same as all rows at once ----------------------------------------------------


@fewer(3)
@given(pairs(least=2, most=70, edges=INSIDE), st.data())
def test_any_pieces_in_any_order_are_the_rows(rows, draw):
    h, a, w = rows
    counts = {"frequency": np.ceil(w)}  # of weights see test_sketch: there is a bound
    ends = draw.draw(st.sets(st.integers(1, len(h) - 1), max_size=6))
    found = cut("confidence", h, a, [*sorted(ends), len(h)], **counts)
    shuffled = draw.draw(st.permutations(found))
    options = {"resamples": 100}
    got = evaluate_batches(shuffled, **options)
    want = in_memory("confidence", h, a, **counts, **options)
    soft = set(np.unique(a)) - {0.0, 1.0}
    assert_same(got, want, leave=("ends",) if soft else ())
    for name in want.decompositions:  # soft labels: nearly
        ends = numbers(want)[f"decompositions {name} ends"]
        near = numbers(got)[f"decompositions {name} ends"]
        np.testing.assert_allclose(near, ends, atol=0.02)
    assert_same_intervals(got, want, but=("unc", "dsc") if soft else ())


@given(pairs(least=2, most=15))
def test_certain_rows_and_infinite_losses_are_the_same(rows):
    h, a, w = rows
    counts = {"frequency": np.ceil(w)}
    got = evaluate_batches(cut("confidence", h, a, 3, **counts))
    # Of a handful of rows, round-off decides where the adaptive curve has its nodes.
    assert_same(got, in_memory("confidence", h, a, **counts), leave={"curves"})


def test_zero_is_one_value_whatever_its_sign():
    h, a = np.array([0.0, -0.0, 0.5, -0.0]), np.array([0, 1, 1, 0])
    got = evaluate_batches(cut("confidence", h, a, 2))
    assert got.distinct == 2
    assert_same(got, in_memory("confidence", h, a))


CASES = {
    "cifar10_akamaster_resnet32": ("logits", "logits", "labels"),
    "cifar100_netcal_densenet_bc_100": ("probs", "probs", "labels"),
    "adult_random_forest": ("probs", "prob", "outcome"),
    "fivethirtyeight_games": ("probs", "prob", "outcome"),
}


@pytest.mark.parametrize("name", CASES)
def test_real_files_are_the_same(data, name):
    kind, scores, labels = CASES[name]
    scores, y = data(name)[scores], data(name)[labels]
    got = evaluate_batches(cut(kind, scores, y, 3001))
    want = in_memory(kind, scores, y)
    assert_same(got, want, **ROUNDED if name.startswith("cifar100") else {})
    assert_same_intervals(got, want, but=("top_label_ece",))


@pytest.mark.parametrize("name", CASES)
def test_real_files_in_cells_are_nearly_the_same(data, no_values, name):
    kind, scores, labels = CASES[name]
    scores, y = data(name)[scores], data(name)[labels]
    got = evaluate_batches(cut(kind, scores, y, 3001))
    want = in_memory(kind, scores, y)
    unsure = {"mass_bins", "isotonic", "atoms", "distinct", "largest_share"}
    rounded = ROUNDED["leave"] if name.startswith("cifar100") else set()
    assert_same(got, want, leave=OF_ORDER | unsure | rounded, adaptive=1e-4)
    for metric in OF_ORDER:
        assert got.metrics[metric] == pytest.approx(want.metrics[metric], abs=3e-4)
    assert got.largest_share >= want.largest_share


def test_stated_confidences_are_the_same(data):
    arrays = data("llm_stated_confidence")
    stated = ~np.isnan(arrays["stated_confidence"])
    h, a = arrays["stated_confidence"][stated], arrays["correct"][stated]
    got, want = (
        evaluate_batches(cut("confidence", h, a, 999)),
        in_memory("confidence", h, a),
    )
    assert_same(got, want)
    assert_same_intervals(got, want)


CUBIC = cal.Divergence(
    "cubic",
    phi=lambda x: (x**3).sum(axis=1),
    gradient=lambda x: 3 * x**2,
    phi_1d=lambda p: p**3,
    derivative_1d=lambda p: 3 * p**2,
)
OPTIONS = [
    {"preset": "paper"},
    {"bandwidth": 0.05, "kernel": "epanechnikov", "divergence": "log"},
    {"bandwidth": 0.02, "kernel": "epanechnikov", "boundary": "reflect"},
    {"bandwidth": 0.005, "estimator": "plugin"},
    {"bins": 13, "closed": "left", "interval": None},
    {"divergence": CUBIC},
]


@pytest.mark.parametrize("options", OPTIONS, ids=[", ".join(x) for x in OPTIONS])
@pytest.mark.parametrize("digits", [2, 9])
def test_every_option_means_the_same(options, digits):
    rng = np.random.default_rng(3)
    p = rng.dirichlet([0.3, 0.3, 0.3], 4000).round(digits).astype(np.float16)
    p = (p / p.sum(axis=1, keepdims=True)).astype(np.float16)
    y = rng.integers(0, 3, 4000)
    got = evaluate_batches(cut("probs", p, y, 700), **options)
    want = in_memory("probs", p, y, **options)
    assert got.settings == want.settings
    assert_same(got, want, leave={"log-odds", *not_kept(options)})


def not_kept(options):
    """The top-label error is kept for bins that are whole ones of 300, right-closed."""
    left = options.get("preset") == "paper" or options.get("closed") == "left"
    return {"metric top_label_ece"} if left or 300 % options.get("bins", 15) else set()


@pytest.mark.parametrize("target", ["positive", "top-label"])
def test_two_columns_and_one_with_names_weights_and_counterpart(target):
    rng = np.random.default_rng(4)
    z = 2 * rng.normal(size=(500, 2))
    y = np.array(["no", "yes"])[rng.integers(0, 2, 500)]
    w = np.where(np.arange(500) < 100, 0, rng.integers(1, 4, 500))
    z[:50] = np.nan  # rows that do not count may hold anything
    given = {"weight": w, "classes": ("no", "yes")}
    for scores in (z, z[:, 1]):
        got = evaluate_batches(cut("logits", scores, y, 50, **given), target=target)
        assert_same(got, in_memory("logits", scores, y, **given, target=target))
    if target == "top-label":
        options = {"target": target, "counterpart": "tight", "divergence": "brier"}
        got = evaluate_batches(cut("logits", z, y, 50, **given), **options)
        assert_same(got, in_memory("logits", z, y, **given, **options))


def test_soft_labels_of_many_classes_are_the_same():
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(4), (2, 600))
    got, want = evaluate_batches(cut("probs", p, q, 80)), in_memory("probs", p, q)
    assert_same(got, want)
    assert_same_intervals(got, want, but=("top_label_ece", "unc"))


# -- more confidences than are kept --------------------------------------------------


@given(pairs(least=2, most=40), st.integers(1, 30))
def test_cells_keep_bins_and_bound_what_depends_on_order(rows, bins):
    h, a, w = rows
    if np.all((h == 0) | (h == 1)):
        h = np.append(h[:-1], 0.5)  # else the two may look swapped
    options = {"bins": bins, "interval": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "MOST_VALUES", 0)
        sketch = cal.Sketch()
        for part in cut("confidence", h, a, 5, w):
            sketch.update_pairs(part.y, part.scores, sample_weight=part.sample_weight)
        got, bounds = cal.evaluate(sketch, **options), sketch.bounds(bins)
    want = in_memory("confidence", h, a, w, **options)
    if 9600 % bins == 0:
        for field in ("lower", "upper", "count", "confidence", "accuracy", "variance"):
            np.testing.assert_allclose(
                getattr(got.bins, field), getattr(want.bins, field), atol=1e-12
            )
        exact = ("ece", "ace", "mce")
        assert not {"ece", "ace", "mce"} & set(bounds)
    else:
        exact = ()
    for name in (*exact, "accuracy", "smooth_ece", "confidence_gap", "unc"):
        assert got.metrics[name] == pytest.approx(want.metrics[name], abs=1e-10)
    for name, bound in bounds.items():
        if name in want.metrics and not isnan(want.metrics[name]):
            off = abs(got.metrics[name] - want.metrics[name])
            assert off <= bound + 1e-12, name


def half_of_pairs_within_cells(h, a, w):
    cells = np.unique(cell_number(h), return_inverse=True)[1]
    hits, misses = (np.bincount(cells, w * x) for x in (a, 1 - a))
    return 0.5 * (hits * misses).sum() / (hits.sum() * misses.sum())


def test_more_values_than_are_kept():
    rng = np.random.default_rng(6)
    n = 300_000
    h = rng.beta(3, 0.5, n)
    h[: n // 3] = 0.9  # one value that a third of the rows share
    rng.shuffle(h)
    a = rng.random(n) < h**1.3
    found = cut("probs", h, a, 40_000)
    got = evaluate_batches(found, interval=None)
    want = in_memory("probs", h, a, interval=None)
    unsure = {"mass_bins", "isotonic", "distinct", "largest_share"}
    assert_same(got, want, leave=OF_ORDER | unsure)
    off = {name: abs(got.metrics[name] - want.metrics[name]) for name in OF_ORDER}
    assert off.pop("auroc") <= min(half_of_pairs_within_cells(h, a, np.ones(n)), 2e-5)
    assert max(off.values()) < 1e-4
    assert (got.distinct, len(got.atoms.count)) == (values.MOST_VALUES + 1, 0)
    assert 1 / 3 <= got.largest_share < 1 / 3 + 1e-3
    other = evaluate_batches(found[::-1], interval=None)
    assert_same(other, got, 1e-11)


def test_the_kernel_with_a_corner_hardly_minds_cells(no_values):
    rng = np.random.default_rng(7)
    h = rng.random(20_000)
    a = rng.random(20_000) < h**2
    options = {"bandwidth": 0.03, "kernel": "epanechnikov", "interval": None}
    got = evaluate_batches(cut("probs", h, a, 3000), **options)
    want = in_memory("probs", h, a, **options)
    for name in ("brier", "log"):
        error = want.decompositions[name].calibration
        assert got.decompositions[name].calibration == pytest.approx(error, abs=1e-6)


# -- gathered rows and their cells ---------------------------------------------------


@given(pairs(most=40), st.sampled_from([0, 1 << 17]))
def test_gathered_rows_have_the_sums_of_all_rows(rows, most):
    h, a, w = rows
    sketch = cal.Sketch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "MOST_VALUES", most)
        for part in (slice(0, 9), slice(9, None)):
            if len(h[part]):
                sketch.update_pairs(a[part], h[part], sample_weight=w[part])
        ordered = order(sketch.cells.columns(cut=True))
    keys = h if most else cell_number(h)
    want = defaultdict(list)
    for key, *row in zip(keys.tolist(), h, a, w, strict=True):
        want[key].append(row)
    assert len(ordered.weight) == len(want)
    for i, key in enumerate(sorted(want)):
        h_, a_, w_ = np.array(want[key]).T
        assert ordered.weight[i] == pytest.approx(fsum(w_), rel=1e-12)
        assert ordered.hits[i] == pytest.approx(fsum(w_ * a_), abs=1e-12)
        assert ordered.hits2[i] == pytest.approx(fsum(w_ * a_ * a_), abs=1e-12)
        assert ordered.claimed[i] == pytest.approx(fsum(w_ * h_), rel=1e-12)
        assert h_.min() <= ordered.confidence[i] <= h_.max()


@given(st.lists(st.floats(0, 1), min_size=1))
def test_cells_are_numbered_in_order_and_narrow(h):
    h = np.sort(np.array([*h, 0.0, 0.5, 1.0, np.nextafter(0.5, 1)]))
    cells = cell_number(h)
    assert cells[0] == 0
    assert cells[-1] == STEPS - 1
    assert (np.diff(cells) >= 0).all()
    width = np.diff(h)[np.diff(cells) == 0]
    assert (width <= 1 / 9600 + 1e-15).all()
    with np.errstate(divide="ignore"):
        z = np.clip(np.log(h) - np.log1p(-h), -20, 20)
    assert (np.diff(z)[np.diff(cells) == 0] <= 0.02 + 1e-12).all()


# -- errors and manners --------------------------------------------------------------


def test_errors_name_the_row_of_the_file():
    p = np.full((10, 3), 1 / 3)
    p[7, 1] = 0.9
    message = r"^rows.npz: probs .* row 7 sums to 1.56667.*\(1 of rows 4 to 7 are off\)"
    with pytest.raises(FileError, match=message):
        evaluate_batches(cut("probs", p, np.zeros(10, int), 4))
    y = np.zeros(10, int)
    y[[8, 9]] = 3
    with pytest.raises(
        FileError, match=r"in 0\.\.2.* row 8 is 3 \(2 of rows 8 to 9 are"
    ):
        evaluate_batches(cut("probs", np.full((10, 3), 1 / 3), y, 4))
    weight = np.ones(10)
    weight[9] = -1
    h = np.full(10, 0.5)
    with pytest.raises(FileError, match=r"sample_weight must be .* row 9 is -1.0"):
        evaluate_batches(cut("confidence", h, y > 0, 4, weight))
    found = cut("probs", h, np.array(["a"] * 5 + ["row 1"] * 5), 4, None, ("a", "b"))
    with pytest.raises(FileError, match=r"row 5 is 'row 1'"):
        evaluate_batches(found)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "class-wise"}, ValueError, "class-wise' needs all rows in memory"),
        ({"cluster": [1, 2]}, TypeError, "has no option 'cluster'"),
        ({"level": 2}, ValueError, "level must be between 0 and 1"),
        ({"target": "positive"}, ValueError, "does not apply to stated confidences"),
        ({"counterpart": "tight"}, ValueError, "applies to target='top-label' only"),
    ],
)
def test_options_that_cannot_be_had_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        evaluate_batches(cut("confidence", np.array([0.5]), np.array([1])), **options)


def test_two_columns_need_a_target():
    with pytest.raises(ValueError, match="two columns"):
        evaluate_batches(cut("probs", np.full((4, 2), 0.5), np.zeros(4, int)))


def test_batches_without_rows_that_count_are_refused():
    h, y = np.array([0.2, 0.7]), np.array([0, 1])
    for found in ([], cut("probs", h, y, 1, np.zeros(2)), cut("probs", h[:0], y[:0])):
        with pytest.raises(ValueError, match="no row of positive weight"):
            evaluate_batches(found)


def test_the_unit_of_weights_is_that_of_all_batches():
    h, y = np.tile([0.2, 0.7], 50), np.tile([0, 1], 50)
    w = np.where(np.arange(100) < 50, 0.01, 2.0)
    for unit in (1, 1e-6):
        ev = evaluate_batches(cut("probs", h, y, 10, unit * w))
        assert (ev.n, ev.rows) == (100, 100)
        assert ev.n_effective == pytest.approx(100.5**2 / (w @ w))
        assert_same(ev, in_memory("probs", h, y, w), adaptive=1e-3)


def test_counts_and_clusters_of_batches_are_those_of_the_rows():
    rng = np.random.default_rng(3)
    h = rng.random(600).round(2)
    y, f, c = rng.random(600) < h, rng.integers(0, 3, 600), rng.integers(0, 60, 600)
    parts = [
        replace(part, frequency=f[i : i + 100], cluster=c[i : i + 100])
        for part in cut("confidence", h, y, 100)
        for i in [part.start]
    ]
    got = evaluate_batches(parts)
    want = cal.evaluate_pairs(y, h, frequency=f, cluster=c)
    assert (got.n, got.rows, got.n_clusters) == (want.n, want.rows, 60)
    for name in ("accuracy", "brier", "nll", "ece", "smooth_ece"):
        assert got.metrics[name] == pytest.approx(want.metrics[name], abs=1e-10)
    ends, whole = (ev.metrics["brier"].interval for ev in (got, want))
    assert ends == pytest.approx(whole, rel=0.02)  # places within log-odds cells


def test_batches_must_be_alike():
    y = np.array([0])
    two = [*cut("probs", np.full((1, 3), 1 / 3), y), *cut("probs", np.eye(4)[:1], y)]
    with pytest.raises(ValueError, match="different numbers of classes: 3 and 4"):
        evaluate_batches(two)


def test_progress_counts_rows_and_an_iterator_is_read_once():
    seen = []
    found = cut("probs", np.linspace(0, 1, 25), np.arange(25) % 2, 10)
    ev = evaluate_batches(iter(found), name="a", progress=seen.append)
    assert (seen, ev.rows, ev.name) == ([10, 20, 25], 25, "a")
    assert ev.sketch.rows == 25


def test_top_label_error_is_left_out_for_too_many_classes(monkeypatch):
    rng = np.random.default_rng(8)
    found = cut("logits", rng.normal(size=(60, 4)), rng.integers(0, 4, 60))
    monkeypatch.setattr(state, "MOST_CLASS_BINS", 4 * 300)
    assert "top_label_ece" in evaluate_batches(found).metrics
    monkeypatch.setattr(state, "MOST_CLASS_BINS", 4 * 300 - 1)
    assert "top_label_ece" not in evaluate_batches(found).metrics


def test_a_divergence_that_fails_names_the_confidence():
    bad = replace(CUBIC, name="bad", phi_1d=lambda p: np.where(p == 0.2, np.nan, p**3))
    found = cut("confidence", np.array([0.5, 0.2]), np.array([1, 1]))
    with pytest.raises(
        ValueError, match=r"NaN as the loss of a row of confidence 0\.2"
    ):
        evaluate_batches(found, divergence=bad)


# -- constant memory -----------------------------------------------------------------

SHARDS, SHARD = 8, 250_000
READ = """
import json, pathlib, re, sys
from calibrant.files import Roles, batches
from calibrant._verbs.stream import evaluate_batches
found = batches(sys.argv[1], Roles(count_copies=True))
ev = evaluate_batches(found, interval=None)
status = pathlib.Path("/proc/self/status").read_text()  # rusage counts the parent too
peak = int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024
print(json.dumps({"peak": peak, "record": ev.to_dict()}))
"""


def shard():
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(SHARD, 10)).astype(np.float32)
    return z, (z / 2 + rng.gumbel(size=z.shape).astype(np.float32)).argmax(axis=1)


def test_two_million_rows_in_shards_need_little_memory(part, tmp_path):
    pyarrow, parquet = part("pyarrow"), part("pyarrow.parquet")
    part("duckdb")
    z, y = shard()
    columns = {f"logit_{j}": z[:, j] for j in range(10)}
    table = pyarrow.table({**columns, "label": y})
    parquet.write_table(table, tmp_path / "0.parquet", compression="none")
    for number in range(1, SHARDS):
        shutil.copyfile(tmp_path / "0.parquet", tmp_path / f"{number}.parquet")
    command = [sys.executable, "-c", READ, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = json.loads(output)
    assert found["peak"] < 500
    got = cal.Evaluation.from_dict(found["record"])
    assert got.rows == SHARDS * SHARD
    copies = np.full(SHARD, SHARDS)
    want = cal.evaluate(y, logits=z, frequency=copies, interval=None)
    unsure = {"mass_bins", "isotonic", "distinct", "largest_share", "rows"}
    assert_same(got, want, leave=OF_ORDER | unsure)
    for name in OF_ORDER:
        assert got.metrics[name] == pytest.approx(want.metrics[name], abs=2e-5)


def test_files_and_batches_of_them_agree(tmp_path):
    rng = np.random.default_rng(9)
    z, y = rng.normal(size=(500, 3)), rng.integers(0, 3, 500)
    np.savez(tmp_path / "a.npz", logits=z[:200], labels=y[:200])
    np.savez(tmp_path / "b.npz", logits=z[200:], labels=y[200:])
    got = evaluate_batches(batches(tmp_path, rows=64))
    assert_same(got, in_memory("logits", z, y))


def test_a_file_of_rows_without_weight_leaves_a_sketch_without_rows(tmp_path):
    from calibrant._verbs import stream

    sketch = cal.Sketch()
    assert stream._rename(sketch, None, "a.csv") == "a.csv"
    assert sketch.parts == frozenset()
    sketch.update_pairs([1], [0.5])
    assert stream._rename(sketch, None, "a.csv") == "a.csv"
    assert sketch.parts == {"a.csv"}
    assert stream._rename(sketch, "a.csv", "b.csv") == "b.csv"
    assert sketch.parts == {"b.csv"}


# -- pairs with their full losses --------------------------------------------------------


def of_many_classes(k=20, n=400):
    """Pairs that are right less often than one of two, and what they lost."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(k, 0.6), n)
    y = np.array([rng.choice(k, p=row) for row in p])
    pairs = p.argmax(axis=1) == y, p.max(axis=1)
    return y, p, pairs, ((p - np.eye(k)[y]) ** 2).sum(axis=1)


def test_pairs_with_losses_do_not_tell_how_many_classes_there_are():
    y, p, pairs, loss = of_many_classes()
    named = cal.Sketch(classes=range(20)).update_pairs(*pairs, loss=loss)
    sketch = cal.Sketch().update_pairs(*pairs, loss=loss)
    whole, known, ev = (
        cal.evaluate(*x, **more)
        for x, more in (((y,), {"probs": p}), ((named,), {}), ((sketch,), {}))
    )
    assert (whole.k, known.k, ev.k) == (20, 20, None)
    assert "classes" not in f"{ev}{sketch}{sketch!r}"
    assert "20 classes" in str(known)
    for one in (known, ev):
        assert one.metrics["brier"] == pytest.approx(whole.metrics["brier"], 1e-12)
        assert {"below-chance", "at-chance"}.isdisjoint(x.code for x in one.audit())
    assert cal.Evaluation.from_json(ev.to_json()).k is None
    again = cal.Sketch.from_bytes(sketch.to_bytes()) + sketch
    assert cal.evaluate(again).k is None
    with pytest.raises(ValueError, match="numbers of classes: 20 and not known"):
        named + sketch
    with pytest.raises(ValueError, match=r"tight' needs Sketch\(classes=...\)"):
        cal.evaluate(sketch, counterpart="tight")
    assert cal.evaluate(named, counterpart="tight").k == 20


def test_examples_are_not_others_because_classes_are_not_counted():
    y, p, pairs, loss = of_many_classes()
    sketch = cal.Sketch().update_pairs(*pairs, loss=loss)
    models = cal.evaluate(y, probs=p, name="rows"), cal.evaluate(sketch, name="sums")
    text = cal.Comparison(models).table()
    assert "different examples" not in text
    assert "* best of its column" in text


@pytest.mark.parametrize("names", [["no", "yes"], [0, 1], [1, 2]])
def test_two_classes_that_were_named_are_in_the_file(names):
    _, _, pairs, loss = of_many_classes()
    named = cal.Sketch(classes=names).update_pairs(*pairs, loss=loss)
    again = cal.Sketch.from_bytes(named.to_bytes())
    assert again.kind.classes == tuple(names)
    assert cal.evaluate(again + named).k == 2


def test_classes_do_not_apply_to_pairs_without_losses():
    _, _, pairs, _ = of_many_classes()
    with pytest.raises(ValueError, match="classes does not apply to confidence pairs"):
        cal.Sketch(classes=range(20)).update_pairs(*pairs)


def test_a_file_of_an_earlier_release_says_two_classes_where_none_are_known():
    _, _, pairs, loss = of_many_classes()
    sketch = cal.Sketch().update_pairs(*pairs, loss=loss)
    early = replace(sketch.kind, classes=(False, True))
    old = cal.Sketch.of(early, sketch.cells)
    assert cal.Sketch.from_bytes(old.to_bytes()).kind.classes == ()
    p = np.column_stack([1 - pairs[1], pairs[1]])
    two = cal.Sketch(target="top-label").update(pairs[0], probs=p)
    assert len(cal.Sketch.from_bytes(two.to_bytes()).kind.classes) == 2


def test_a_frame_of_pairs_with_losses_takes_the_names_of_classes():
    pl = pytest.importorskip("polars")
    _, _, (hit, h), loss = of_many_classes()
    frame = pl.DataFrame({"h": h, "a": hit.astype(int), "lost": loss})
    roles = {"confidence": "h", "correct": "a"}
    for classes in (None, range(20)):
        found = cal.sketch_frame(frame, **roles, loss="lost", classes=classes)
        assert cal.evaluate(found).k == (classes and 20)
    with pytest.raises(ValueError, match="classes does not apply"):
        cal.sketch_frame(frame, **roles, classes=range(20))


@pytest.mark.parametrize("n", [6, 600])
@pytest.mark.parametrize("names", [["text", "number"], ["number", "text"], ["text"]])
def test_text_among_columns_of_probabilities_is_named(part, n, names):
    pd = part("pandas")
    frame = pd.DataFrame({"text": ["a"] * n, "number": [1] * n, "y": [0, 1] * (n // 2)})
    with pytest.raises(TypeError, match="probs must hold real numbers; row 0 is 'a'"):
        cal.sketch_frame(frame, y="y", probs=names)
