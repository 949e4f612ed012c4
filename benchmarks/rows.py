"""The lines to reach, in their order. To add one, write a function and decorate it.

Each sets up its data (not timed), races, checks the answers, and returns a Ratio.
"""

import functools
import tempfile
from itertools import product
from pathlib import Path

import alone
import numpy as np
import peak_memory
import peers
import synthetic
from registry import Ratio, agree, benchmark
from timing import race, seconds_of

import calibrant as cal
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns

ROWS, CLASSES = 40_000, 1000


@functools.cache
def imagenet_sized() -> tuple[np.ndarray, np.ndarray]:
    return synthetic.logits(ROWS, CLASSES)


def all_of(evaluation: cal.Evaluation) -> cal.Evaluation:
    """Whatever is put off until asked for, asked for."""
    _ = dict(evaluation.metrics), evaluation.decompositions["log"]
    _ = dict(evaluation.curves), dict(evaluation.paper_curves)
    return evaluation


def evaluate(engine: str = "auto", interval: str | None = None) -> cal.Evaluation:
    """The whole job: every metric, both decompositions and the curves.

    Intervals that need resamples are left out, as the other side has none.
    """
    logits, labels = imagenet_sized()
    how = {"engine": engine, "interval": interval}
    return all_of(cal.evaluate(labels, logits=logits, **how))


# 40,000 x 1000 logits, without resampled intervals.


def sharpcal_as_shipped() -> tuple[float, float, float]:
    logits, labels = imagenet_sized()
    torch = peers.load("torch")
    probs = torch.softmax(torch.from_numpy(logits), dim=1)
    return peers.sharpcal_total_and_calibration(probs, labels)


@benchmark(
    "sharpcal's calibration error, 10 subsamples of 5000 / `cal.evaluate`, all rows",
    at_least=1000,
    needs=("torch", "sharpcal"),
)
def against_sharpcal() -> Ratio:
    """It takes most of a minute: once."""
    timings = race(once=("sharpcal",), ours=evaluate, sharpcal=sharpcal_as_shipped)
    ours = timings["ours"].answer
    total, calibration, spread = timings["sharpcal"].answer
    return Ratio.of(
        "sharpcal",
        "ours",
        timings,
        agree("Brier", ours.metrics["brier"], total, 1e-5),
        agree("d_CAL as published", ours.paper.calibration, calibration, spread),
    )


def paper_combination() -> dict[str, float]:
    """The table row of the paper: torch for the losses, netcal, relplot."""
    logits, labels = imagenet_sized()
    torch = peers.load("torch")
    z, y = torch.from_numpy(logits), torch.from_numpy(labels)
    p = torch.softmax(z, dim=1)
    h, predicted = p.max(dim=1)
    correct = (predicted == y).double().numpy()
    one_hot = torch.nn.functional.one_hot(y, p.shape[1])
    return {
        "accuracy": correct.mean(),
        "nll": torch.nn.functional.cross_entropy(z, y).item(),
        "brier": ((p - one_hot) ** 2).sum(dim=1).mean().item(),
        "ece": peers.netcal_error("ECE", p.numpy(), labels),
        "ace": peers.netcal_error("ACE", p.numpy(), labels),
        "smooth_ece": peers.relplot_smooth_ece(h.double().numpy(), correct)[0],
    }


@benchmark(
    "torch softmax, NLL, Brier + netcal ECE, ACE + relplot SmoothECE / `cal.evaluate`",
    at_least=20,
    needs=("torch", "netcal", "relplot"),
)
def against_the_paper_combination() -> Ratio:
    timings = race(ours=evaluate, combination=paper_combination)
    ours, theirs = (timings[name].answer for name in ("ours", "combination"))
    logits, labels = imagenet_sized()
    like_relplot = cal.smooth_ece(labels, logits=logits, compat="relplot")
    same = ("accuracy", "nll", "brier", "ece", "ace")
    return Ratio.of(
        "combination",
        "ours",
        timings,
        *(agree(name, ours.metrics[name], theirs[name], 1e-5) for name in same),
        agree("smooth_ece as relplot", like_relplot, theirs["smooth_ece"], 2e-3),
    )


def accuracy(logits: np.ndarray, labels: np.ndarray) -> float:
    return np.mean(logits.argmax(axis=1) == labels)


