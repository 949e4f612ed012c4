"""How claims are judged: each judge looks at one experiment and says what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, isinf, sqrt
from typing import NamedTuple

import calibrant as cal
from experiments.protocol import (
    BASELINE,
    MRR,
    PAPER_KERNEL,
    TS,
    Experiment,
    Kernel,
    experiment,
)

ON_CIFAR100 = {
    "cifar10_peterson_densenet_bc_100_12": "cifar100_netcal_densenet_bc_100",
    "cifar10_netcal_lenet_5": "cifar100_netcal_lenet_5",
    "top1_nncal_resnet110_c10": "top1_nncal_densenet40_c100",
}
"""Networks on CIFAR-10 and their like on CIFAR-100 (the last pair: only alike)."""

MOSTLY = 0.9
"""A difference is one of sharpness if this share of it is."""


class Finding(NamedTuple):
    """Whether a claim holds, the numbers (x100) that say so, and whether chance could.

    `settled` is False where a paired comparison cannot tell the two apart.
    """

    holds: bool
    numbers: str
    settled: bool = True


Judge = Callable[[Experiment], Finding | None]
"""None where a claim cannot be asked."""


def least(key: str, winner: str) -> Judge:
    """One method has the least of a metric."""

    def judge(one: Experiment) -> Finding:
        found = {ev.name: 100 * float(ev.metrics[key]) for ev in one.study}
        best = min(found, key=found.__getitem__)
        if found[winner] == found[best] < inf:
            return Finding(holds=True, numbers=f"{winner} {found[winner]:.2f}")
        numbers = f"{winner} {found[winner]:.2f}, {best} {found[best]:.2f}"
        settled = isinf(found[winner]) or _is_less(
            key, one.study[best], one.study[winner]
        )
        return Finding(holds=False, numbers=numbers, settled=settled)

    return judge


def _is_less(key: str, a: cal.Evaluation, b: cal.Evaluation) -> bool:
    """Whether a paired comparison finds less in the first, beyond chance."""
    interval = cal.compare(a, b).differences[b.name][key].interval
    return interval is not None and interval[0] > 0


def on_vectors(judge: Judge) -> Judge:
    """Ask only where probabilities of all classes are recorded."""
    return lambda one: None if one.kind == "confidence" else judge(one)


def infinite(name: str) -> Judge:
    """A method gives some true class probability 0."""

    def judge(one: Experiment) -> Finding:
        ev = one.study[name]
        words = f"{ev.infinite_rows:.0f} rows of probability 0"
        return Finding(isinf(ev.metrics["nll"]), words)

    return judge


def same_accuracy(one: Experiment) -> Finding:
    """Mean replacement predicts what the model predicts."""
    before, after = (100 * one.study[m].metrics["accuracy"] for m in (BASELINE, MRR))
    return Finding(before == after, f"{before:.2f} and {after:.2f}")


def same_ranking(*pairs: tuple[Kernel, Kernel]) -> Judge:
    """The order of the methods by d_CAL is the same in each pair of kernels."""

    def judge(one: Experiment) -> Finding:
        swaps = [s for first, second in pairs for s in _swaps(one, first, second)]
        words = sorted({swap.words(one) for swap in swaps})
        return Finding(not swaps, "; ".join(words), any(s.settled(one) for s in swaps))

    return judge


class Swap(NamedTuple):
    """Two methods, the first of which has the lesser d_CAL with one kernel only."""

    a: str
    b: str
    first: Kernel
    second: Kernel

    def words(self, one: Experiment) -> str:
        """Both errors with the paper's kernel."""
        errors = one.errors[PAPER_KERNEL]
        low, high = sorted((self.a, self.b), key=errors.__getitem__)
        return f"{low} {100 * errors[low]:.3f}, {high} {100 * errors[high]:.3f}"

    def settled(self, one: Experiment) -> bool:
        """Whether both orders are more than chance."""
        orders = (self.first, (self.a, self.b)), (self.second, (self.b, self.a))
        return all(
            _is_less("calibration", *one.evaluated(as_gaussian(kernel), pair))
            for kernel, pair in orders
        )


def as_gaussian(kernel: Kernel) -> Kernel:
    """The Gaussian that smooths as much, for which there are intervals."""
    name, width = kernel
    return kernel if name == "gaussian" else ("gaussian", width / sqrt(5))


def _swaps(one: Experiment, first: Kernel, second: Kernel) -> Iterator[Swap]:
    was, now = one.ranking(first), one.ranking(second)
    for place, a in enumerate(was):
        for b in was[place + 1 :]:
            if now.index(b) < now.index(a):
                yield Swap(a, b, first, second)


def some_swap(one: Experiment) -> Finding:
    """A wide kernel ranks the methods in another way than the paper's."""
    wide = [("gaussian", 0.1), ("gaussian", 0.25)]
    swaps = {tuple(sorted(s[:2])) for w in wide for s in _swaps(one, PAPER_KERNEL, w)}
    words = ", ".join(" and ".join(pair) for pair in sorted(swaps))
    return Finding(bool(swaps), words or " < ".join(one.ranking(PAPER_KERNEL)))


def subsamples(attribute: str) -> Judge:
    """The paper's mean of ten estimates agrees with the exact value."""

    def judge(one: Experiment) -> Finding | None:
        if not one.can_be_subsampled:
            return None
        found, exact = getattr(one, attribute), one.errors[PAPER_KERNEL]
        off = [m for m, mean in found.items() if not mean.agrees_with(exact[m])]
        words = (
            f"{m} {100 * found[m].mean:.3f} ± {100 * found[m].spread:.3f} for "
            f"{100 * exact[m]:.3f}"
            for m in off or [BASELINE]
        )
        return Finding(not off, "; ".join(words))

    return judge


def less_sharp(one: Experiment) -> Finding | None:
    """Brier is worse on CIFAR-100, and sharpness is most of the difference."""
    if one.name not in ON_CIFAR100:
        return None
    other, holds, words = experiment(ON_CIFAR100[one.name]), True, []
    for method in (BASELINE, TS):
        here, there = one.study[method].paper, other.study[method].paper
        gap = there.sharpness_gap - here.sharpness_gap
        holds &= bool(gap > MOSTLY * (there.total - here.total) > 0)
        words.append(
            f"{method}: gap {100 * here.sharpness_gap:.2f} to "
            f"{100 * there.sharpness_gap:.2f}, d_CAL {100 * here.calibration:.2f} to "
            f"{100 * there.calibration:.2f}"
        )
    return Finding(holds, "; ".join(words))
