"""``calibrant sketch``, ``calibrant merge`` and the report of a sketch, as a user runs them."""

import json
import os
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
        (["merge", "shards/0.npz", "-o", "new.npz"], 1, "shards/0.npz is no sketch"),
        (["merge", "cut.npz", "-o", "new.npz"], 1, "cut.npz is no sketch, or one that"),
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


# -- each file once, whatever its name --------------------------------------------------


def npz(path, seed=0, n=50):
    y, z = rows(n, seed=seed)
    np.savez(path, logits=z, labels=y)
    return path


def resume(*files, cwd, code=0):
    return run("sketch", *files, "-o", "all.npz", "--resume", cwd=cwd, code=code)


def count(folder):
    return cal.Sketch.load(folder / "all.npz").rows


@pytest.mark.parametrize("together", [True, False])
def test_one_file_counts_once_under_any_name(tmp_path, together):
    npz(tmp_path / "a.npz")
    (tmp_path / "soft.npz").symlink_to("a.npz")
    (tmp_path / "hard.npz").hardlink_to(tmp_path / "a.npz")
    (tmp_path / "sub").mkdir()
    spellings = ["a.npz", "./a.npz", "sub/../a.npz", tmp_path / "a.npz"]
    spellings += ["soft.npz", "hard.npz"]
    for files in [spellings] if together else [[name] for name in spellings]:
        done = resume(*files, cwd=tmp_path)
    assert count(tmp_path) == 50
    assert "skipped" in done.stderr
    assert "by another name: 'hard.npz'" in done.stderr
    assert (
        "4 of the files, whose examples are in the sketch already" in done.stderr
    ) is together
    assert len(cal.Sketch.load(tmp_path / "all.npz").parts) == 1


def test_what_was_skipped_is_not_said_when_asked_to_be_quiet(tmp_path):
    npz(tmp_path / "a.npz")
    for _ in range(2):
        done = run("sketch", "a.npz", "-o", "all.npz", "--resume", "-q", cwd=tmp_path)
        assert (done.stdout, done.stderr) == ("", "")


def test_another_days_file_of_the_same_name_is_read(tmp_path):
    for seed, day in enumerate(["monday", "tuesday"]):
        (tmp_path / day).mkdir()
        npz(tmp_path / day / "rows.npz", seed)
        said = ("sketch", "rows.npz", "-o", "../all.npz", "--resume")
        assert run(*said, cwd=tmp_path / day).stderr == ""
    assert count(tmp_path) == 100


@pytest.mark.parametrize("together", [True, False])
def test_a_copy_of_a_file_is_refused_unless_it_is_to_count(tmp_path, together):
    content = npz(tmp_path / "a.npz").read_bytes()
    (tmp_path / "copy.npz").write_bytes(content)
    if not together:
        resume("a.npz", cwd=tmp_path)
    files = ["a.npz", "copy.npz"] if together else ["copy.npz"]
    said = resume(*files, cwd=tmp_path, code=1).stderr
    assert f"copy.npz: is a copy of {tmp_path.resolve() / 'a.npz'}" in said
    assert "leave it out, or pass --count-copies" in said
    assert said.splitlines()[-1].count("copy.npz") == 1
    assert count(tmp_path) == 50
    resume("copy.npz", "--count-copies", cwd=tmp_path)
    assert count(tmp_path) == 100
    assert "already" in resume("copy.npz", "a.npz", cwd=tmp_path).stderr
    assert count(tmp_path) == 100


