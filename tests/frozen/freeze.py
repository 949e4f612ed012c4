"""Freeze: run all cases with one package and write their results to goldens.json.gz.

    python freeze.py acumen             # goldens.json.gz
    python freeze.py acumen --files     # old_files/ too

The goldens were made with `acumen` 0.1.0. Do not make them again with a later version:
what is to change deliberately is named in `test_frozen.EXCEPTIONS`.
"""

from __future__ import annotations

import gzip
import importlib
import json
import lzma
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).parent
GOLDENS = HERE / "goldens.json.gz"
OLD_FILES = HERE / "old_files"


def main() -> None:
    """Freeze every case, and say how long it took."""
    import cases

    package, *options = sys.argv[1:]
    cal = importlib.import_module(package)
    sys.stdout.write(f"{package} {cal.__version__} from {cal.__file__}\n")
    if "--files" in options:
        write_old_files(cal)
    results, begun = {}, time.perf_counter()
    for name in cases.CASES:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            results[name] = cases.run(name, cal, Path(folder))
        sys.stdout.write(f"{time.perf_counter() - start:7.2f} s  {name}\n")
    write(results)
    taken, size = time.perf_counter() - begun, GOLDENS.stat().st_size
    sys.stdout.write(f"{len(results)} cases, {taken:.0f} s, {size:,} bytes\n")


def write(results: dict[str, Any]) -> None:
    """Write results; equal results give equal bytes."""
    text = json.dumps(results, sort_keys=True, allow_nan=False, separators=(",", ":"))
    GOLDENS.write_bytes(packed(text))


def packed(text: str) -> bytes:
    """Text compressed, without the time of day and without a name."""
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def read() -> dict[str, Any]:
    """The results as they were frozen."""
    with gzip.open(GOLDENS, "rb") as file:
        return json.loads(file.read())


# -- files of version 0.1.0 -----------------------------------------------------------


def write_old_files(cal: ModuleType) -> None:
    """Write one file of every kind, and the numbers that loading it must give."""
    import cases

    OLD_FILES.mkdir(exist_ok=True)
    with cases.by_engine("numpy"):
        expected = {
            "evaluation.json.xz": _evaluation(cal),
            "comparison.json.xz": _comparison(cal),
            "study.json.xz": _study(cal),
            "sketch_probs.npz": _sketch_of_probs(cal),
            "sketch_pairs.npz": _sketch_of_pairs(cal),
            "recalibrators": _recalibrators(cal),
        }
    text = json.dumps(expected, sort_keys=True, allow_nan=False)
    (OLD_FILES / "expected.json").write_text(text + "\n", encoding="utf-8")


def numbers_of(ev: Any) -> dict[str, Any]:
    """Metrics and decomposition of an evaluation, as plain data."""
    import cases

    return cases.plain(
        {
            "name": ev.name,
            "n": ev.n,
            "metrics": ev.metrics,
            "total": ev.decomposition.total,
            "calibration": ev.decomposition.calibration,
            "sharpness gap": ev.decomposition.sharpness_gap,
            "paper": ev.paper.calibration,
            "curve": ev.curve.accuracy[::60],
            "text": str(ev),
            "groups": {name: numbers_of(one) for name, one in ev.per_group.items()},
        }
    )


def _answers(n: int, seed: int) -> tuple[Any, Any]:
    """Pairs whose confidences have two digits, so that files are small."""
    rng = np.random.default_rng(seed)
    h = rng.integers(5, 11, n) / 10
    return rng.random(n) < 0.9 * h, h


def _evaluation(cal: ModuleType) -> Any:
    ev = cal.evaluate_pairs(*_answers(200, seed=1), name="old")
    _write_packed("evaluation.json.xz", ev.to_json() + "\n")
    return numbers_of(ev)


def _write_packed(name: str, text: str) -> None:
    """Keep a long file small: what the package wrote is inside."""
    (OLD_FILES / name).write_bytes(lzma.compress(text.encode(), preset=9))


def _comparison(cal: ModuleType) -> Any:
    a, h = _answers(120, seed=2)
    models = [
        cal.evaluate_pairs(a, h**x, name=f"power {x}", bandwidth=0.05) for x in (1, 2)
    ]
    found = cal.compare(*models)
    _write_packed("comparison.json.xz", found.to_json() + "\n")
    return told_of(found)


