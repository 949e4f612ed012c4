"""The same rows give the same numbers: in any format, folder, order, split or packing."""

import json
import os
from itertools import pairwise

import numpy as np
import pytest
from command import calibrant
from file_writers import NEEDS, WRITERS, write_csv, write_jsonl, write_npz
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.files import FileError, Roles, _duckdb, batches, inspect, read

N = 40


def made(seed=0, n=N):
    """Rows with everything that a file can hold."""
    rng = np.random.default_rng(seed)
    return {
        "logits": rng.normal(size=(n, 3)),
        "labels": rng.integers(0, 3, n),
        "weight": rng.integers(1, 5, n) / 2,
        "frequency": rng.integers(0, 3, n),
        "cluster": np.arange(n) // 3,
        "group": rng.integers(0, 2, n),
    }


FIELDS = {
    "scores": "logits",
    "y": "labels",
    "sample_weight": "weight",
    "frequency": "frequency",
    "cluster": "cluster",
    "group": "group",
}


def agree(found, arrays):
    for field, name in FIELDS.items():
        got, said = np.asarray(getattr(found, field)), arrays[name]
        if field in ("cluster", "group"):
            got, said = got.astype(str), said.astype(str)
        np.testing.assert_array_equal(got, said, err_msg=name)


def taken(arrays, rows):
    return {name: array[rows] for name, array in arrays.items()}


@pytest.fixture
def write(part):
    """Write arrays in the format a file name says, under any name; give the path."""

    def written(path, name, arrays):
        if name in NEEDS:
            part(NEEDS[name])
        WRITERS[name](path, arrays)
        return path

    return written


FOLDERS = [
    "label=2",
    "labels=2",
    "date=2024-01-01",
    "group=x/weight=0",
    "two words",
    "ünï 日本😀",
    "[a]",
    "*",
    "{a,b}",
    "it's",
    "a,b",
    "%20#x",
]


@pytest.mark.parametrize("name", WRITERS)
def test_the_folder_says_nothing_about_the_rows(name, tmp_path, write):
    arrays, suffix = made(), name.rpartition(".")[2]
    for i, folder in enumerate(FOLDERS):
        (tmp_path / folder).mkdir(parents=True)
        same = f"{folder.rpartition('/')[2]}.{suffix}"  # the name of the file is as odd
        path = write(tmp_path / folder / (same if i % 2 else name), name, arrays)
        agree(read(path), arrays)
    contents = inspect(path)
    assert contents.rows == N
    assert {item.name.partition("_")[0] for item in contents.items} == set(arrays)


@pytest.mark.skipif(os.sep != "/", reason="a backslash is a separator here")
def test_a_backslash_among_marks_of_patterns_is_refused(tmp_path, write):
    folder = tmp_path / "a\\*"
    folder.mkdir()
    agree(read(write(folder / "a.npz", "a.npz", made())), made())
    path = write(folder / "a.csv", "a.csv", made())
    with pytest.raises(FileError, match="has a backslash and one of"):
        read(path)
    (tmp_path / "b\\c").mkdir()
    agree(read(write(tmp_path / "b\\c" / "a.csv", "a.csv", made())), made())


@pytest.mark.parametrize("name", WRITERS)
def test_rows_and_columns_in_another_order(name, tmp_path, write):
    arrays, order = made(), np.random.default_rng(1).permutation(N)
    agree(
        read(write(tmp_path / name, name, taken(arrays, order))), taken(arrays, order)
    )
    reversed_ = dict(reversed(list(arrays.items())))
    agree(read(write(tmp_path / name, name, reversed_)), arrays)


