"""Damaged and hostile files: every reader gives rows or one clean line, never more."""

import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from file_writers import NEEDS, WRITERS, write_csv, write_npz
from harness_writers import HARNESS_WRITERS
from hypothesis import given, settings
from hypothesis import strategies as st
from make import unrelated

import calibrant as cal
from calibrant.files import FileError, Roles, batches, inspect, read
from calibrant.files._duckdb import database

SRC = Path(cal.__file__).resolve().parent.parent
ROWS = dict(zip(("labels", "logits"), unrelated(20, 3), strict=True))
ALL_WRITERS = {**WRITERS, **HARNESS_WRITERS}


def clean(path, roles=None):
    """Read a file in all three ways; say whether it could be read."""
    try:
        read(path, roles)
        assert sum(map(len, batches(path, roles, rows=7))) > 0
    except FileError as error:
        message = str(error)
        assert message.isprintable()
        assert len(message) <= 500
        assert path.name in message
        readable = False
    else:
        readable = True
    try:
        assert all(line.isprintable() for line in str(inspect(path)).splitlines())
    except FileError:
        assert not readable
    return readable


# -- bytes changed at random ---------------------------------------------------------


@st.composite
def damage(draw):
    """Places (as shares of the length) and what is done there."""
    place = st.floats(0, 1, exclude_max=True)
    kind = st.sampled_from(["flip", "set", "cut", "insert", "delete"])
    changes = st.tuples(kind, place, st.binary(min_size=1, max_size=8))
    return draw(st.lists(changes, min_size=1, max_size=5))


def damaged(content, changes):
    for kind, place, extra in changes:
        at = int(place * len(content))
        if kind == "flip":
            middle = bytes(b ^ (1 << (extra[0] % 8)) for b in content[at : at + 1])
            content = content[:at] + middle + content[at + 1 :]
        elif kind == "set":
            content = content[:at] + extra + content[at + len(extra) :]
        elif kind == "insert":
            content = content[:at] + extra + content[at:]
        elif kind == "delete":
            content = content[:at] + content[at + len(extra) :]
        else:
            content = content[:at]
    return content


@pytest.mark.parametrize("name", ALL_WRITERS)
def test_damaged_bytes_give_rows_or_one_line(name, tmp_path, part):
    if name in NEEDS:
        part(NEEDS[name])
    ALL_WRITERS[name](tmp_path / name, ROWS)
    whole, path = (tmp_path / name).read_bytes(), tmp_path / f"damaged.{name}"

    @settings(max_examples=25 if ".parquet" in name or "sv" in name else 60)
    @given(damage())
    def check(changes):
        path.write_bytes(damaged(whole, changes))
        clean(path)

    check()


@pytest.mark.parametrize("name", ALL_WRITERS)
def test_files_cut_short_give_one_line(name, tmp_path, part):
    if name in NEEDS:
        part(NEEDS[name])
    ALL_WRITERS[name](tmp_path / name, ROWS)
    whole = (tmp_path / name).read_bytes()
    is_text = name.endswith(("csv", "tsv", "jsonl"))
    for share in (0, 0.01, 0.2, 0.5, 0.8, 0.99):
        (tmp_path / name).write_bytes(whole[: int(share * len(whole))])
        readable = clean(tmp_path / name)
        # Text cut at the end of a line is still text, and so is half a stream.
        assert not readable or is_text or name == "stream.arrow"


