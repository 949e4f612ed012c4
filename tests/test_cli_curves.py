"""`calibrant curves`: figures and numbers of files, and gates on what they show."""

import csv
import json

import numpy as np
import pytest
from command import calibrant

import calibrant as cal

KINDS = ("risk-coverage", "decision", "murphy", "cumulative", "triptych")


@pytest.fixture
def risks(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 400).round(6)
    y = (rng.random(400) < p).astype(int)
    rows = "\n".join(f"{a},{b}" for a, b in zip(p, y, strict=True))
    (tmp_path / "risks.csv").write_text(f"prob,outcome\n{rows}\n")
    return tmp_path, y, p


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_writes_a_figure(kind, risks):
    done = calibrant("curves", "risks.csv", "--kind", kind, "-o", "x.png", cwd=risks[0])
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Wrote x.png\n")
    assert (risks[0] / "x.png").read_bytes()[:4] == b"\x89PNG"


def test_numbers_are_those_of_the_library(risks):
    folder, y, p = risks
    arguments = ("curves", "risks.csv", "--kind", "decision")
    calibrant(*arguments, "-o", "x.csv", "--quiet", cwd=folder)
    with (folder / "x.csv").open() as file:
        rows = list(csv.DictReader(file))
    ours = cal.decision_curve(y, probs=p)
    assert [float(row["net_benefit"]) for row in rows] == pytest.approx(
        ours.net_benefit
    )
    assert rows[0]["model"] == "risks"
    found = json.loads(calibrant(*arguments, "--json", cwd=folder).stdout)
    assert cal.DecisionCurve.from_dict(found[0]).high == pytest.approx(ours.high)


@pytest.mark.parametrize("kind", ["risk-coverage", "decision", "murphy", "cumulative"])
def test_prints_say_that_examples_are_in_clusters(kind, risks):
    folder, y, p = risks
    np.savez(folder / "c.npz", probs=p, outcome=y, patient=np.arange(400) % 50)
    given = ("curves", "c.npz", "--kind", kind)
    alone = calibrant(*given, cwd=folder).stdout
    told = calibrant(*given, "--cluster", "patient", cwd=folder).stdout
    assert "400 examples in" not in alone
    assert "400 examples in 50 clusters" in told.splitlines()[0]
    calibrant("sketch", "c.npz", "--cluster", "patient", "-o", "s.npz", cwd=folder)
    summed = calibrant("curves", "s.npz", "--kind", kind, cwd=folder).stdout
    assert "400 examples in 50 clusters" in summed.splitlines()[0]


def test_the_triptych_prints_the_numbers_of_its_three_panels(risks):
    folder, y, p = risks
    done = calibrant("curves", "risks.csv", "--kind", "triptych", cwd=folder)
    ev = cal.evaluate(y, probs=p)
    panels = ("Murphy diagram", "reliability (CORP)", "ROC")
    places = [done.stdout.index(panel) for panel in panels]
    assert places == sorted(places)
    for key in ("mcb", "dsc", "unc", "auroc"):
        assert f"{key.upper():<11} {ev.metrics[key]:.4f}" in done.stdout
    murphy = calibrant("curves", "risks.csv", "--kind", "murphy", cwd=folder).stdout
    assert "ROC" not in murphy


def test_thresholds_may_be_said(risks):
    arguments = ("curves", "risks.csv", "--thresholds")
    done = calibrant(*arguments, "0.01,0.02", "--kind", "decision", cwd=risks[0])
    assert "      0.01   +" in done.stdout
    assert "      0.02   +" in done.stdout
    done = calibrant(*arguments, "0.01", cwd=risks[0])
    assert "goes with --kind decision or --kind murphy" in done.stderr
    done = calibrant(*arguments, "low", "--kind", "murphy", cwd=risks[0])
    assert "must be numbers separated by commas, such as 0.01,0.05 or" in done.stderr


def test_thresholds_may_have_a_sign_of_per_cent(risks):
    arguments = ("curves", "risks.csv", "--kind", "decision", "--json", "--thresholds")
    found = [
        json.loads(calibrant(*arguments, said, cwd=risks[0]).stdout)
        for said in ("0.06,0.1", "6%, 10 %")
    ]
    assert found[0] == found[1]


def test_the_clinical_table_is_printed_and_written(risks):
    folder, y, p = risks
    arguments = ("curves", "risks.csv", "--kind", "clinical")
    done = calibrant(*arguments, "-o", "x.csv", cwd=folder)
    assert f"{cal.clinical(y, probs=p).oe_ratio:.4f}" in done.stdout
    assert "measure,value,low,high" in (folder / "x.csv").read_text()


def test_what_is_not_written_is_refused_before_any_work(risks):
    folder = risks[0]
    done = calibrant("curves", "risks.csv", "-o", "x.html", cwd=folder)
    assert done.returncode == 1
    assert "is written as .png, .svg, .pdf, .csv, .json" in done.stderr
    done = calibrant("curves", "risks.csv", "-o", "risks.csv", cwd=folder)
    assert "exists; pass --force" in done.stderr


def test_a_gate_on_the_aurc_trips(risks):
    done = calibrant("report", "risks.csv", "--fail-if", "aurc > 0.01", cwd=risks[0])
    assert done.returncode == 3
    done = calibrant(
        "report", "risks.csv", "--fail-if", "aurc.upper > 0.9", cwd=risks[0]
    )
    assert done.returncode == 0
