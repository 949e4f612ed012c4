"""Conditions of ``--fail-if``: limits that can be met, names as printed, groups, differences."""

import json

import click
import numpy as np
import pytest
from command import calibrant as run
from make import over_confident

import calibrant as cal
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
    assert gated(folder, "brier > 1.5").returncode == 0  # of three classes it can be


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