def test_sketches_of_copies_are_merged_only_if_they_are_to_count(tmp_path):
    content = npz(tmp_path / "a.npz").read_bytes()
    (tmp_path / "copy.npz").write_bytes(content)
    npz(tmp_path / "other.npz", seed=1)
    for name in ("a", "copy", "other"):
        run("sketch", f"{name}.npz", "-o", f"{name} sums.npz", "-q", cwd=tmp_path)
    merge = ("merge", "other sums.npz", "a sums.npz", "copy sums.npz", "-o", "all.npz")
    said = run(*merge, cwd=tmp_path, code=1).stderr
    here = tmp_path.resolve()
    assert (
        f"copy sums.npz: holds {here / 'copy.npz'}, a copy of {here / 'a.npz'}" in said
    )
    assert "leave it out, or pass --count-copies" in said
    assert not (tmp_path / "all.npz").exists()
    run(*merge, "--count-copies", cwd=tmp_path)
    assert count(tmp_path) == 150


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_sketches_with_weights_and_without_are_not_merged(order, tmp_path):
    p = np.linspace(0.1, 0.9, 100)
    np.savez(tmp_path / "a.npz", probs=p, outcome=p > 0.4)
    np.savez(tmp_path / "b.npz", probs=p**2, outcome=p > 0.4, weight=1 + p)
    for name in order:
        run("sketch", f"{name}.npz", "-o", f"s{name}.npz", "-q", cwd=tmp_path)
    files = [f"s{name}.npz" for name in order]
    done = run("merge", *files, "-o", "all.npz", cwd=tmp_path, code=1)
    has = "have weights, those before it none" if order[1] == "b" else "have none"
    assert f"those of {files[1]} {has}" in done.stderr
    assert not (tmp_path / "all.npz").exists()
    one, two = (cal.Sketch.load(tmp_path / file) for file in files)
    assert (one + two).rows == 200


def test_merge_says_that_there_is_no_such_file(tmp_path):
    done = run("merge", "no.npz", "-o", "all.npz", cwd=tmp_path, code=1)
    assert done.stderr == "Error: no.npz: there is no such file.\n"


def test_a_copy_is_no_period_of_its_own(tmp_path):
    content = npz(tmp_path / "2024-01.npz").read_bytes()
    (tmp_path / "2024-02.npz").write_bytes(content)
    files, state = ["2024-01.npz", "2024-02.npz"], ["--state", "state.npz"]
    done = run("monitor", *files, *state, cwd=tmp_path, code=1)
    assert "2024-02.npz: is a copy of" in done.stderr
    run("monitor", *files, *state, "-q", "--count-copies", cwd=tmp_path)
    assert cal.Sketch.load(tmp_path / "state.npz").rows == 100


def test_a_moved_file_is_known_by_its_content(tmp_path):
    content = npz(tmp_path / "a.npz").read_bytes()
    resume("a.npz", cwd=tmp_path)
    (tmp_path / "a.npz").rename(tmp_path / "b.npz")
    (tmp_path / "new.npz").write_bytes(content)
    done = resume("b.npz", "new.npz", "--count-copies", cwd=tmp_path)
    assert "since before they moved: 'b.npz'" in done.stderr
    assert count(tmp_path) == 100
    npz(tmp_path / "a.npz", seed=1)  # the name is free again
    assert resume("a.npz", cwd=tmp_path).stderr == ""
    assert count(tmp_path) == 150


@pytest.mark.parametrize("n", [80, 50])
def test_a_file_that_has_changed_is_refused(tmp_path, n):
    npz(tmp_path / "a.npz")
    resume("a.npz", cwd=tmp_path)
    before = (tmp_path / "all.npz").read_bytes()
    npz(tmp_path / "a.npz", seed=1, n=n)
    said = resume("./a.npz", cwd=tmp_path, code=1).stderr
    assert "a.npz: changed since it was sketched (" in said
    assert "merge the two; else begin anew with --force" in said
    assert said.count("\n") == 1
    assert (tmp_path / "all.npz").read_bytes() == before
    run("sketch", "a.npz", "-o", "new.npz", cwd=tmp_path)  # the way out, as it is said
    run("merge", "all.npz", "new.npz", "-o", "both.npz", cwd=tmp_path)
    assert cal.Sketch.load(tmp_path / "both.npz").rows == 50 + n
    (tmp_path / "both.npz").replace(tmp_path / "all.npz")
    assert "already" in resume("a.npz", cwd=tmp_path).stderr


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path, saved = npz(tmp_path / "a.npz"), []

    def batches(paths, roles):
        from calibrant.files import batches as real

        yield from real(paths, roles)
        with path.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(resuming, "batches", batches)
    options = {"save": saved.append, "progress": lambda *_: None}
    with pytest.raises(ValueError, match=r"a\.npz: changed while it was read"):
        resuming.sketch_files([[str(path)]], Roles(), cal.Sketch(), **options)
    assert saved == []