@pytest.mark.parametrize("name", WRITERS)
def test_files_split_anywhere_hold_the_same_rows(name, tmp_path, write):
    arrays, suffix = made(), name.rpartition(".")[2]
    cuts = [0, 1, 13, 39, N]
    parts = [
        write(tmp_path / f"{i}.{suffix}", name, taken(arrays, slice(a, b)))
        for i, (a, b) in enumerate(pairwise(cuts))
    ]
    for paths in (parts, tmp_path, str(tmp_path / f"*.{suffix}")):
        agree(read(paths), arrays)
    in_batches = list(batches(parts, rows=7))
    for field, given_ in FIELDS.items():
        joined = np.concatenate([getattr(x, field) for x in in_batches])
        assert joined.astype(float).tolist() == arrays[given_].tolist()


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
def test_parquet_in_any_packing(codec, tmp_path, part):
    arrow, parquet = part("pyarrow"), part("pyarrow.parquet")
    arrays = made()
    columns = {n: a.tolist() if a.ndim > 1 else a for n, a in arrays.items()}
    for i, how in enumerate(
        [
            {},
            {"row_group_size": 7},
            {"use_dictionary": False, "data_page_version": "2.0"},
        ]
    ):
        path = tmp_path / f"{i}.parquet"
        parquet.write_table(arrow.table(columns), path, compression=codec, **how)
        agree(read(path), arrays)


@pytest.mark.parametrize("codec", ["uncompressed", "lz4", "zstd"])
def test_feather_in_any_packing(codec, tmp_path, part):
    arrow, feather = part("pyarrow"), part("pyarrow.feather")
    columns = {n: a.tolist() if a.ndim > 1 else a for n, a in made().items()}
    for chunk in (None, 9):
        path = str(tmp_path / "a.feather")
        how = {"compression": codec, "chunksize": chunk}
        feather.write_feather(arrow.table(columns), path, **how)
        agree(read(path), made())
        assert inspect(path).rows == N


def test_npz_packed_or_not(tmp_path):
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **made())
        agree(read(tmp_path / "a.npz"), made())


def test_the_command_gives_the_same_numbers(tmp_path, write):
    """One format of each family, in a folder that would have been a column."""
    folder, said, scores = tmp_path / "label=2", set(), []
    folder.mkdir()
    for name in ("a.npz", "a.csv", "a.jsonl", "a.parquet", "a.arrow", "a.safetensors"):
        path = write(folder / name, name, made())
        done = calibrant("report", path, "--names", "m", "--group", "", "--json")
        said.add(done.stdout)
        sketched = calibrant("sketch", path, "-o", f"{path}.s.npz", "--group", "")
        assert (done.returncode, sketched.returncode) == (0, 0), done.stderr
        sketch = cal.Sketch.load(f"{path}.s.npz")
        scores.append(float(cal.evaluate(sketch).metrics["brier"]))
    assert len(said) == 1
    # A sketch adds batches as the file holds them, that of Arrow in pieces of 7 rows: sums
    # of pieces are those of all rows to round-off.
    np.testing.assert_allclose(scores, scores[0], rtol=1e-12)


# -- whole numbers of 64 bits ----------------------------------------------------------

FIRST = {"past 2^53": 2**53, "negative": -(2**53) - 90, "most": 2**63 - 90}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_ids_are_compared_digit_by_digit(name, first, tmp_path, write):
    label = np.arange(first, first + 80, 2)
    arrays = {"confidence": np.full(N, 0.5), "pred": label + 1, "label": label}
    arrays["pred"][:10] -= 1
    assert read(write(tmp_path / name, name, arrays)).y.sum() == 10
    assert sum(part.y.sum() for part in batches(tmp_path / name, rows=9)) == 10


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "npz", "parquet"])
def test_ids_without_sign_or_of_more_digits(suffix, tmp_path, part):
    writer = {"csv": write_csv, "jsonl": write_jsonl, "npz": write_npz}
    label = np.array([0, 2**64 - 2, 2**64 - 4], np.uint64)
    arrays = {"confidence": np.full(3, 0.5), "pred": label + 1, "label": label}
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":  # DECIMAL(38, 0), as warehouses write large numbers
        arrow, parquet = part("pyarrow"), part("pyarrow.parquet")
        wide = arrow.decimal128(38, 0)
        pred = arrow.array([1, 2**64 + 1, 2**100], wide)
        arrays |= {"pred": pred, "label": arrow.array([0, 2**64, 2**100 + 1], wide)}
        parquet.write_table(arrow.table(arrays), path)
    else:
        writer[suffix](path, arrays)
    assert read(path).y.tolist() == [False] * 3


