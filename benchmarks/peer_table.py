"""Our numbers beside those of the libraries that have them, as a table.

    python benchmarks/peer_table.py --data DATA_FOLDER

writes `peer_questions.md` from `peer_questions.json` (see `record_questions.py`, where each
convention is told) and calibrant; tests/test_peer_questions.py holds the same numbers.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.recalibration import OffsetScaling

HERE = Path(__file__).resolve().parent
KNOWN = json.loads((HERE / "peer_questions.json").read_text("utf-8"))
HEAD = "| file | number | peer | theirs | ours, in their convention |\n|---|---|---|--:|--:|\n"
Line = tuple[str, str, float, float]


def of_forecasts(y: np.ndarray, p: np.ndarray, known: dict) -> Iterator[Line]:
    theirs, clinical = known["probcal"], cal.clinical(y, probs=p)
    some = np.sort(np.random.default_rng(0).permutation(len(y))[: KNOWN["some"]])
    kernel = cal.kernel_calibration_error(
        y[some], probs=p[some], width=0.2, resamples=19
    )
    test = cal.calibration_test(
        y, probs=p, method="spiegelhalter", law="asymptotic"
    ).statistic
    offset = OffsetScaling(scores="probs", rate=0.5).fit(p, y).offset_
    ours = {
        "ece": cal.ece(y, probs=p, closed="left"),
        "ece_l2": cal.ece(y, probs=p, closed="left", norm=2),
        "mce": cal.mce(y, probs=p, closed="left"),
        "intercept": float(clinical.intercept),
        "slope": float(clinical.slope),
        "spiegelhalter_z": test,
        "ecce": cal.ks_error(y, probs=p),
        "skill": float(cal.skill(y, probs=p)),
        "skce": 2 * kernel.value,
        "offset": offset[1] - offset[0],
    }
    for name, value in ours.items():
        yield name, "probcal", theirs[name], value
    murphy = cal.murphy(y, probs=p, thresholds=KNOWN["thresholds"]).score / 2
    for t, one, two in zip(KNOWN["thresholds"], theirs["murphy"], murphy, strict=True):
        yield f"elementary score at {t}", "probcal", one, two
    errors = cal.t_cal(y, probs=p, resamples=19).errors
    for m, one, two in zip(KNOWN["scales"], known["t_cal"], errors, strict=False):
        yield f"T-Cal, {m} bins", "its authors", one, two


def of_classes(y: np.ndarray, z: np.ndarray, known: dict) -> Iterator[Line]:
    theirs, found, n = (
        known["torch_uncertainty"],
        cal.risk_coverage(y, logits=z),
        len(y),
    )
    error = 1 - cal.accuracy(y, logits=z)
    ours = {
        "aurc": (n * float(found.aurc) - error / 2) / (n - 1),
        "augrc": n * float(found.augrc) / (n - 1),
        "coverage_at_5_risk": float(found.coverage_at(risk=0.05)),
        "risk_at_80_coverage": 1 - float(found.accuracy_at(0.8)),
    }
    for name, value in ours.items():
        yield name, "torch-uncertainty", theirs[name], value


def of_regions(y: np.ndarray, p: np.ndarray, region: np.ndarray, known: dict) -> Line:
    parts = known["glest"]
    theirs = (parts["uncorrected"] - parts["bias"] - parts["induced"]) / 2
    ours = float(cal.grouping_loss(y, probs=p, explain=region))
    return "grouping loss (two estimators)", "glest", theirs, ours


def lines(data: Path) -> Iterator[tuple[str, Line]]:
    for part in ("forecasts", "regions", "classes"):
        for name, known in KNOWN[part].items():
            with np.load(data / f"{name}.npz", allow_pickle=False) as file:
                if part == "classes":
                    z = file["logits"].astype(float)
                    yield from ((name, x) for x in of_classes(file["labels"], z, known))
                    continue
                y = file["outcome"].astype(int)
                p = np.clip(file["prob"].astype(float), 1e-6, 1 - 1e-6)
                if part == "regions":
                    yield name, of_regions(y, p, file[known["column"]], known)
                else:
                    yield from ((name, x) for x in of_forecasts(y, p, known))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    told = [
        f"| {name} | {what} | {peer} | {theirs:.9g} | {ours:.9g} |"
        for name, (what, peer, theirs, ours) in lines(parser.parse_args().data)
    ]
    versions = ", ".join(f"{x} {v}" for x, v in KNOWN["versions"].items())
    text = f"# Our numbers and theirs\n\nWritten by `peer_table.py`; {versions}.\n\n"
    (HERE / "peer_questions.md").write_text(
        text + HEAD + "\n".join(told) + "\n", "utf-8"
    )


if __name__ == "__main__":
    main()
