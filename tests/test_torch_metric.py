"""The metric of a training loop: the sums and numbers of all rows at once."""

import os
import pickle
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

FREE = ("accuracy", "brier", "nll", "ece", "smooth_ece", "confidence_gap")


@pytest.fixture(scope="module")
def torch(part):
    torch = part("torch")
    part("torchmetrics")
    return torch


@pytest.fixture(scope="module")
def make(torch):
    from calibrant.torch import CalibrationSharpness

    def make(num_classes=4, scores="logits", **options):
        return CalibrationSharpness(num_classes, scores=scores, **options)

    return make


@pytest.fixture
def closed_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def draw(rows=3000, classes=4, seed=0):
    """Over-confident logits and their labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(rows, classes))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return 2.5 * z, y


def fill(metric, z, y, batch=700, **of_rows):
    import torch

    for start in range(0, len(y), batch):
        part = slice(start, start + batch)
        given = {name: torch.tensor(x[part]) for name, x in of_rows.items()}
        metric.update(torch.tensor(z[part]), torch.tensor(y[part]), **given)
    return metric


def weighing(rows=3000, seed=1):
    """Importance, counts and clusters of rows; some count for nothing."""
    rng = np.random.default_rng(seed)
    weight, count = 1e-3 * rng.exponential(size=rows), rng.integers(0, 3, rows)
    weight[::50] = 0
    cluster = rng.integers(0, 400, rows)
    return {"sample_weight": weight, "frequency": count, "cluster": cluster}


def assert_same_sums(one, two, off=1e-12):
    """Sums that agree to `off`; ends, which are confidences, to the last bits."""
    assert one.kind == two.kind
    ours, other = one.cells, two.cells
    assert ours.rows == other.rows
    np.testing.assert_allclose(ours.table, other.table, rtol=off, atol=off)
    np.testing.assert_allclose(ours.low, other.low, rtol=1e-15)
    np.testing.assert_allclose(ours.high, other.high, rtol=1e-15)
    assert ours.certain_no == other.certain_no
    assert ours.certain_yes == other.certain_yes
    for name, total in ours.totals.items():
        np.testing.assert_allclose(
            total.as_array(), other.totals[name].as_array(), rtol=1e-12
        )
    assert ours.count == other.count
    np.testing.assert_allclose(
        ours.squared_sums, other.squared_sums, rtol=off, atol=1e-9 * other.weight
    )
    if ours.clusters is not None:
        mine, theirs = ours.clusters, other.clusters.fold()
        np.testing.assert_array_equal(mine.cluster, theirs.cluster)
        np.testing.assert_array_equal(mine.cell, theirs.cell)
        np.testing.assert_allclose(mine.sums, theirs.sums, rtol=1e-9, atol=1e-12)
    if ours.within is not None:
        np.testing.assert_allclose(ours.within, other.within, rtol=1e-12, atol=1e-12)


# -- the same as NumPy --------------------------------------------------------------

# One bit of h is 9600 bits of its place in a cell, times a loss of up to 1000.
AS_NUMPY = 1e-9


def test_sums_are_those_of_a_sketch(make):
    z, y = draw()
    z[:3] = [[800, 0, 0, 0], [0, 0, -np.inf, 1], [0, 0, 0, 0]]
    metric = fill(make(), z, y)
    assert_same_sums(
        metric.sketch(), cal.Sketch(engine="numpy").update(y, logits=z), AS_NUMPY
    )


def test_sums_of_a_positive_class_are_those_of_a_sketch(make):
    z, y = draw(classes=2)
    z = z[:, 1] - z[:, 0]
    z[:2] = [-np.inf, 40.0]
    metric = fill(make(2, target="positive"), z, y)
    assert_same_sums(
        metric.sketch(), cal.Sketch(engine="numpy").update(y, logits=z), AS_NUMPY
    )


@pytest.mark.parametrize(
    "names",
    [
        ("sample_weight",),
        ("frequency",),
        ("cluster",),
        ("sample_weight", "frequency", "cluster"),
    ],
)
def test_weights_counts_and_clusters_are_those_of_a_sketch(make, names):
    z, y = draw()
    z[:3] = [[800, 0, 0, 0], [0, 0, -np.inf, 1], [0, 0, 0, 0]]
    given = {name: weighing()[name] for name in names}
    metric = fill(make(clustered="cluster" in names), z, y, **given)
    sketch = cal.Sketch(engine="numpy").update(y, logits=z, **given)
    assert_same_sums(metric.sketch(), sketch, AS_NUMPY)
    assert (metric.sketch().cells.squares is None) == ("sample_weight" not in names)
    ev, whole = (cal.evaluate(x, interval=None) for x in (metric.sketch(), sketch))
    assert ev.n == whole.n
    assert ev.n_effective == pytest.approx(whole.n_effective, rel=1e-9)
    assert ev.metrics["brier"] == pytest.approx(whole.metrics["brier"], abs=1e-12)


def test_rows_with_and_without_weights_add_up(make):
    z, y = draw()
    w = weighing()["sample_weight"]
    metric = fill(make(), z[:1000], y[:1000])
    fill(metric, z[1000:], y[1000:], sample_weight=w[1000:])
    sketch = cal.Sketch(engine="numpy").update(y[:1000], logits=z[:1000])
    sketch.update(y[1000:], logits=z[1000:], sample_weight=w[1000:])
    assert_same_sums(metric.sketch(), sketch, AS_NUMPY)
    np.testing.assert_allclose(
        metric.sketch().cells.squares, sketch.cells.squares, rtol=1e-7, atol=1e-12
    )


@pytest.mark.parametrize("name", ["sample_weight", "frequency"])
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_bad_weights_are_refused_at_the_end(make, name, bad):
    z, y = draw(20)
    metric = fill(make(), z, y, **{name: np.array([bad] * 2 + [1.0] * 18)})
    with pytest.raises(ValueError, match="2 rows have a sample_weight or frequency"):
        metric.compute()


def test_clusters_are_named_in_every_update_or_in_none(torch, make):
    z, y = (torch.tensor(x) for x in draw(20))
    with pytest.raises(ValueError, match="clustered=True"):
        make().update(z, y, cluster=y)
    with pytest.raises(ValueError, match="every update"):
        make(clustered=True).update(z, y)
    with pytest.raises(ValueError, match="whole numbers, one for each label"):
        make(clustered=True).update(z, y, cluster=y[:3])
    with pytest.raises(ValueError, match="got 3 for 20"):
        make().update(z, y, sample_weight=y[:3])


def test_few_clusters_in_a_batch_still_give_its_numbers(torch, make):
    z, y = draw(300)
    given = make(clustered=True)(
        torch.tensor(z), torch.tensor(y), cluster=torch.tensor(np.arange(300) % 3)
    )
    assert given["brier"].item() == pytest.approx(cal.brier(y, logits=z), abs=1e-12)


def test_rows_that_are_certain_and_wrong_are_counted(make):
    p = np.array([[1.0, 0, 0], [1.0, 0, 0], [0.5, 0.5, 0]])
    metric = fill(make(3, "probs"), p, np.array([0, 1, 1]))
    sketch = cal.Sketch(engine="numpy").update([0, 1, 1], probs=p)
    assert_same_sums(metric.sketch(), sketch, AS_NUMPY)
    assert metric.compute()["nll"].item() == np.inf
    assert metric.evaluation(interval=None).infinite_rows == 1


def test_sums_of_many_classes_are_those_of_a_sketch(make):
    z, y = draw(50, classes=4000)
    metric = fill(make(4000), z, y)
    sketch = cal.Sketch(engine="numpy").update(y, logits=z)
    assert metric.sketch().cells.within is None
    assert_same_sums(metric.sketch(), sketch, AS_NUMPY)


def test_numbers_are_those_of_the_rows(torch, make):
    z, y = draw(20_000)
    metric, whole = fill(make(), z, y), cal.evaluate(y, logits=z, interval=None)
    found = metric.compute()
    for name in FREE:
        assert found[name].item() == pytest.approx(whole.metrics[name], abs=1e-10)
    parts = whole.decomposition
    assert found["calibration"].item() == pytest.approx(parts.calibration, abs=1e-10)
    assert found["sharpness_gap"].item() == pytest.approx(
        parts.sharpness_gap, abs=1e-10
    )
    assert {x.dtype for x in found.values()} == {torch.float64}


def test_other_numbers_are_within_their_bounds(make):
    z, y = draw(20_000)
    metric, whole = fill(make(), z, y), cal.evaluate(y, logits=z, interval=None)
    ev, bounds = metric.evaluation(name="net", interval=None), metric.sketch().bounds()
    assert ev.name == "net"
    risk = ["augrc", "aurc", "excess_aurc"]
    assert sorted(bounds) == sorted([*risk, "auroc", "ece_mass", "ks_error"])
    for name, estimate in whole.metrics.items():
        if name not in ("mcb", "dsc", "ece_debiased"):  # pools and bins of equal mass
            off = abs(ev.metrics[name] - estimate)
            assert off <= bounds.get(name, 0) + 1e-10, name


def test_real_logits_give_their_golden_numbers(torch, make, data):
    found = data("cifar10_akamaster_resnet32")
    metric = make(10)
    z, y = torch.tensor(found["logits"]), torch.tensor(found["labels"])
    for scores, labels in zip(z.split(1000), y.split(1000), strict=True):
        metric.update(scores, labels)
    whole = cal.evaluate(found["labels"], logits=found["logits"], interval=None)
    numbers = metric.compute()
    for name in FREE:
        assert numbers[name].item() == pytest.approx(whole.metrics[name], abs=1e-7)


def test_ece_is_that_of_torchmetrics(torch, make, part):
    z, y = draw()  # no confidence on an edge, to which the two give different bins
    given = torch.tensor(z), torch.tensor(y)
    theirs = part("torchmetrics").classification.MulticlassCalibrationError(
        4, n_bins=15
    )
    theirs.update(*given)
    ours = fill(make(), z, y).compute()["ece"]
    assert ours.item() == pytest.approx(theirs.compute().item(), abs=1e-6)


def test_a_sketch_of_other_rows_can_be_merged(make):
    z, y = draw()
    rest = cal.Sketch(engine="numpy").update(y[2000:], logits=z[2000:])
    both = fill(make(), z[:2000], y[:2000]).sketch() + rest
    assert_same_sums(both, cal.Sketch(engine="numpy").update(y, logits=z), AS_NUMPY)


def test_a_sketch_is_of_the_rows_so_far(make):
    z, y = draw(100)
    metric = fill(make(), z, y)
    sketch = metric.sketch()
    before = sketch.cells.table.copy()
    fill(metric, z, y)
    np.testing.assert_array_equal(sketch.cells.table, before)


# -- rows that do not count, rows that must not -------------------------------------


def test_ignored_labels_leave_no_trace(make):
    z, y = draw(500)
    some = np.arange(500) % 3 == 0
    with_holes, holes = z.copy(), y.copy()
    with_holes[some], holes[some] = np.nan, -100
    metric = fill(make(ignore_index=-100), with_holes, holes)
    only = cal.Sketch(engine="numpy").update(y[~some], logits=z[~some])
    assert_same_sums(metric.sketch(), only, AS_NUMPY)


def test_bad_rows_are_refused_at_the_end(torch, make):
    metric = make(3)
    metric.update(torch.tensor([[0.0, 1, 2], [np.nan, 0, 0]]), torch.tensor([1, 0]))
    metric.update(torch.zeros(2, 3), torch.tensor([3, -1]))
    words = (
        r"1 row of logits \(not finite\) and 2 labels \(no class, 0 to 2\) break a rule"
    )
    for look in (metric.compute, metric.sketch, metric.evaluation):
        with pytest.raises(ValueError, match=words):
            look()
    metric.reset()
    metric.update(torch.zeros(2, 3), torch.tensor([0, 1]))
    assert metric.compute()["accuracy"].item() == 0.5


def test_one_bad_row_is_told_in_the_singular(torch, make):
    metric = make(3)
    metric.update(torch.tensor([[0.0, 1, 2], [np.nan, 0, 0]]), torch.tensor([1, 0]))
    with pytest.raises(
        ValueError, match=r"^1 row of logits \(not finite\) breaks a rule"
    ):
        metric.compute()


def test_percents_and_logits_given_as_probabilities_are_asked_about(torch, make):
    metric = make(3, scores="probs")
    metric.update(100 * torch.full((4, 3), 1 / 3), torch.tensor([0, 1, 2, 0]))
    with pytest.raises(ValueError, match="Are they logits, or percents"):
        metric.compute()


def test_labels_given_as_scores_look_swapped(torch, make):
    with pytest.raises(TypeError, match=r"swapped\. Here labels come second\."):
        make(3).update(torch.tensor([0, 1]), torch.zeros(2, 3))


def test_scores_must_be_named(torch):
    from calibrant.torch import CalibrationSharpness

    with pytest.raises(ValueError, match="scores must be one of 'logits', 'probs'"):
        CalibrationSharpness(3)


def test_no_rows_give_no_numbers(torch, make):
    metric = make(ignore_index=0)
    metric.update(torch.zeros(3, 4), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match="holds no row"):
        metric.compute()
    z, y = draw(20)
    rest = cal.Sketch(engine="numpy").update(y, logits=z)
    assert_same_sums(metric.sketch() + rest, rest)


def test_shapes_must_be_those_of_the_classes(torch, make):
    y = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"n x 4 .* got shape \(2, 3\)"):
        make().update(torch.zeros(2, 3), y)
    with pytest.raises(ValueError, match=r"1-D for target='positive'"):
        make(2, target="positive").update(torch.zeros(2, 2), y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_classes": 2}, "two classes can be read in two ways"),
        ({"num_classes": 1}, "num_classes must be a whole number from 2 on"),
        ({"num_classes": 3, "target": "positive"}, "needs a binary problem"),
        ({"target": "class-wise"}, "target must be one of"),
        ({"scores": "auto"}, "scores must be one of 'logits', 'probs'"),
    ],
)
def test_what_is_asked_must_be_clear(make, options, words):
    with pytest.raises(ValueError, match=words):
        make(**options)


# -- manners of a metric ------------------------------------------------------------


def test_reset_forgets_every_row(make):
    z, y = draw(200)
    metric = fill(make(), z, y)
    metric.reset()
    again = fill(metric, z[:50], y[:50]).sketch()
    assert_same_sums(
        again, cal.Sketch(engine="numpy").update(y[:50], logits=z[:50]), AS_NUMPY
    )


def test_forward_gives_the_batch_and_keeps_all_rows(torch, make):
    z, y = draw(400)
    metric = make()
    for part in (slice(0, 300), slice(300, 400)):
        given = metric(torch.tensor(z[part]), torch.tensor(y[part]))
        own = cal.brier(y[part], logits=z[part])
        assert given["brier"].item() == pytest.approx(own, abs=1e-12)
    assert_same_sums(metric.sketch(), fill(make(), z, y).sketch())


def test_forward_evaluates_a_batch_only_when_it_is_looked_at(torch, make, monkeypatch):
    z, y = draw(300)
    metric, calls = make(), []
    numbers = type(metric)._numbers
    monkeypatch.setattr(
        type(metric), "_numbers", lambda self: calls.append(1) or numbers(self)
    )
    given = [
        metric(torch.tensor(z[x]), torch.tensor(y[x]))
        for x in (slice(150), slice(150, 300))
    ]
    assert not calls
    assert len(given[0]) == 8
    wanted = fill(make(), z[150:], y[150:]).compute()
    for own in (
        dict(given[1]),
        {**given[1]},
        given[1].copy(),
        pickle.loads(pickle.dumps(given[1])),
    ):
        assert own == wanted
    assert given[1].get("nll") == wanted["nll"]
    assert list(given[1].values()) == list(wanted.values())
    assert "calibration" in repr(given[0])
    assert len(calls) == 3


def test_a_copy_lives_on_its_own(make):
    z, y = draw(300)
    metric = fill(make(), z[:200], y[:200])
    copies = metric.clone(), pickle.loads(pickle.dumps(metric))
    for copy in copies:
        fill(copy, z[200:], y[200:])
        assert_same_sums(copy.sketch(), fill(make(), z, y).sketch())
    assert metric.sketch().rows == 200


def test_state_is_saved_where_asked_for(make):
    z, y = draw(300)
    metric = fill(make(), z, y)
    assert metric.state_dict() == {}
    metric.persistent(mode=True)
    other = make()
    other.load_state_dict(metric.state_dict())
    assert_same_sums(other.sketch(), metric.sketch())


def test_states_of_two_metrics_merge(make):
    z, y = draw(300)
    metric, other = fill(make(), z[:100], y[:100]), fill(make(), z[100:], y[100:])
    metric.merge_state(other)
    assert_same_sums(metric.sketch(), fill(make(), z, y).sketch())
    of_rows = weighing(300)
    first, second = (
        fill(make(clustered=True), z[x], y[x], **{n: v[x] for n, v in of_rows.items()})
        for x in (slice(100), slice(100, 300))
    )
    second.merge_state(first)
    whole = cal.Sketch(engine="numpy").update(y, logits=z, **of_rows)
    assert_same_sums(second.sketch(), whole, AS_NUMPY)


def test_it_works_in_a_collection(torch, make, part):
    metrics = part("torchmetrics")
    accuracy = metrics.classification.MulticlassAccuracy(4, average="micro")
    both = metrics.MetricCollection({"hits": accuracy, "ours": make()}, prefix="val_")
    z, y = draw(400)
    for part_ in (slice(0, 300), slice(300, 400)):
        both.update(torch.tensor(z[part_]), torch.tensor(y[part_]))
    found = both.compute()
    assert found["val_brier"].item() == pytest.approx(cal.brier(y, logits=z), abs=1e-12)
    assert {"val_calibration", "val_sharpness_gap", "val_ece"} <= set(found)


@pytest.mark.parametrize("convert", ["half", "float", "to", "set_dtype"])
def test_sums_stay_in_double_precision(torch, make, convert):
    z, y = draw(300)
    metric = fill(make(), z[:100], y[:100])
    method = getattr(
        torch.nn.ModuleList([metric]) if convert != "set_dtype" else metric, convert
    )
    method(torch.float16) if convert in ("to", "set_dtype") else method()
    assert_same_sums(
        fill(metric, z[100:], y[100:]).sketch(), fill(make(), z, y).sketch()
    )


def test_sums_stay_on_the_cpu_where_the_device_has_no_doubles(torch, make, monkeypatch):
    from calibrant.torch import _metric as module

    monkeypatch.setattr(module, "NO_DOUBLE", {"meta"})  # no such device is at hand
    metric = make().to("meta")
    assert metric.device.type == "meta"
    assert {x.device.type for x in metric.metric_state.values()} == {"cpu"}
    metric = make().to("cpu")
    assert {x.device.type for x in metric.metric_state.values()} == {"cpu"}


@pytest.mark.parametrize("target", ["top-label", "positive"])
def test_update_reads_nothing_back_from_the_device(torch, make, target):
    metric = make(2, target=target, ignore_index=-1).to("meta")
    shape = (8, 2) if target == "top-label" else (8,)
    z = torch.zeros(shape, device="meta")  # a device that has no numbers to read
    y = torch.zeros(8, dtype=torch.int64, device="meta")
    metric.update(z, y)
    metric.update(z, y, sample_weight=y + 0.5, frequency=y)
    assert {x.device.type for x in metric.metric_state.values()} == {"meta"}
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        metric.compute()


def test_a_reset_in_inference_mode_does_no_harm(torch, make):
    z, y = draw(100)
    metric = make()
    with torch.inference_mode():
        fill(metric, z, y)
        metric.reset()
    assert_same_sums(fill(metric, z, y).sketch(), fill(make(), z, y).sketch())


def test_plot_draws_the_diagram(make, closed_figures):
    z, y = draw(500)
    metric = fill(make(), z, y)
    figure, ax = metric.plot()
    assert ax.figure is figure
    assert ax.get_ylabel() == "accuracy"
    line = next(line for line in ax.lines if line.get_gid() == "accuracy")
    curve = metric.evaluation().curve
    np.testing.assert_array_equal(line.get_xdata(), curve.confidence)
    evs = [metric.evaluation(name=name, interval=None) for name in ("one", "two")]
    figure, axes = metric.plot(evs, legend=False)
    assert len(axes) == 2
    assert axes[0].figure is figure


# -- several processes --------------------------------------------------------------

SHARES = {"uneven": [0, 900, 1000], "one empty": [0, 1000, 1000]}


def work(rank, folder):
    """What one process of two does: its own rows, then the numbers of all."""
    import torch.distributed as dist
    from torchvision_operators import mend_torchvision

    mend_torchvision()
    from calibrant.torch import CalibrationSharpness

    store = (folder / "store").as_uri()
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    z, y = draw(1000)
    for share, ends in SHARES.items():
        rows = slice(*ends[rank : rank + 2])
        metric = CalibrationSharpness(4, scores="logits")
        metric.update(*(torch_rows(x, rows) for x in (z, y)))
        found = {name: x.item() for name, x in metric.compute().items()}
        metric.sketch().save(folder / f"{share}{rank}.npz")
        own = int(metric.rows)  # the sums of this process are its own again
        np.savez(folder / f"numbers of {share}{rank}.npz", own=own, **found)
    rows = slice(*SHARES["uneven"][rank : rank + 2])
    given = {name: torch_rows(x, rows) for name, x in weighing(1000).items()}
    if rank == 1:  # weights in one process only
        del given["sample_weight"], given["frequency"]
    metric = CalibrationSharpness(4, scores="logits", clustered=True)
    metric.update(*(torch_rows(x, rows) for x in (z, y)), **given)
    metric.sketch().save(folder / f"weighted{rank}.npz")
    dist.destroy_process_group()


def torch_rows(array, rows):
    import torch

    return torch.tensor(array[rows])


def test_two_processes_give_the_numbers_of_one(make, tmp_path):
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, str(tmp_path)]
    running = [
        subprocess.Popen(
            [*command, str(rank)], stderr=subprocess.PIPE, text=True, env=environment
        )
        for rank in range(2)
    ]
    told = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    z, y = draw(1000)
    of_rows = weighing(1000)
    for name in ("sample_weight", "frequency"):
        of_rows[name][900:] = 1
    weighted = cal.Sketch(engine="numpy").update(y, logits=z, **of_rows)
    for rank in range(2):
        both = cal.Sketch.load(tmp_path / f"weighted{rank}.npz")
        assert_same_sums(both, weighted, AS_NUMPY)
    alone = fill(make(), z, y)
    for rank, share in product(range(2), SHARES):
        whole = cal.Sketch.load(tmp_path / f"{share}{rank}.npz")
        assert_same_sums(whole, alone.sketch())
        with np.load(tmp_path / f"numbers of {share}{rank}.npz") as numbers:
            assert numbers["own"] == np.diff(SHARES[share])[rank]
            for name, value in alone.compute().items():
                assert numbers[name] == pytest.approx(value.item(), abs=1e-12)


if __name__ == "__main__":
    work(int(sys.argv[2]), Path(sys.argv[1]))