def against_one_read(engine: str) -> Ratio:
    logits, labels = imagenet_sized()
    timings = race(
        ours=functools.partial(evaluate, engine),
        read=functools.partial(np.max, logits),
    )
    found = timings["ours"].answer.metrics["accuracy"]
    check = agree("accuracy", found, accuracy(logits, labels), 1e-12)
    return Ratio.of("ours", "read", timings, check)


@benchmark("`cal.evaluate`, compiled / one `np.max` of the logits", at_most=6)
def compiled_against_one_read() -> Ratio:
    return against_one_read("auto")


@benchmark("`cal.evaluate`, NumPy engine / one `np.max` of the logits", at_most=16)
def numpy_against_one_read() -> Ratio:
    return against_one_read("numpy")


@benchmark("reduction of the logits to columns / one `np.max` of them", at_most=3)
def reduction_against_one_read() -> Ratio:
    logits, labels = imagenet_sized()

    def reduced() -> float:
        columns = reduce_to_columns(read_predictions(labels, logits=logits))
        return float(columns.hit.mean())

    timings = race(ours=reduced, read=functools.partial(np.max, logits))
    found = timings["ours"].answer
    check = agree("accuracy", found, accuracy(logits, labels), 1e-12)
    return Ratio.of("ours", "read", timings, check)


# Intervals, and small calls.


def intervals_against_none(logits: np.ndarray, labels: np.ndarray) -> Ratio:
    timings = race(
        full=lambda: all_of(cal.evaluate(labels, logits=logits)),
        bare=lambda: all_of(cal.evaluate(labels, logits=logits, interval=None)),
    )
    full, bare = (timings[name].answer.metrics["ece"] for name in ("full", "bare"))
    assert full.interval is not None
    return Ratio.of("full", "bare", timings, agree("ECE", full, bare, 0))


@benchmark("`cal.evaluate` with default intervals / none, 10,000 x 10", at_most=2)
def intervals_of_ten_classes() -> Ratio:
    return intervals_against_none(*synthetic.logits(10_000, 10))


@benchmark("`cal.evaluate` with default intervals / none, 10,000 x 100", at_most=2)
def intervals_of_a_hundred_classes() -> Ratio:
    return intervals_against_none(*synthetic.logits(10_000, 100))


@benchmark("`cal.evaluate` with default intervals / none, 40,000 x 1000", at_most=2.5)
def intervals_of_a_thousand_classes() -> Ratio:
    return intervals_against_none(*imagenet_sized())


def small_call(interval: str | None) -> Ratio:
    logits, labels = synthetic.logits(1000, 10)
    timings = race(
        ours=lambda: all_of(cal.evaluate(labels, logits=logits, interval=interval)),
        softmax=lambda: [synthetic.softmax(logits) for _ in range(100)],
    )
    ratio = Ratio.of("ours", "softmax", timings)
    said = f"{ratio.value:.3g} times 100 softmaxes of it"
    seconds = timings["ours"]
    return Ratio(1e3 * seconds.cpu, 1e3 * seconds.wall, (said,), ratio.seconds)


@benchmark("`cal.evaluate`, 1000 x 10, no intervals", at_most=15, unit=" ms")
def small_call_without_intervals() -> Ratio:
    return small_call(None)


@benchmark("`cal.evaluate`, 1000 x 10, default intervals", at_most=30, unit=" ms")
def small_call_with_intervals() -> Ratio:
    return small_call("auto")


FIRST = """
import numpy as np, calibrant as cal
z = np.random.default_rng(0).normal(size=(1000, 10))
cal.evaluate(z.argmax(axis=1), logits=z)
"""


@benchmark("first `cal.evaluate`, imports included / `import numpy`", at_most=2)
def first_evaluation() -> Ratio:
    timings = seconds_of(numpy=["-c", "import numpy"], first=["-c", FIRST])
    return Ratio.of("first", "numpy", timings)


# Against relplot, torch, scikit-learn and netcal.


def against_relplot(n: int) -> Ratio:
    tasks = {"ours": "smooth_ece", "relplot": "smooth_ece_of_relplot"}
    timings = alone.raced(repeats=3 if n < 10_000_000 else 1, number=n, **tasks)
    ours, theirs = (timings[name].answer for name in ("ours", "relplot"))
    check = agree("smooth_ece", ours, theirs, 2e-3)
    return Ratio.of("relplot", "ours", timings, check)


