"""Rows of the table on memory: what is needed beside the scores."""

import functools

import numpy as np
import peak_memory
from registry import Ratio, agree, benchmark
from rows import accuracy, imagenet_sized, probs
from synthetic import logits


def extra_memory(engine: str) -> Ratio:
    scores, labels = imagenet_sized()
    rise, found = peak_memory.rise(scores, labels, engine)
    check = agree("accuracy", found.answer, accuracy(scores, labels), 1e-12)
    return Ratio.amount(100 * rise / scores.nbytes, {"ours": found}, check)


for engine in ("compiled", "numpy"):
    benchmark(
        f"extra peak memory of `cal.evaluate`, engine={engine!r}, of the logits' size",
        at_most=5,
        unit=" %",
    )(functools.partial(extra_memory, engine))


def memory_of(name: str) -> Ratio:
    by_logits = name == "TemperatureScaling"
    scores, y = logits(50_000, 1000, seed=3) if by_logits else probs()
    rise, found = peak_memory.rise(scores, y, "auto", name)
    applied = slice(int(peak_memory.FIT_SHARE * len(y)), None)
    plain = np.mean(scores[applied].argmax(axis=1) == y[applied])
    check = agree("accuracy", found.answer, plain, 0.03)
    share = 100 * max(rise, 0) / scores[applied].nbytes
    return Ratio.amount(share, {"ours": found}, check)


for method in ("TemperatureScaling", "HistogramBinning", "IsotonicCalibration"):
    benchmark(
        f"extra peak memory of `{method}`, fit and apply, of the scores' size",
        at_most=25,
        unit=" %",
    )(functools.partial(memory_of, method))
