"""The pages that results make: no number on them, and no claim, is typed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtr, bdtrc

from . import runs
from .runs import About, Cells, Tally

LEAST, MOST, ACCUSED, EXACT = 0.92, 0.98, 0.04, 0.93
"""Coverage to reach, and not to exceed; false lower ends; coverage by enumeration."""

FIRST = runs.HERE / "version_0.1.0.json"

WORDS = {
    "d_brier": "d_CAL, Brier",
    "d_log": "d_CAL, log",
    "gap_brier": "gap, Brier",
    "gap_log": "gap, log",
    "brier": "d_TOT, Brier",
    "log": "d_TOT, log (NLL)",
    "ece": "ECE",
    "smooth_ece": "SmoothECE",
    "paired_brier": "difference, Brier",
    "paired_log": "difference, NLL",
    "paired_d_brier": "difference, d_CAL",
    "paired_ece": "difference, ECE",
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "ace": "ACE",
    "mce": "MCE",
}
"""Quantities with an interval."""

PROMISED = tuple(WORDS)[:11]
"""Those whose coverage the documentation speaks of."""


EASY = (
    "Where a model is calibrated, and events are rare or it is nearly always sure, the RMSE"
    " of d_CAL (Brier) is at most {} times that of debiased bins"
)
HARD = (
    "Where a model is nearly always sure and wrong about it, the RMSE of d_CAL is at most"
    " {} times that of calibrant 0.1.0"
)


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    whole = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in whole) + "\n"


def percent(share: float | None) -> str:
    """A share in per cent, or nothing."""
    known = share is not None and np.isfinite(share)
    return f"{100 * share:.1f}" if known else ""


@dataclass(frozen=True)
class Case:
    """One quantity in one world, for data sets of one size."""

    world: About
    n: int
    name: str
    tally: Tally

    @property
    def verdict(self) -> str:
        """Whether coverage is as promised: held, low, high or absent."""
        tally = self.tally
        if not tally.intervals:
            return "absent"
        if tally.coverage < LEAST:
            return "low"
        two_sided = tally.zero < tally.intervals / 2
        return "high" if tally.coverage > MOST and two_sided else "held"

    @property
    def se(self) -> float:
        """Standard error of the share, were it 95 %."""
        return float(np.sqrt(0.95 * 0.05 / max(self.tally.intervals, 1)))

    @property
    def by_chance(self) -> bool:
        """Whether 92 % (or 98 %) would look like this once in 40 times, or more often."""
        covered, count = self.tally.covered, self.tally.intervals
        if self.tally.coverage < LEAST:
            return bool(bdtr(covered, count, LEAST) > 0.025)
        return bool(bdtrc(covered - 1, count, MOST) > 0.025)

    @property
    def where(self) -> str:
        """World and size, in words."""
        return f"{self.world.name}, n = {self.n:,}"


@dataclass(frozen=True)
class Page:
    """What was found in some worlds."""

    title: str
    worlds: Sequence[About]
    cells: Cells
    first: Cells
    enumeration: Sequence[Sequence[float | None]]

    @cached_property
    def sizes(self) -> list[int]:
        """Sizes that were run."""
        names = {world.name for world in self.worlds}
        return sorted({n for name, n in self.cells if name in names})

    def cases(self, *names: str) -> Iterator[Case]:
        """Everything tallied of some quantities, by world and size."""
        for world in self.worlds:
            for n in self.sizes:
                cell = self.cells.get((world.name, n), {})
                for name in names:
                    if name in cell and cell[name].count:
                        yield Case(world, n, name, cell[name])

    # -- coverage --------------------------------------------------------------

    def overview(self) -> str:
        """One row for each quantity: how many cases are as promised."""
        head = ["interval of", "cases", "held", "too low", "too high", "none", "least"]
        return markdown(head, filter(None, map(self._overview_row, WORDS)))

    def _overview_row(self, name: str) -> list[str]:
        found = list(self.cases(name))
        if not found:
            return []
        verdicts = [case.verdict for case in found]
        counts = [str(verdicts.count(x)) for x in ("held", "low", "high", "absent")]
        some = [case for case in found if case.tally.intervals]
        least = min(some, key=lambda case: case.tally.coverage, default=None)
        shown = f"{percent(least.tally.coverage)} ({least.where})" if least else ""
        return [WORDS[name], str(len(found)), *counts, shown]

    def claim(self) -> str:
        """What the documentation may say of the intervals."""
        found = [case for case in self.cases(*PROMISED) if case.verdict != "absent"]
        low = [case for case in found if case.verdict == "low"]
        sure = [case for case in low if not case.by_chance]
        text = (
            f"Of {len(found):,} cases (a quantity, a world, an n) {len(found) - len(low):,}"
            f" cover at least {100 * LEAST:.0f} % of the time at a level of 95 %, and"
            f" {len(low):,} less"
        )
        return text + (f", {len(sure):,} of them beyond chance." if low else ".")

    def misses(self) -> str:
        """Cases that miss, by quantity."""
        found = [case for case in self.cases(*WORDS) if case.verdict in ("low", "high")]
        if not found:
            return "None.\n"
        found.sort(key=lambda case: list(WORDS).index(case.name))
        lines = [
            [
                *(WORDS[case.name], case.world.name, f"{case.n:,}"),
                *(_marked(case), percent(case.se), percent(case.tally.accused)),
            ]
            for case in found
        ]
        head = ["interval of", "world", "n", "coverage", "±", "begins above the truth"]
        return markdown(head, lines)

    def table(self) -> str:
        """Coverage of everything promised, one row for each world and size."""
        lines = []
        for world in self.worlds:
            for n in self.sizes:
                cell = {
                    case.name: _marked(case)
                    for case in self.cases(*PROMISED)
                    if case.world is world and case.n == n
                }
                if cell:
                    shown = [cell.get(name, "") for name in PROMISED]
                    lines.append([world.name, f"{n:,}", *shown])
        return markdown(["world", "n", *(WORDS[x] for x in PROMISED)], lines)

    def narrow(self) -> str:
        """Coverage of d_CAL where a defect is narrow, by divergence."""
        parts = []
        for name in ("d_brier", "d_log"):
            found = [
                case.tally.coverage
                for case in self.cases(name)
                if case.world.narrow and case.tally.intervals
            ]
            if found:
                ends = f"{percent(min(found))} to {percent(max(found))} %"
                parts.append(f"{WORDS[name]} {ends}")
        names = ", ".join(world.name for world in self.worlds if world.narrow)
        if not parts:
            return "No narrow defect was simulated.\n"
        return f"Narrow and oscillating defects ({names}) are covered: {'; '.join(parts)}.\n"

    # -- calibrated worlds ----------------------------------------------------

    def accusations(self) -> str:
        """How often a calibrated model is accused, by divergence."""
        found = [
            case
            for case in self.cases("d_brier", "d_log")
            if case.world.calibrated and case.tally.intervals
        ]
        if not found:
            return "No calibrated world was run.\n"
        bad = [case for case in found if case.tally.accused > ACCUSED]
        worst = max(found, key=lambda case: case.tally.accused)
        text = (
            f"A calibrated model is accused (the interval of d_CAL begins above 0) in more"
            f" than {100 * ACCUSED:.0f} % of the data sets in {len(bad)} of {len(found)}"
            f" cases; at most in {percent(worst.tally.accused)} %"
            f" ({WORDS[worst.name]}: {worst.where})."
        )
        lines = [
            [case.world.name, f"{case.n:,}", WORDS[case.name], _accused(case)]
            for case in bad
        ]
        listed = markdown(["world", "n", "interval of", "accused, %"], lines)
        return text + "\n" + (f"\n{listed}" if bad else "")

    # -- errors ---------------------------------------------------------------

    def errors(self) -> str:
        """Bias and RMSE of d_CAL beside bins and the first release."""
        head = [
            *("world", "n", "d", "bias", "RMSE", "/ bins", "/ paper", "/ 0.1.0"),
            *("log: d", "bias", "RMSE", "/ paper", "/ 0.1.0"),
        ]
        lines = [self._error_row(case) for case in self.cases("d_brier")]
        return markdown(head, lines)

    def _error_row(self, case: Case) -> list[str]:
        row = [case.world.name, f"{case.n:,}"]
        cell = self.cells[case.world.name, case.n]
        for name in ("d_brier", "d_log"):
            tally = cell.get(name, Tally())
            truth = getattr(case.world, name)
            row += [f"{truth:.2e}", f"{tally.bias:+.1e}", f"{tally.rmse:.2e}"]
            row += (
                [_shown(_ratio(tally, cell.get("bins")))] if name == "d_brier" else []
            )
            paper = cell.get(name.replace("d_", "paper_"))
            ratios = _ratio(tally, paper), self._versus_first(case, name)
            row += map(_shown, ratios)
        return row

    def _versus_first(self, case: Case, name: str) -> float:
        """RMSE relative to that of 0.1.0, if both saw the same data sets."""
        place = case.world.name, case.n
        ours = self.cells[place].get(f"early_{name}", Tally())
        theirs = self.first.get(place, {}).get(name, Tally())
        return _ratio(ours, theirs) if ours.count == theirs.count else np.nan

    def ratios(self) -> str:
        """Two sentences: against bins where little is to find, and against 0.1.0."""
        easy = [
            (_ratio(case.tally, self.cells[case.world.name, case.n].get("bins")), case)
            for case in self.cases("d_brier")
            if case.world.calibrated and (case.world.rare or case.world.saturated)
        ]
        hard = [
            (self._versus_first(case, case.name), case)
            for case in self.cases("d_brier", "d_log")
            if case.world.saturated and not case.world.calibrated
        ]
        told = _worst(easy, EASY), _worst(hard, HARD)
        words = " ".join(filter(None, told)) or "No case has been compared yet."
        return f"{words}\n"

    # -- curve ----------------------------------------------------------------

    def curves(self) -> str:
        """Squared error beside the paper's, and what the bands hold."""
        head = [
            *("world", "n", "squared error", "/ paper"),
            *("pointwise band, %", "all places at once, %"),
        ]
        drawn = [case for case in self.cases("ise") if case.tally.values]
        return markdown(head, [self._curve_row(case) for case in drawn])

    def _curve_row(self, case: Case) -> list[str]:
        cell = self.cells[case.world.name, case.n]
        shares = [cell.get(x, Tally()).bias for x in ("pointwise", "simultaneous")]
        return [
            *(case.world.name, f"{case.n:,}", f"{case.tally.bias:.1e}"),
            f"{self._to_the_papers(case):.2f}",
            *map(percent, shares),
        ]

    def curve_claim(self) -> str:
        """How often the curve is at least as good as the paper's where rows are few."""
        few = [x for x in self.cases("ise") if x.n <= 200 and x.tally.values]
        if not few:
            return ""
        ratios = {f"{x.world.name}, n = {x.n}": self._to_the_papers(x) for x in few}
        above = [
            f"{case} ({ratio:.2f} times)" for case, ratio in ratios.items() if ratio > 1
        ]
        return (
            "With at most 200 rows the squared error of the curve is not above that of the"
            f" paper's in {len(few) - len(above)} of {len(few)} cases"
            + (f"; it is above in {', '.join(above)}.\n" if above else ".\n")
        )

    def _to_the_papers(self, case: Case) -> float:
        """Squared error of the curve divided by that of the paper's."""
        return case.tally.bias / self.cells[case.world.name, case.n]["ise_paper"].bias

    # -- one confidence -------------------------------------------------------

    def constants(self) -> str:
        """Coverage by enumeration, where all rows have one confidence."""
        if not self.enumeration:
            return "See `coverage.md`.\n"
        shares = [row[i] for row in self.enumeration for i in (3, 5)]
        known = [share for share in shares if share is not None]
        bad = sum(share < EXACT for share in known)
        text = (
            f"Exact coverage of d_CAL, a sum over all numbers of hits, is at least"
            f" {percent(min(known))} %, and below {100 * EXACT:.0f} % in {bad} of"
            f" {len(known)} cases.\n\n"
        )
        head = ["h", "accuracy", "n", "Brier", "begins above", "log", "begins above"]
        lines = [
            [f"{h:g}", f"{m:g}", f"{int(n):,}", *map(percent, shares)]
            for h, m, n, *shares in self.enumeration
        ]
        return text + markdown(head, lines)

    # -- all ------------------------------------------------------------------

    def counts(self) -> str:
        """Data sets of each case, for what is cheap and what is not."""
        lines = []
        for words, names in (
            ("d_CAL", ("d_brier", "d_log")),
            ("other intervals", ("ece", "gap_brier", "paired_brier")),
        ):
            shown = [self._count(names, n) for n in self.sizes]
            lines.append([words, *shown])
        return markdown(["data sets", *(f"n = {n:,}" for n in self.sizes)], lines)

    def _count(self, names: Sequence[str], n: int) -> str:
        here = {case.tally.count for case in self.cases(*names) if case.n == n}
        if not here:
            return ""
        least, most = min(here), max(here)
        return f"{least:,}" if least == most else f"{least:,} to {most:,}"

    def text(self) -> str:
        """The whole page."""
        return PAGE.format(
            title=self.title,
            counts=self.counts(),
            claim=self.claim(),
            overview=self.overview(),
            narrow=self.narrow(),
            accusations=self.accusations(),
            ratios=self.ratios(),
            curve_claim=self.curve_claim(),
            constants=self.constants(),
            misses=self.misses(),
            table=self.table(),
            errors=self.errors(),
            curves=self.curves(),
            worlds=markdown(
                ["world", "what it is"], [[w.name, w.words] for w in self.worlds]
            ),
            least=f"{100 * LEAST:.0f}",
            most=f"{100 * MOST:.0f}",
        )


