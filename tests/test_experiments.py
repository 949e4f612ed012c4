"""The experiments of the paper: protocol, tables, figures and command, on made-up rows."""

import csv
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from make import over_confident

from experiments import __main__ as command
from experiments import claims, exceptions, figures, judges, models, paper, tables
from experiments.protocol import (
    BASELINE,
    HB,
    IR,
    KERNELS,
    METHODS,
    MRR,
    PAPER_KERNEL,
    POINTS,
    SEED,
    TS,
    Experiment,
)

pytestmark = pytest.mark.xdist_group("experiments")


def logits_of(n, k, seed=0):
    """Logits three times too large, and labels."""
    y, z = over_confident(n, k, seed=seed)
    return z, y


def made_up(n=1500, k=4):
    z, y = logits_of(n, k)
    return models.Outputs("made-up", "Made up", "nothing", "logits", z, y)


@pytest.fixture(scope="module")
def small():
    return Experiment(made_up())


@pytest.fixture(scope="module")
def large():
    return Experiment(made_up(7000, 3))


# -- protocol -------------------------------------------------------------------------


def slow_curve(at, h, hit, kernel, width):
    """Nadaraya-Watson, one point at a time."""
    found = []
    for point in at:
        u = (point - h) / width
        if kernel == "gaussian":
            weight = np.exp(-(u**2) / 2)
        else:
            weight = np.where(abs(u) <= 1, 1 - u**2, 0)
        found.append(np.sum(weight * hit) / np.sum(weight))
    return np.array(found)


@pytest.mark.parametrize(("kernel", "width"), KERNELS)
def test_errors_are_those_of_the_definition(small, kernel, width):
    for ev in small.study:
        h, hit = ev.columns.confidence, ev.columns.hit
        squared = (slow_curve(h, h, hit, kernel, width) - h) ** 2
        found = small.errors[kernel, width][ev.name]
        assert found == pytest.approx(squared.mean(), rel=1e-6, abs=1e-12)


def test_a_fifth_calibrates_and_the_rest_is_tested(small):
    assert small.n == 1200
    assert small.study.names == (BASELINE, TS, HB, IR, MRR)
    assert "20 %, drawn at random" in small.study.protocol


def test_mean_replacement_errs_by_the_difference_of_two_accuracies(small):
    z, y = logits_of(1500, 4)
    fit = np.random.default_rng(SEED).permutation(1500)[:300]
    learned = np.mean(z[fit].argmax(axis=1) == y[fit])
    ev = small.study[MRR]
    gap = abs(learned - ev.metrics["accuracy"])
    for name in ("ece", "ace", "smooth_ece"):
        assert ev.metrics[name] == pytest.approx(gap, abs=1e-4)
    assert small.errors[PAPER_KERNEL][MRR] == pytest.approx(gap**2, abs=1e-9)


def test_confidences_alone_are_recalibrated_on_the_same_rows(small):
    z, y = logits_of(1500, 4)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    hit = z.argmax(axis=1) == y
    rows = models.Outputs("top", "Top", "none", "confidence", p.max(axis=1), hit)
    found = Experiment(rows)
    assert found.study.names == small.study.names
    for name in (BASELINE, MRR):
        for metric in paper.OF_CONFIDENCE:
            expected = small.study[name].metrics[metric]
            assert found.study[name].metrics[metric] == pytest.approx(expected)
    errors = found.errors[PAPER_KERNEL]
    assert max(errors[TS], errors[HB], errors[IR]) < errors[BASELINE] / 3


def slow_squares(h, hit):
    """Squared errors of rows under the curve of these rows."""
    at, where = np.unique(np.round(h, 3), return_inverse=True)
    return (slow_curve(at, h, hit, *PAPER_KERNEL)[where] - h) ** 2


def ten(estimate, n, *, replace):
    rng = np.random.default_rng(SEED)
    found = [estimate(rng.choice(n, POINTS, replace=replace)) for _ in range(10)]
    return np.mean(found), np.std(found, ddof=1)


def test_subsample_of_points_reads_the_curve_of_all_rows(large):
    rows = large.study[BASELINE].columns
    squares = slow_squares(rows.confidence, rows.hit)
    mean, spread = ten(lambda some: squares[some].mean(), large.n, replace=True)
    assert large.by_points[BASELINE] == pytest.approx((mean, spread), rel=0.01)


def test_subsample_of_rows_sees_no_other_rows(large):
    rows = large.study[TS].columns

    def estimate(some):
        return slow_squares(rows.confidence[some], rows.hit[some]).mean()

    mean, spread = ten(estimate, large.n, replace=False)
    assert large.by_rows[TS] == pytest.approx((mean, spread), rel=0.05)