def told_of(found: Any) -> dict[str, Any]:
    """Names, differences and sentences of a comparison, as plain data."""
    import cases

    return cases.plain(
        {
            "names": found.names,
            "baseline": found.baseline,
            "differences": found.differences,
            "sentences": found.sentences,
            "models": {ev.name: numbers_of(ev) for ev in found},
        }
    )


def _study(cal: ModuleType) -> Any:
    y = np.random.default_rng(3).integers(0, 2, 80)
    p = np.where(np.arange(80) % 3 == 0, 1 - 0.8 * y - 0.1, 0.2 + 0.6 * y)
    options = {"split": 0.5, "interval": None, "bandwidth": 0.05}
    found = cal.study(y, probs=p, methods="temperature", **options)
    given = found.to_dict()
    for effect in given["effects"].values():
        effect |= {"fit_seconds": 0.25, "apply_seconds": 0.125}
    _write_packed("study.json.xz", json.dumps(given, allow_nan=False) + "\n")
    return studied(found, given["effects"])


def studied(found: Any, effects: Any = None) -> dict[str, Any]:
    """Names, protocol, effects and numbers of a study, as plain data."""
    import cases

    return cases.plain(
        {
            "names": found.names,
            "protocol": found.protocol,
            "effects": found.effects if effects is None else effects,
            "models": {ev.name: numbers_of(ev) for ev in found},
        }
    )


def _sketch_of_probs(cal: ModuleType) -> Any:
    rng = np.random.default_rng(4)
    choices = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]]
    p = np.array(choices)[rng.integers(0, 4, 60)]
    y = (p.cumsum(axis=1) < rng.random((60, 1))).sum(axis=1).clip(0, 2)
    names = ["ant", "bee", "cow"]
    group = np.where(np.arange(60) % 2, "odd", "even")
    sketch = cal.Sketch(classes=names).update(
        np.array(names)[y], probs=p, group=group, part="first"
    )
    sketch.save(OLD_FILES / "sketch_probs.npz")
    return sketched(cal, sketch)


def _sketch_of_pairs(cal: ModuleType) -> Any:
    sketch = cal.Sketch().update_pairs(*_answers(60, seed=5))
    sketch.save(OLD_FILES / "sketch_pairs.npz")
    return sketched(cal, sketch)


def sketched(cal: ModuleType, sketch: Any) -> dict[str, Any]:
    """Facts and numbers of a sketch, as plain data."""
    import cases

    found = {
        "facts": cases.plain(sketch.facts()),
        "numbers": numbers_of(cal.evaluate(sketch, name="sketch")),
    }
    if not sketch.parts:  # a part must not count twice
        found["twice"] = numbers_of(cal.evaluate(sketch + sketch, interval=None))
    return found


def _recalibrators(cal: ModuleType) -> dict[str, Any]:
    """One saved recalibrator of each kind, and what it gives for three rows."""
    rng = np.random.default_rng(6)
    z = rng.normal(scale=3, size=(60, 3)).round(2)
    y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    rows = [[1.0, -2.0, 0.5], [0.0, 0.25, 0.0], [-4.0, 3.0, 5.0]]
    found: dict[str, Any] = {}
    for name, options in RECALIBRATORS.items():
        kind = name.partition("_")[0]
        made = getattr(cal.recalibration, kind)(**options).fit(
            z, np.array(list("abc"))[y]
        )
        made.save(OLD_FILES / f"{name}.json")
        given = made.predict_proba(rows)
        found[name] = {"rows": rows, "gives": given.tolist(), "class": kind}
    return found


RECALIBRATORS: dict[str, dict[str, Any]] = {
    "BetaCalibration": {},
    "DirichletCalibration": {},
    "EnsembleTemperatureScaling": {},
    "HistogramBinning": {"bins": 8},
    "HistogramBinning_top": {"bins": 5, "strategy": "mass", "mode": "top-label"},
    "Identity": {},
    "IsotonicCalibration": {},
    "IsotonicCalibration_netcal": {"compat": "netcal"},
    "MatrixScaling": {},
    "MeanReplacement": {},
    "PlattScaling": {},
    "TemperatureScaling": {},
    "TemperatureScaling_brier": {"objective": "brier", "bounds": (0.1, 50.0)},
    "VectorScaling": {},
}
"""Files by name, and the options of what is in them (as 0.1.0 called them)."""


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