def test_a_real_archive_cut_short_gives_one_line(data, tmp_path):
    arrays = data("cifar10_akamaster_resnet32")
    path = tmp_path / "real.npz"
    write_npz(path, {name: array[:200] for name, array in arrays.items()})
    assert clean(path)
    whole = path.read_bytes()
    for at in range(0, len(whole) - 1, len(whole) // 23):
        path.write_bytes(whole[:at])
        assert not clean(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_with_a_wrong_byte_is_refused(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, **ROWS)
    whole = path.read_bytes()
    at = whole.index(b"NUMPY") if save is np.savez else 60
    for place in (at + 200, at + 250):  # in the numbers, where only the sum can tell
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not clean(path)


@pytest.mark.parametrize("name", ["a.arrow", "stream.arrow", "a.parquet", "a.csv"])
def test_names_that_are_not_text(tmp_path, part, name):
    part("pyarrow")
    WRITERS[name](tmp_path / name, ROWS)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole.replace(b"labels", b"lab\x80ls"))
    assert not clean(tmp_path / name)


@given(st.binary(max_size=300), st.sampled_from(sorted(ALL_WRITERS)))
def test_any_bytes_under_any_name(tmp_path_factory, content, name):
    path = tmp_path_factory.getbasetemp() / f"any{Path(name).suffix}"
    path.write_bytes(content)
    if path.suffix != ".pt":  # PyTorch may not be here, which is one line too
        clean(path)


# -- names and cells -----------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=25)
@given(names=st.lists(NAMES, min_size=2, max_size=4, unique=True))
def test_names_of_any_characters(tmp_path_factory, names):
    folder = tmp_path_factory.getbasetemp()
    columns = {name: np.arange(3) / 4 for name in names}
    roles = Roles(y=names[0], probs=[names[1]])
    for name in ("a.csv", "a.npz", "a.jsonl", "a.safetensors"):
        try:
            WRITERS[name](folder / name, columns)
        except (ValueError, OSError):
            continue  # a name that the format itself cannot hold
        if clean(folder / name, roles):
            np.testing.assert_array_equal(
                read(folder / name, roles).scores, columns[names[1]]
            )


@pytest.mark.parametrize("length", [100_000, 1_000_000])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.safetensors"])
def test_names_of_a_million_characters(tmp_path, part, name, length):
    if name in NEEDS:
        part(NEEDS[name])
    arrays = {"x" * length: np.arange(3.0), "prob": np.full(3, 0.5), "y": np.ones(3)}
    WRITERS[name](tmp_path / name, arrays)
    clean(tmp_path / name)
    clean(tmp_path / name, Roles(y="x" * length))
    clean(tmp_path / name, Roles(y="y" * length))


def test_a_file_name_with_terminal_codes_is_made_harmless(tmp_path):
    path = tmp_path / "a\x1b[31m\nb.csv"
    path.write_text("y\x1b[31m,p\x1b]0;x\x07\n1,2\n")
    with pytest.raises(FileError) as error:
        read(path)
    assert str(error.value).isprintable()
    assert "\x1b" not in str(inspect(path))


CELL = st.one_of(
    st.sampled_from(["NaN", "", '"', '""', "1e999", "-inf", "0,5", "\r", "\0", "é"]),
    st.text(max_size=5),
    st.floats().map(str),
)


@settings(max_examples=40)
@given(st.lists(st.lists(CELL, min_size=2, max_size=3), min_size=1, max_size=5))
def test_cells_of_any_text(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    lines = ["label,prob", *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    clean(path)


SQL = '"; DROP TABLE x; --'


def test_names_are_never_sql(tmp_path, part):
    part("pyarrow")
    arrays = {SQL: np.array([0.25, 0.5]), "l'abel": np.array([0, 1])}
    for name in ("a.csv", "a.parquet"):
        WRITERS[name](tmp_path / name, arrays)
        found = read(tmp_path / name, Roles(probs=[SQL], y="l'abel"))
        assert found.scores.tolist() == [0.25, 0.5]


def test_duplicate_columns_of_parquet_are_refused(tmp_path, part):
    arrow, parquet = part("pyarrow"), part("pyarrow.parquet")
    columns = [arrow.array([0.5]), arrow.array([0.6]), arrow.array([1])]
    for twin in ("prob", "PROB"):
        table = arrow.table(columns, names=["prob", twin, "label"])
        parquet.write_table(table, tmp_path / "a.parquet")
        with pytest.raises(FileError, match="two columns of the same name"):
            read(tmp_path / "a.parquet")


# -- what would run code, or fill the memory ------------------------------------------


class Trap:
    """Says so if anybody unpickles it."""

    def __reduce__(self):
        return (print, ("the trap was sprung",))


@pytest.mark.parametrize("name", ["a.pkl", "a.pickle", "a.joblib"])
def test_pickles_are_refused_with_the_way_out(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(FileError, match=r"never opened.*numpy\.savez"):
        read(tmp_path / name)


def test_arrays_of_objects_are_refused(tmp_path, capsys):
    trap = np.array([Trap(), 1], dtype=object)
    np.savez(tmp_path / "a.npz", prob=trap, label=[0, 1])
    np.save(tmp_path / "b.npy", trap)
    for path in ("a.npz", "b.npy"):
        with pytest.raises(FileError, match="holds Python objects, which only pickle"):
            read(tmp_path / path)
    assert capsys.readouterr().out == ""


def test_a_pickle_under_another_name_is_not_opened(tmp_path, capsys):
    for suffix in ("npz", "npy", "safetensors", "parquet", "arrow", "csv", "jsonl"):
        path = tmp_path / f"a.{suffix}"
        path.write_bytes(pickle.dumps({"logits": Trap()}))
        assert not clean(path)
    assert capsys.readouterr().out == ""


def test_torch_files_hold_tensors_only(tmp_path, part, capsys):
    torch = part("torch")
    torch.save({"logits": Trap()}, tmp_path / "a.pt")
    assert not clean(tmp_path / "a.pt")
    assert capsys.readouterr().out == ""
    one = torch.zeros(1).expand(1 << 40)
    torch.save({"logits": one, "labels": one}, tmp_path / "b.pt")
    with pytest.raises(FileError, match="is larger than what is stored"):
        read(tmp_path / "b.pt")
    torch.save([torch.zeros(3)], tmp_path / "c.pt")
    with pytest.raises(FileError, match="holds a list, not a dict of named tensors"):
        read(tmp_path / "c.pt")


def npy_header(descr, shape):
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}}}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize(
    ("descr", "shape"),
    [
        ("<f8", (10**15,)),
        ("<f8", (2**62, 2**62)),
        ("<f8", (-1, 3)),
        ("<U0", (10**12,)),
        ("<f8", (10**12, 0)),
        ("<U1000000000", (3,)),
        ("|O", (3,)),
        ("<f8", ()),
        ("<f8", "abc"),
        ("<c16", (1,)),
        ("<M8[s]", (3,)),
        ("zz", (3,)),
    ],
)
def test_headers_that_lie_are_found_before_anything_is_allocated(
    tmp_path, descr, shape
):
    member = npy_header(descr, shape) + bytes(24)
    (tmp_path / "logits.npy").write_bytes(member)
    np.save(tmp_path / "labels.npy", np.zeros(3))
    assert not clean(tmp_path / "logits.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("logits.npy", member)
        archive.writestr("labels.npy", member)
    assert not clean(tmp_path / "a.npz")


def bomb(path, size):
    """An archive of zeros, written piece by piece."""
    start = npy_header("<f8", (size // 8,))
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("prob.npy", "w", force_zip64=True) as member,
    ):
        member.write(start)
        for _ in range(size >> 24):
            member.write(bytes(1 << 24))


LIMITED = """
import resource, sys
from calibrant.files import read
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read(sys.argv[1])
except ValueError as error:
    print(error)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024 if sys.platform == "linux" else grown >> 20)
"""


def limited(path):
    """Read a file in a process of its own; its message, and the megabytes it took."""
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, path],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SRC)},
    )
    message, megabytes = run.stdout.splitlines()
    return message, int(megabytes)