def test_few_rows_are_not_subsampled(small, large):
    assert large.can_be_subsampled
    assert not small.can_be_subsampled
    assert judges.subsamples("by_rows")(small) is None
    assert judges.subsamples("by_rows")(large).holds


# -- claims ---------------------------------------------------------------------------


def test_claims_on_an_over_confident_model(small):
    found = {v.claim: v.finding.holds for v in claims.judge(small)}
    assert found["mrr-accuracy"]
    assert found["ts-nll"]
    assert found["ts-brier"]
    assert "sharpness" not in found
    assert "subsample-rows" not in found


def test_the_least_is_told_from_chance(small):
    wrong = judges.least("brier", BASELINE)(small)
    assert not wrong.holds
    assert wrong.settled
    assert wrong.numbers.startswith("Uncalibrated ")
    close = judges.least("ece", IR)(small)
    assert not close.holds
    assert not close.settled


def ranked(first, second):
    """An experiment of which only two rankings are known."""
    order = {("gaussian", 0.05): first, ("gaussian", 0.1): second}
    order["gaussian", 0.25] = second
    return SimpleNamespace(ranking=order.__getitem__)


def test_rankings_are_compared_pair_by_pair():
    names = (BASELINE, TS, HB, IR, MRR)
    kept = judges.some_swap(ranked(names, names))
    assert not kept.holds
    one = judges.some_swap(ranked(names, (TS, BASELINE, HB, IR, MRR)))
    assert one == (True, "TS and Uncalibrated", True)
    turned = judges.some_swap(ranked(names, names[::-1]))
    assert len(turned.numbers.split(", ")) == 10


def test_the_gaussian_that_smooths_as_much_has_the_same_variance():
    u = np.linspace(-1, 1, 200_001)
    variance = np.mean(2 * u**2 * 0.75 * (1 - u**2))
    _, width = judges.as_gaussian(("epanechnikov", 0.05))
    assert width**2 == pytest.approx(variance * 0.05**2, rel=1e-4)
    assert judges.as_gaussian(PAPER_KERNEL) == PAPER_KERNEL


def verdict(claim, model, *, holds, settled=True):
    return claims.Verdict(claim, model, judges.Finding(holds, "0 and 1", settled))


def test_an_exception_that_is_not_listed_is_reported():
    (words,) = exceptions.contradictions([verdict("mrr-ace", "x", holds=False)])
    assert words == "mrr-ace for x (0 and 1) does not hold, and is not listed"


def test_an_exception_that_stopped_being_one_is_reported():
    known = verdict("mrr-ece", "cifar10_netcal_lenet_5", holds=True)
    (words,) = exceptions.contradictions([known])
    assert words.endswith("holds, but is listed as an exception")


@pytest.mark.parametrize(
    ("claim", "model", "settled", "words"),
    [
        ("mrr-ece", "cifar10_netcal_lenet_5", True, "is more than chance"),
        ("ts-nll", "forecast_spf_recession", False, "is no more than chance"),
    ],
)
def test_a_reason_that_is_not_the_one_is_reported(claim, model, settled, words):
    failed = verdict(claim, model, holds=False, settled=settled)
    (found,) = exceptions.contradictions([failed])
    assert words in found
    right = verdict(claim, model, holds=False, settled=not settled)
    assert list(exceptions.contradictions([right])) == []


def test_outcomes_are_named():
    outcomes = [
        verdict("mrr-ece", "x", holds=holds, settled=settled).outcome
        for holds, settled in ((True, True), (False, True), (False, False))
    ]
    assert outcomes == ["holds", "does not hold", "cannot be told"]


# -- the paper's numbers --------------------------------------------------------------


@pytest.mark.parametrize("table", paper.TABLES, ids=lambda table: table.key)
def test_claims_hold_in_the_papers_own_tables(table):
    found = paper.numbers(table.key)
    assert list(found) == [BASELINE, *METHODS]
    for metric in ("ece", "ace", "smooth_ece"):
        assert min(found, key=lambda m: found[m][metric]) == MRR
    for metric in ("nll", "brier"):
        assert min(found, key=lambda m: found[m][metric]) == TS
    assert found[HB]["nll"] == found[IR]["nll"] == inf
    assert found[MRR]["accuracy"] == found[BASELINE]["accuracy"]


def test_a_number_of_the_paper():
    assert paper.numbers("cifar10")[TS]["ece"] == 0.72


