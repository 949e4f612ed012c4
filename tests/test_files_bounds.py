"""What reading may meet and must survive: files that change, pipes, devices, bombs."""

import json
import os
import re
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from command import calibrant
from file_writers import NEEDS, WRITERS, write_csv, write_npz

import calibrant as cal
from calibrant.files import FileError, Roles, batches, inspect, read
from calibrant.files._open import open_all
from calibrant.files._read import memory_of
from calibrant.files._sources import Request

SRC = Path(cal.__file__).resolve().parent.parent


def rows(value, n=30):
    return {"prob": np.full(n, value), "label": np.arange(n) % 2}


# -- one version of a file -------------------------------------------------------------

OWN = ("a.npz", "a.jsonl", "a.safetensors", "a.pt")
"""Read by one descriptor, so that a file put in the place of another changes nothing."""


@pytest.fixture
def write(tmp_path, part):
    def written(name, arrays):
        if name in NEEDS:
            part(NEEDS[name])
        path = tmp_path / name
        WRITERS[name](tmp_path / f"new-{name}", arrays)
        (tmp_path / f"new-{name}").replace(path)
        return path

    return written


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_put_in_place_of_another_is_never_mixed_with_it(name, write):
    path = write(name, rows(0.25))
    with closing(open_all(path)) as opened:
        source = next(opened)
        write(name, rows(0.75))
        request = Request(("prob", "label"), 10)
        if name in OWN:
            found = [block["prob"] for block in source.blocks(request)]
            assert np.concatenate(found).tolist() == [0.25] * 30
        else:
            with pytest.raises(FileError, match="was changed while it was read"):
                list(source.blocks(request))
    assert read(path).scores.tolist() == [0.75] * 30


def test_arrays_in_single_files_are_of_one_version(tmp_path):
    for name, array in rows(0.25).items():
        np.save(tmp_path / f"{name}.npy", array)
    with closing(open_all(tmp_path)) as opened:
        source = next(opened)
        np.save(tmp_path / "new.npy", np.full(30, 0.75))
        (tmp_path / "new.npy").replace(tmp_path / "prob.npy")
        (block,) = source.blocks(Request(("prob", "label"), 99))
    assert block["prob"].tolist() == [0.25] * 30


@pytest.mark.parametrize(
    "name", ["a.npz", "a.jsonl", "a.safetensors", "a.csv", "a.arrow"]
)
def test_a_file_that_grows_is_noticed(name, write):
    path = write(name, rows(0.25, n=1000))
    found = batches(path, rows=300)
    next(found)
    with path.open("ab") as file:
        file.write(b"\n")
    with pytest.raises(FileError, match="was changed while it was read; read it again"):
        list(found)


def test_a_file_that_vanishes_is_no_crash(tmp_path, part):
    part("safetensors")
    path = tmp_path / "a.safetensors"
    WRITERS[path.name](path, rows(0.5, n=1 << 16))
    found = batches(path, rows=100)
    next(found)
    os.truncate(path, 100)  # bytes that were mapped into memory would be gone
    with pytest.raises(FileError, match=r"ends before its last row|was changed"):
        list(found)


def test_files_are_closed_after_reading(tmp_path):
    write_npz(tmp_path / "a.npz", rows(0.5))
    read(tmp_path / "a.npz")
    inspect(tmp_path / "a.npz")
    next(batches(tmp_path / "a.npz", rows=3)).scores  # noqa: B018
    if (opened := Path("/proc/self/fd")).exists():
        names = {str(x.readlink()) for x in opened.iterdir() if x.is_symlink()}
        assert not any("a.npz" in name for name in names)


HEADER = {"dtype": "F32", "shape": [4]}


@pytest.mark.parametrize(
    ("confidence", "correct", "size"),
    [
        ([0, 16], [16, 32], 36),  # bytes after the last
        ([0, 16], [20, 36], 36),  # a hole
        ([4, 20], [20, 36], 36),  # a hole at the start
        ([0, 16], [8, 24], 24),  # an overlap
        ([0, 16], [0, 16], 16),  # the same bytes twice
        ([0, 16], [16, 32], 28),  # cut short
    ],
)
def test_tensors_fill_their_file_without_holes(
    tmp_path, part, confidence, correct, size
):
    part("safetensors")
    said = {"confidence": confidence, "correct": correct}
    header = {name: HEADER | {"data_offsets": at} for name, at in said.items()}
    text = json.dumps(header).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    for look in (read, inspect):
        with pytest.raises(FileError, match="cannot be read"):
            look(path)


