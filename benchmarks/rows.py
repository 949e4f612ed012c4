"""The rows of the table. To add one, write a function and decorate it.

Each sets up its data (not timed), races, checks the answers, and returns a Ratio.
"""

import functools

import numpy as np
import peak_memory
import peers
import synthetic
from registry import Ratio, agree, benchmark
from timing import race, seconds_to_run

import calibrant as cal

ROWS, CLASSES = 40_000, 1000


@functools.cache
def imagenet_sized() -> tuple[np.ndarray, np.ndarray]:
    return synthetic.logits(ROWS, CLASSES)


def evaluate(engine: str = "auto") -> cal.Evaluation:
    """The whole job: every metric, both decompositions and the curve.

    Intervals that need resamples are left out, as the other side has none.
    """
    logits, labels = imagenet_sized()
    evaluation = cal.evaluate(labels, logits=logits, engine=engine, interval=None)
    # Whatever may be put off until asked for, ask for.
    _ = dict(evaluation.metrics), evaluation.decompositions["log"]
    _ = evaluation.paper, evaluation.curve
    return evaluation


# Against the peers, from the same logits.


def sharpcal_as_shipped() -> tuple[float, float, float]:
    logits, labels = imagenet_sized()
    torch = peers.load("torch")
    probs = torch.softmax(torch.from_numpy(logits), dim=1)
    return peers.sharpcal_total_and_calibration(probs, labels)


@benchmark(
    "sharpcal's calibration error, 10 subsamples of 5000 / `cal.evaluate`, all rows",
    at_least=300,
    needs=("torch", "sharpcal"),
)
def against_sharpcal() -> Ratio:
    timings = race(ours=evaluate, sharpcal=sharpcal_as_shipped)
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
    at_least=8,
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


# Against reading the matrix once, and in memory.


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


@benchmark("`cal.evaluate`, NumPy engine / one `np.max` of the logits", at_most=20)
def numpy_against_one_read() -> Ratio:
    return against_one_read("numpy")


@benchmark(
    "`cal.evaluate`, numba engine / one `np.max` of the logits",
    at_most=8,
    needs=("numba",),
)
def numba_against_one_read() -> Ratio:
    return against_one_read("numba")


def extra_memory(engine: str) -> Ratio:
    logits, labels = imagenet_sized()
    rise, found = peak_memory.rise(logits, labels, engine)
    check = agree("accuracy", found, accuracy(logits, labels), 1e-12)
    return Ratio(100 * rise / logits.nbytes, checks=(check,))


@benchmark("extra peak memory, NumPy engine, of the logits' size", at_most=5, unit=" %")
def numpy_memory() -> Ratio:
    return extra_memory("numpy")


@benchmark(
    "extra peak memory, numba engine, of the logits' size",
    at_most=5,
    unit=" %",
    needs=("numba",),
)
def numba_memory() -> Ratio:
    return extra_memory("numba")


# Pairs, and starting up.


def against_relplot(n: int) -> Ratio:
    confidence, correct = synthetic.pairs(n)
    timings = race(
        ours=lambda: cal.smooth_ece(correct, confidence=confidence),
        relplot=lambda: peers.relplot_smooth_ece(confidence, correct)[0],
    )
    ours, theirs = (timings[name].answer for name in ("ours", "relplot"))
    check = agree("smooth_ece", ours, theirs, 2e-3)
    return Ratio.of("relplot", "ours", timings, check)


@benchmark(
    "relplot `smECE` / `cal.smooth_ece`, 10,000 pairs", at_least=5, needs=("relplot",)
)
def against_relplot_at_ten_thousand() -> Ratio:
    return against_relplot(10_000)


@benchmark(
    "relplot `smECE` / `cal.smooth_ece`, 1,000,000 pairs",
    at_least=40,
    needs=("relplot",),
)
def against_relplot_at_a_million() -> Ratio:
    return against_relplot(1_000_000)


@benchmark("`cal.evaluate_pairs`, 10,000,000 rows / 1,000,000 rows", at_most=11)
def linear_in_rows() -> Ratio:
    many = synthetic.pairs(10_000_000)
    few = tuple(column[:1_000_000].copy() for column in many)
    timings = race(
        many=lambda: cal.evaluate_pairs(many[1], many[0], interval=None),
        few=lambda: cal.evaluate_pairs(few[1], few[0], interval=None),
    )
    answers = {"many": many, "few": few}
    checks = [
        agree(
            f"Brier of {len(correct):,}",
            timings[name].answer.metrics["brier"],
            np.mean((confidence - correct) ** 2),
            1e-9,
        )
        for name, (confidence, correct) in answers.items()
    ]
    return Ratio.of("many", "few", timings, *checks)


def against_importing_numpy(code: str) -> Ratio:
    seconds = seconds_to_run(["import numpy", code])
    kept = {name: {"wall": took} for name, took in seconds.items()}
    return Ratio(seconds[code] / seconds["import numpy"], seconds=kept)


@benchmark("`import calibrant` / `import numpy`, medians of 31", at_most=1.3)
def import_time() -> Ratio:
    return against_importing_numpy("import calibrant")


@benchmark(
    "`import calibrant; calibrant.evaluate` (loads its modules) / `import numpy`"
)
def first_use_time() -> Ratio:
    return against_importing_numpy("import calibrant; calibrant.evaluate")
