"""docs/paper.md: what came out, next to the paper, with numbers from the run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import calibrant as cal
from experiments import tables
from experiments.claims import CLAIMS, Verdict
from experiments.exceptions import is_chance, reason_for
from experiments.figures import LEADING
from experiments.models import RECORDED, ROOT
from experiments.paper import TABLES, PaperTable, numbers
from experiments.protocol import BASELINE, TS, experiment

PAGE = ROOT / "docs" / "paper.md"
OUTCOMES = ("holds", "cannot be told", "does not hold")

HEAD = """# The paper's experiments

<!-- Written by `python -m experiments page`; do not edit. -->

`make paper` runs the experiments of Chidambaram and Ge, *Reassessing How to Compare and
Improve the Calibration of Machine Learning Models* (ICLR 2025), again: its tables, its
figures, and its claims, on outputs of real models that were recorded by others or
computed from published weights. It takes a few minutes and writes to `build/paper`.
All numbers on this page are x100, as in the paper.
"""

IN_SHORT = """## In short

Of {pairs} pairs of a claim and a model, {holds} hold, {cannot_be_told} cannot be told
from chance, and {does_not_hold} do not hold. For {never} of the {claims} claims no model
is evidence against them
({names}).
The others fail where models are unlike those of the paper: few classes or distinct
confidences, probabilities of exactly 0, models that are not over-confident. Each case is
listed below with its numbers. Three things to know:

- A ranking by d_CAL is not as stable as it looks. Within σ = 0.01 to 0.05 it changes on
  {close} of {models} models between methods that the rows cannot tell apart at one bandwidth
  at least, and on {swapped} beyond chance.
- TS has the least Brier score on {brier} of {asked} models; on {beaten} another method is
  better beyond chance.
- Ten subsamples of 5,000 rows agree with all rows within twice their ± on {agree} of
  {large} models; on {off} they overstate the small d_CAL of a well-calibrated method.
"""

PROTOCOL = """## Protocol

As in the paper: a fifth of the rows calibrates, the rest is tested; 15 bins of equal
width; d_CAL by kernel regression with a Gaussian of σ = 0.05; temperature scaling (TS),
histogram binning (HB) and isotonic regression (IR) as netcal does them, and mean
replacement (MRR). That is `cal.study(y, logits=z, split=0.2, preset="paper")`. ACE is the
average calibration error of netcal, as the paper's numbers show, not the adaptive one.

Three things differ. The authors calibrate on the first fifth; recorded files may be in
order of class, so here a fifth is drawn at random. Where true classes of the calibration
rows have probability 0, or next to it, TS learns a [lapse rate](recalibration.md) too. And
the paper's own models are not among the recorded ones, so others stand in, which is said at
each table. Run
`calibrant infer` on them and pass `--outputs DIR` (one folder for each model, named as in
timm) to have the paper's own.

Where only the confidence of the predicted class was recorded, each method learns one
curve instead of one for each class, and the losses are those of the confidence.
"""

SMOOTH = """## SmoothECE

relplot, the authors' tool for it, counts confidences above 0.999 for less, down to half
at 1, which on saturated networks makes SmoothECE larger than ECE. The paper's own table does not show
that: its SmoothECE is close to ECE, as the exact value is. So either an earlier version
of the tool or another routine was used; `preset="paper"` follows today's relplot.
"""

SUBSAMPLES = """## Ten subsamples of 5,000

The paper averages ten estimates from 5,000 rows each and prints their standard
deviation. calibrant uses all rows. In the middle, each estimate sees 5,000 rows only, as
the paper says; on the right, 5,000 rows are where the curve of all rows is read, as the
authors' code does.
"""

BANDWIDTHS = """## Bandwidths and kernels

d_CAL of {title} on {dataset}, which stands in for the paper's ViT in Figures 1, 2 and 8
to 14, since it has 20 rows for each class to calibrate on, where ViT had ten.
"""

CLAIMS_HEAD = """## Claims

Each claim is asked of all {count} recorded models, as far as it can be: a claim on NLL
needs probabilities of all classes, a subsample of 5,000 needs more rows than that. Where
a ranking is not the paper's, a paired comparison (`cal.compare`, 95 %) says whether the
test rows can tell the two methods apart at all. A ranking that differs between two
kernels counts only if they can be told apart with both; for the Epanechnikov kernel that
is asked of the Gaussian of the same variance.
"""

FIGURES = """## Figures

In `build/paper`, as PNG and PDF, in calibrant's rendering of the paper's style: `figure1` to
`figure14` are numbered as in the paper, `figure1_aligned` has aligned axes, `bandwidths`
shows all bandwidths in one sheet, and `rows/` has the diagrams of every recorded model.
Figures 3 to 5 show the models alike of Tables 2 to 4.

