"""Every command, example and format: what it says and writes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import calibrant as run
from command import calibrant_line
from harness_writers import write_lm_eval
from make import over_confident, softmax

import calibrant as cal
from calibrant._rows import compiled
from calibrant.recalibration import TemperatureScaling, load

CALIBRANT = Path(sys.executable).with_name("calibrant")
ESCAPE = "\x1b"


def noisy(seed=0):
    y, z = over_confident(400, 3, seed=seed)
    return z, y


@pytest.fixture
def folder(tmp_path):
    """Files of the names that the examples of the help use."""
    z, y = noisy()
    for name in ("predictions", "a", "before"):
        np.savez(tmp_path / f"{name}.npz", logits=z, labels=y)
    np.savez(tmp_path / "after.npz", logits=z / 3, labels=y)
    for name, seed in (("calibration", 1), ("test", 2)):
        other, labels = noisy(seed=seed)
        np.savez(tmp_path / f"{name}.npz", logits=other, labels=labels)
    write_parquet(tmp_path / "b.parquet", softmax(z), y)
    return tmp_path


def write_parquet(path, probs, labels):
    import duckdb

    columns = {f"p_{j}": probs[:, j] for j in range(probs.shape[1])} | {"label": labels}
    table = columns  # DuckDB reads arrays by the name of the variable
    names = ", ".join(f"unnest($c{j}) AS p_{j}" for j in range(probs.shape[1]))
    given = {f"c{j}": probs[:, j].tolist() for j in range(probs.shape[1])}
    with duckdb.connect() as db:
        db.execute(
            f"CREATE TABLE t AS SELECT {names}, unnest($y) AS label",
            {**given, "y": labels.tolist()},
        )
        db.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    return table


# -- help, versions, usage -----------------------------------------------------------

COMMANDS = (
    *("demo", "report", "study", "recalibrate", "compare", "curves"),
    *("groups", "explain", "monitor"),
    *("sketch", "merge", "inspect", "infer"),
)


def test_version():
    version, module = run("--version").stdout.splitlines()
    assert version == f"calibrant, version {cal.__version__}"
    built = "no (NumPy does its work)" if compiled.loops is None else "yes"
    assert module == f"compiled module: {built}"


def test_commands_are_those_tested():
    from calibrant.cli import main

    assert set(main.commands) == set(COMMANDS)


def test_commands_are_listed_by_the_first_line_of_their_help():
    """It is written twice, so that the list is shown without loading them."""
    from calibrant.cli import main
    from calibrant.cli._commands import ABOUT

    for name, command in main.commands.items():
        assert command.name == name
        assert command.help.startswith(ABOUT[name] + "\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(name):
    assert f"calibrant {name} " in run(name, "--help").stdout


def examples():
    """Lines of all helps that are commands, in the order of the helps."""
    from click.testing import CliRunner

    from calibrant.cli import main

    for name in COMMANDS:
        text = CliRunner().invoke(main, [name, "--help"]).output
        yield from re.findall(rf"^ +(calibrant {name} .*)$", text, re.MULTILINE)


ELSEWHERE = {"demo", "groups", "explain", "monitor", "sketch", "merge", "infer"}
"""Commands whose examples are run by tests of their own."""


@pytest.mark.parametrize(
    "line", [x for x in examples() if x.split()[1] not in ELSEWHERE]
)
def test_examples_of_the_help_run(line, folder):
    if "samples_" in line or " out/" in line:
        z, y = noisy()
        (folder / "out" / "model").mkdir(parents=True)
        samples = folder / "out" / "model" / "samples_trees.jsonl"
        write_lm_eval(samples, {"logits": np.log(softmax(z)), "labels": y})
    if "--load" in line:
        load_from = TemperatureScaling().fit(*noisy(seed=1))
        load_from.save(folder / "temperature.json")
    done = calibrant_line(line, folder)
    assert done.returncode in ((0, 3) if "--fail-if" in line else (0,)), done.stderr
    assert ESCAPE not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluat"], "No such command"),
        (["evaluate", "a.npz"], "No such command 'evaluate'. Did you mean 'report'?"),
        (["report"], "Missing argument"),
        (["report", "a.npz", "--target", "best"], "not one of"),
        (["report", "a.npz", "--fail-if", "ece"], "is not a condition such as"),
        (["report", "a.npz", "--fail-if", "speed>1"], "there is no column 'speed'"),
        (["report", "a.npz", "--fail-if", "brior>1"], "did you mean 'brier'?"),
        (["report", "a.npz", "--bandwidth", "wide"], "neither 'auto' nor a number"),
        (["compare", "a.npz"], "compare needs two models: two files"),
        (["recalibrate", "--apply", "a.npz"], "one of --fit and --load"),
        (["recalibrate", "--fit", "a.npz", "--apply", "a.npz"], "go together"),
    ],
)
def test_wrong_usage_has_exit_code_2(arguments, message, folder):
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nowhere.npz"], "nowhere.npz"),
        (["report", "model.pkl"], "pickle"),
        (["report", "a.npz", "--label", "y"], "'y'"),
        (["report", "a.npz", "--probs", "logits"], "rows of probabilities"),
        (["report", "a.npz", "--names", "x,y"], "2 names for 1 model"),
        (["inspect", "nowhere.npz"], "nowhere.npz"),
        (["study", "a.npz", "b.parquet"], "holds logits and b.parquet holds probs"),
        (["recalibrate", "--load", "a.npz"], "a.npz is not JSON"),
        (["compare", "before.npz", "test.npz"], "paired"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(arguments, message, folder):
    (folder / "model.pkl").write_bytes(b"\x80\x04N.")
    done = run(*arguments, cwd=folder)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


# -- report --------------------------------------------------------------------------


def test_report_prints_the_numbers_of_evaluate(folder):
    done = run("report", "predictions.npz", "--json", cwd=folder)
    found = json.loads(done.stdout)["evaluations"][0]
    z, y = noisy()
    expected = cal.evaluate(y, logits=z, name="predictions")
    assert found["metrics"]["brier"]["value"] == expected.metrics["brier"]
    assert found["metrics"]["ece"] == expected.metrics["ece"].to_dict()
    assert found["name"] == "predictions"


def test_report_notices_ids_that_repeat(folder):
    z, y = noisy()
    np.savez(folder / "ids.npz", logits=z, labels=y, question_id=np.arange(400) // 4)
    found = json.loads(run("report", "ids.npz", "--json", cwd=folder).stdout)
    assert found["evaluations"][0]["repeated"] == {"question_id": 100}
    assert "clusters-ignored" in {one["code"] for one in found["findings"]}


def test_report_writes_a_page_and_does_not_replace_one(folder):
    page = folder / "report.html"
    done = run("report", "a.npz", "b.parquet", "-o", "report.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "report: report.html" in done.stdout
    assert page.read_text().startswith("<!doctype html>")
    before = page.read_bytes()
    again = run("report", "b.parquet", "-o", "report.html", cwd=folder)
    assert again.returncode == 1
    assert "pass --force" in again.stderr
    assert page.read_bytes() == before
    forced = run("report", "b.parquet", "-o", "report.html", "--force", cwd=folder)
    assert forced.returncode == 0
    assert page.read_bytes() != before
    assert not [p for p in folder.iterdir() if p.name.endswith(".tmp")]


def test_two_formats_of_the_same_predictions_agree(folder):
    done = run("report", "a.npz", "b.parquet", "--json", cwd=folder)
    one, other = json.loads(done.stdout)["evaluations"]
    for name in ("accuracy", "nll", "brier", "ece"):
        a, b = (ev["metrics"][name]["value"] for ev in (one, other))
        assert a == pytest.approx(b, abs=1e-9)


def test_pairs_of_numpy_files_and_names(folder):
    z, y = noisy()
    np.save(folder / "logits.npy", z)
    np.save(folder / "labels.npy", y)
    done = run(
        "report", "logits.npy,labels.npy", "--names", "mine", "--json", cwd=folder
    )
    found = json.loads(done.stdout)["evaluations"][0]
    assert found["name"] == "mine"
    assert found["metrics"]["nll"]["value"] == pytest.approx(cal.nll(y, logits=z))


def test_pairs_of_confidence_and_correctness(folder):
    rng = np.random.default_rng(0)
    h = rng.uniform(size=300)
    lines = [
        json.dumps({"confidence": float(c), "correct": bool(rng.uniform() < c)})
        for c in h
    ]
    (folder / "llm.jsonl").write_text("\n".join(lines) + "\n")
    done = run("report", "llm.jsonl", "--json", cwd=folder)
    assert json.loads(done.stdout)["evaluations"][0]["target"] == "pairs"


def test_groups_are_evaluated_on_their_own(folder):
    z, y = noisy()
    group = np.where(np.arange(400) < 150, "north", "south")
    np.savez(folder / "g.npz", logits=z, labels=y, region=group)
    done = run("report", "g.npz", "--group", "region", "--json", cwd=folder)
    groups = json.loads(done.stdout)["evaluations"][0]["per_group"]
    assert set(groups) == {"north", "south"}
    north = cal.evaluate(y[:150], logits=z[:150])
    assert groups["north"]["metrics"]["brier"]["value"] == north.metrics["brier"]
    assert groups["south"]["n"] == 250
    text = run("report", "g.npz", "--group", "region", "-o", "g.html", cwd=folder)
    assert "group north" in text.stdout
    assert "north" in (folder / "g.html").read_text()


# -- gates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--fail-if", "brier>0.1"], 3, "brier is"),
        (["--fail-if", "brier>190%"], 0, ""),
        (["--fail-if", "accuracy<0.99"], 3, "accuracy is"),
        (["--fail-if", "calibration.lower>0"], 3, "lower end of the 95% interval"),
        (["--max-ece-upper", "0.01"], 3, "upper end of the 95% interval of ece"),
        (["--max-ece-upper", "99%"], 0, ""),
        (["--fail-if", "brier>190%", "--fail-if", "ece>0"], 3, "ece is"),
        (["--fail-if", "mcb.upper>100%"], 0, ""),
    ],
)
def test_gates(options, code, said, folder):
    done = run("report", "predictions.npz", "-q", *options, cwd=folder)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stdout == ""


# -- study, recalibrate, compare ----------------------------------------------------------


def test_study_is_the_study_of_the_library(folder):
    done = run("study", "calibration.npz", "test.npz", "--json", cwd=folder)
    found = json.loads(done.stdout)
    (z_cal, y_cal), (z_test, y_test) = noisy(seed=1), noisy(seed=2)
    expected = cal.study(y_cal, y_test, logits=(z_cal, z_test))
    assert [ev["name"] for ev in found["evaluations"]] == list(expected.names)
    for got, ev in zip(found["evaluations"], expected, strict=True):
        assert got["metrics"]["brier"]["value"] == ev.metrics["brier"]
    assert found["protocol"] == expected.protocol


def with_columns(path, seed, **columns):
    z, y = noisy(seed=seed)
    np.savez(path, logits=z, labels=y, **columns)
    return {"logits": z, "y": y, **columns}


def test_study_keeps_clusters_together_and_counts_rows(folder):
    who, times = np.arange(400) % 40, np.arange(400) % 3
    given = with_columns(folder / "all.npz", 1, who=who, times=times)
    said = ("--cluster", "who", "--frequency", "times", "--json")
    done = run("study", "all.npz", "--folds", "4", *said, cwd=folder)
    found = json.loads(done.stdout)
    expected = cal.study(
        given["y"], logits=given["logits"], folds=4, cluster=who, frequency=times
    )
    assert found["protocol"] == expected.protocol
    for got, ev in zip(found["evaluations"], expected, strict=True):
        assert got["metrics"]["brier"]["value"] == ev.metrics["brier"]
        assert (got["n"], got["n_clusters"]) == (ev.n, 40)


def test_study_needs_clusters_in_both_files_or_in_none(folder):
    with_columns(folder / "fit.npz", 1, cluster=np.arange(400))
    done = run("study", "fit.npz", "test.npz", cwd=folder)
    assert done.returncode == 1
    assert "fit.npz has clusters, and test.npz has none" in done.stderr
    assert run("study", "fit.npz", "test.npz", "--cluster", "", cwd=folder).stdout


def test_recalibrate_reads_counts_and_keeps_clusters(folder):
    times, who = np.arange(400) % 3, np.arange(400) % 40
    given = with_columns(folder / "fit.npz", 1, frequency=times, cluster=who)
    done = run(
        *("recalibrate", "--fit", "fit.npz", "--apply", "fit.npz", "-o", "out.npz"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    fitted = TemperatureScaling().fit(given["logits"], given["y"], frequency=times)
    with np.load(folder / "out.npz", allow_pickle=False) as out:
        expected = fitted.predict_proba(given["logits"])
        np.testing.assert_array_equal(out["probs"], expected)
        np.testing.assert_array_equal(out["frequency"], times)
        np.testing.assert_array_equal(out["cluster"], who)


def test_files_too_large_for_memory_keep_counts_and_clusters(folder, monkeypatch):
    from calibrant.cli import _output

    columns = {"frequency": np.arange(400) % 3, "cluster": np.arange(400) % 40}
    with_columns(folder / "all.npz", 1, **columns)
    at_once = json.loads(run("report", "all.npz", "--json", cwd=folder).stdout)
    monkeypatch.setattr(_output, "IN_MEMORY", 0)
    in_parts = json.loads(run("report", "all.npz", "--json", cwd=folder).stdout)
    for key in ("n", "rows", "n_effective", "n_clusters"):
        assert in_parts["evaluations"][0][key] == at_once["evaluations"][0][key]
    said = run("report", "all.npz", cwd=folder).stdout
    assert "1 model, 399 examples in 40 clusters, 3 classes" in said


def test_a_sketch_of_files_keeps_counts_and_clusters(folder):
    columns = {"times": np.arange(400) % 3, "who": np.arange(400) % 40}
    given = with_columns(folder / "all.npz", 1, **columns)
    said = ("--frequency", "times", "--cluster", "who")
    done = run("sketch", "all.npz", "-o", "sketch.npz", *said, cwd=folder)
    assert "clusters 40" in done.stdout
    facts = json.loads(run("inspect", "sketch.npz", "--json", cwd=folder).stdout)
    assert (facts["count"], facts["clusters"]) == (399, 40)
    want = cal.Sketch().update(
        given["y"],
        logits=given["logits"],
        frequency=columns["times"],
        cluster=columns["who"],
    )
    got = cal.Sketch.load(folder / "sketch.npz")
    np.testing.assert_array_equal(got.cells.clusters.sums, want.cells.clusters.sums)


def test_recalibrate_saves_what_it_applies(folder):
    done = run(
        *("recalibrate", "--fit", "calibration.npz", "--apply", "test.npz"),
        *("-o", "out.npz", "--save", "t.json"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "temperature: " in done.stdout
    z, y = noisy(seed=2)
    with np.load(folder / "out.npz", allow_pickle=False) as out:
        expected = TemperatureScaling().fit(*noisy(seed=1)).predict_proba(z)
        np.testing.assert_array_equal(out["probs"], expected)
        np.testing.assert_array_equal(out["labels"], y)
    np.testing.assert_array_equal(load(folder / "t.json").predict_proba(z), expected)
    assert run("report", "out.npz", "-q", cwd=folder).returncode == 0


def test_recalibrate_needs_no_labels_to_apply(folder):
    z, _ = noisy(seed=2)
    np.savez(folder / "new.npz", logits=z)
    done = run(
        *("recalibrate", "--fit", "calibration.npz", "--method", "platt"),
        *("--apply", "new.npz", "-o", "out.npz"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "out.npz", allow_pickle=False) as out:
        assert out.files == ["probs"]


def test_compare_says_which_is_better(folder):
    done = run("compare", "before.npz", "after.npz", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "after" in done.stdout
    assert "Brier" in done.stdout.splitlines()[-1] or "Brier" in done.stdout
    unpaired = run("compare", "before.npz", "test.npz", "--unpaired", cwd=folder)
    assert unpaired.returncode == 0, unpaired.stderr


def test_inspect_says_how_a_file_would_be_read(folder):
    done = run("inspect", "predictions.npz", cwd=folder)
    assert "logits" in done.stdout
    assert "400" in done.stdout
    assert json.loads(run("inspect", "b.parquet", "--json", cwd=folder).stdout)


def test_inspect_writes_strict_json_of_infinite_scores(tmp_path):
    np.savez(tmp_path / "a.npz", logits=[[0.0, -np.inf], [np.inf, 1.0]], label=[0, 1])
    done = run("inspect", "a.npz", "--json", cwd=tmp_path)
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert "inf" in str(found["items"])


# -- the demo -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory, part):
    part("sklearn")
    folder = tmp_path_factory.mktemp("demo")
    done = run("demo", "--output", folder / "out")
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "out"


def test_demo_shows_the_trap_and_keeps_its_files(demo):
    text, folder = demo
    assert 'Look at "Mean replacement"' in text
    assert ESCAPE not in text
    names = {"diagram.png", "methods.png", "predictions.npz", "report.html"}
    assert {path.name for path in folder.iterdir()} == names
    assert all(str(folder / name) in text for name in names)
    with np.load(folder / "predictions.npz", allow_pickle=False) as data:
        ev = cal.evaluate(data["labels"], logits=data["logits"])
    assert f"{100 * ev.metrics['ece']:.2f}" in text
    assert ev.metrics["confidence_gap"] > 0.05
    assert ev.decomposition.calibration.interval[0] > 0


def test_demo_json_holds_the_argument_of_the_paper(tmp_path, part):
    part("sklearn")
    found = json.loads(run("demo", "-o", tmp_path / "x", "--json").stdout)
    by_name = {ev["name"]: ev["metrics"] for ev in found["evaluations"]}
    raw, mean = by_name["Uncalibrated"], by_name["Mean replacement"]
    for name in ("ece", "ace", "smooth_ece"):
        assert mean[name]["value"] < raw[name]["value"]
    assert mean["accuracy"]["value"] == raw["accuracy"]["value"]
    assert mean["brier"]["value"] > raw["brier"]["value"]


def test_demo_replaces_files_only_in_its_own_folder(tmp_path, part):
    part("sklearn")
    (tmp_path / "report.html").write_text("mine")
    refused = run("demo", "-o", tmp_path)
    assert refused.returncode == 1
    assert "report.html exists; pass --force to replace it" in refused.stderr
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "calibrant-demo").mkdir()
    (tmp_path / "calibrant-demo" / "report.html").write_text("an older one")
    assert run("demo", "-q", cwd=tmp_path).returncode == 0


def test_demo_says_what_is_missing(tmp_path):
    blocked = "import sys; sys.modules['sklearn'] = None; from calibrant.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", blocked, "demo", "-o", tmp_path / "x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the demo needs scikit-learn: pip install")
    assert len(done.stderr.splitlines()) == 1


# -- interrupted writes -----------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_write_leaves_the_old_file(how, tmp_path):
    path = tmp_path / "out.npz"
    path.write_bytes(b"old")
    code = (
        "import pathlib, signal\n"
        "from calibrant._base.write import whole_file\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # if in background\n"
        f"with whole_file(pathlib.Path({str(path)!r})) as file:\n"
        "    file.write(b'half'); file.flush(); print('writing', flush=True)\n"
        "    import time; time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout.readline() == b"writing\n"
        os.kill(process.pid, how)
        process.wait(timeout=30)
    assert path.read_bytes() == b"old"
    time.sleep(0.1)
    z, y = noisy()
    np.savez(tmp_path / "in.npz", logits=z, labels=y)
    done = run(
        *("recalibrate", "--fit", "in.npz", "--apply", "in.npz", "-o", "out.npz"),
        "--force",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    with np.load(path, allow_pickle=False) as out:
        assert out["probs"].shape == z.shape


def test_completion_is_there():
    environment = {**os.environ, "_CALIBRANT_COMPLETE": "bash_source"}
    said = subprocess.run(
        [CALIBRANT], env=environment, capture_output=True, check=False
    )
    assert b"_calibrant_completion" in said.stdout


@pytest.mark.parametrize("files", [["predictions.npz"], ["before.npz", "after.npz"]])
def test_a_title_without_a_page_is_refused(files, folder):
    verb = "report" if len(files) == 1 else "compare"
    done = run(verb, *files, "--title", "Two models", cwd=folder)
    assert done.returncode == 2
    assert "--title is of the page; name its file with --output." in done.stderr


def test_each_command_says_what_its_conditions_are_about():
    about = {
        "report": "a model or a group",
        "groups": "a group",
        "study": "the method with the best Brier score",
    }
    for verb, what in about.items():
        said = " ".join(run(verb, "--help").stdout.split())
        assert f"Exit with code 3 if it holds for {what}: 'brier > 0.2'" in said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("groups {} --slices age --group region", "--slices finds them; give one"),
        ("groups {} --slices age --baseline east", "leave it out with --slices"),
        ("groups {} --group region --most 2", "say in which columns: --slices NAMES"),
        ("groups {} --group region --most 4", "say in which columns: --slices NAMES"),
        ("compare {} {} --unpaired --id nope", "--unpaired does not; give one"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, said, why):
    rng = np.random.default_rng(0)
    p, age = rng.random((2, 400)).round(2)
    rows = zip(
        p, rng.random(400) < p, age, rng.choice(["east", "west"], 400), strict=True
    )
    lines = [f"{p},{y:d},{age},{region}\n" for p, y, age, region in rows]
    (tmp_path / "a.csv").write_text("prob,label,age,region\n" + "".join(lines))
    (tmp_path / "b.csv").write_text("prob,label\n" + "0.7,1\n0.2,0\n" * 200)
    done = run(*said.format("a.csv", "b.csv").split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in " ".join(done.stderr.split())


def test_shares_of_monitor_may_be_percentages(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(300).round(3)
    rows = zip(p, rng.random(300) < p, strict=True)
    lines = "".join(
        f"{x},{y:d},2024-01-{1 + i % 28:02}\n" for i, (x, y) in enumerate(rows)
    )
    (tmp_path / "a.csv").write_text(f"prob,label,visit_date\n{lines}")
    numbers = ("--alpha", "0.05", "--tolerance", "0.02", "--json")
    signs = ("--alpha", "5%", "--tolerance", "2%", "--json")
    same, told = (run("monitor", "a.csv", *x, cwd=tmp_path) for x in (numbers, signs))
    assert same.stdout == told.stdout
    assert told.returncode == 0
    assert told.stderr == (
        "note: all examples are one period; if column 'visit_date' says when they were, "
        "pass --period visit_date\n"
    )
    wrong = run("monitor", "a.csv", "--alpha", "few", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "'few' is not a number such as 0.05, or 5%." in wrong.stderr
    for quiet in (("-q",), ("--period", "visit_date"), ("--state", "kept.npz")):
        assert run("monitor", "a.csv", *quiet, cwd=tmp_path).stderr == ""


def test_a_scale_in_per_cent_is_told_of_the_sign(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"confidence": "sure", "correct": 1}\n')
    for more in ((), ("--percent",)):
        done = run("report", "a.jsonl", "--scale", "sure=95", *more, cwd=tmp_path)
        assert done.returncode == 2
        assert "'sure=95' is above 1; if it is in per cent, write 95%." in done.stderr


def test_names_of_clusters_that_begin_anew_in_each_group_are_noted(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.2f},{int(rng.random() < x)},{i % 50},{'ab'[i // 100]}\n"
        for i, x in enumerate(rng.random(200))
    ]
    (tmp_path / "a.csv").write_text(
        "confidence,correct,question,task\n" + "".join(rows)
    )
    more = ("--cluster", "question", "--group", "task")
    for command in (("report", "a.csv"), ("groups", "a.csv")):
        said = run(*command, *more, cwd=tmp_path).stderr
        assert (
            "note: a.csv: 50 of 50 clusters 'question' have examples in several groups 'task'"
        ) in said
    assert run("report", "a.csv", *more, "-q", cwd=tmp_path).stderr == ""
    assert "several" not in run("report", "a.csv", *more[:2], cwd=tmp_path).stderr