for rows, goal in ((10_000, 12), (1_000_000, 80), (10_000_000, 150)):
    benchmark(
        f"relplot `smECE` / `cal.smooth_ece`, {rows:,} pairs, fresh processes",
        at_least=goal,
        needs=("relplot",),
    )(functools.partial(against_relplot, rows))


def temperature_against(task: str) -> Ratio:
    timings = alone.raced(number=alone.FIT, ours="temperature", theirs=task)
    found = [timings[name].answer for name in ("ours", "theirs")]
    return Ratio.of("theirs", "ours", timings, agree("T", *found, 1e-3))


benchmark(
    "torch L-BFGS, strong Wolfe / `TemperatureScaling().fit`, 10,000 x 1000, "
    "fresh processes",
    at_least=80,
    needs=("torch",),
)(functools.partial(temperature_against, "temperature_of_torch"))
benchmark(
    "scikit-learn `method='temperature'` / `TemperatureScaling().fit`, fresh processes",
    at_least=60,
    needs=("sklearn",),
)(functools.partial(temperature_against, "temperature_of_scikit_learn"))


@functools.cache
def probs() -> tuple[np.ndarray, np.ndarray]:
    z, y = synthetic.logits(50_000, CLASSES, seed=3)
    return synthetic.softmax(z), y


def against_netcal(name: str, theirs: str, **options) -> Ratio:
    (p, y), fit = probs(), 10_000
    method = getattr(cal.recalibration, name)
    timings = race(
        ours=lambda: (
            method(scores="probs").fit(p[:fit], y[:fit]).predict_proba(p[fit:])
        ),
        netcal=lambda: peers.netcal_recalibrated(
            theirs, p[:fit], y[:fit], p[fit:], **options
        ),
    )
    answers = (timings[who].answer.argmax(axis=1) for who in ("ours", "netcal"))
    check = agree("accuracy", *(np.mean(x == y[fit:]) for x in answers), 5e-3)
    return Ratio.of("netcal", "ours", timings, check)


@benchmark(
    "netcal `HistogramBinning` / `HistogramBinning`, fit and apply, k = 1000",
    at_least=30,
    needs=("netcal",),
)
def histogram_against_netcal() -> Ratio:
    return against_netcal("HistogramBinning", "HistogramBinning", bins=15)


@benchmark(
    "netcal `IsotonicRegression` / `IsotonicCalibration`, fit and apply, k = 1000",
    at_least=12,
    needs=("netcal",),
)
def isotonic_against_netcal() -> Ratio:
    return against_netcal("IsotonicCalibration", "IsotonicRegression")


# Growth.


@benchmark("`cal.evaluate_pairs`, 10,000,000 rows / 1,000,000 rows", at_most=10.5)
def linear_in_rows() -> Ratio:
    many = synthetic.pairs(10_000_000)
    few = tuple(column[:1_000_000].copy() for column in many)
    sides = {"many": many, "few": few}

    def work(side: str) -> cal.Evaluation:
        h, a = sides[side]
        return all_of(cal.evaluate_pairs(a, h, interval=None))

    timings = race(**{name: functools.partial(work, name) for name in sides})
    checks = [
        agree(
            f"Brier of {len(a):,}",
            timings[name].answer.metrics["brier"],
            np.mean((h - a) ** 2),
            1e-9,
        )
        for name, (h, a) in sides.items()
    ]
    return Ratio.of("many", "few", timings, *checks)


@benchmark(
    "extra peak memory of `cal.evaluate_pairs`, 10,000,000 rows / input", at_most=1.5
)
def memory_of_pairs() -> Ratio:
    h, a = synthetic.pairs(10_000_000)
    rise, found = peak_memory.rise(h, a, "auto", "pairs")
    check = agree("Brier", found.answer, np.mean((h - a) ** 2), 1e-9)
    return Ratio.amount(rise / (h.nbytes + a.nbytes), {"ours": found}, check)


@benchmark("class-wise `cal.evaluate`, 10,000 x 100 / top-label, default", at_most=6)
def class_wise() -> Ratio:
    logits, labels = synthetic.logits(10_000, 100)
    timings = race(
        each=lambda: cal.evaluate(labels, logits=logits, target="class-wise"),
        top=lambda: cal.evaluate(labels, logits=logits),
    )
    found = (timings[name].answer.metrics["brier"] for name in ("each", "top"))
    return Ratio.of("each", "top", timings, agree("Brier", *found, 1e-9))


