"""Tables: calibrant's own of each study, and the paper's numbers beside ours."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isinf, isnan, nan
from pathlib import Path
from typing import NamedTuple

from experiments.models import RECORDED
from experiments.paper import METRICS, OF_CONFIDENCE, PaperTable, numbers
from experiments.protocol import BASELINE, KERNELS, MRR, PAPER_KERNEL, Experiment
from experiments.protocol import experiment as recorded


class Grid(NamedTuple):
    """A plain table of text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """With pipes; numbers to the right."""
        rule = [":--", *["--:"] * (len(self.head) - 1)]
        return "\n".join(f"| {' | '.join(r)} |" for r in (self.head, rule, *self.rows))

    def save(self, stem: Path) -> None:
        """As Markdown and as CSV."""
        stem.with_suffix(".md").write_text(self.markdown() + "\n", encoding="utf-8")
        write_csv(stem.with_suffix(".csv"), self.head, self.rows)


def write_csv(
    path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Write rows of anything."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def hundredfold(value: float, digits: int = 2) -> str:
    """A share as it is printed in the paper: x100."""
    if isnan(value):
        return "–"
    return "∞" if isinf(value) else f"{100 * value:.{digits}f}"


# -- beside the paper ------------------------------------------------------------------


class Difference(NamedTuple):
    """One number here and in the paper, x100."""

    method: str
    metric: str
    here: float
    paper: float

    @property
    def difference(self) -> float:
        """Here less there; 0 if both are infinite."""
        return 0.0 if self.here == self.paper else self.here - self.paper


def differences(table: PaperTable, one: Experiment) -> Iterator[Difference]:
    """Every number of a table of the paper that was also measured here."""
    only_confidence = one.kind == "confidence"
    metrics = OF_CONFIDENCE if only_confidence else tuple(METRICS)
    for method, theirs in numbers(table.key).items():
        if only_confidence and method not in (BASELINE, MRR):
            continue  # learned one curve here, and one for each class there
        for metric in metrics:
            here = 100 * float(one.study[method].metrics[metric])
            yield Difference(method, metric, here, theirs[metric])


def beside(table: PaperTable, one: Experiment) -> Grid:
    """The paper's table with our numbers before its own, in brackets."""
    cells = {(d.method, d.metric): d for d in differences(table, one)}
    methods = [m for m in numbers(table.key) if (m, "ece") in cells]
    metrics = [m for m in METRICS if (BASELINE, m) in cells]
    rows = [[m, *(_pair(cells[m, metric]) for metric in metrics)] for m in methods]
    return Grid(["", *(METRICS[m] for m in metrics)], rows)


def _pair(cell: Difference) -> str:
    return f"{hundredfold(cell.here / 100)} ({hundredfold(cell.paper / 100)})"


def save_table(table: PaperTable, folder: Path, outputs: Path | None = None) -> None:
    """Write a table of the paper: Markdown, CSV, LaTeX, and the differences."""
    one, words = table.experiment(outputs)
    shown = [(one, words)]
    if table.alike and one.name == table.stand_in:
        shown.append((recorded(table.alike), table.alike_words))
    stem, study = folder / f"table{table.number}", one.study
    caption = f"{one.title} on {one.dataset}, for the paper's {table.title}"
    latex = study.table("latex", caption=caption, label=f"tab:{table.key}")
    parts = [
        f"# Table {table.number}: {table.title}",
        "Our numbers, and the paper's in brackets; all x100.",
        *(f"{describe(x, w)}\n\n{beside(table, x).markdown()}" for x, w in shown),
        study.table("markdown", caption=caption),
    ]
    stem.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    stem.with_suffix(".csv").write_text(study.table("csv"), encoding="utf-8")
    stem.with_suffix(".tex").write_text(latex + "\n", encoding="utf-8")
    write_csv(
        folder / f"{stem.name}_differences.csv",
        ("model", *Difference._fields, "difference"),
        [(x.name, *d, d.difference) for x, _ in shown for d in differences(table, x)],
    )


def describe(one: Experiment, words: str) -> str:
    """What stands in for the paper's model, and what is the same and what is not."""
    return f"{one.title} ({one.dataset}), {one.study.protocol}. {words}"


# -- what the paper shows in its figures ---------------------------------------------------


def bandwidths(one: Experiment) -> Grid:
    """d_CAL of each method with the kernels of the paper's figures."""
    names = [f"{kernel.capitalize()} {width:g}" for kernel, width in KERNELS]
    rows = [
        [name, *(hundredfold(one.errors[kernel][name], 3) for kernel in KERNELS)]
        for name in one.study.names
    ]
    return Grid(["", *names], rows)


def subsampling(one: Experiment) -> Grid:
    """d_CAL of all rows, and the paper's mean of ten estimates with its ±."""
    rows = [
        [
            name,
            hundredfold(one.errors[PAPER_KERNEL][name], 3),
            *(
                f"{hundredfold(found[name].mean, 3)} ± {hundredfold(found[name].spread, 3)}"
                for found in (one.by_rows, one.by_points)
            ),
        ]
        for name in one.study.names
    ]
    return Grid(["", "all rows", "10 × 5,000 rows", "10 × 5,000 points"], rows)


def overview() -> Grid:
    """Every recorded model, uncalibrated."""
    metrics = ("accuracy", "ece", "smooth_ece", "nll", "brier")
    heads = ["model", "data", "n", *(METRICS[m] for m in metrics), "d_CAL", "gap"]
    rows = []
    for name in RECORDED:
        one = recorded(name)
        ev = one.study[BASELINE]
        parts = [ev.metrics.get(m, nan) for m in metrics]
        parts += [ev.paper.calibration, ev.paper.sharpness_gap]
        text = [hundredfold(float(x)) for x in parts]
        rows.append([one.title, one.dataset, f"{one.n:,}", *text])
    return Grid(heads, rows)


def of_all_models(grid_of: Callable[[Experiment], Grid]) -> Grid:
    """The same table for every recorded model that has enough rows, one below another."""
    found = [recorded(name) for name in RECORDED]
    grids = [(one, grid_of(one)) for one in found if one.can_be_subsampled]
    rows = [[one.title, one.dataset, *row] for one, grid in grids for row in grid.rows]
    return Grid(["model", "data", "method", *grids[0][1].head[1:]], rows)


def save_others(folder: Path) -> None:
    """Write the tables that the paper has as figures, and all models in one."""
    of_all_models(bandwidths).save(folder / "bandwidths")
    of_all_models(subsampling).save(folder / "subsampling")
    overview().save(folder / "models")
