"""Conditions of ``--fail-if``: limits that can be met, names as printed, groups, differences."""

import json
import shlex
import subprocess
import sys

import click
import numpy as np
import pytest
from command import calibrant as run
from make import over_confident

import calibrant as cal
from calibrant._base.records import Estimate
from calibrant.cli._output import Gate


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, a better one, and the first in two groups, of which one is worse."""
    folder = tmp_path_factory.mktemp("gates")
    y, z = over_confident(400, 3)
    np.savez(folder / "a.npz", logits=z, labels=y)
    np.savez(folder / "b.npz", logits=z / 3, labels=y)
    worse = np.arange(400) < 120
    scaled = np.where(worse[:, None], z, z / 3)
    task = np.where(worse, "law", "art")
    np.savez(folder / "tasks.npz", logits=scaled, labels=y, task=task)
    np.savez(folder / "tasks b.npz", logits=z / 3, labels=y, task=task)
    return folder


def gated(folder, condition, *more, files=("a.npz",), command="report"):
    return run(command, *files, "-q", "--fail-if", condition, *more, cwd=folder)


UNREACHABLE = {
    "ece > 5": "'ece > 0.05' or 'ece > 5%'",
    "ece>=1.5": "'ece >= 0.015' or 'ece >= 1.5%'",
    "ECE.upper > 12.95": "'ece.upper > 0.1295' or 'ece.upper > 12.95%'",
    "brier > 22.74": "'brier > 0.2274' or 'brier > 22.74%'",
    "Brier > 2": "'brier > 0.02' or 'brier > 2%'",
    "acc < 90": "'accuracy < 0.9' or 'accuracy < 90%'",
    "d_CAL > 3": "'calibration > 0.03' or 'calibration > 3%'",
    "auroc < 0": "AUROC lies between 0 and 1.",
    "confidence_gap > 1": "Confidence gap lies between -1 and 1.",
}


@pytest.mark.parametrize(("condition", "said"), UNREACHABLE.items())
def test_a_limit_that_cannot_be_met_is_refused_with_the_number_it_should_be(
    condition, said, folder
):
    done = gated(folder, condition)
    assert done.returncode == 2
    assert " holds: " in done.stderr
    assert said in done.stderr


def test_a_limit_that_always_trips_is_refused_too(folder):
    assert "'accuracy < 80' always holds" in gated(folder, "accuracy < 80").stderr
    assert "'ece > 5' never holds" in gated(folder, "ece > 5").stderr


@pytest.mark.parametrize(
    ("condition", "options", "end"),
    [
        ("d_CAL.upper > 1%", ["--preset", "paper"], "--preset paper or .upper."),
        ("smECE.lower > 1%", ["--preset", "paper"], "--preset paper or .lower."),
        ("gap.upper > 90%", ["--bandwidth", "0.05"], "--bandwidth or .upper."),
        ("coverage.lower < 90%", [], "leave out .lower."),
    ],
)
def test_the_end_of_an_interval_that_no_examples_give_is_refused(
    condition, options, end, folder
):
    done = run("report", "a.npz", *options, "--fail-if", condition, cwd=folder)
    assert done.returncode == 2
    assert " has no interval, of which " in done.stderr
    assert done.stderr.endswith(f"{end}\n")


@pytest.mark.parametrize("command", ["compare", "monitor"])
def test_nor_do_differences_or_periods_give_the_end_of_an_interval(command, folder):
    fixed = "--bandwidth", "0.05", "--fail-if", "d_CAL.upper > 1%"
    done = run(command, "a.npz", "b.npz", *fixed, cwd=folder)
    assert done.returncode == 2
    assert "calibration with --bandwidth has no interval, of which" in done.stderr


def test_an_end_of_smooth_ece_with_a_bandwidth_is_gated(folder):
    words = "report", "a.npz", "--bandwidth", "0.05", "-q"
    for limit, code in (("0%", 3), ("99%", 0)):
        condition = f"smECE.upper > {limit}"
        assert run(*words, "--fail-if", condition, cwd=folder).returncode == code


def test_the_short_option_is_checked_like_the_long_one(folder):
    wrong = run("report", "a.npz", "-q", "--max-ece-upper", "5", cwd=folder)
    assert wrong.returncode == 2
    assert "Invalid value for --max-ece-upper" in wrong.stderr
    assert "'ece.upper > 5%'" in wrong.stderr
    assert (
        run("report", "a.npz", "-q", "--max-ece-upper", "5%", cwd=folder).returncode
        == 3
    )


@pytest.mark.parametrize("limit", ["1.2", "30", "250"])
def test_a_log_loss_above_that_of_guessing_is_spelt_out(limit, folder):
    done = gated(folder, f"nll > {limit}")
    assert done.returncode == 2
    assert f"'nll > {limit}%' or 'nll > {100 * float(limit):g}%'" in done.stderr
    log = gated(folder, f"d_TOT > {limit}", "--divergence", "log")
    assert log.returncode == 2
    assert gated(folder, "nll > 1").returncode in (0, 3)  # log 3 is 1.0986
    assert (
        gated(folder, "nll > 300%").returncode == 0
    )  # of a model that is surely wrong


@pytest.mark.parametrize("condition", ["ece > 0.65", "d_CAL.upper >= 0.2", "ks < 0.3"])
def test_a_limit_on_an_error_that_may_be_two_things_is_refused(condition, folder):
    done = gated(folder, condition)
    assert done.returncode == 2
    number = condition.split()[-1]
    assert f"{number}%' or " in done.stderr
    assert f"{100 * float(number):g}%'." in done.stderr
    assert gated(folder, f"{condition}%").returncode in (0, 3)
    short = run("report", "a.npz", "-q", "--max-ece-upper", "0.3", cwd=folder)
    assert short.returncode == 2
    assert gated(folder, "mce > 0.65").returncode in (0, 3)  # a usual size


def test_a_limit_far_above_what_was_found_is_doubted_unless_a_sign_says_it(folder):
    rng = np.random.default_rng(0)
    p = np.repeat([0.2, 0.8], 500)
    y = np.tile(np.repeat([1, 0, 1, 0], [1, 4, 4, 1]), 100).reshape(100, 2, 5)
    y = y.transpose(1, 0, 2).ravel()  # as often as forecast
    p = p + 1e-4 * rng.random(1000)
    np.savez(folder / "calibrated.npz", probs=p, labels=y)
    done = gated(folder, "ece > 0.15", files=("calibrated.npz",))
    assert done.returncode == 0
    assert "the limit of 15% is" in done.stderr
    assert "write 'ece > 0.15%' or 'ece > 15%'" in done.stderr
    assert gated(folder, "ece > 15%", files=("calibrated.npz",)).stderr == ""
    never = gated(folder, "brier > 1.5", files=("calibrated.npz",))
    assert never.returncode == 2
    assert "never holds: the Brier score of one probability" in never.stderr
    assert "write 'brier > 1.5%'" in never.stderr
    gap = gated(folder, "gap > 1.2", files=("calibrated.npz",))
    assert gap.returncode == 2
    far = gated(folder, "brier < 1.5", files=("calibrated.npz",))
    assert "always holds" in far.stderr


@pytest.mark.parametrize("name", ["brier", "brier.upper", "gap", "d_TOT", "mcb"])
def test_a_brier_limit_above_that_of_guessing_is_spelt_out(name, folder):
    """1.2 is what a table prints for 0.012, and no model of three classes exceeds it."""
    for command, files in (("report", ["a.npz"]), ("compare", ["a.npz", "b.npz"])):
        done = gated(folder, f"{name} > 1.2", files=files, command=command)
        assert done.returncode == 2
        assert "guessing among 3 classes has (0.67)" in done.stderr
        assert "> 1.2%' or " in done.stderr
        assert gated(folder, f"{name} > 120%", files=files).returncode == 0
    assert gated(folder, f"{name} > 0.6").returncode in (0, 3)


@pytest.mark.parametrize("condition", ["brier > 0.5", "nll > 1", "gap > 0.5"])
def test_a_score_far_below_its_limit_is_noted_unless_a_sign_says_it(
    condition, tmp_path
):
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=500)
    z = 9.0 * np.eye(10)[y] + rng.normal(size=(500, 10))
    np.savez(tmp_path / "good.npz", logits=z, labels=y)
    np.savez(tmp_path / "same.npz", logits=z, labels=y)
    done = gated(tmp_path, condition, files=("good.npz",))
    assert done.returncode == 0
    assert "note: good: the limit of " in done.stderr
    both = gated(tmp_path, condition, files=("good.npz", "same.npz"), command="compare")
    assert "note: good: the limit of " in both.stderr
    name, _, limit = condition.split()
    signed = gated(tmp_path, f"{name} > {100 * float(limit):g}%", files=("good.npz",))
    assert signed.stderr == ""


def test_monitor_refuses_and_notes_the_limits_that_report_does(tmp_path):
    p = np.tile([0.002, 0.998], 500)
    month = np.repeat(["01", "02"], 500)
    np.savez(tmp_path / "p.npz", probs=p, labels=p > 0.5, month=month)
    np.savez(
        tmp_path / "z.npz",
        probs=np.eye(3)[[0, 1] * 500] * 0.9 + 0.1 / 3,
        labels=[0, 1] * 500,
        month=month,
    )

    def monitored(file, condition, *more):
        given = ("--period", "month", "-o", "page.html", *more)
        return gated(tmp_path, condition, *given, files=(file,), command="monitor")

    for file, condition, why in (
        ("p.npz", "brier > 1.2", "never holds: the Brier score of one probability"),
        ("z.npz", "brier > 1.2", "more than what guessing among 3 classes has (0.67)"),
        ("z.npz", "nll > 1.2", "more than what guessing among 3 classes has (1.1)"),
    ):
        done = monitored(file, condition)
        assert (
            done.returncode == gated(tmp_path, condition, files=(file,)).returncode == 2
        )
        assert why in done.stderr
        assert not (tmp_path / "page.html").exists()
    doubt = monitored("p.npz", "ece > 0.5", "--force")
    assert doubt.returncode == 2
    assert "times 100" not in doubt.stderr  # its table has fractions
    far = monitored("p.npz", "ece > 0.15", "--force")
    assert far.returncode == 0
    assert "note: 02: the limit of 15% is 75 times its ece, 0.2%." in far.stderr
    log = monitored("p.npz", "d_TOT > 300%", "--divergence", "log", "--force")
    assert log.returncode == 0, log.stderr  # a log loss may be above 2


def test_per_cent_is_the_fraction(folder):
    value = (
        100
        * json.loads(run("report", "a.npz", "--json", cwd=folder).stdout)[
            "evaluations"
        ][0]["metrics"]["ece"]["value"]
    )
    assert gated(folder, f"ece > {value - 0.01:.4f}%").returncode == 3
    assert gated(folder, f"ece > {value + 0.01:.4f} %").returncode == 0


NAMES = {
    "acc": "accuracy",
    "Acc": "accuracy",
    "smECE": "smooth_ece",
    "d_CAL": "calibration",
    "gap": "sharpness_gap",
    "Sharpness gap": "sharpness_gap",
    "Brier": "brier",
    "NLL": "nll",
    "D_TOT": "total",
    "ECE (equal mass)": "ece_mass",
    "KS": "ks_error",
    "SmoothECE": "smooth_ece",
    "confidence gap": "confidence_gap",
}


@pytest.mark.parametrize("printed", NAMES)
def test_columns_are_called_as_tables_print_them(printed, folder):
    done = gated(folder, f"{printed}<99%", "--level", "0.9")
    assert done.returncode in (0, 3), done.stderr
    assert f"{NAMES[printed]} is " in gated(folder, f"{printed} >= 0.0000001").stderr


def test_every_name_in_a_table_means_its_own_column():
    from calibrant._base.measures import MEASURES

    for key, measure in MEASURES.items():
        for word in filter(None, (key, measure.label, measure.short)):
            assert Gate.read(f"{word}.lower < 50%").key == key


# -- groups ------------------------------------------------------------------------------


def test_each_group_is_gated_and_named(folder):
    y, z = over_confident(400, 3)
    scaled = np.where(np.arange(400)[:, None] < 120, z, z / 3)
    whole = cal.evaluate(y, logits=scaled).metrics["ece"]
    law = cal.evaluate(y[:120], logits=scaled[:120]).metrics["ece"]
    limit = (whole + law) / 2
    assert whole < limit < law
    assert gated(folder, f"ece > {limit}", files=("tasks.npz",)).returncode == 0
    done = gated(folder, f"ece > {limit}", "--group", "task", files=("tasks.npz",))
    assert done.returncode == 3
    assert done.stderr == f"gate: tasks, group 'law': ece is {law:.6g}, > {limit:g}.\n"


# -- differences -------------------------------------------------------------------------


def compared(folder, condition, *more, files=("b.npz", "a.npz")):
    return gated(folder, condition, *more, files=files, command="compare")


def test_differences_from_the_baseline_are_gated(folder):
    y, z = over_confident(400, 3)
    a, b = (cal.evaluate(y, logits=x, name=n) for x, n in ((z, "a"), (z / 3, "b")))
    expected = cal.compare(b, a).differences["a"]["brier"]
    low, high = expected.interval
    tripped = compared(folder, "brier > 0.01")
    assert tripped.returncode == 3
    said = f"gate: a - b: the difference in brier is {expected:.6g}, > 0.01.\n"
    assert tripped.stderr == said
    assert compared(folder, f"Brier.upper > {high + 1e-6}").returncode == 0
    upper = compared(folder, f"Brier.upper > {high - 1e-6}")
    assert upper.returncode == 3
    assert (
        "upper end of the 95% interval of the difference in brier (paired) is"
        in upper.stderr
    )
    assert compared(folder, f"brier.lower > {low + 1e-6}").returncode == 0
    assert compared(folder, "brier > 1%", files=("a.npz", "b.npz")).returncode == 0


def test_a_difference_may_be_negative_and_is_checked_for_its_scale(folder):
    assert compared(folder, "brier < -0.01", files=("a.npz", "b.npz")).returncode == 3
    wrong = compared(folder, "brier > 3")
    assert wrong.returncode == 2
    assert "write 'brier > 0.03'" in wrong.stderr
    assert compared(folder, "ece < -1").returncode == 2
    assert "the difference in ECE lies between" in compared(folder, "ece > 7").stderr


def test_a_limit_far_from_the_difference_is_noted_above_and_below(tmp_path):
    """Half a point of accuracy is 0.005, and a limit of 0.5 passed without a word."""
    y, z = over_confident(2000, 3)
    near = z + 0.05 * np.random.default_rng(0).normal(size=z.shape)
    for name, scores in {"z": z, "near": near}.items():
        np.savez(tmp_path / f"{name}.npz", logits=scores, labels=y)

    def noted(condition):
        both = ("z.npz", "near.npz")
        done = gated(tmp_path, condition, files=both, command="compare")
        assert done.returncode == 0, done.stderr
        return done.stderr

    low = noted("acc < -0.5")
    assert "note: near - z: the limit of -50% is far from the difference in " in low
    assert "write 'accuracy < -0.5%' or 'accuracy < -50%'." in low
    assert "write 'brier > 0.5%' or 'brier > 50%'." in noted("brier > 0.5")
    for clear in ("acc < -50%", "acc < -0.05", "brier > 0.05"):
        assert noted(clear) == ""


def test_differences_are_gated_in_each_group(folder):
    files = ("tasks b.npz", "tasks.npz")
    done = compared(folder, "brier > 0.001", "--group", "task", files=files)
    assert done.returncode == 3
    y, z = over_confident(400, 3)
    one, other = (
        cal.evaluate(y[:120], logits=x, name=n)
        for x, n in ((z[:120] / 3, "b"), (z[:120], "a"))
    )
    law = cal.compare(one, other).differences["a"]["brier"]
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert lines[1] == (
        f"gate: tasks - tasks b, group 'law': the difference in brier is {law:.6g}, > 0.001."
    )


def test_differences_of_unpaired_files_are_gated_in_each_group_too(folder):
    files, more = ("tasks b.npz", "tasks.npz"), ("--group", "task", "--unpaired")
    done = compared(folder, "brier > 0.001", *more, files=files)
    paired = compared(folder, "brier > 0.001", *more[:2], files=files)
    assert done.returncode == 3
    assert done.stderr == paired.stderr  # intervals differ, values do not
    told = json.loads(run("compare", *files, *more, "--json", cwd=folder).stdout)
    assert [*told["group_differences"]] == ["art", "law"]
    method = told["group_differences"]["law"]["tasks"]["brier"]["method"]
    assert method == "independent rows"


@pytest.mark.parametrize("sign", ["=>", "=<", ">>", "<>", "= >"])
def test_a_sign_that_is_none_is_refused_and_not_read_as_another(sign):
    with pytest.raises(click.BadParameter, match="is not a condition such as"):
        Gate.read(f"brier {sign} 0.1")


def test_two_conditions_in_one_are_refused_as_such():
    with pytest.raises(click.BadParameter, match="is not a condition such as"):
        Gate.read("ece.upper > 0.05 or nll > 0.1")


def test_coverage_is_gated(tmp_path):
    """The share of examples with a confidence, also of each group; 1 if none is missing."""
    rows = [
        {
            "confidence": None if i < 30 else 0.7,
            "correct": i % 3 > 0,
            "group": "ab"[i > 49],
        }
        for i in range(100)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows[50:])))

    def of(file, condition, *more, command="report"):
        return run(command, *file, "-q", *more, "--fail-if", condition)

    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    failed = of([a], "coverage < 80%", "--drop-missing")
    assert failed.returncode == 3
    assert "gate: a: coverage is 0.7, < 0.8." in failed.stderr
    assert "gate: a, group 'a': coverage is 0.4, < 0.8." in failed.stderr
    assert "group 'b'" not in failed.stderr
    assert of([a], "Coverage < 0.4", "--drop-missing").returncode == 0
    assert of([b], "coverage < 1").returncode == 0
    assert "coverage lies between 0 and 1" in of([b], "coverage < 80").stderr
    assert of([b, b], "coverage < 0.8", command="compare").returncode == 2
    assert "calibration (d_cal)" in of([b], "nothing < 0.8").stderr


@pytest.fixture(scope="module")
def abstaining(tmp_path_factory):
    """A file of three groups, one of which abstains at times and one always."""
    file = tmp_path_factory.mktemp("abstaining") / "a.jsonl"
    rows = [
        {
            "confidence": None if i < 60 else 0.7 + 0.01 * (i % 9),
            "correct": i % 3 > 0,
            "group": "abc"[(i > 29) + (i > 149)],
        }
        for i in range(300)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_groups_know_what_was_left_out_of_each(abstaining, tmp_path):
    """In print, JSON, findings, page and gate; a group without any answer fails, too."""
    given = "groups", abstaining, "--drop-missing", "--group", "group"
    page = tmp_path / "groups.html"
    printed = run(*given, "-o", page, "--fail-if", "coverage < 99%")
    assert printed.returncode == 3
    assert printed.stderr.splitlines()[-2:] == [
        "gate: b: coverage is 0.75, < 0.99.",
        "gate: a: coverage is 0, < 0.99.",
    ]
    assert "all examples of 'a' were left out" in printed.stderr
    assert "2 groups, 240 examples (coverage 88.9 %: 30 left out)" in printed.stdout
    assert "group  examples  left out " in printed.stdout
    assert "[left-out]" in printed.stdout
    assert "coverage 75 %: 30 left out" in page.read_text()
    found = json.loads(run(*given, "--json").stdout)
    assert [ev["left_out"] for ev in found["evaluations"]] == [30, 0]
    assert run(*given, "-q", "--fail-if", "brier > 99%").returncode == 0


def test_examples_without_a_group_are_left_out_if_that_was_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200).round(3)
    y = (rng.random(200) < p).astype(int)
    rows = [
        [f"{a}", f"{b}", "fm"[i % 2]] for i, (a, b) in enumerate(zip(p, y, strict=True))
    ]

    def write():
        lines = "\n".join(map(",".join, [["prob", "outcome", "sex"], *rows]))
        (tmp_path / "a.csv").write_text(f"{lines}\n")

    rows[3][2] = rows[50][2] = ""
    write()
    words = "groups", "a.csv", "--group", "sex"
    refused = run(*words, cwd=tmp_path)
    assert refused.returncode == 1
    assert "row 3 has none" in refused.stderr
    assert "or leave them out (--drop-missing)." in refused.stderr
    rows[7][0] = rows[9][0] = rows[9][2] = ""
    write()
    done = run(*words, "--drop-missing", "--json", cwd=tmp_path)
    assert done.stderr == (
        "note: a.csv: dropped 4 of 200 examples with a missing score, label, weight or "
        "'sex'; 2 of them have a score\n"
    )
    found = {ev["name"]: ev for ev in json.loads(done.stdout)["evaluations"]}
    told = {name: (ev["rows"], ev["left_out"]) for name, ev in found.items()}
    assert told == {"f": (99, 0), "m": (97, 1)}


@pytest.mark.parametrize("command", ["report", "groups"])
def test_coverage_of_a_sketch_is_not_known_and_not_gated(command, abstaining, tmp_path):
    sketch = tmp_path / "s.npz"
    given = "--drop-missing", "--group", "group"
    assert run("sketch", abstaining, *given, "-q", "-o", sketch).returncode == 0
    failed = run(command, sketch, "--fail-if", "coverage < 99%")
    assert failed.returncode == 1
    assert "is a sketch, which does not know how many examples" in failed.stderr
    assert run(command, sketch, "-q", "--fail-if", "brier > 99%").returncode == 0


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ("brier > 0.195", 0.19500000000000006, False),
        ("brier >= 0.195", 0.19499999999999998, True),
        ("ece >= 0.1", 0.09999999999999998, True),
        ("ece < 0.1", 0.09999999999999998, False),
        ("ece <= 0.1", 0.10000000000000002, True),
        ("brier > 0.195", 0.1950000001, True),
        ("brier > 0.195", 0.1949999999, False),
        ("confidence_gap > 0", 1e-17, False),
        ("nll > 1", float("inf"), True),
    ],
)
def test_what_equals_a_limit_but_for_rounding_is_equal_to_it(condition, value, holds):
    verdict = Gate.read(condition).verdict("m", Estimate(value), "it", 0.95)
    assert (verdict is not None) == holds


def test_a_study_is_not_gated_by_its_constant(tmp_path):
    """Mean replacement may have the best Brier score, and is no method to use."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.4, 1, 800)
    hit = rng.random(800) < 0.7
    np.savez(tmp_path / "a.npz", confidence=confidence, correct=hit)
    words = "study", "a.npz", "--folds", "5", "--methods", "temperature"
    found = run(*words, "--fail-if", "d_CAL > 1%", cwd=tmp_path)
    best = json.loads(run(*words, "--json", cwd=tmp_path).stdout)["evaluations"]
    scores = {ev["name"]: ev["metrics"]["brier"]["value"] for ev in best}
    assert min(scores, key=scores.get) == "Mean replacement"
    assert found.returncode == 3, found.stderr
    assert "Conditions are tested on " in found.stdout
    assert "Mean replacement" not in found.stderr