def test_a_tensor_has_a_name_of_its_own(tmp_path, part):
    part("safetensors")
    first, last = (
        json.dumps(HEADER | {"data_offsets": x}) for x in ([0, 16], [16, 32])
    )
    text = (
        f'{{"correct": {first}, "confidence": {last}, "confidence": {last}}}'.encode()
    )
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(32))
    for look in (read, inspect):
        with pytest.raises(FileError, match=r"a.safetensors: has 'confidence' twice"):
            look(path)


# -- which files are meant -------------------------------------------------------------


@pytest.mark.parametrize("said", ["a.csv,", ",a.csv", "", "a.csv,,b.csv", ","])
@pytest.mark.parametrize("command", ["report", "inspect", "sketch", "study"])
def test_an_empty_part_of_a_list_is_not_the_folder(tmp_path, said, command):
    write_csv(tmp_path / "a.csv", rows(0.25))
    write_csv(tmp_path / "b.csv", rows(0.75))
    more = ["-o", "out.npz"] if command == "sketch" else []
    done = calibrant(command, said, *more, cwd=tmp_path)
    assert done.returncode == 1
    assert "'': is not the name of a file; is there a comma too many?" in done.stderr
    with pytest.raises(FileError, match="is not the name of a file"):
        read([tmp_path / "a.csv", ""])


