"""Rows of the table on recalibration: fit on 10,000 rows, apply to 40,000."""

import functools

import numpy as np
import peak_memory
import peers
import synthetic
from record_temperatures import scikit_learn
from registry import Ratio, agree, benchmark
from timing import race

from calibrant.recalibration import (
    HistogramBinning,
    IsotonicCalibration,
    TemperatureScaling,
)

FIT, APPLY, CLASSES = 10_000, 40_000, 1000


@functools.cache
def logits() -> tuple[np.ndarray, np.ndarray]:
    return synthetic.logits(FIT + APPLY, CLASSES, seed=3)


@functools.cache
def probs() -> tuple[np.ndarray, np.ndarray]:
    z, y = logits()
    return synthetic.softmax(z), y


# Temperature.


def our_temperature() -> float:
    z, y = logits()
    return TemperatureScaling(engine="numba").fit(z[:FIT], y[:FIT]).temperature_


def torch_temperature() -> float:
    """L-BFGS with strong Wolfe line search: the fair way to do it in torch."""
    torch = peers.load("torch")
    z, y = (torch.from_numpy(array[:FIT]) for array in logits())
    temperature = torch.tensor([1.0], requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [temperature], lr=1, max_iter=100, line_search_fn="strong_wolfe"
    )

    def closure():
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(z / temperature, y)
        loss.backward()
        return loss

    optimiser.step(closure)
    return temperature.item()


@benchmark(
    "torch L-BFGS, strong Wolfe / `TemperatureScaling(engine='numba').fit`",
    at_least=40,
    needs=("torch", "numba"),
)
def temperature_against_torch() -> Ratio:
    timings = race(ours=our_temperature, torch=torch_temperature)
    found = [timings[name].answer for name in ("ours", "torch")]
    return Ratio.of("torch", "ours", timings, agree("T", *found, 1e-3))


@benchmark(
    "scikit-learn `method='temperature'` / `TemperatureScaling(engine='numba').fit`",
    at_least=20,
    needs=("sklearn", "numba"),
)
def temperature_against_scikit_learn() -> Ratio:
    z, y = logits()
    timings = race(
        ours=our_temperature,
        sklearn=functools.partial(scikit_learn, z[:FIT], y[:FIT]),
    )
    found = [timings[name].answer for name in ("ours", "sklearn")]
    return Ratio.of("sklearn", "ours", timings, agree("T", *found, 1e-3))


# Class by class, against netcal, the tool of the paper.


def ours(method) -> np.ndarray:
    p, y = probs()
    return method(scores="probs").fit(p[:FIT], y[:FIT]).predict_proba(p[FIT:])


def netcal(name: str, **options) -> np.ndarray:
    p, y = probs()
    return peers.netcal_recalibrated(name, p[:FIT], y[:FIT], p[FIT:], **options)


def against_netcal(method, name: str, within: float, **options) -> Ratio:
    timings = race(
        ours=functools.partial(ours, method),
        netcal=functools.partial(netcal, name, **options),
    )
    y = probs()[1][FIT:]
    accuracies = [
        np.mean(timings[who].answer.argmax(axis=1) == y) for who in ("ours", "netcal")
    ]
    check = agree("accuracy", *accuracies, within)
    return Ratio.of("netcal", "ours", timings, check)


@benchmark(
    "netcal `HistogramBinning` / `HistogramBinning`, fit and apply",
    at_least=15,
    needs=("netcal", "numba"),
)
def histogram_against_netcal() -> Ratio:
    return against_netcal(HistogramBinning, "HistogramBinning", 5e-3, bins=15)


@benchmark(
    "netcal `IsotonicRegression` / `IsotonicCalibration`, fit and apply",
    at_least=3.5,
    needs=("netcal", "numba"),
)
def isotonic_against_netcal() -> Ratio:
    return against_netcal(IsotonicCalibration, "IsotonicRegression", 5e-3)


# Memory.


def extra_memory(name: str) -> Ratio:
    scores, y = logits() if name == "TemperatureScaling" else probs()
    rise, found = peak_memory.rise(scores, y, "numba", name)
    plain = np.mean(scores[FIT:].argmax(axis=1) == y[FIT:])
    check = agree("accuracy", found, plain, 0.03)
    matrix = scores[FIT:].nbytes
    return Ratio(100 * max(rise, 0) / matrix, checks=(check,))


def memory_row(name: str):
    @benchmark(
        f"extra peak memory of `{name}`, fit and apply, of the scores' size",
        at_most=25,
        needs=("numba",),
        unit=" %",
    )
    def row() -> Ratio:
        return extra_memory(name)


for method in (TemperatureScaling, HistogramBinning, IsotonicCalibration):
    memory_row(method.__name__)