def test_an_end_below_its_own_number_is_explained(tmp_path):
    """With few rows DSC lies above its interval, from which noise is taken out."""
    rng = np.random.default_rng(6)
    p = (0.5 * rng.beta(1, 1.5, 92) + 0.25).round(6)
    y = rng.random(92) < p
    found = cal.evaluate(y, probs=p).metrics["dsc"]
    assert found > found.interval[1]
    rows = "".join(f"{x},{int(hit)}\n" for x, hit in zip(p, y, strict=True))
    (tmp_path / "a.csv").write_text(f"prob,label\n{rows}")
    limit = (found + found.interval[1]) / 2
    ends, value = (
        gated(tmp_path, f"{of} < {limit:.6g}", files=("a.csv",))
        for of in ("dsc.upper", "dsc")
    )
    assert (ends.returncode, value.returncode) == (3, 0)
    assert ends.stderr.rstrip().endswith(
        f"{limit:.6g}. Biased up by noise, dsc itself is {found:.6g}."
    )
    panels = run("curves", "a.csv", "--kind", "triptych", cwd=tmp_path).stdout
    (line,) = [x for x in panels.splitlines() if x.strip().startswith("DSC")]
    assert line.endswith("biased up by noise")
    table = " ".join(
        cal.evaluate(y, probs=p).table(columns=["dsc"], intervals=True).split()
    )
    assert "DSC is biased up by noise" in table


def test_a_closed_output_changes_no_exit_code(folder):
    command = f"{shlex.quote(sys.executable)} -m calibrant report a.npz"
    for more, code in (
        (" -q --fail-if 'brier>99%'", 0),
        (" --json", 0),
        (" -q --fail-if 'brier>0.1%'", 3),
    ):
        done = subprocess.run(
            ["bash", "-c", f"{command}{more} >&-"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr
