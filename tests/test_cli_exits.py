"""How the command ends: exit codes of every command, faults of files, interruptions."""

import os
import signal
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command import calibrant
from file_writers import (
    write_arrow,
    write_csv,
    write_jsonl,
    write_npz,
    write_parquet,
    write_safetensors,
)

CALIBRANT = Path(sys.executable).with_name("calibrant")
FINE, BAD_INPUT, WRONG_USAGE, GATE_TRIPPED, INTERRUPTED = 0, 1, 2, 3, 130


def run(*arguments, cwd):
    return subprocess.run(
        [CALIBRANT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    return {"logits": 3 * z, "labels": (z + rng.gumbel(size=z.shape)).argmax(axis=1)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exits")
    write_npz(folder / "a.npz", rows())
    write_npz(folder / "b.npz", {**rows(), "logits": rows()["logits"] / 3})
    parts = {"part": np.arange(300) % 2, "x": rows()["logits"][:, :1]}
    write_npz(folder / "parts.npz", {**rows(), **parts})
    (folder / "broken.npz").write_bytes((folder / "a.npz").read_bytes()[:900])
    (folder / "taken").write_text("a file where a folder should be")
    return folder


# -- codes ----------------------------------------------------------------------------

ENDS = [
    (FINE, ["report", "a.npz", "--fail-if", "accuracy<0.01"]),
    (FINE, ["study", "a.npz", "--methods", "temperature", "--fail-if", "brier>190%"]),
    (FINE, ["recalibrate", "--fit", "a.npz"]),
    (FINE, ["compare", "a.npz", "b.npz"]),
    (FINE, ["inspect", "a.npz"]),
    (FINE, ["sketch", "a.npz", "-o", "sum.npz"]),
    (FINE, ["curves", "a.npz"]),
    (FINE, ["groups", "parts.npz", "--group", "part"]),
    (FINE, ["explain", "parts.npz", "--by", "x"]),
    (FINE, ["monitor", "a.npz", "b.npz"]),
    (BAD_INPUT, ["report", "broken.npz"]),
    (BAD_INPUT, ["curves", "broken.npz"]),
    (BAD_INPUT, ["study", "broken.npz"]),
    (BAD_INPUT, ["groups", "a.npz", "--group", "part"]),
    (BAD_INPUT, ["explain", "a.npz", "--by", "x"]),
    (BAD_INPUT, ["monitor", "broken.npz"]),
    (BAD_INPUT, ["recalibrate", "--fit", "broken.npz"]),
    (BAD_INPUT, ["compare", "a.npz", "broken.npz"]),
    (BAD_INPUT, ["inspect", "broken.npz"]),
    (BAD_INPUT, ["demo", "-o", "taken/inside"]),
    (BAD_INPUT, ["sketch", "broken.npz", "-o", "none.npz"]),
    (BAD_INPUT, ["merge", "a.npz", "-o", "none.npz"]),
    (WRONG_USAGE, ["report", "a.npz", "--bins", "many"]),
    (WRONG_USAGE, ["curves", "a.npz", "--kind", "best"]),
    (WRONG_USAGE, ["study"]),
    (WRONG_USAGE, ["groups"]),
    (WRONG_USAGE, ["explain", "a.npz"]),
    (WRONG_USAGE, ["monitor", "a.npz", "--every", "moon"]),
    (WRONG_USAGE, ["study", "a.npz", "--divergence", "l1"]),
    (WRONG_USAGE, ["recalibrate"]),
    (WRONG_USAGE, ["compare", "a.npz", "b.npz", "--level", "high"]),
    (WRONG_USAGE, ["report", "a.npz", "--level", "2"]),
    (WRONG_USAGE, ["report", "a.npz", "--bins", "0"]),
    (WRONG_USAGE, ["report", "a.npz", "--seed", "-1"]),
    (WRONG_USAGE, ["report", "a.npz", "--bandwidth", "-1"]),
    (WRONG_USAGE, ["compare", "a.npz", "b.npz", "--level", "nan"]),
    (WRONG_USAGE, ["curves", "a.npz", "--level", "0"]),
    (WRONG_USAGE, ["study", "a.npz", "--split", "2"]),
    (WRONG_USAGE, ["study", "a.npz", "--folds", "1"]),
    (WRONG_USAGE, ["study", "a.npz", "--methods", "temp"]),
    (WRONG_USAGE, ["recalibrate", "--fit", "a.npz", "--method", "foo", "--save", "u.json"]),
    (WRONG_USAGE, ["compare", "a.npz", "b.npz", "--baseline", "zz"]),
    (WRONG_USAGE, ["explain", "parts.npz", "--by", "x", "--regions", "1"]),
    (WRONG_USAGE, ["monitor", "a.npz", "--alpha", "2"]),
    (WRONG_USAGE, ["inspect"]),
    (WRONG_USAGE, ["sketch", "a.npz"]),
    (WRONG_USAGE, ["merge", "a.npz"]),
    (WRONG_USAGE, ["demo", "--seed", "lucky"]),
    (WRONG_USAGE, ["demo", "-o", "taken"]),
    (GATE_TRIPPED, ["report", "a.npz", "--fail-if", "accuracy<1"]),
    (GATE_TRIPPED, ["groups", "parts.npz", "--group", "part", "--fail-if", "brier>0"]),
    (GATE_TRIPPED, ["monitor", "a.npz", "--fail-if", "brier>0"]),
    (GATE_TRIPPED, ["compare", "a.npz", "b.npz", "--fail-if", "brier<0"]),
    (GATE_TRIPPED, ["study", "a.npz", "--methods", "temperature", "--fail-if", "brier>0"]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "arguments"), ENDS, ids=str)
def test_every_command_ends_with_its_code(code, arguments, folder):
    done = run(*arguments, cwd=folder)
    assert done.returncode == code, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if code == BAD_INPUT:
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ")
        assert len(done.stderr.splitlines()) == 1
    elif code == WRONG_USAGE:
        assert done.stderr.startswith("Usage: calibrant ")
        assert ".npz: " not in done.stderr
    elif code == GATE_TRIPPED:
        assert done.stderr.startswith("gate: ")
        assert done.stdout
    else:
        assert done.stderr == ""
        assert done.stdout


def test_every_command_is_there_with_each_code_it_can_have():
    from calibrant.cli import main

    seen = {(arguments[0], code) for code, arguments in ENDS}
    for name, command in main.commands.items():
        if name in ELSEWHERE:
            continue
        gated = any(option.name == "conditions" for option in command.params)
        needed = {BAD_INPUT, WRONG_USAGE} | ({GATE_TRIPPED} if gated else set())
        assert {code for other, code in seen if other == name} >= needed, name


ELSEWHERE = {"infer"}
"""Commands whose ends are tested with them."""


# -- faults of files ------------------------------------------------------------------


def cut_short(path):
    np.savez(path, **rows())
    path.write_bytes(path.read_bytes()[:-400])


def text_for_numbers(path):
    np.savez(path, logits=np.full((3, 2), "x"), labels=[0, 1, 0])


def zip_bomb(path):
    """16 KB that say they are 16 TB."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({1 << 41},)}}".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
        archive.writestr("prob.npy", head + bytes(1 << 24))
        archive.writestr("label.npy", head + bytes(1 << 24))


def mixed_shapes(path):
    np.savez(path, logits=np.zeros((5, 3)), labels=np.zeros(4, int))


def not_a_number(path):
    path.write_bytes(b"\xef\xbb\xbflabel,p_0,p_1\r\n0,0.5,0.5\r\n1,NaN,0.5\r\n")


def one_name_twice(path):
    path.write_text("label,prob,prob\n1,0.5,0.5\n")


def long_name(path):
    write_csv(path, {"x" * 1_000_000: np.zeros(3), "p": np.zeros(3)})


def name_in_colour(path):
    write_safetensors(path, {"\x1b[31mlogits\x1b[0m": np.zeros((3, 2))})


FAULTS = {
    "cut.npz": (cut_short, "cut.npz"),
    "words.npz": (text_for_numbers, "'logits' must hold numbers"),
    "bomb.npz": (zip_bomb, "bomb.npz"),
    "mixed.npz": (mixed_shapes, "'logits' has 5 rows but 'labels' has 4"),
    "nan.csv": (not_a_number, "row 1 of 'p_0' is NaN, missing or not a number"),
    "twice.csv": (one_name_twice, "two columns named 'prob'"),
    "long.csv": (long_name, "field larger than field limit"),
    "colour.safetensors": (name_in_colour, "none of them known as probs"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_file_is_one_line_and_no_report(name, tmp_path):
    write, message = FAULTS[name]
    write(tmp_path / name)
    done = run("report", name, "-o", "out.html", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (BAD_INPUT, "")
    assert message in done.stderr
    assert done.stderr.rstrip("\n").isprintable()
    assert len(done.stderr) < 1000
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_table_of_marks_and_quotes_is_read(tmp_path):
    lines = ['\ufeff"label","p_0","p_1","no, te"', '0,0.75,0.25,"a, b"']
    text = "\r\n".join([*lines, '1,0.5,0.5,"c\n""d"""', ""])
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    gate = ("-q", "--target", "top-label", "--fail-if")
    done = run("report", "a.csv", *gate, "brier>=0.3125", cwd=tmp_path)
    assert done.returncode == GATE_TRIPPED, done.stderr
    assert "brier is 0.3125" in done.stderr


# -- interruptions --------------------------------------------------------------------

SLOW = """
import signal, sys, time
import calibrant.report._report
from calibrant.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # if in background
def slow(*models, **options):
    print("building", file=sys.stderr, flush=True)
    time.sleep(60)
calibrant.report._report.build = slow
main(prog_name="calibrant")
"""
"""The command, which never gets beyond its report."""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_command_leaves_no_half_report(how, folder, tmp_path):
    page = tmp_path / "out.html"
    arguments = ["report", str(folder / "a.npz"), "-o", str(page)]
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr.readline() == "building\n"
        os.kill(process.pid, how)
        out, said = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == INTERRUPTED
        assert said.split() == ["Interrupted."]
    else:
        assert process.returncode == -how
        assert said == ""
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_is_no_error(folder):
    pipe = f"{CALIBRANT} report a.npz | head -n 1"
    done = subprocess.run(
        ["sh", "-c", pipe], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.stdout == "1 model, 300 examples, 3 classes\n"
    assert done.stderr == ""


WAITS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Waits:
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Waits())
from calibrant.__main__ import main
main()
"""


def test_an_interrupt_while_loading_leaves_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", WAITS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "")


@pytest.mark.parametrize("threads", ["abc", "-1", "0", "1.5", "²", "\x1b[31m"])
def test_threads_that_are_no_number_are_named(threads, monkeypatch):
    from calibrant._rows.engines import cores

    monkeypatch.setenv("CALIBRANT_THREADS", threads)
    with pytest.raises(ValueError, match="CALIBRANT_THREADS must be a whole number"):
        cores()


# -- damaged files, in every command that reads them --------------------------------

READERS = {
    "report": ["report", "FILE"],
    "inspect": ["inspect", "FILE", "--json"],
    "compare": ["compare", "a.npz", "FILE"],
    "study": ["study", "FILE", "--methods", "temperature"],
    "fit": ["recalibrate", "--fit", "FILE"],
    "apply": ["recalibrate", "--fit", "a.npz", "--apply", "FILE", "-o", "new.npz"],
    "load": ["recalibrate", "--load", "FILE", "--apply", "a.npz", "-o", "new.npz"],
    "sketch": ["sketch", "FILE", "-o", "new.npz"],
    "merge": ["merge", "FILE", "FILE", "-o", "new.npz"],
}
WRITERS = {
    ".npz": write_npz,
    ".csv": write_csv,
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
    ".arrow": write_arrow,
    ".safetensors": write_safetensors,
}


def damages(content):
    """The same bytes cut short and changed in places."""
    for share in (0.0, 0.1, 0.5, 0.9, 0.99):
        yield content[: int(share * len(content))]
    for place in (0, 3, len(content) // 2, len(content) - 20, len(content) - 6):
        changed = bytearray(content)
        changed[place] ^= 0x5A
        yield bytes(changed)


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_file_is_one_line_that_names_it(command, suffix, tmp_path):
    write_npz(tmp_path / "a.npz", rows(40))
    damaged = tmp_path / f"damaged{suffix}"
    WRITERS[suffix](damaged, rows(40))
    for content in list(damages(damaged.read_bytes())):
        damaged.write_bytes(content)
        arguments = [damaged.name if x == "FILE" else x for x in READERS[command]]
        done = calibrant(*arguments, cwd=tmp_path)  # any other error would be raised
        assert done.returncode in (FINE, BAD_INPUT)
        if done.returncode == BAD_INPUT:
            assert done.stderr.startswith("Error: ")
            assert len(done.stderr.splitlines()) == 1
            assert damaged.stem in done.stderr
            assert "a fault of calibrant" not in done.stderr
        (tmp_path / "new.npz").unlink(missing_ok=True)


def test_a_hostile_name_of_an_output_moves_no_cursor(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "a.npz", logits=rng.normal(size=(60, 3)), labels=np.arange(60) % 3
    )
    name = "out\x1b[2J.npz"
    for line in (
        ("sketch", "a.npz", "-o", name),
        ("merge", name, "-o", f"m{name}"),
        ("recalibrate", "--fit", "a.npz", "--apply", "a.npz", "-o", f"r{name}"),
        ("report", "a.npz", "-o", "page\x1b[2J.html"),
    ):
        done = run(*line, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert "[2J" in done.stdout
    for wrong in (
        ("report", f"--{name}"),
        ("recalibrate", "--apply", "-o", name),
        (name,),
    ):
        done = run(*wrong, cwd=tmp_path)
        assert done.returncode == 2
        assert "\x1b" not in done.stdout + done.stderr