![ResNet-32 on CIFAR-10 in the paper's style](images/paper_style.png)
"""


def text(verdicts: list[Verdict]) -> str:
    """The page."""
    parts = [
        HEAD,
        _in_short(verdicts),
        PROTOCOL,
        *measured(),
        CLAIMS_HEAD.format(count=len(RECORDED)),
        _summary(verdicts).markdown() + "\n",
        *(_exceptions(key, verdicts) for key in CLAIMS),
        FIGURES,
    ]
    return "\n".join(part for part in parts if part)


def measured() -> list[str]:
    """The sections beside the paper's tables and figures."""
    leading = experiment(LEADING)
    words = BANDWIDTHS.format(title=leading.title, dataset=leading.dataset)
    return [
        "## Tables\n\nThe paper's numbers are in brackets.\n",
        *(_table(table) for table in TABLES),
        f"{SMOOTH}\n{_smooth_ece().markdown()}\n",
        f"{words}\n{tables.bandwidths(leading).markdown()}\n",
        SUBSAMPLES,
        *(_subsampled(table.stand_in) for table in TABLES[4:]),
    ]


def _in_short(verdicts: list[Verdict]) -> str:
    found = Counter(verdict.outcome for verdict in verdicts)
    each = Counter((verdict.claim, verdict.outcome) for verdict in verdicts)
    refuted = {v.claim for v in verdicts if v.outcome == "does not hold"}
    never = [key for key in CLAIMS if key not in refuted]
    return IN_SHORT.format(
        **{outcome.replace(" ", "_"): found[outcome] for outcome in OUTCOMES},
        pairs=len(verdicts),
        never=len(never),
        claims=len(CLAIMS),
        names=", ".join(never),
        close=each["bandwidth", "cannot be told"],
        swapped=each["bandwidth", "does not hold"],
        models=len(RECORDED),
        brier=each["ts-brier", "holds"],
        asked=sum(each["ts-brier", outcome] for outcome in OUTCOMES),
        beaten=each["ts-brier", "does not hold"],
        agree=each["subsample-rows", "holds"],
        off=each["subsample-rows", "does not hold"],
        large=sum(each["subsample-rows", outcome] for outcome in OUTCOMES),
    )


def _table(table: PaperTable) -> str:
    """The model alike, if there is one: what stands in for all is shown once."""
    one, words = experiment(table.stand_in), table.words
    if table.alike:
        one, words = experiment(table.alike), table.alike_words
    grid = tables.beside(table, one).markdown()
    head = f"### Table {table.number}: {table.title}"
    return f"{head}\n\n{tables.describe(one, words)}\n\n{grid}\n"


def _name(model: str) -> str:
    return f"{RECORDED[model].title} ({RECORDED[model].dataset})"


def _smooth_ece() -> tables.Grid:
    rows = []
    for table in TABLES[4:]:
        one, theirs = experiment(table.stand_in), numbers(table.key)
        for method in (BASELINE, TS):
            ev = one.study[method]
            h, hit = ev.columns.confidence, ev.columns.hit
            values = (
                *(ev.metrics[key] for key in ("ece", "smooth_ece")),
                cal.smooth_ece(hit, confidence=h),
                *(theirs[method][key] / 100 for key in ("ece", "smooth_ece")),
            )
            label = f"{table.dataset}, {method}"
            rows.append([label, *(tables.hundredfold(float(x)) for x in values)])
    head = ("", "ECE", "relplot", "exact", "paper's ECE", "paper's SmoothECE")
    return tables.Grid(head, rows)


def _subsampled(name: str) -> str:
    return f"{_name(name)}\n\n{tables.subsampling(experiment(name)).markdown()}\n"


# -- claims ---------------------------------------------------------------------------------


def _summary(verdicts: list[Verdict]) -> tables.Grid:
    found = Counter((v.claim, v.outcome) for v in verdicts)
    rows = [
        [
            f"**{key}**: {claim.text}",
            *(str(found[key, outcome]) for outcome in OUTCOMES),
        ]
        for key, claim in CLAIMS.items()
    ]
    return tables.Grid(("claim", *OUTCOMES), rows)


def _exceptions(key: str, verdicts: list[Verdict]) -> str:
    """Models for which a claim does not hold, by reason."""
    failed = [v for v in verdicts if v.claim == key and not v.finding.holds]
    reasons = {reason_for(key, v.model) or "No reason is known." for v in failed}
    parts = [f"### {key}\n"] if failed else []
    for reason in sorted(reasons, key=lambda reason: (is_chance(reason), reason)):
        alike = [v for v in failed if (reason_for(key, v.model) or reason) == reason]
        parts += [f"{reason}\n", *map(line, alike), ""]
    return "\n".join(parts)


def line(verdict: Verdict) -> str:
    """A model for which a claim does not hold, and the numbers."""
    numbers = verdict.finding.numbers.replace("inf", "∞").replace("<", "\\<")
    return f"- {_name(verdict.model)}: {numbers}"


def save(verdicts: list[Verdict], path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(text(verdicts), encoding="utf-8")


def is_current(verdicts: list[Verdict], path: Path = PAGE) -> bool:
    """Whether the page is what the run gives."""
    return path.exists() and path.read_text(encoding="utf-8") == text(verdicts)