def test_a_zip_bomb_is_refused_unopened(tmp_path):
    bomb(tmp_path / "a.npz", (1 << 30) + (1 << 24))
    message, megabytes = limited(tmp_path / "a.npz")
    assert "'prob' would unpack to 1.09 GB" in message
    assert "save it uncompressed" in message
    assert megabytes < 100


def test_a_constant_column_of_a_billion_rows_is_refused_in_memory(tmp_path, part):
    duckdb = part("duckdb")
    duckdb.execute(
        "COPY (SELECT 0.5::FLOAT AS prob, 1::UTINYINT AS label FROM range(70000000)) "
        f"TO '{tmp_path}/a.parquet' (FORMAT parquet, COMPRESSION zstd)"
    )
    message, megabytes = limited(tmp_path / "a.parquet")
    assert "would unpack to 1.12 GB" in message
    assert megabytes < 300
    first = next(batches(tmp_path / "a.parquet"))  # in batches it is no danger
    assert first.scores[0] == 0.5


@pytest.mark.parametrize(
    "header",
    [
        {"logits": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 8]}},
        {"logits": {"dtype": "F32", "shape": [2], "data_offsets": [0, 10**12]}},
        {"logits": {"dtype": "F32", "shape": [-2], "data_offsets": [8, 0]}},
        {"logits": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}},
        {"logits": {"dtype": "F8_E5M2", "shape": [8], "data_offsets": [0, 8]}},
        {"logits": {"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}},
        {"logits": [1, 2, 3]},
        [],
        {"logits": {}},
    ],
)
def test_safetensors_headers_that_lie(tmp_path, header):
    text = json.dumps(header).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    assert not clean(path)
    path.write_bytes((1 << 63).to_bytes(8, "little") + text)
    assert not clean(path)