def test_arrays_of_one_set_are_known_together(tmp_path):
    y, z = rows(50)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "logits.npy", z)
        np.save(tmp_path / name / "labels.npy", y)
    first = "one/logits.npy,one/labels.npy"
    second = "two/logits.npy,two/labels.npy"
    resume(first, second, "--count-copies", cwd=tmp_path)
    assert count(tmp_path) == 100  # copies
    done = resume("./one/logits.npy,one/../one/labels.npy", cwd=tmp_path)
    assert "already" in done.stderr
    np.save(tmp_path / "one/labels.npy", y[::-1])
    assert "changed since" in resume(first, cwd=tmp_path, code=1).stderr


# -- sketches of 0.1.0 know files by the path as typed ----------------------------------


@pytest.fixture
def old(tmp_path):
    """Two files, and a sketch of the first that has its name only."""
    y, z = rows(50)
    npz(tmp_path / "a.npz")
    npz(tmp_path / "b.npz", seed=1)
    cal.Sketch().update(y, logits=z, part="a.npz").save(tmp_path / "all.npz")
    return tmp_path


@pytest.mark.parametrize("name", ["a.npz", "./a.npz"])
def test_an_old_sketch_goes_on_and_learns_digests(old, name):
    done = resume(name, "b.npz", cwd=old)
    assert (
        "by name, which is all that versions before 0.2.0 kept: 'a.npz'" in done.stderr
    )
    resume("a.npz", "b.npz", cwd=old)
    assert count(old) == 100
    assert all(
        " bytes, sha256 " in part for part in cal.Sketch.load(old / "all.npz").parts
    )
    npz(old / "a.npz", seed=2)
    assert "changed since" in resume("a.npz", cwd=old, code=1).stderr


def test_an_old_sketch_stopped_within_a_file_goes_on_there(old):
    sketch = cal.Sketch.load(old / "all.npz")
    sketch.rename_part("a.npz", "a.npz [first 50 rows]")
    sketch.save(old / "all.npz", force=True)
    resume("a.npz", cwd=old)
    assert count(old) == 50
    assert "already" in resume("a.npz", cwd=old).stderr


def test_a_file_newer_than_an_old_sketch_is_not_taken_for_known(old):
    later = (old / "all.npz").stat().st_mtime + 10
    os.utime(old / "a.npz", (later, later))
    said = resume("a.npz", cwd=old, code=1).stderr
    assert "is newer than the sketch, which knows it by name only" in said
    assert count(old) == 50


# -- one process at a time, and nothing destroyed ----------------------------------------


def test_two_processes_lose_no_row(tmp_path):
    files = [npz(tmp_path / f"{i:02}.npz", seed=i, n=3000).name for i in range(12)]
    command = [COMMAND, "sketch", "-o", "all.npz", "--resume", "-q"]
    parts = [files[:8], files[4:]]
    pair = [
        subprocess.Popen([*command, *own], cwd=tmp_path, stderr=subprocess.PIPE)
        for own in parts
    ]
    said = [process.communicate()[1].decode() for process in pair]
    codes = [process.returncode for process in pair]
    assert 0 in codes
    done = {
        name for own, code in zip(parts, codes, strict=True) if not code for name in own
    }
    assert count(tmp_path) == 3000 * len(done)
    for code, text in zip(codes, said, strict=True):
        assert (code, "another process is writing all.npz; wait" in text) in [
            (0, 0),
            (1, 1),
        ]


