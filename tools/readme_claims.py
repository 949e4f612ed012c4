"""Write the README's three claims, with numbers from runs that are in the repository.

`python tools/readme_claims.py` writes them between the two markers; with `--check` it only
says whether the README is out of date (exit code 1).
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKERS = re.compile(
    r"(?<=<!-- claims:start -->\n).*(?=<!-- claims:end -->)", re.DOTALL
)
COVERAGE = re.compile(
    r"Of ([\d,]+) cases .*? ([\d,]+) cover at least 92 % .*? (\d+) of them beyond chance"
)
CHAIN = (
    "torch softmax, NLL, Brier + netcal ECE, ACE + relplot SmoothECE / `cal.evaluate`"
)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def trivial() -> str:
    """From the first table of the page on recalibration."""
    page = read("docs/recalibration.md")
    row = re.compile(r"^\| (Temperature|Mean replacement) +\|(.*)", re.MULTILINE)
    rows = dict(row.findall(page)[:2])
    (ece, brier), (its_ece, its_brier) = (
        [rows[name].split("|")[i].strip(" *†") for i in (1, 5)]
        for name in ("Temperature", "Mean replacement")
    )
    return (
        f"- **It is not fooled by a trivial fix.** Give every prediction of a ResNet-32 on CIFAR-10 the\n"
        f"  same confidence, and its ECE is {its_ece} % (after temperature scaling: {ece} %). Its\n"
        f"  Brier score is {its_brier} instead of {brier} (×100), calibrant shows where the loss is,\n"
        f"  and never calls such a model the best calibrated\n"
        f"  ([tables](docs/recalibration.md#how-to-read-the-table))."
    )


def coverage() -> str:
    """From the simulation on worlds that no choice was based on."""
    found = COVERAGE.search(read("simulations/holdout.md"))
    if found is None:
        raise SystemExit("simulations/holdout.md: the sentence on coverage has changed")
    cases, held, short = found.groups()
    return (
        f"- **Intervals hold.** In simulations that were not used for tuning, 95 % intervals contain\n"
        f"  the truth at least 92 % of the time in {held} of {cases} cases, and significantly less\n"
        f"  often in {'none' if short == '0' else short} ([how it was tested](docs/method.md#how-good-they-are))."
    )


def speed() -> str:
    """From the last run of the benchmarks."""
    rows = json.loads(read("benchmarks/results.json"))["rows"]
    row = next(row for row in rows if row["title"] == CHAIN)
    ours = row["seconds"]["ours"]["cpu"]
    return (
        f"- **It is fast.** All metrics, both decompositions and the curve of 40,000 × 1,000 logits\n"
        f"  take {ours:.2f} s of one core: {row['value']:.0f} times as fast as torch, netcal and relplot, which\n"
        f"  give the same numbers without decomposition and curve\n"
        f"  ([all {len(rows)} benchmarks, those that miss their target too](docs/explanation/cost-and-accuracy.md))."
    )


def main() -> None:
    readme = read("README.md")
    claims = f"{trivial()}\n{coverage()}\n{speed()}\n"
    written, count = MARKERS.subn(lambda _: claims, readme)
    if count != 1:
        raise SystemExit("README.md needs one pair of claims:start/end markers")
    if "--check" not in sys.argv[1:]:
        (ROOT / "README.md").write_text(written, encoding="utf-8")
    elif written != readme:
        raise SystemExit("README.md: run python tools/readme_claims.py")


if __name__ == "__main__":
    main()