def test_safetensors_beyond_the_end_are_found_before_they_are_allocated(tmp_path):
    place = {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}
    text = json.dumps({"logits": place, "labels": place}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(FileError, match=r"cannot be read \(SafetensorError: "):
        read(path)


def test_mixed_shapes_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", logits=np.zeros((5, 3)), labels=np.zeros(4, int))
    with pytest.raises(FileError, match="'logits' has 5 rows but 'labels' has 4"):
        read(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", logits=np.zeros((5, 3, 2)), labels=np.zeros(5, int))
    with pytest.raises(FileError, match="'logits' must hold one row per prediction"):
        read(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", logits=np.array(["a"]), labels=[0])
    with pytest.raises(FileError, match="'logits' must hold numbers"):
        read(tmp_path / "c.npz")
    np.savez(tmp_path / "d.npz", logits=np.zeros((0, 3)), labels=np.zeros(0, int))
    with pytest.raises(FileError, match="'logits' has no numbers in it"):
        read(tmp_path / "d.npz")


def test_an_archive_with_other_things_in_it_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileError, match=r"members that are no arrays: 'readme\.txt'"):
        read(tmp_path / "a.npz")
    content = io.BytesIO()
    np.save(content, np.zeros(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("prob.npy", content.getvalue())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("prob.npy", content.getvalue())
    with pytest.raises(FileError, match="two members of the same name"):
        read(tmp_path / "a.npz")


def test_formats_go_by_content_too(tmp_path):
    write_npz(tmp_path / "a.npz", ROWS)
    whole = (tmp_path / "a.npz").read_bytes()
    for suffix in ("csv", "jsonl", "parquet", "arrow", "npy"):
        (tmp_path / f"a.{suffix}").write_bytes(whole)
        with pytest.raises(FileError, match=f"is named .{suffix} but holds zip"):
            read(tmp_path / f"a.{suffix}")
    for name in ("a.csv.bz2", "a.npz.gz", "a.txt", "a"):
        (tmp_path / name).write_bytes(whole)
        with pytest.raises(FileError, match=r"is packed|unknown suffix"):
            read(tmp_path / name)


def test_the_database_sees_one_folder_and_no_network(tmp_path):
    (tmp_path / "in").mkdir()
    write_csv(tmp_path / "in" / "a.csv", ROWS)
    write_csv(tmp_path / "out.csv", ROWS)
    with database(tmp_path / "in" / "a.csv") as (connection, _):
        inside = f"SELECT count(*) FROM read_csv('{tmp_path}/in/a.csv')"
        assert connection.execute(inside).fetchone() == (20,)
    for statement in (
        f"SELECT * FROM read_csv('{tmp_path}/out.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/x.csv'",
        "SELECT * FROM read_csv('http://localhost/a.csv')",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '10GB'",
    ):
        with (
            pytest.raises(FileError),
            database(tmp_path / "in" / "a.csv") as (connection, _),
        ):
            connection.execute(statement).fetchall()
