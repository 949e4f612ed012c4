"""The command, run as people run it."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import acumen as ac

ACUMEN = Path(sys.executable).with_name("acumen")


def run(*arguments, **options):
    return subprocess.run(
        [ACUMEN, *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory, part):
    part("sklearn")
    folder = tmp_path_factory.mktemp("demo")
    done = run("demo", "--output", folder / "out")
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "out" / "predictions.npz"


def test_version():
    assert run("--version").stdout.strip() == f"acumen, version {ac.__version__}"


def test_every_command_shows_an_example():
    from acumen.cli import main

    for name in main.commands:
        assert f"acumen {name}" in run(name, "--help").stdout


def test_unknown_command_is_a_usage_error():
    done = run("evaluat")
    assert done.returncode == 2
    assert "No such command" in done.stderr


def test_demo_shows_the_trap_and_keeps_the_predictions(demo):
    text, file = demo
    assert "mean replacement" in text
    with np.load(file, allow_pickle=False) as data:
        ev = ac.evaluate(data["labels"], logits=data["logits"], name="network")
    assert str(ev) in text
    assert ev.metrics["confidence_gap"] > 0.05
    assert ev.decomposition.calibration.interval[0] > 0


def test_demo_json_holds_the_argument_of_the_paper(tmp_path, part):
    part("sklearn")
    found = json.loads(run("demo", "-o", tmp_path / "x", "--json").stdout)
    network, mean = found["network"]["metrics"], found["mean replacement"]["metrics"]
    for name in ("ece", "ace", "smooth_ece"):
        assert mean[name]["value"] < network[name]["value"]
    assert mean["accuracy"]["value"] == network["accuracy"]["value"]
    assert mean["brier"]["value"] > network["brier"]["value"]


def test_demo_says_what_is_missing(tmp_path):
    blocked = (
        "import sys; sys.modules['sklearn'] = None; from acumen.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", blocked, "demo", "-o", tmp_path / "x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the demo trains a network with scikit-learn")
    assert len(done.stderr.splitlines()) == 1


def test_the_seed_reaches_the_training(monkeypatch, tmp_path):
    from click.testing import CliRunner

    from acumen.cli import main

    seen = []
    report = SimpleNamespace(text=str, to_json=str)
    monkeypatch.setattr("acumen.demo.run", lambda _, seed: seen.append(seed) or report)
    done = CliRunner().invoke(main, ["demo", "-o", str(tmp_path), "--seed", "3"])
    assert done.exit_code == 0
    assert seen == [3]