# The shell.


@functools.cache
def folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="calibrant-bench-")


def in_the_shell(*words: str) -> Ratio:
    command = ["-m", "calibrant", *words]
    return Ratio.of("ours", "bare", seconds_of(bare=["-c", "pass"], ours=command))


@benchmark("`calibrant --help` / bare `python`", at_most=5)
def shell_help() -> Ratio:
    return in_the_shell("--help")


@benchmark("`calibrant report`, 10,000 x 10 / bare `python`", at_most=40)
def shell_report() -> Ratio:
    logits, labels = synthetic.logits(10_000, 10)
    path = Path(folder().name, "model.npz")
    np.savez(path, logits=logits, labels=labels)
    return in_the_shell("report", str(path))


# Others.


@benchmark(
    "`canonical_calibration_error`, 20,000 x 3 / ten passes of kernel sums, "
    "2000 rows around all",
    at_most=3,
)
def canonical() -> Ratio:
    logits, labels = synthetic.logits(20_000, 3)
    p = synthetic.softmax(logits.astype(np.float64))
    root, columns = np.sqrt(p), np.concatenate([p, p, np.ones((len(p), 1))], axis=1)

    def passes() -> None:
        for _, first in product(range(10), range(0, 2000, 256)):
            rows = root[first : min(first + 256, 2000)]
            for near in range(0, len(root), 512):  # tiles that stay in cache
                tile = slice(near, near + 512)
                np.exp((rows @ root[tile].T - 1) / 0.01) @ columns[tile]

    timings = race(
        ours=lambda: cal.canonical_calibration_error(labels, probs=p), passes=passes
    )
    return Ratio.of("ours", "passes", timings)


@benchmark("`cal.compare`, 1,000,000 rows / 100,000 rows", at_most=11)
def comparison() -> Ratio:
    h, a = synthetic.pairs(1_000_000)
    models = {}
    for name, n in (("many", len(h)), ("few", len(h) // 10)):
        pair = (("a", h[:n].copy()), ("b", h[:n] ** 1.2))
        known = a[:n].copy()
        models[name] = [
            cal.evaluate_pairs(known, x, name=who, interval=None) for who, x in pair
        ]
    timings = race(
        **{name: functools.partial(cal.compare, *two) for name, two in models.items()}
    )
    return Ratio.of("many", "few", timings)


def torch_batches():
    torch = peers.load("torch")
    logits, labels = synthetic.logits(128, CLASSES)
    from calibrant.torch import CalibrationSharpness

    given = torch.from_numpy(logits), torch.from_numpy(labels)
    return CalibrationSharpness(CLASSES, scores="logits"), given


def fifty(work) -> None:
    for _ in range(50):
        work()


@benchmark(
    "`CalibrationSharpness.update`, 128 x 1000 / torchmetrics' calibration error",
    at_most=1.2,
    needs=("torch", "torchmetrics"),
)
def torch_update() -> Ratio:
    ours, given = torch_batches()
    metrics = peers.load("torchmetrics.classification")
    theirs = metrics.MulticlassCalibrationError(CLASSES, n_bins=15)
    timings = race(
        ours=lambda: fifty(lambda: ours.update(*given)),
        theirs=lambda: fifty(lambda: theirs.update(*given)),
    )
    return Ratio.of("ours", "theirs", timings)


@benchmark(
    "`CalibrationSharpness.forward` / `update`, 128 x 1000",
    at_most=2,
    needs=("torch", "torchmetrics"),
)
def torch_forward() -> Ratio:
    ours, given = torch_batches()
    timings = race(
        forward=lambda: fifty(lambda: ours(*given)),
        update=lambda: fifty(lambda: ours.update(*given)),
    )
    return Ratio.of("forward", "update", timings)


@benchmark("`cal.study`, five methods, 10,000 x 1000 / `cal.evaluate` of it", at_most=8)
def study() -> Ratio:
    logits, labels = synthetic.logits(10_000, CLASSES)
    timings = race(
        study=lambda: cal.study(labels, logits=logits),
        one=lambda: all_of(cal.evaluate(labels, logits=logits)),
    )
    assert len(timings["study"].answer) == 5
    return Ratio.of("study", "one", timings)
