"""``calibrant sketch``, ``calibrant merge`` and the report of a sketch, as a user runs them."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import calibrant, calibrant_line
from make import over_confident

import calibrant as cal
from calibrant._verbs import stream as resuming
from calibrant.files import Roles

COMMAND = Path(sys.executable).parent / "calibrant"


def run(*arguments, cwd, code=0):
    done = calibrant(*arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    return done


def rows(n=900, k=3, seed=0):
    return over_confident(n, k, factor=2, seed=seed, spread=1.5)


@pytest.fixture
def shards(tmp_path):
    y, z = rows()
    (tmp_path / "shards").mkdir()
    for i in range(3):
        part = slice(300 * i, 300 * i + 300)
        np.savez(tmp_path / f"shards/{i}.npz", logits=z[part], labels=y[part])
    return tmp_path


def test_a_sketch_of_shards_is_reported_like_the_rows(shards):
    said = run("sketch", "shards", "--output", "all.npz", cwd=shards).stdout
    assert "900" in said
    assert "calibrant report all.npz" in said
    assert "\x1b" not in said
    report = run("report", "all.npz", "--json", "-o", "page.html", cwd=shards)
    got = cal.Evaluation.from_dict(json.loads(report.stdout)["evaluations"][0])
    y, z = rows()
    want = cal.evaluate(y, logits=z)
    for name, value in want.metrics.items():
        assert got.metrics[name] == pytest.approx(value, abs=1e-10), name
    assert "<html" in (shards / "page.html").read_text()


def test_merging_the_days_gives_the_week(shards):
    for i in range(3):
        run("sketch", f"shards/{i}.npz", "-o", f"{i}.npz", "-q", cwd=shards)
    run("merge", "0.npz", "1.npz", "2.npz", "-o", "week.npz", cwd=shards)
    facts = json.loads(run("inspect", "week.npz", "--json", cwd=shards).stdout)
    assert (facts["rows"], len(facts["parts"])) == (900, 3)
    assert "top-label, 3 classes" in run("inspect", "week.npz", cwd=shards).stdout
    twice = run("merge", "0.npz", "0.npz", "-o", "twice.npz", cwd=shards, code=1)
    assert "would count twice" in twice.stderr
    assert not (shards / "twice.npz").exists()


def test_examples_of_the_help_run(shards):
    for i, day in enumerate(["monday", "tuesday"]):
        run("sketch", f"shards/{i}.npz", "-o", f"{day}.npz", "-q", cwd=shards)
    found = [
        line.strip()
        for name in ("sketch", "merge")
        for line in run(name, "--help", cwd=shards).stdout.splitlines()
        if line.strip().startswith("calibrant ")
    ]
    assert len(found) == 3
    for line in found:
        done = calibrant_line(line.replace(".parquet", ".npz"), shards)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["sketch", "shards"], 2, "Missing option '-o'"),
        (["sketch", "shards", "-o", "old.npz"], 1, "pass --force to replace it"),
        (["sketch", "nothing.npz", "-o", "new.npz"], 1, "there is no such file"),
        (["merge", "shards/0.npz", "-o", "new.npz"], 1, "shards/0.npz: no sketch"),
        (["merge", "cut.npz", "-o", "new.npz"], 1, "cut.npz: no sketch, or one that"),
        (["report", "cut.npz"], 1, "cut.npz"),
        (["report", "old.npz", "--label", "y"], 1, "drop --label"),
        (["report", "old.npz", "--target", "positive"], 1, "already holds its rows"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(shards, arguments, code, message):
    run("sketch", "shards/0.npz", "-o", "old.npz", "-q", cwd=shards)
    whole = (shards / "old.npz").read_bytes()
    (shards / "cut.npz").write_bytes(whole[: len(whole) // 2])
    said = run(*arguments, cwd=shards, code=code).stderr
    assert message in said
    if code == 1:
        assert said.count("\n") == 1
    assert not (shards / "new.npz").exists()
    assert (shards / "old.npz").read_bytes() == whole


def test_resuming_counts_nothing_twice(shards):
    run("sketch", "shards/0.npz", "-o", "all.npz", "-q", cwd=shards)
    run("sketch", "shards", "-o", "all.npz", "--resume", "-q", cwd=shards)
    run("sketch", "shards", "-o", "whole.npz", "-q", cwd=shards)
    assert (shards / "all.npz").read_bytes() == (shards / "whole.npz").read_bytes()
    assert cal.Sketch.load(shards / "all.npz").rows == 900


class StoppedError(Exception):
    """Raised in place of a kill."""


@pytest.mark.parametrize("after", range(1, 6))
def test_a_run_stopped_within_a_file_goes_on_there(tmp_path, monkeypatch, after):
    y, z = rows(1000)
    np.savez(tmp_path / "one.npz", logits=z, labels=y)
    path, unit = tmp_path / "sketch.npz", [str(tmp_path / "one.npz")]
    sizes = iter([170, 90])  # batches of another size the second time

    def batches(paths, roles):
        from calibrant.files import batches as real

        return real(paths, roles, rows=next(sizes))

    monkeypatch.setattr(resuming, "batches", batches)
    saves = []

    def save(sketch):
        sketch.save(path, force=True)
        saves.append(sketch.rows)
        if len(saves) == after:
            raise StoppedError

    options = {"save": save, "progress": lambda *_: None, "every": 170}
    with pytest.raises(StoppedError):
        resuming.sketch_files([unit], Roles(), cal.Sketch(), **options)
    assert saves[-1] == 170 * after
    again = cal.Sketch.load(path)
    resuming.sketch_files([unit], Roles(), again, **options)
    assert again.rows == 1000
    (part,) = again.parts
    assert part.startswith(f"{unit[0]} [{Path(unit[0]).stat().st_size} bytes, sha256 ")
    want = cal.Sketch().update(y, logits=z)
    got, whole = cal.evaluate(again).metrics, cal.evaluate(want).metrics
    assert got["smooth_ece"] == pytest.approx(whole["smooth_ece"], abs=1e-12)


def test_a_killed_command_leaves_a_sketch_that_goes_on(tmp_path):
    for i in range(12):
        y, z = rows(4_000, 10, seed=i)
        np.savez(tmp_path / f"{i:02}.npz", logits=z, labels=y)
    files = sorted(path.name for path in tmp_path.glob("??.npz"))
    command = [COMMAND, "sketch", *files, "-o", "all.sketch.npz", "-q"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "all.sketch.npz").exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.kill()
    assert 1 <= len(cal.Sketch.load(tmp_path / "all.sketch.npz").parts) <= 12
    run("sketch", *files, "-o", "all.sketch.npz", "--resume", "-q", cwd=tmp_path)
    run("sketch", *files, "-o", "whole.sketch.npz", "-q", cwd=tmp_path)
    whole = (tmp_path / "whole.sketch.npz").read_bytes()
    assert (tmp_path / "all.sketch.npz").read_bytes() == whole
