"""Record what other calibration libraries answer, for our tests to compare with.

    python benchmarks/record_peers.py --data DATA_FOLDER

writes `peer_outputs.json` beside this file. Needs the packages of `peers.txt`; not
calibrant. Takes 15 seconds and, for sharpcal without subsampling in float64, 3 GB.

The JSON holds:

versions
    of every package that had a say. All numbers are rounded to twelve digits.
files.<name>
    Answers on DATA_FOLDER/<name>.npz. Input: the stored `logits` as float64, each row
    less its maximum, exponentiated, divided by its sum. That (n, k) float64 matrix and
    the stored integer `labels` go to the peers. Where a peer wants pairs: confidence =
    row maximum, correct = (first index of the maximum == label). 15 bins throughout.

    rows, classes, accuracy, mean_confidence
        of that input, by NumPy.
    netcal.{ece,ace,mce}
        Top label. Equal-width bins, LEFT-closed [a, b), the last closed; edges
        `np.linspace(0, 1, bins + 1)`. ece = sum of (n_b/n)|gap_b|; ace = UNWEIGHTED
        mean of |gap_b| over the non-empty bins ("average" calibration error, not
        equal-mass); mce = largest |gap_b|.
    torchmetrics.{l1,l2,max}
        Top label, LEFT-closed, with one EXTRA bin for confidence exactly 1. A matrix is
        cast to float32, where many confidences become exactly 1, and summed in float32:
        l1 is good to 1e-5, but l2 and max differ for real from 15 plain bins. l1 = ECE,
        l2 = the ROOT of sum (n_b/n) gap_b^2, max = MCE. Pairs stay in float64.
    sklearn.log_loss
        Mean natural log loss; probabilities are clipped at float64 eps (2.2e-16), so it
        is never infinite.
    sklearn.brier
        `brier_score_loss(..., scale_by_half=False)`: SUM over classes, range 0 to 2.
    sklearn.auroc
        `roc_auc_score(correct, confidence)`.
    sklearn.calibration_curve
        Of (correct, confidence): bins RIGHT-closed (a, b], 0 in the first; empty bins
        are left out. `accuracy` is prob_true, `confidence` is prob_pred.
    sklearn.corp
        From `IsotonicRegression` of correct on confidence, squared error of the pairs
        (range 0 to 1): score = miscalibration - discrimination + uncertainty.
    relplot.{smooth_ece,bandwidth}
        `smECE` of the pairs: reflected Gaussian on a grid, bandwidth by ten bisections
        (a multiple of 1/1024). Pairs within one grid step (0.001) of 0 or 1 count up to
        HALF too little.
    relplot.smooth_ece_at_0.05
        `smECE_sigma(..., sigma=0.05)`, same half weight.
    sharpcal.{total,calibration}
        `get_full_loss_and_cal`, Brier score, Gaussian kernel, bandwidth 0.05, every row
        an evaluation point (n_points = n), float64. total: all classes, range 0 to 2.
        calibration: mean of (NW(h) - h)^2 over top-label confidences; no boundary
        correction, no root, each row helps to predict itself.
    sharpcal.curve
        At 21 confidences: NW regression of correct (`accuracy`) and of the all-class
        Brier loss (`loss`), and the kernel `density`, which is not corrected at 0 and 1.
    uncertainty_calibration.ece
        `get_ece`: top label, equal width, RIGHT-closed.
    uncertainty_calibration.ece_mass
        `get_ece_em`: sorted rows cut in 15 runs, edges half way between neighbours.
    uncertainty_calibration.l2_{mass,width}, debiased_l2_{mass,width}
        ROOT of the binned squared error, top label, same two binnings; debiased takes
        acc(1 - acc)/(n_b - 1) off each bin, counts a bin of one row as 0, and is cut
        off at 0 before the root.
    uncertainty_calibration.marginal
        `get_calibration_error`, its default: debiased L2 error of each class in 15 bins of
        equal mass (one for each distinct value, if these are fewer than a quarter of the
        rows in every class), cut off at 0, and the ROOT of the mean over classes of squares.
arrays.<name>
    Small inputs that pin an edge convention. `about` says which; the input is
    `confidence` and `correct` (tiled `repeat` times if given) or `probs` and `labels`,
    with `bins` where bins matter; `answers` are keyed as above. sharpcal's total on
    pairs is mean (confidence - correct)^2.

A peer that is not installed is left out, and so are its keys.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import peers
from edge_arrays import MATRICES, PAIRS, matrix_of, pairs_of

HERE = Path(__file__).resolve().parent
FILES = ("cifar10_akamaster_resnet32", "imagenet5k_efficientnet_lite0")
CURVE_AT = np.linspace(0, 1, 21)


def softmax(logits: np.ndarray) -> np.ndarray:
    z = logits.astype(np.float64)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def top_label(probs: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(np.float64)


def netcal(probs, labels, bins: int) -> dict:
    return {
        name.lower(): peers.netcal_error(name, probs, labels, bins)
        for name in ("ECE", "ACE", "MCE")
    }


def torchmetrics(probs, labels, bins: int) -> dict:
    return {
        norm: peers.torchmetrics_error(probs, labels, bins, norm)
        for norm in ("l1", "l2", "max")
    }


def uncertainty_calibration(probs, labels, bins: int) -> dict:
    cal = peers.load("calibration")
    schemes = {"mass": cal.get_equal_bins, "width": cal.get_equal_prob_bins}
    l2 = {
        f"{prefix}l2_{name}": float(
            cal.lower_bound_scaling_top_ce(probs, labels, 2, debias, bins, scheme)
        )
        for name, scheme in schemes.items()
        for prefix, debias in (("", False), ("debiased_", True))
    }
    ece = float(cal.get_ece(probs, labels, num_bins=bins))
    ece_mass = float(cal.get_ece_em(probs, labels, num_bins=bins))
    return {"ece": ece, "ece_mass": ece_mass} | l2


def marginal(probs, labels) -> dict:
    error = peers.load("calibration").get_calibration_error(probs, labels)
    return {"marginal": float(error)}


def calibration_curve(confidence, correct, bins: int) -> dict:
    curve = peers.load("sklearn.calibration").calibration_curve
    accuracy, mean_confidence = curve(correct, confidence, n_bins=bins)
    return {"accuracy": accuracy.tolist(), "confidence": mean_confidence.tolist()}


def corp(confidence, correct) -> dict[str, float]:
    regression = peers.load("sklearn.isotonic").IsotonicRegression(out_of_bounds="clip")
    recalibrated = regression.fit_transform(confidence, correct)
    score = np.mean((confidence - correct) ** 2)
    best = np.mean((recalibrated - correct) ** 2)
    uncertainty = np.var(correct)
    return {
        "score": float(score),
        "miscalibration": float(score - best),
        "discrimination": float(uncertainty - best),
        "uncertainty": float(uncertainty),
    }


def log_loss_and_brier(probs, labels) -> dict[str, float]:
    metrics, classes = peers.load("sklearn.metrics"), np.arange(probs.shape[1])
    brier = metrics.brier_score_loss(labels, probs, labels=classes, scale_by_half=False)
    log_loss = metrics.log_loss(labels, probs, labels=classes)
    return {"log_loss": float(log_loss), "brier": float(brier)}


def sklearn(probs, labels, bins: int) -> dict:
    confidence, correct = top_label(probs, labels)
    auroc = peers.load("sklearn.metrics").roc_auc_score(correct, confidence)
    return log_loss_and_brier(probs, labels) | {
        "auroc": float(auroc),
        "calibration_curve": calibration_curve(confidence, correct, bins),
        "corp": corp(confidence, correct),
    }


def relplot(confidence, correct) -> dict[str, float]:
    value, width = peers.relplot_smooth_ece(confidence, correct)
    fixed = peers.relplot_smooth_ece_at(confidence, correct, 0.05)
    return {"smooth_ece": value, "bandwidth": width, "smooth_ece_at_0.05": fixed}


def sharpcal(probs, labels) -> dict[str, float]:
    total, calibration, _ = peers.sharpcal_total_and_calibration(
        probs, labels.astype(np.int64), n_points=len(labels)
    )
    return {"total": total, "calibration": calibration}


def of_file(path: Path, bins: int = 15) -> dict:
    with np.load(path) as data:
        probs, labels = softmax(data["logits"]), data["labels"].astype(np.int64)
    confidence, correct = top_label(probs, labels)
    answers = {
        "rows": probs.shape[0],
        "classes": probs.shape[1],
        "accuracy": float(correct.mean()),
        "mean_confidence": float(confidence.mean()),
        "netcal": netcal(probs, labels, bins),
        "torchmetrics": torchmetrics(probs, labels, bins),
        "sklearn": sklearn(probs, labels, bins),
        "relplot": relplot(confidence, correct),
        "sharpcal": sharpcal(probs, labels)
        | {"curve": peers.sharpcal_curve(CURVE_AT, probs, labels)},
    }
    if peers.available("calibration"):
        answers["uncertainty_calibration"] = uncertainty_calibration(
            probs, labels, bins
        ) | marginal(probs, labels)
    return answers


def of_pairs(case: dict) -> dict:
    confidence, correct = pairs_of(case)
    if "bins" not in case:
        return {
            "relplot": relplot(confidence, correct.astype(np.float64)),
            "sharpcal": sharpcal(confidence, correct),
        }
    bins = case["bins"]
    answers = {
        "netcal": netcal(confidence, correct, bins),
        "torchmetrics": torchmetrics(confidence, correct, bins),
        "sklearn": {"calibration_curve": calibration_curve(confidence, correct, bins)},
    }
    if peers.available("calibration"):
        answers["uncertainty_calibration"] = uncertainty_calibration(
            confidence, correct, bins
        )
    return answers


def of_matrix(case: dict) -> dict:
    (probs, labels), bins = matrix_of(case), case["bins"]
    answers = {
        "netcal": netcal(probs, labels, bins),
        "torchmetrics": torchmetrics(probs, labels, bins),
        "sklearn": log_loss_and_brier(probs, labels),
        "sharpcal": sharpcal(probs, labels),
    }
    if peers.available("calibration"):
        answers["uncertainty_calibration"] = marginal(probs, labels)
    return answers


def record(folder: Path) -> dict:
    pairs = {name: case | {"answers": of_pairs(case)} for name, case in PAIRS.items()}
    matrices = {
        name: case | {"answers": of_matrix(case)} for name, case in MATRICES.items()
    }
    return {
        "versions": {
            distribution: peers.version(name)
            for name, distribution in peers.DISTRIBUTIONS.items()
            if peers.available(name)
        },
        "files": {name: of_file(folder / f"{name}.npz") for name in FILES},
        "arrays": pairs | matrices,
    }


def rounded(value):
    """The same JSON with twelve digits to a number: the rest depends on the machine."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def default_data() -> Path:
    beside_the_repository = HERE.parent.parent / "shared" / "data"
    return Path(os.environ.get("CALIBRANT_DATA", beside_the_repository))


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what the peers answer.")
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--out", type=Path, default=HERE / "peer_outputs.json")
    options = parser.parse_args()
    text = json.dumps(rounded(record(options.data)), indent=1, sort_keys=True)
    options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