@pytest.mark.parametrize(
    ("pred", "label", "same"),
    [
        (f"{2**53}.0", f"{2**53 + 1}.0", False),
        (f" {2**53 + 1}", f"{2**53 + 1}", True),
        ("9e15", "9000000000000000", True),
        (f"{2**70}", f"{2**70 + 1}", False),
        (f"{2**70}", f"{2**70}", True),
        ("007", "7.0", True),
    ],
)
@pytest.mark.parametrize("wide", [0, 256])
def test_ids_as_they_are_written_in_text(
    tmp_path, monkeypatch, pred, label, same, wide
):
    monkeypatch.setattr(_duckdb, "WIDE", wide)
    path = tmp_path / "a.csv"
    path.write_text(f"confidence,pred,label\n0.5,1,1\n0.5,{pred},{label}\n")
    assert read(path).y.tolist() == [True, same]


def test_ids_that_a_float_cannot_tell_apart_are_refused(tmp_path):
    given_ = {"confidence": np.full(2, 0.5), "label": np.array([1, 2**24 + 1])}
    path = tmp_path / "a.npz"
    for dtype, most in ((np.float16, 2**11), (np.float32, 2**24), (np.float64, 2**53)):
        write_npz(path, given_ | {"pred": np.array([1, most], dtype)})
        with pytest.raises(
            FileError, match=rf"row 1 of 'pred'.* {dtype.__name__} cannot"
        ):
            read(path)
        write_npz(path, given_ | {"pred": np.array([1, most - 1], dtype)})
        assert read(path).y.tolist() == [True, False]


def test_text_that_ends_in_nul_is_another_text(tmp_path):
    rows = [{"confidence": 0.5, "pred": "a\0", "label": "a"}] * 2
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read(tmp_path / "a.jsonl").y.tolist() == [False, False]


@pytest.mark.parametrize("library", ["pandas", "polars", "lazy", "arrow", "duckdb"])
def test_classes_of_frames_are_compared_digit_by_digit(library, part):
    rng, ids = np.random.default_rng(0), [2**53, 2**53 + 1, 2**53 + 2]
    probs = rng.dirichlet(np.ones(3), N)
    y = np.array(ids)[(probs.argmax(axis=1) + 1) % 3]  # never right
    columns = {"y": y, **{f"p_{j}": probs[:, j] for j in range(3)}}
    if library == "arrow":
        frame = part("pyarrow").table(columns)
    elif library in ("polars", "lazy"):
        frame = part("polars").DataFrame(columns)
        frame = frame.lazy() if library == "lazy" else frame
    else:
        frame = part("pandas").DataFrame(columns)
    if library == "duckdb":
        frame = part("duckdb").from_df(frame)
    sketch = cal.sketch_frame(frame, y="y", probs="p_*", classes=ids)
    assert cal.evaluate(sketch).metrics["accuracy"] == 0


# -- groups ----------------------------------------------------------------------------

H, HIT = np.linspace(0.05, 0.95, N), np.arange(N) % 2
ALIKE = {
    "None": (None, "None"),
    "NaN": (float("nan"), "nan"),
    "NUL": ("a\0", "a"),
    "bytes": (b"a\0", b"a"),
}