def test_a_copy_of_a_file_is_refused_unless_it_is_to_count(tmp_path):
    for name, confidence in [
        ("jan.csv", 0.25),
        ("feb.csv", 0.75),
        ("jan (1).csv", 0.25),
    ]:
        write_csv(tmp_path / name, rows(confidence))
    refused = (
        r"jan.csv: is a copy of .*jan \(1\).csv, so .* leave it out, or pass --count"
    )
    for look in (read, lambda files: [*batches(files)]):
        with pytest.raises(FileError, match=refused):
            look(tmp_path)
    once = len(read([tmp_path / "jan.csv", tmp_path / "feb.csv"]))
    assert len(read(tmp_path, Roles(count_copies=True))) == once * 3 / 2
    done = calibrant("report", "*.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert "is a copy of" in done.stderr
    done = calibrant("report", "*.csv", "--count-copies", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["evaluations"][0]["rows"] == once * 3 / 2


def test_equal_arrays_of_one_set_of_rows_are_no_copies(tmp_path):
    for name in ("correct", "confidence"):
        np.save(tmp_path / f"{name}.npy", np.tile([1.0, 0.0], 10))
    assert len(read(tmp_path)) == 20


def test_a_file_counts_once_under_whatever_name(tmp_path):
    path, same = tmp_path / "a.csv", tmp_path / "link.csv"
    write_csv(path, rows(0.25))
    same.symlink_to(path)
    (tmp_path / "b").mkdir()
    os.link(path, tmp_path / "b" / "hard.csv")
    for other in (path, same, tmp_path / "b" / ".." / "a.csv", tmp_path / "b"):
        with pytest.raises(FileError, match=r"is the same file as .*name it once"):
            read([path, other])
    with pytest.raises(FileError, match="is the same file as"):
        read(tmp_path)  # the link beside it
    done = calibrant("report", "a.csv,./a.csv", cwd=tmp_path)
    assert (done.returncode, "its rows would count twice" in done.stderr) == (1, True)
    assert len(read(same)) == 30


SPECIAL = """
import os, sys
from click.testing import CliRunner
from calibrant.cli import main
from calibrant.files import batches, inspect, read
os.chdir(sys.argv[1])
for suffix in ("npz", "npy", "csv", "parquet", "arrow", "jsonl", "safetensors", "pt"):
    os.mkfifo(f"pipe.{suffix}")
    os.symlink("/dev/zero", f"zero.{suffix}")
    for path in (f"pipe.{suffix}", f"zero.{suffix}"):
        for look in (read, inspect, lambda path: next(batches(path))):
            try:
                print(look(path))
            except ValueError as error:
                print(error)
for line in ("report X", "inspect X", "compare X X", "study X", "sketch X -o o.npz",
             "recalibrate --fit X --save s.json", "report pipe.npz,pipe.csv"):
    for path in ("pipe.npz", "zero.csv"):
        print(CliRunner().invoke(main, line.replace("X", path).split()).output)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_and_devices_are_refused_at_once(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", SPECIAL, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={"PYTHONPATH": str(SRC)},
    )
    lines = [line for line in run.stdout.splitlines() if line]
    assert len(lines) == 8 * 2 * 3 + 7 * 2
    for line in lines:
        assert re.search(r"is a (pipe|device); only regular files are read", line), line


# -- memory ----------------------------------------------------------------------------


def test_guards_count_what_is_allocated(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.files._sources.SMALL", 1 << 20)
    n = 1 << 18  # a byte each in the file, eight in memory
    np.savez_compressed(
        tmp_path / "a.npz", confidence=np.full(n, 0.5), correct=np.ones(n, bool)
    )
    with pytest.raises(FileError, match=r"would unpack to 0\.0021 GB"):
        read(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert archive.getinfo("correct.npy").file_size < 1 << 20


@pytest.mark.parametrize("name", ["a.feather", "a.pt"])
def test_what_unpacks_to_far_more_than_the_file_is_refused(
    tmp_path, part, name, monkeypatch
):
    monkeypatch.setattr("calibrant.files._sources.SMALL", 1 << 20)
    n = 1 << 18
    if name == "a.pt":
        torch = part("torch")
        torch.save(
            {"probs": torch.zeros(n), "labels": torch.zeros(n)}, tmp_path / "b.pt"
        )
        with (
            zipfile.ZipFile(tmp_path / "b.pt") as stored,
            zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as packed,
        ):
            for member in stored.namelist():
                packed.writestr(member, stored.read(member))
    else:
        arrow, feather = part("pyarrow"), part("pyarrow.feather")
        table = arrow.table({"prob": np.zeros(n), "label": np.zeros(n)})
        path = str(tmp_path / name)
        feather.write_feather(table, path, compression="zstd", chunksize=n)
    for look in (read, inspect, lambda path: next(batches(path))):
        with pytest.raises(FileError, match="would unpack to"):
            look(tmp_path / name)


@pytest.mark.parametrize("name", WRITERS)
def test_memory_is_foretold_by_rows(name, write):
    """200 bytes a row, and 8 for each number, however few the file has for it."""
    path = write(name, rows(0.5, n=1000) | {"weight": np.ones(1000)})
    assert 0 <= memory_of(path) - 1000 * (200 + 8 * 3) <= 300  # a line of names
    assert memory_of(path, Roles(sample_weight="")) < memory_of(path)


MEASURED = """
import re, sys
from click.testing import CliRunner
from calibrant.cli import _output, main
_output.IN_MEMORY = 1
done = CliRunner().invoke(main, sys.argv[1:])
print(done.exit_code, done.output[-300:] if done.exit_code else "")
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""

CEILINGS = {
    "inspect X": 200,
    "report X": 220,
    "compare X X --names a,b --unpaired": 260,
    "sketch X -o OUT.npz": 220,
    "study X --methods platt": 450,
    "recalibrate --fit X --method platt --save OUT.json": 300,
}
"""Megabytes that a command may take for a file of few bytes and many rows: the last two
need all rows in memory, the others take no more for a thousand times as many."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="not on Linux")
@pytest.mark.slow
@pytest.mark.parametrize("line", CEILINGS)
def test_every_command_keeps_below_a_ceiling(line, tmp_path, part):
    path, out = tmp_path / "a.parquet", tmp_path / "out"
    part("duckdb").execute(
        "COPY (SELECT ((range % 8) / 8 + 0.05)::FLOAT AS prob, (range * 7 % 11 > 4)::INT1 "
        f"AS label FROM range(600000)) TO '{path}' (FORMAT parquet, COMPRESSION zstd)"
    )
    assert path.stat().st_size < 10_000
    words = line.replace("X", str(path)).replace("OUT", str(out)).split()
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *words],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"},
    )
    *said, megabytes = run.stdout.splitlines()
    assert said[0].split()[0] == "0", said
    assert int(megabytes) < CEILINGS[line]
