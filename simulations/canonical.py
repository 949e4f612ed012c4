"""Check the calibration error of whole vectors against the truth.

    python simulations/canonical.py

draws forecasts from a Dirichlet law and labels from a known change of them, and compares
`calibrant.canonical_calibration_error` with the population value. Writes `canonical.md`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

import calibrant as cal

HERE = Path(__file__).resolve().parent
SIZES = {1_000: 40, 10_000: 6}
"""Rows of a data set, and how many are drawn."""

DRAWS_OF_THE_TRUTH = 2_000_000
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """Forecasts p of k classes, and the true probabilities given p (not normalised)."""

    words: str
    k: int
    change: Callable[[Matrix], Matrix]

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
        """Forecasts and true probabilities."""
        p = rng.dirichlet(np.ones(self.k), rows)
        true = self.change(p)
        return p, true / true.sum(axis=1, keepdims=True)

    def truth(self) -> float:
        """The population value of the Brier calibration error."""
        p, true = self.draw(DRAWS_OF_THE_TRUTH, np.random.default_rng(0))
        return float(((p - true) ** 2).sum(axis=1).mean())


def mixed(p: Matrix) -> Matrix:
    """A fifth of the probability goes to the next class."""
    return 0.8 * p + 0.2 * np.roll(p, 1, axis=1)


def shifted(p: Matrix) -> Matrix:
    """Late classes are likelier than forecast, early ones less."""
    return p * np.exp(np.linspace(-0.8, 0.8, p.shape[1]))


LAWS = (
    Law("p", 3, lambda p: p),
    Law("p to the power ½, normalised", 3, np.sqrt),
    Law("0.8 p + 0.2 p of the class before", 3, mixed),
    Law("0.8 p + 0.2 p of the class before", 5, mixed),
    Law("p to the power ½, normalised", 10, np.sqrt),
    Law("p times e^(-0.8) to e^0.8, normalised", 10, shifted),
)


def estimates(law: Law, rows: int, count: int) -> tuple[float, float]:
    """Mean estimate, and share of intervals that hold the truth."""
    truth, values, held = law.truth(), [], []
    for seed in range(count):
        rng = np.random.default_rng([seed, rows, law.k])
        p, true = law.draw(rows, rng)
        y = (true.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
        found = cal.canonical_calibration_error(y, probs=p)
        low, high = found.calibration.interval
        values.append(float(found.calibration))
        held.append(low <= truth <= high)
    return float(np.mean(values)), float(np.mean(held))


def row(law: Law) -> str:
    """One line of the table."""
    cells = [law.words, str(law.k), f"{100 * law.truth():.2f}"]
    for rows, count in SIZES.items():
        mean, held = estimates(law, rows, count)
        cells.append(f"{100 * mean:.2f} ({100 * held:.0f} %)")
    return f"| {' | '.join(cells)} |"


@click.command(help=__doc__)
def main() -> None:
    drawn = ", ".join(f"{count} of {rows:,} rows" for rows, count in SIZES.items())
    lines = [
        "# The calibration error of whole vectors",
        "",
        "Written by `python simulations/canonical.py`.",
        "",
        "Mean Brier estimate times 100, and the share of 95 % intervals that hold the truth.",
        f"Forecasts p are drawn evenly from the simplex ({drawn}), labels from",
        "",
        f"| true law | k | truth | {' | '.join(f'{n:,} rows' for n in SIZES)} |",
        "|---|---|---|---|---|",
        *map(row, LAWS),
        "",
    ]
    (HERE / "canonical.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