# -- tables -----------------------------------------------------------------------------


def test_numbers_stand_beside_the_papers(small):
    table = paper.TABLES[4]
    lines = tables.beside(table, small).markdown().splitlines()
    assert lines[0] == "|  | Accuracy | ECE | ACE | SmoothECE | NLL | Brier |"
    brier = 100 * small.study[TS].metrics["brier"]
    assert lines[3].endswith(f" {brier:.2f} (10.00) |")
    assert "∞ (∞)" in lines[4]


def test_both_infinite_is_no_difference():
    assert tables.Difference(HB, "nll", inf, inf).difference == 0
    assert tables.Difference(HB, "nll", 3.0, 1.0).difference == 2


def test_numbers_are_printed_as_in_the_paper():
    assert [tables.hundredfold(x) for x in (0.12345, inf, float("nan"))] == [
        "12.35",
        "∞",
        "–",
    ]


def shards(folder, n=900, k=10):
    """Outputs as `calibrant infer` writes them, in two files."""
    z, y = logits_of(n, k)
    z = z.astype(np.float16)
    folder.mkdir(parents=True)
    for number, part in enumerate((slice(0, 500), slice(500, n))):
        some = {"logits": z[part], "labels": y[part], "names": y[part].astype(str)}
        np.savez(folder / f"shard-{number:05}.npz", **some)
    (folder / "manifest.json").write_text("{}")
    return z, y


def test_inferred_outputs_take_the_place_of_what_stands_in(tmp_path):
    z, y = shards(tmp_path / "outputs" / "cifar10_resnet32")
    arguments = [
        "table5",
        "--outputs",
        tmp_path / "outputs",
        "--into",
        tmp_path / "out",
    ]
    run = CliRunner().invoke(command.main, list(map(str, arguments)))
    assert run.exit_code == 0, run.output
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {
        "table5.md",
        "table5.csv",
        "table5.tex",
        "table5_differences.csv",
    }
    words = (tmp_path / "out" / "table5.md").read_text(encoding="utf-8")
    assert "The paper's model, 900 rows from `calibrant infer`" in words
    with (tmp_path / "out" / "table5_differences.csv").open(encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    test = np.random.default_rng(SEED).permutation(900)[180:]
    accuracy = 100 * np.mean(z[test].argmax(axis=1) == y[test])
    assert float(first["here"]) == pytest.approx(accuracy)
    assert float(first["difference"]) == pytest.approx(accuracy - 93.46)


# -- figures ----------------------------------------------------------------------------


def test_a_row_has_a_panel_for_each_method(small, tmp_path):
    sheet = figures.draw_row(small, kernel="epanechnikov", bandwidth=0.03)
    assert [ax.get_title() for ax in sheet.axes] == [BASELINE, *METHODS]
    sheet.savefig(tmp_path / "row.png", dpi=20)
    assert (tmp_path / "row.png").read_bytes().startswith(b"\x89PNG")


def test_diagrams_of_two_methods_have_aligned_axes(small):
    hb, ir, *bars = figures.draw_against_reliability(small).axes[:4]
    assert hb.get_ylim() == ir.get_ylim()
    assert hb.get_xlim() == ir.get_xlim() == bars[0].get_xlim()
    assert bars[0].get_ylim() == bars[1].get_ylim()


def test_smooth_ece_has_a_panel_for_each_method(small):
    sheet = figures.draw_smooth_ece(small)
    named = [ax for ax in sheet.axes if ax.get_ylim() == (0, 1)]
    assert len(named) == len(small.study)


def test_all_fourteen_figures_of_the_paper_are_there():
    numbered = {name for name in figures.FIGURES if name[6:].isdigit()}
    assert numbered == {f"figure{number}" for number in range(1, 15)}


# -- command ------------------------------------------------------------------------------


def test_no_data_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "DATA", tmp_path / "none")
    with pytest.raises(
        FileNotFoundError, match=r"none; set CALIBRANT_DATA to where it is"
    ):
        models.read("mnist_cleanlab_cv")


def test_a_missing_file_ends_the_command(monkeypatch, tmp_path):
    def fail(into, outputs):
        raise FileNotFoundError("no such thing")

    monkeypatch.setitem(command.STEPS, "table1", fail)
    run = CliRunner().invoke(command.main, ["table1", "--into", str(tmp_path)])
    assert run.exit_code == 1
    assert run.output.splitlines()[-1] == "Error: no such thing"


def test_an_unknown_name_is_refused():
    assert CliRunner().invoke(command.main, ["table7"]).exit_code == 2