def test_a_second_run_is_told_to_wait(shards, monkeypatch):
    real, seen = cal.Sketch.save, []

    def save(self, path, **options):
        real(self, path, **options)
        if not seen:
            seen.append(None)
            seen[0] = [
                run(*second, "-o", "all.npz", "--force", cwd=shards, code=1).stderr
                for second in (["sketch", "shards/2.npz"], ["merge", "two.npz"])
            ]

    run("sketch", "shards/1.npz", "-o", "two.npz", cwd=shards)
    monkeypatch.setattr(cal.Sketch, "save", save)
    run("sketch", "shards", "-o", "all.npz", cwd=shards)
    assert all("another process is writing all.npz" in text for text in seen[0])
    assert count(shards) == 900


@pytest.mark.parametrize("resumed", [True, False])
def test_a_sketch_that_another_program_wrote_meanwhile_is_left(
    shards, monkeypatch, resumed
):
    """No lock helps against those that ask for none."""
    if resumed:
        run("sketch", "shards/0.npz", "-o", "all.npz", cwd=shards)
    real, theirs = resuming.add_batch, cal.Sketch().update_pairs([1, 0], [0.9, 0.4])

    def add(*arguments):
        real(*arguments)
        theirs.save(shards / "all.npz", force=True)

    monkeypatch.setattr(resuming, "add_batch", add)
    said = resume("shards", cwd=shards, code=1).stderr
    assert ("by another process meanwhile" if resumed else "all.npz exists") in said
    assert count(shards) == 2


def test_a_sketch_goes_on_for_its_own_target_only(shards):
    run("sketch", "shards/0.npz", "-o", "all.npz", cwd=shards)
    said = ("sketch", "shards", "-o", "all.npz", "--resume", "--target")
    assert "drop --target" in run(*said, "class-wise", cwd=shards, code=1).stderr
    run(*said, "top-label", cwd=shards)
    assert count(shards) == 900


@pytest.mark.parametrize(
    "arguments",
    [
        ["sketch", "shards", "-o", "shards/../shards/0.npz", "--force"],
        ["sketch", "shards", "-o", "shards/0.npz", "--resume"],
        ["sketch", "shards/*.npz", "-o", "link.npz", "--force"],
        ["merge", "a.npz", "b.npz", "-o", "a.npz", "--force"],
        ["report", "shards/0.npz", "-o", "shards/0.npz", "--force"],
        ["report", "shards/0.npz", "shards", "-o", "link.npz", "--force"],
        ["study", "shards/1.npz", "shards/0.npz", "-o", "link.npz", "--force"],
        ["recalibrate", "--fit", "shards/0.npz", "--save", "link.npz", "--force"],
        ["recalibrate", "--load", "t.json", "--save", "t.json", "--force"],
    ],
)
def test_no_file_is_both_read_and_written(shards, arguments):
    for i, name in enumerate("ab"):
        run("sketch", f"shards/{i}.npz", "-o", f"{name}.npz", cwd=shards)
    run("recalibrate", "--fit", "shards/0.npz", "--save", "t.json", cwd=shards)
    (shards / "link.npz").symlink_to("shards/0.npz")
    before = {path: path.read_bytes() for path in shards.rglob("*.*")}
    said = run(*arguments, cwd=shards, code=1).stderr
    assert "is read and written; write to another file" in said
    assert {path: path.read_bytes() for path in shards.rglob("*.*")} == before


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("shards", "it is a folder; name a file in it"),
        ("none/a.npz", "there is no folder none"),
        ("pipe.npz", "it is a device, a pipe or the like"),
        ("/dev/null", "it is a device, a pipe or the like"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(shards, output, message):
    os.mkfifo(shards / "pipe.npz")
    (shards / "broken.npz").write_bytes(b"PK")  # reading it would be another error
    (shards / "t.json").touch()
    for command in (
        ["sketch", "broken.npz", "-o"],
        ["sketch", "broken.npz", "--resume", "-o"],
        ["merge", "broken.npz", "-o"],
        ["report", "broken.npz", "-o"],
        ["study", "broken.npz", "-o"],
        ["recalibrate", "--fit", "broken.npz", "--save"],
    ):
        said = run(*command, output, "--force", cwd=shards, code=1).stderr
        assert message in said, command
        assert said.count("\n") == 1


def test_two_outputs_have_two_paths(shards):
    (shards / "link").symlink_to("out.npz")
    said = ["recalibrate", "--fit", "shards/0.npz", "--apply", "shards/1.npz"]
    done = run(*said, "-o", "out.npz", "--save", "link", cwd=shards, code=1)
    assert "out.npz is two outputs; give each a file of its own" in done.stderr
    assert not (shards / "out.npz").exists()


# -- sketches where rows are needed ---------------------------------------------------


@pytest.fixture
def sketches(tmp_path):
    p = np.random.default_rng(0).random((2, 300))
    for name, own in zip("ab", p, strict=True):
        np.savez(tmp_path / f"{name}.npz", prob=own, outcome=own > 0.4, x=own)
        run("sketch", f"{name}.npz", "-o", f"s{name}.npz", "-q", cwd=tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("study", "sa.npz"),
        ("monitor", "sa.npz"),
        ("explain", "sa.npz", "--by", "x"),
        ("recalibrate", "--fit", "sa.npz", "--save", "r.json"),
        ("sketch", "sa.npz", "-o", "new.npz"),
        ("report", "s[ab].npz"),
    ],
)
def test_a_sketch_is_called_one_where_rows_are_needed(command, sketches):
    done = calibrant(*command, cwd=sketches)
    assert done.returncode == 1
    assert "is a sketch, which has sums, and this needs the rows" in done.stderr
    assert "calibrant merge" in done.stderr