@pytest.mark.parametrize("names", ALIKE.values(), ids=ALIKE)
@pytest.mark.parametrize("kind", ["list", "objects", "pandas", "polars", "lazy"])
def test_groups_that_print_alike_never_merge(names, kind, part):
    """A missing group is refused, and so is one that NumPy would cut short."""
    group = list(names) * (N // 2)
    if kind in ("pandas", "polars", "lazy"):
        if kind != "pandas" and isinstance(names[0], float):
            pytest.skip("a column of Polars is of one type")
        columns = {"h": H, "hit": HIT, "group": group}
        library = part("pandas" if kind == "pandas" else "polars")
        frame = library.DataFrame(columns)
        roles = {"confidence": "h", "correct": "hit", "group": "group"}
        with pytest.raises(ValueError, match="group must"):
            cal.sketch_frame(frame.lazy() if kind == "lazy" else frame, **roles)
        return
    if kind == "objects":
        group = np.array(group, dtype=object)
    for call in (
        lambda: cal.evaluate_pairs(HIT, H, group=group),
        lambda: cal.Sketch().update_pairs(HIT, H, group=group),
        lambda: cal.evaluate_pairs(HIT, H, cluster=group),
    ):
        with pytest.raises(
            ValueError, match=r"must (name a|not end in).* row 0 (has|is)"
        ):
            call()


@pytest.mark.parametrize("name", ["None", "nan", "NaT", "<NA>", "", "a\0b", "a "])
def test_text_is_always_a_name(name):
    ev = cal.evaluate_pairs(HIT, H, group=[name, "a"] * (N // 2))
    assert {x: one.n for x, one in ev.per_group.items()} == {name: N // 2, "a": N // 2}


@pytest.mark.parametrize("cell", ["", "nan", "None"])
def test_a_missing_group_of_a_file_is_named_by_its_row(tmp_path, cell):
    lines = [
        f"{h},{a},{cell if i == 3 else 'x'}"
        for i, (h, a) in enumerate(zip(H, HIT, strict=True))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["confidence,correct,group", *lines]))
    done = calibrant("report", tmp_path / "a.csv", "--json")
    if cell:
        assert set(json.loads(done.stdout)["evaluations"][0]["per_group"]) == {
            cell,
            "x",
        }
    else:
        assert "group must name a group for each row; row 3 has none" in done.stderr


# -- text tables of many columns -------------------------------------------------------

CELLS = ["", '""', "1", " 0.5", "1e3", "x", "true", "NaN", "inf", "1_0", '"a,b"', "-0"]


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(st.sampled_from(CELLS), min_size=3, max_size=3), min_size=1, max_size=5
    )
)
def test_both_readers_of_text_tables_agree(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "both.csv"
    path.write_text("\n".join(["label,prob,group", *map(",".join, rows)]))
    said = []
    with pytest.MonkeyPatch.context() as patch:
        for wide in (0, 256):
            patch.setattr(_duckdb, "WIDE", wide)
            try:
                found = read(path, Roles(classes=["x", "true", "1"]))
                values = found.scores, found.y, found.group
                said.append([np.asarray(x).astype(str).tolist() for x in values])
            except FileError as error:
                said.append(str(error))
    assert said[0] == said[1]


@pytest.mark.parametrize("k", [4000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_table_of_very_many_columns(tmp_path, k):
    """The database has not the memory for them."""
    names, cells = ",".join(f"p_{j}" for j in range(k)), ",".join(["1e-5"] * k)
    path = tmp_path / "a.csv"
    path.write_text(f"label,{names}\n7,{cells}\n\n{k - 1},{cells}\n")
    found = read(path)
    assert found.scores.shape == (2, k)
    assert found.y.tolist() == [7, k - 1]


def test_a_row_of_too_few_columns_is_named_by_its_line(tmp_path):
    names, cells = ",".join(f"p_{j}" for j in range(300)), ",".join(["0.5"] * 300)
    (tmp_path / "a.csv").write_text(f"label,{names}\n7,{cells}\n9,0.5\n")
    with pytest.raises(
        FileError, match="line 3 has 2 columns, and the first line has 301"
    ):
        read(tmp_path / "a.csv")
