"""What the paper says of its experiments, asked of every model there is."""

from __future__ import annotations

from typing import NamedTuple

from experiments.judges import (
    Finding,
    Judge,
    infinite,
    least,
    less_sharp,
    on_vectors,
    same_accuracy,
    same_ranking,
    some_swap,
    subsamples,
)
from experiments.models import RECORDED
from experiments.protocol import (
    HB,
    IR,
    MRR,
    PAPER_KERNEL,
    TS,
    Experiment,
    experiment,
)


class Verdict(NamedTuple):
    """What was found on a claim for a model."""

    claim: str
    model: str
    finding: Finding

    @property
    def outcome(self) -> str:
        """In words."""
        if self.finding.holds:
            return "holds"
        return "does not hold" if self.finding.settled else "cannot be told"


class Claim(NamedTuple):
    """A sentence of the paper, and how to judge it."""

    text: str
    judge: Judge


NARROW = [(("gaussian", w), PAPER_KERNEL) for w in (0.01, 0.03)]
OTHER_KERNEL = [(("epanechnikov", w), ("gaussian", w)) for w in (0.03, 0.05)]

CLAIMS = {
    "mrr-ece": Claim("MRR has the least ECE.", least("ece", MRR)),
    "mrr-ace": Claim("MRR has the least ACE.", least("ace", MRR)),
    "mrr-smooth-ece": Claim("MRR has the least SmoothECE.", least("smooth_ece", MRR)),
    "mrr-accuracy": Claim("MRR leaves the accuracy as it is.", same_accuracy),
    "ts-nll": Claim("TS has the least NLL.", on_vectors(least("nll", TS))),
    "ts-brier": Claim("TS has the least Brier score.", on_vectors(least("brier", TS))),
    "hb-infinite": Claim("HB has an infinite NLL.", on_vectors(infinite(HB))),
    "ir-infinite": Claim("IR has an infinite NLL.", on_vectors(infinite(IR))),
    "sharpness": Claim(
        "From CIFAR-10 to CIFAR-100, sharpness is what gets worse (nine tenths of the "
        "difference in Brier score), uncalibrated and after TS.",
        less_sharp,
    ),
    "bandwidth": Claim(
        "Methods rank the same by d_CAL at σ = 0.01, 0.03 and 0.05.",
        same_ranking(*NARROW),
    ),
    "over-smoothing": Claim(
        "At σ = 0.1 or 0.25 the ranking is another than at 0.05.", some_swap
    ),
    "kernel": Claim(
        "The Epanechnikov kernel ranks methods as the Gaussian of the same bandwidth "
        "does (0.03, 0.05).",
        same_ranking(*OTHER_KERNEL),
    ),
    "subsample-rows": Claim(
        "The mean of d_CAL over ten subsamples of 5,000 rows is within two of its "
        "standard deviations of the exact value.",
        subsamples("by_rows"),
    ),
    "subsample-points": Claim(
        "So it is where, as in the authors' code, 5,000 rows are only where the curve "
        "of all rows is read.",
        subsamples("by_points"),
    ),
}


def judge(one: Experiment) -> list[Verdict]:
    """Verdicts on all claims that can be asked of a model."""
    found = {key: claim.judge(one) for key, claim in CLAIMS.items()}
    return [Verdict(key, one.name, x) for key, x in found.items() if x is not None]


def judge_all() -> list[Verdict]:
    """Verdicts on all claims for all recorded models."""
    return [verdict for name in RECORDED for verdict in judge(experiment(name))]