@pytest.mark.parametrize("kind", ["risk-coverage", "decision", "murphy", "clinical"])
def test_curves_of_a_sketch_are_those_of_its_rows(kind, sketches):
    of_rows, of_sums = (
        run("curves", name, "--kind", kind, "--names", "m", cwd=sketches).stdout
        for name in ("a.npz", "sa.npz")
    )
    assert of_sums.splitlines()[0] == of_rows.splitlines()[0]
    assert len(of_sums.splitlines()) == len(of_rows.splitlines())
    done = calibrant("curves", "sa.npz", "--kind", "triptych", cwd=sketches)
    assert "sa.npz is a sketch, which has sums, and --kind triptych" in done.stderr


READING = (
    ("--sep", ";"),
    ("--decimal", ","),
    ("--percent",),
    ("--drop-missing",),
    ("--ragged",),
    ("--scale", "likely=0.8"),
    ("--count-copies",),
)


@pytest.mark.parametrize("said", READING, ids=lambda said: said[0])
@pytest.mark.parametrize("verb", ["report", "groups", "curves", "inspect"])
def test_a_sketch_was_read_already_so_options_of_reading_are_refused(
    verb, said, grouped
):
    done = run(verb, "all.npz", *said, cwd=grouped, code=1)
    assert f"so {said[0]} has no effect; give it to calibrant sketch" in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_of_reading_may_be_for_the_file_beside_a_sketch(grouped):
    y, z = rows()
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.savez(grouped / "percent.npz", probs=100 * p, labels=y)
    run("report", "all.npz", "percent.npz", "--percent", "-q", cwd=grouped)


def test_groups_of_a_sketch_are_named_when_it_is_made(grouped, shards):
    run("groups", "all.npz", "-q", cwd=grouped)
    way = "calibrant sketch FILE --group site --output groups.npz"
    done = run("groups", "all.npz", "--group", "site", cwd=grouped, code=1)
    assert f"drop --group, or make one with others: {way}" in done.stderr
    run("sketch", "shards", "-o", "plain.npz", "-q", cwd=shards)
    done = run("groups", "plain.npz", "--group", "site", cwd=shards, code=1)
    assert f"made without groups; make one with them: {way}" in done.stderr
    done = run("groups", "plain.npz", cwd=shards, code=1)
    assert "--group NAME --output groups.npz" in done.stderr


@pytest.fixture
def grouped(tmp_path):
    y, z = rows()
    np.savez(tmp_path / "rows.npz", logits=z, labels=y, site=np.arange(900) % 2)
    run("sketch", "rows.npz", "--group", "site", "-o", "all.npz", "-q", cwd=tmp_path)
    return tmp_path
