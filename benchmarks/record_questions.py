"""Record what other libraries say of risk and coverage, causes, walks, offsets and tests.

    python benchmarks/record_questions.py --data DATA_FOLDER [--t-cal FOLDER]

writes `peer_questions.json` beside this file. Needs probcal, glest and torch-uncertainty (its
file of risk and coverage alone: `pip install --no-deps` does); not calibrant. FOLDER holds
the authors' code of T-Cal as `utils.py`; without it what is on file is kept.

versions
    of every package that had a say.
forecasts.<name>
    Of `prob` and `outcome` of DATA_FOLDER/<name>.npz as float64, held to [1e-6, 1 - 1e-6].
    probcal.{ece,ece_l2,mce} : 15 bins of equal width, LEFT-closed.
    probcal.{intercept,slope} : of logistic regression on logit p, at slope 1 and free.
    probcal.{spiegelhalter_z,spiegelhalter_p} : two-sided.
    probcal.ecce : largest absolute cumulative difference, read where a tie ends.
    probcal.skill : 1 - Brier / Brier of the base rate.
    probcal.skce : unbiased, Laplace kernel exp(-|d| / 0.2), SOME rows.
    probcal.offset : log-odds to add for a mean forecast of one half.
    probcal.murphy : by threshold, mean elementary score, half of ours.
    t_cal : debiased plug-in estimate at 2, 4, ..., 2^10 bins of equal width, LEFT-closed,
        where a forecast of exactly 1 has a bin of its own.
regions.<name>
    glest.{uncorrected,bias,induced} : of `GLEstimator` for Brier (2 x (1 - x), so twice
        that of the outcome), 15 bins of equal width, regions given.
classes.<name>
    torch_uncertainty.{aurc,augrc} : trapezoid from 1 / n on over (1 - 1 / n), in float32,
        ties as they are sorted. {coverage_at_5_risk,risk_at_80_coverage}.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import warnings
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from glest import GLEstimator
from probcal import metrics
from probcal.offset import LogitOffset

FORECASTS = ("adult_random_forest", "fivethirtyeight_governors")
REGIONS = {"fivethirtyeight_governors": "party", "fivethirtyeight_games": "league"}
CLASSES = ("cifar10_akamaster_resnet32", "imagenet5k_efficientnet_lite0")
THRESHOLDS = (0.1003, 0.2503, 0.5003, 0.7503)
SCALES = tuple(2**b for b in range(1, 11))
SOME = 2000
PACKAGES = ("probcal", "glest", "torch-uncertainty", "torch", "numpy")


def load_file(name: str, path: Path) -> ModuleType:
    """A module by its file, without the package around it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        p = np.clip(file["prob"].astype(float), 1e-6, 1 - 1e-6)
        return file["outcome"].astype(int), p


def binned(y: np.ndarray, p: np.ndarray) -> dict:
    width = {"n_bins": 15, "strategy": "width"}
    names = {"ece": "l1", "ece_l2": "l2", "mce": "max"}
    return {key: metrics.ece(y, p, norm=norm, **width) for key, norm in names.items()}


def walks(y: np.ndarray, p: np.ndarray) -> dict:
    z = metrics.spiegelhalter_z(y, p)
    return {
        "intercept": metrics.calibration_intercept(y, p),
        "slope": metrics.calibration_slope(y, p),
        "spiegelhalter_z": z.z,
        "spiegelhalter_p": z.p_value,
        "ecce": metrics.ecce(y, p).stat_max,
        "skill": metrics.brier_skill_score(y, p),
    }


def some_rows(n: int) -> np.ndarray:
    """The same rows here and in the tests."""
    return np.sort(np.random.default_rng(0).permutation(n)[:SOME])


def others(y: np.ndarray, p: np.ndarray) -> dict:
    some = some_rows(len(y))
    curve = metrics.murphy_curve(y, p, thresholds=np.array(THRESHOLDS))
    return {
        "skce": metrics.skce(y[some], p[some], bandwidth=0.2),
        "offset": LogitOffset(target_mean=0.5).fit(p).delta_,
        "murphy": np.asarray(curve.score).tolist(),
    }


def of_regions(path: Path, column: str) -> dict:
    y, p = read(path)
    with np.load(path, allow_pickle=False) as file:
        _, region = np.unique(file[column], return_inverse=True)
    found = GLEstimator(p, partitioner=None).fit(p[:, None], y, partition=region)
    parts = {"uncorrected": found.GL_uncorrected, "bias": found.GL_bias}
    parts["induced"] = found.GL_induced
    return {name: float(part("brier")) for name, part in parts.items()}


def risk_and_coverage(path: Path) -> dict:
    place = importlib.util.find_spec("torch_uncertainty")
    assert place is not None
    assert place.submodule_search_locations
    home = Path(place.submodule_search_locations[0])
    module = load_file("rc", home / "metrics/classification/risk_coverage.py")
    with np.load(path) as file:
        z, labels = file["logits"].astype(np.float64), file["labels"].astype(np.int64)
    probs = torch.softmax(torch.as_tensor(z), dim=1)
    names = {
        "aurc": module.AURC(),
        "augrc": module.AUGRC(),
        "coverage_at_5_risk": module.CovAt5Risk(),
        "risk_at_80_coverage": module.RiskAt80Cov(),
    }
    for metric in names.values():
        metric.update(probs, torch.as_tensor(labels))
    return {name: float(metric.compute()) for name, metric in names.items()}


def of_forecasts(path: Path, t_cal: ModuleType | None, before: dict) -> dict:
    y, p = read(path)
    found = {"rows": len(y), "probcal": binned(y, p) | walks(y, p) | others(y, p)}
    if t_cal is None:
        return found | {"t_cal": before["t_cal"]}
    errors = [float(t_cal.plugin_ece(p, y, m, 2, debias=True)) for m in SCALES]
    return found | {"t_cal": errors}


def record(data: Path, t_cal: ModuleType | None, before: dict) -> dict:
    known = before.get("forecasts", {})
    return {
        "versions": {name: version(name) for name in PACKAGES},
        "thresholds": THRESHOLDS,
        "scales": SCALES,
        "some": SOME,
        "forecasts": {
            name: of_forecasts(data / f"{name}.npz", t_cal, known.get(name, {}))
            for name in FORECASTS
        },
        "regions": {
            name: {"column": column, "glest": of_regions(data / f"{name}.npz", column)}
            for name, column in REGIONS.items()
        },
        "classes": {
            name: {"torch_uncertainty": risk_and_coverage(data / f"{name}.npz")}
            for name in CLASSES
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--t-cal", type=Path)
    options = parser.parse_args()
    target = Path(__file__).with_name("peer_questions.json")
    before = json.loads(target.read_text("utf-8")) if target.exists() else {}
    t_cal = None
    if options.t_cal is not None:
        t_cal = load_file("t_cal", options.t_cal / "utils.py")
    warnings.simplefilter("ignore")
    found = record(options.data, t_cal, before)
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
