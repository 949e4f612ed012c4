"""Record what other libraries say of decisions, risk and coverage, and clinical measures.

    python benchmarks/record_decisions.py --data DATA_FOLDER

writes `peer_decisions.json` beside this file. Needs mapie, model-diagnostics,
uncertainty-calibration, dcurves and statsmodels; not calibrant. Input is `prob` and
`outcome` of DATA_FOLDER/<name>.npz as float64, held to [1e-6, 1 - 1e-6]; where a peer
splits ties by chance or by the order of rows, one row of each distinct value (the first).

versions
    of every package that had a say.
files.<name>
    rows : number of rows.
    model_diagnostics.elementary : by threshold, mean `ElementaryScore(eta, "mean")`:
        half of ours.
    dcurves.{net_benefit,treat_all} : by threshold, of `dca`.
    mapie.{largest,smallest} : of `cumulative_differences` of distinct rows, without the
        origin, noise of 1e-12 added to the scores.
    uncertainty_calibration.selective : `get_selective_stats` of max(p, 1 - p) and
        whether the likelier class came true, distinct rows: 1 - AURC.
    statsmodels.{intercept,joint_intercept,slope} : logistic regression on logit p, at
        slope 1 and free; value and HC0 standard error.
    statsmodels.{ici,e50,e90,emax} : mean, quantiles and largest of |p - lowess|, frac 2/3
        and no robust iterations, of 4,000 rows: the definitions of rms::val.prob.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from calibration import get_selective_stats
from dcurves import dca
from mapie.metrics.calibration import cumulative_differences
from model_diagnostics.scoring import ElementaryScore

FILES = ("adult_random_forest", "fivethirtyeight_governors")
THRESHOLDS = (0.1, 0.25, 0.5, 0.75)
PACKAGES = (
    *("mapie", "model-diagnostics", "uncertainty-calibration", "dcurves"),
    *("statsmodels", "numpy"),
)
SOME = 4000


def distinct(values: np.ndarray) -> np.ndarray:
    """The first row of each distinct value."""
    return np.unique(values, return_index=True)[1]


def decisions(y: np.ndarray, p: np.ndarray) -> dict:
    """Elementary scores and net benefit."""
    scores = [float(ElementaryScore(t, functional="mean")(y, p)) for t in THRESHOLDS]
    frame = pd.DataFrame({"y": y, "p": p})
    found = dca(frame, "y", ["p"], thresholds=THRESHOLDS)
    benefit = {
        m: found[found["model"] == m]["net_benefit"].tolist() for m in ("p", "all")
    }
    return {
        "model_diagnostics": {"elementary": scores},
        "dcurves": {"net_benefit": benefit["p"], "treat_all": benefit["all"]},
    }


def walks(y: np.ndarray, p: np.ndarray) -> dict:
    """Cumulative differences, and the area under the accuracy by coverage."""
    one = distinct(p)
    walk = cumulative_differences(y[one], p[one], noise_amplitude=1e-12, random_state=0)
    sure, right = np.maximum(p, 1 - p), np.where(p >= 0.5, y, 1 - y)
    some = distinct(sure)
    area, _ = get_selective_stats(sure[some], right[some])
    return {
        "mapie": {"largest": float(walk.max()), "smallest": float(walk.min())},
        "uncertainty_calibration": {"selective": float(area)},
    }


def clinical(y: np.ndarray, p: np.ndarray) -> dict:
    """Logistic recalibration, and the distances of lowess from the diagonal."""
    z, family = np.log(p / (1 - p)), sm.families.Binomial()
    one = sm.GLM(y, np.ones((len(y), 1)), family=family, offset=z).fit(cov_type="HC0")
    two = sm.GLM(y, sm.add_constant(z), family=family).fit(cov_type="HC0")
    some = np.sort(np.random.default_rng(0).permutation(len(y))[:SOME])
    fit = sm.nonparametric.lowess(
        y[some], p[some], frac=2 / 3, it=0, return_sorted=False
    )
    apart = np.abs(fit - p[some])
    return {
        "intercept": [float(one.params[0]), float(one.bse[0])],
        "joint_intercept": [float(two.params[0]), float(two.bse[0])],
        "slope": [float(two.params[1]), float(two.bse[1])],
        "ici": float(apart.mean()),
        "e50": float(np.quantile(apart, 0.5)),
        "e90": float(np.quantile(apart, 0.9)),
        "emax": float(apart.max()),
    }


def answers(path: Path) -> dict:
    """All that is said of one file."""
    file = np.load(path, allow_pickle=False)
    y = file["outcome"].astype(float)
    p = np.clip(file["prob"].astype(float), 1e-6, 1 - 1e-6)
    found = {"rows": len(y), **decisions(y, p), **walks(y, p)}
    return found | {"statsmodels": clinical(y, p)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    found = {
        "versions": {name: version(name) for name in PACKAGES},
        "thresholds": THRESHOLDS,
        "files": {name: answers(data / f"{name}.npz") for name in FILES},
    }
    target = Path(__file__).with_name("peer_decisions.json")
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
