"""Check the level and the power of the kernel test, beside Kuiper's of the confidence.

    python simulations/kernel_tests.py

draws forecasts from a Dirichlet law and labels from known changes of them, and counts how
often p-values are at most 5 %. Writes `kernel_tests.md`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import calibrant as cal

HERE = Path(__file__).resolve().parent
Matrix = NDArray[np.float64]
ROWS, SETS = 200, 200


LAWS: dict[str, Callable[[Matrix], Matrix]] = {
    "calibrated": lambda p: p,
    "too sure: p^(1/2)": np.sqrt,
    "class 0 three times as likely": lambda p: (
        p * np.where(np.arange(p.shape[1]), 1, 3)
    ),
}


def p_values(p: Matrix, true: Matrix, rng: np.random.Generator) -> list[float]:
    """Of the vector, of the confidence by kernel, and by Kuiper's test."""
    y = (true.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1)
    given = {"probs": p, "rng": rng}
    return [
        cal.kernel_calibration_error(y, **given, resamples=59).p_value,
        cal.kernel_calibration_error(y, **given, of="confidence", resamples=59).p_value,
        cal.calibration_test(y, probs=p).p_value,
    ]


def rows() -> Iterator[str]:
    for k in (3, 20):
        for name, law in LAWS.items():
            rng, found = np.random.default_rng(k), []
            for _ in range(SETS):
                p = rng.dirichlet(np.full(k, 0.5), ROWS)
                true = law(p)
                true = true / true.sum(axis=1, keepdims=True)
                found.append(p_values(p, true, rng))
            shares = 100 * np.mean(np.array(found) <= 0.05, axis=0)
            yield f"| {name} | {k} | {' | '.join(f'{x:.1f}' for x in shares)} |"


def main() -> None:
    lines = [
        "# Level and power of the kernel test",
        "",
        "Written by `python simulations/kernel_tests.py`.",
        "",
        f"Per cent of {SETS} data sets of {ROWS} rows with p <= 5 %. Of calibrated models it",
        f"should be 5, give or take {196 * (0.05 * 0.95 / SETS) ** 0.5:.1f}; of the others, as",
        "many as possible. The vector sees classes that are off in different ways, which the",
        "confidence does not, and the confidence one temperature, which is small in each class.",
        "",
        "| true law | k | vector | confidence | Kuiper |",
        "|---|---|---|---|---|",
        *rows(),
        "",
    ]
    (HERE / "kernel_tests.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