def _marked(case: Case) -> str:
    """Coverage in per cent; bold if it misses, with a star if chance may explain it."""
    share = percent(case.tally.coverage)
    if case.verdict in ("held", "absent"):
        return share
    return f"**{share}**{'*' if case.by_chance else ''}"


def _accused(case: Case) -> str:
    share = case.tally.accused
    se = np.sqrt(share * (1 - share) / case.tally.intervals)
    return f"{percent(share)} ± {percent(se)}"


def _ratio(ours: Tally, theirs: Tally | None) -> float:
    return ours.rmse / theirs.rmse if theirs and theirs.rmse else np.nan


def _shown(ratio: float) -> str:
    return f"{ratio:.2f}" if np.isfinite(ratio) else ""


def _worst(ratios: Sequence[tuple[float, Case]], words: str) -> str:
    known = [pair for pair in ratios if np.isfinite(pair[0])]
    if not known:
        return ""
    ratio, case = max(known, key=lambda pair: pair[0])
    middle = np.median([ratio for ratio, _ in known])
    return words.format(f"{ratio:.2f}") + (
        f" ({WORDS[case.name]}: {case.where}), and {middle:.2f} times in the median case."
    )


PAGE = """\
# {title}

Written by `python -m simulations page` from `results.json`; `README.md` tells how that is
made. Share of nominal 95 % intervals that hold the population value, in per cent. Bold:
below {least}, or above {most} though most intervals do not begin at 0 (those can miss on
one side only). A star: chance may explain it. None: calibrant gave no interval.

Up to 1,000 rows all intervals of numbers are of today's code. For more rows, those of ECE, SmoothECE,
ACE and differences of ECE were widened after the runs, so they hold more often than is told here,
and those of scores and accuracy with clusters were simulated before their last changes.

{counts}
## Coverage

<!-- claim -->
{claim}
<!-- end of claim -->

<!-- narrow -->
{narrow}
<!-- end of narrow -->

<!-- overview -->
{overview}
<!-- end of overview -->

## Calibrated models

<!-- accusations -->
{accusations}
<!-- end of accusations -->

## Error of the estimates

<!-- ratios -->
{ratios}
<!-- end of ratios -->

## The curve

<!-- curve -->
{curve_claim}
<!-- end of curve -->

## One confidence

<!-- constants -->
{constants}
<!-- end of constants -->

## Cases that miss

{misses}
## Every case

{table}
## Bias and RMSE of d_CAL

Beside debiased equal-mass bins, n^(1/3) of them, the paper's direct estimate (bandwidth
0.05), and calibrant 0.1.0 on the same data sets.

{errors}
## Curve and bands

Mean squared error at the rows, beside that of the paper's curve (bandwidth 0.05), and the
shares of places in the pointwise band and of data sets with all places in the other.

{curves}
## The worlds

{worlds}"""

TITLES = {
    "coverage.md": ("Coverage where the estimators were developed", "development"),
    "holdout.md": ("Coverage on worlds that chose nothing", "holdout"),
    "real.md": ("Coverage with confidences of real models", "real"),
}


def pages(cells: Cells, other: dict) -> dict[str, str]:
    """Each page by its file, if there are results for it."""
    first = runs.load(FIRST)[0]
    exact = {"development": other.get("enumeration", [])}
    known = [About(**about) for about in other["worlds"].values()]
    return {
        name: Page(title, worlds, cells, first, exact.get(kind, [])).text()
        for name, (title, kind) in TITLES.items()
        if (worlds := [world for world in known if world.kind == kind])
    }
