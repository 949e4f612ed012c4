"""Predictions in files: every format gives the same numbers, in memory or streamed."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from file_writers import NEEDS, WRITERS, write_csv, write_jsonl, write_npz

import calibrant as cal
from calibrant._inputs.divergences import BRIER, LOG
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.cells import Cells
from calibrant.files import FileError, Roles, batches, inspect, read
from calibrant.files._inspect import repeated_ids

SRC = Path(cal.__file__).resolve().parent.parent


def made(n=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return {"logits": rng.normal(size=(n, k)), "labels": rng.integers(0, k, n)}


def pairs(n=40):
    rng = np.random.default_rng(1)
    h = rng.random(n)
    return {"confidence": h, "correct": rng.random(n) < h}


@pytest.fixture
def write(tmp_path, part):
    """Write arrays in the format a file name says; give the path."""

    def written(name, arrays, folder=tmp_path):
        if name in NEEDS:
            part(NEEDS[name])
        WRITERS[name](folder / name, arrays)
        return folder / name

    return written


@pytest.fixture
def csv(tmp_path):
    """Write text (or bytes) to a CSV file; give the path."""

    def written(text, name="a.csv"):
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return written


# -- the same numbers from every format ---------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_a_matrix_comes_back_as_it_was(name, write):
    arrays = made()
    found = read(write(name, arrays))
    assert found.kind == "logits"
    np.testing.assert_array_equal(found.scores, arrays["logits"])
    np.testing.assert_array_equal(found.y, arrays["labels"])
    assert found.y.dtype.kind in "iu"


@pytest.mark.parametrize("name", WRITERS)
def test_pairs_come_back_as_they_were(name, write):
    arrays = pairs()
    found = read(write(name, arrays))
    assert found.pairs
    np.testing.assert_array_equal(found.scores, arrays["confidence"])
    np.testing.assert_array_equal(found.y, arrays["correct"])
    assert str(cal.evaluate_pairs(**found.arguments)) == str(
        cal.evaluate_pairs(arrays["correct"], arrays["confidence"])
    )


@pytest.mark.parametrize("name", WRITERS)
def test_batches_are_the_rows_in_order(name, write):
    arrays = {**made(), "weight": np.arange(40) / 20 + 0.5}
    path = write(name, arrays)
    parts = list(batches(path, rows=9))
    assert max(map(len, parts)) <= 9
    assert [part.start for part in parts] == np.cumsum([0, *map(len, parts)])[
        :-1
    ].tolist()
    for field, given in (
        ("scores", "logits"),
        ("y", "labels"),
        ("sample_weight", "weight"),
    ):
        joined = np.concatenate([getattr(part, field) for part in parts])
        np.testing.assert_array_equal(joined, arrays[given])


@pytest.mark.parametrize("name", WRITERS)
def test_counts_and_clusters_come_back_as_they_were(name, write):
    arrays = {**made(), "frequency": np.arange(40) % 3, "Cluster": np.arange(40) // 4}
    path = write(name, arrays)
    found = read(path)
    np.testing.assert_array_equal(found.frequency, arrays["frequency"])
    assert list(map(str, found.cluster)) == [str(i // 4) for i in range(40)]
    assert "frequency 'frequency', cluster 'Cluster'" in inspect(path).reading
    ev = cal.evaluate(
        arrays["labels"],
        logits=arrays["logits"],
        frequency=arrays["frequency"],
        cluster=arrays["Cluster"],
    )
    assert str(cal.evaluate(**found.arguments)) == str(ev)
    parts = list(batches(path, rows=9))
    for field in ("frequency", "cluster"):
        joined = np.concatenate([getattr(part, field) for part in parts])
        np.testing.assert_array_equal(joined, getattr(found, field))


def test_an_empty_name_reads_no_column(csv):
    path = csv("label,prob,cluster,weight\n1,0.5,a,2\n0,0.2,b,3\n")
    found = read(path, Roles(cluster="", sample_weight=""))
    assert (found.cluster, found.sample_weight) == (None, None)
    assert read(path).cluster.tolist() == ["a", "b"]
    with pytest.raises(FileError, match="has no '' for label"):
        read(path, Roles(y=""))


def test_rows_that_count_for_nothing_may_lack_scores(csv):
    path = csv("label,prob,frequency\n1,0.5,2\n0,,0\n")
    assert cal.evaluate(**read(path).arguments).n == 2
    with pytest.raises(FileError, match="row 1 of 'frequency' is NaN"):
        read(csv("label,prob,frequency\n1,0.5,2\n0,0.5,\n"))


@pytest.mark.parametrize("name", ["a.npz", "a.safetensors", "a.parquet", "a.arrow"])
def test_float32_stays_float32(name, write):
    arrays = {"prob": np.float32([0.25, 0.1, 0.7]), "outcome": np.array([0, 1, 1])}
    found = read(write(name, arrays))
    assert found.scores.dtype == np.float32
    np.testing.assert_array_equal(found.scores, arrays["prob"])


def test_more_columns_than_are_fetched_at_once(write):
    arrays = made(n=50, k=150)
    found = read(write("a.parquet", arrays))
    np.testing.assert_array_equal(found.scores, arrays["logits"])


def test_arrays_in_single_files_are_named_by_them(tmp_path):
    arrays = made()
    for name, array in arrays.items():
        np.save(tmp_path / f"net-v2_{name}.npy", array)
    found = read([tmp_path / f"net-v2_{name}.npy" for name in arrays])
    np.testing.assert_array_equal(found.scores, arrays["logits"])
    np.testing.assert_array_equal(read(tmp_path).y, arrays["labels"])
    with pytest.raises(FileError, match="none of them known as probs"):
        read(tmp_path / "net-v2_labels.npy")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", ">f8", "<i4"])
def test_npz_of_any_layout(tmp_path, dtype, order):
    logits = np.asarray(np.arange(21).reshape(7, 3), dtype=dtype, order=order)
    np.savez(tmp_path / "a.npz", logits=logits, labels=np.zeros(7, bool))
    np.testing.assert_array_equal(read(tmp_path / "a.npz").scores, logits)
    streamed = [part.scores for part in batches(tmp_path / "a.npz", rows=2)]
    np.testing.assert_array_equal(np.concatenate(streamed), logits)


def test_bfloat16_is_the_upper_half_of_float32(tmp_path):
    values = np.float32([1.0, -2.5, 0.15625])  # all exact in bfloat16
    bits = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    labels = np.array([0, 1, 1], np.uint8).tobytes()
    header = (
        b'{"logits":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},'
        b'"label":{"dtype":"U8","shape":[3],"data_offsets":[6,9]}}'
    )
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bits + labels)
    np.testing.assert_array_equal(read(path).scores, values)
    assert "bfloat16" in str(inspect(path))


def test_safetensors_are_read_in_slices_of_any_type(tmp_path, part):
    arrays = {
        "logits": np.float16([[1, 2], [3, 4], [5, 6]]),
        "labels": np.uint8([0, 1, 1]),
        "weight": np.array([True, False, True]),
    }
    part("safetensors.numpy").save_file(arrays, tmp_path / "a.safetensors")
    found = list(batches(tmp_path / "a.safetensors", rows=2))
    assert [len(batch) for batch in found] == [2, 1]
    assert found[0].scores.dtype == np.float16
    assert found[1].scores.tolist() == [[5, 6]]
    assert found[0].sample_weight.tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "library", "words"),
    [
        (
            "a.safetensors",
            "safetensors",
            r"pip install 'calibrant\[tensors\]'; or save it",
        ),
        (
            "a.arrow",
            "pyarrow",
            r"pip install 'calibrant\[arrow\]'; or save it as \.parquet",
        ),
        (
            "a.pt",
            "torch",
            r"pip install 'calibrant\[torch\]'; or save the tensors as \.safetens",
        ),
    ],
)
def test_a_missing_library_is_named_with_the_way_out(
    name, library, words, write, monkeypatch
):
    path = write(name, made())
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(FileError, match=rf"needs {library} to be read \({words}"):
        read(path)


def test_safetensors_agree_with_their_own_library(tmp_path, part):
    arrays = made()
    part("safetensors.numpy").save_file(arrays, tmp_path / "a.safetensors")
    np.testing.assert_array_equal(
        read(tmp_path / "a.safetensors").scores, arrays["logits"]
    )


# -- real files ---------------------------------------------------------------------


def test_real_files_read_without_options(data_path):
    logits = read(data_path("cifar10_akamaster_resnet32"))
    assert cal.accuracy(logits.y, logits=logits.scores) == pytest.approx(0.9263)
    binary = read(data_path("adult_random_forest"))
    assert cal.brier(**binary.arguments) == pytest.approx(0.11229, abs=5e-6)
    top = read(data_path("top1_nncal_resnet110_c10"))  # confidence, pred and labels
    ece = cal.ece(top.y, confidence=top.scores)
    assert ece == pytest.approx(0.047503524372, abs=1e-9)


def test_real_language_model_confidences_need_one_option(data_path):
    path = data_path("llm_stated_confidence")
    with pytest.raises(FileError, match=r"'stated_confidence'.*--confidence NAME"):
        read(path)
    found = read(path, Roles(confidence="stated_confidence", group="llm"))
    assert len(found) == 72185
    assert len(set(found.group.tolist())) == 11
    assert found.y.mean() == pytest.approx(0.7291, abs=5e-5)


def test_real_file_is_the_same_in_every_format(data_path, write):
    arrays = dict(np.load(data_path("cifar10_akamaster_resnet32"), allow_pickle=False))
    arrays = {"logits": arrays["logits"][:500], "labels": arrays["labels"][:500]}
    expected = cal.evaluate(arrays["labels"], logits=arrays["logits"].astype(float))
    for name in ("a.csv", "a.jsonl", "a.parquet", "lists.parquet", "a.feather"):
        found = read(write(name, arrays))
        got = cal.evaluate(found.y, logits=found.scores.astype(float))
        assert str(got) == str(expected), name


# -- which column is what -----------------------------------------------------------


def test_numbered_columns_go_by_number_not_by_place(csv):
    # Sorted as text, p_10 comes before p_2; label 2 must still mean p_2.
    names = sorted(f"p_{j}" for j in range(11))
    values = [f"0.{int(name[2:]):02d}" for name in names]
    path = csv(f"label,{','.join(names)}\n2,{','.join(values)}\n")
    found = read(path)
    np.testing.assert_array_equal(found.scores[0], np.arange(11) / 100)
    assert found.y.tolist() == [2]
    assert found.classes is None


def test_columns_numbered_from_one_name_their_classes(csv):
    found = read(csv("label,p_1,p_2\n2,0.25,0.75\n"))
    assert found.classes == (1, 2)
    assert cal.brier(**found.arguments, target="top-label") == pytest.approx(0.125)


def test_the_star_of_a_pattern_names_the_class(csv):
    path = csv("truth,is cat,is dog\ndog,0.25,0.75\ncat,1,0\n")
    found = read(path, Roles(y="truth", probs="is *"))
    assert found.classes == ("cat", "dog")
    assert cal.brier(**found.arguments, target="top-label") == pytest.approx(0.0625)


def test_numbers_among_word_columns_are_column_numbers(csv):
    found = read(csv("label,p_cat,p_dog\n1,0.25,0.75\n"), Roles(probs="p_*"))
    assert found.y.tolist() == [1]
    assert found.classes is None


@pytest.mark.parametrize("classes", [("b", "a"), ["b", "a"]])
def test_classes_can_be_said(csv, classes):
    roles = Roles(probs="x,y", y="t", classes=classes)
    found = read(csv("t,x,y\na,0.25,0.75\nb,1,0\n"), roles)
    assert cal.accuracy(**found.arguments, target="top-label") == 1


def test_class_names_beside_the_arrays_are_read(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        probs=[[0.25, 0.75], [1, 0]],
        labels=["b", "a"],
        classes=["a", "b"],
    )
    found = read(tmp_path / "a.npz")
    assert cal.accuracy(**found.arguments, target="top-label") == 1


def test_class_numbers_said_as_words_fit_labels_that_are_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", probs=[[0.25, 0.75], [1, 0]], labels=[7, 5])
    found = read(tmp_path / "a.npz", Roles(classes=["5", "7"]))
    assert cal.accuracy(**found.arguments, target="top-label") == 1


def test_soft_labels_and_groups(tmp_path):
    soft = np.array([[0.5, 0.25, 0.25], [0, 0, 1]])
    np.savez(tmp_path / "a.npz", probs=soft, labels=soft, group=["x", "y"])
    found = read(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.y, soft)
    assert found.group.tolist() == ["x", "y"]


def test_correct_may_be_said_in_words(csv):
    found = read(csv("confidence,correct,group\n0.9,True,1\n0.5,false,b\n1,TRUE,c\n"))
    assert found.y.tolist() == [1, 0, 1]
    assert found.group.tolist() == ["1", "b", "c"]


@pytest.mark.parametrize(
    "given",
    [{"frequency": "weight"}, {"cluster": "weight"}, {"group": "weight"}],
)
def test_a_column_named_for_one_role_is_not_taken_by_its_name_for_another(csv, given):
    path = csv("prob,outcome,weight\n0.9,1,3\n0.2,0,2\n")
    assert read(path).sample_weight.tolist() == [3, 2]
    found = read(path, Roles(**given))
    (role,) = given
    assert found.sample_weight is None
    assert getattr(found, role).tolist() in ([3, 2], ["3", "2"])


def test_columns_named_for_another_role_are_no_scores_of_classes(csv):
    path = csv("y,p_0,p_1,p_2\n0,0.9,0.1,5\n1,0.2,0.8,6\n")
    assert read(path, Roles(cluster="p_2")).scores.shape == (2, 2)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (Roles(sample_weight="n", frequency="n"), "'n' as weight and as frequency;"),
        (
            Roles(y="n", frequency="n"),
            "'n' as label and as frequency; leave out --label",
        ),
        (Roles(probs="p_*", y="p_1"), "'p_1' as probs and as label;"),
        (Roles(probs="p_0,n", sample_weight="n"), "'n' as probs and as weight;"),
    ],
)
def test_a_column_named_for_two_things_is_refused(csv, roles, message):
    with pytest.raises(FileError, match=message):
        read(csv("y,n,p_0,p_1\n0,2,0.9,0.1\n1,3,0.2,0.8\n"), roles)


def test_a_group_may_be_the_label_if_both_are_said(csv):
    path = csv("label,p_a,p_b\na,0.9,0.1\nb,0.2,0.8\n")
    assert read(path, Roles(group="label", y="label")).group.tolist() == ["a", "b"]
    with pytest.raises(FileError, match="'label' is the group; --label label takes it"):
        read(path, Roles(group="label"))
    with pytest.raises(FileError, match="'label' is the group; --label label takes it"):
        read(path, Roles(group="label", probs="p_*"))


def test_a_name_that_is_not_there_is_told_before_what_follows_from_it(csv):
    path = csv("label,p_plane,p_car\nplane,0.9,0.1\ncar,0.2,0.8\n")
    with pytest.raises(FileError, match="has no 'truth' for label; it has 'label', "):
        read(path, Roles(y="truth"))


@pytest.fixture(params=[0, 300])
def wide(request, csv):
    """A table of the given text, with so many columns more."""

    def written(text):
        header, *rows = text.split("\n")[:-1]
        more = "".join(f",x{i}" for i in range(request.param))
        rows = [row + ",1" * request.param for row in rows]
        return csv("\n".join([header + more, *rows]) + "\n")

    return written


@pytest.mark.parametrize(
    ("cell", "late"), [(x, 1) for x in ("", " ", "NA", "nan", "None")] + [("", 12_000)]
)
def test_the_first_value_that_is_there_says_what_a_column_holds(wide, cell, late):
    empty = f"0.5,{cell},{cell}\n" * late
    path = wide(f"prob,outcome,site\n{empty}0.6,yes,b\n{cell},no,a\n0.8,no,a\n")
    found = read(path, Roles(drop_missing=True))
    assert (found.y.tolist(), found.dropped) == ([True, False], late + 1)
    streamed = batches(path, Roles(drop_missing=True), max(2, late // 2))
    assert [y for x in streamed for y in x.y.tolist()] == [True, False]
    kinds = {item.name: item.dtype for item in inspect(path).items}
    assert (kinds["prob"], kinds["outcome"], kinds["site"]) == (
        "number",
        "text",
        "text",
    )


@pytest.mark.parametrize("rows", [1, None])
def test_a_first_label_that_is_missing_may_be_the_name_of_a_class(csv, rows):
    path = csv("p_a,p_b,label\n0.5,0.5,\n0.6,0.4,a\n0.1,0.9,b\n")
    for roles in (Roles(), Roles(probs="p_*", classes=["a", "b"])):
        found = list(batches(path, dataclasses.replace(roles, drop_missing=True), rows))
        assert [y for batch in found for y in batch.y] == ["a", "b"]


def test_a_batch_without_any_label_asks_for_no_names_of_classes(csv):
    path = csv("p_a,p_b,label\n0.5,0.5,\n0.6,0.4,a\n0.1,0.9,b\n")
    roles = Roles(probs=["p_a", "p_b"], drop_missing=True)
    with pytest.raises(FileError, match=r"labels are text \('a'\); name the classes"):
        list(batches(path, roles, 1))


def test_inspect_counts_what_text_lacks(csv):
    path = csv("prob,outcome,site\n0.5,1,\n0.6,0,b\n0.7,1,a\n")
    found = {item.name: (item.dtype, item.missing) for item in inspect(path).items}
    assert found["site"] == ("text", 1)


def test_na_is_no_cluster_and_may_be_a_group_or_a_class(csv):
    path = csv("p_NA,p_b,label,site\n0.5,0.5,NA,a\n0.6,0.4,b,NA\n0.1,0.9,b,b\n")
    with pytest.raises(
        FileError, match=r"row 1 of 'site' is 'NA', which stands for no"
    ):
        read(path, Roles(cluster="site"))
    found = read(path, Roles(group="site", drop_missing=True))
    assert found.group.tolist() == ["a", "NA", "b"]
    assert found.y.tolist() == ["NA", "b", "b"]


def test_a_cluster_that_is_left_out_may_be_missing(csv):
    path = csv("prob,outcome,site\n0.5,NA,NA\n0.6,1,b\n0.7,0,a\n")
    roles = Roles(cluster="site", drop_missing=True)
    assert read(path, roles).cluster.tolist() == ["b", "a"]
    path = csv("prob,outcome,site\nNA,1,a\n0.6,1,NA\n0.7,0,a\n")
    with pytest.raises(FileError, match="row 1 of 'site'"):
        read(path, roles)


@pytest.mark.parametrize("role", ["prob,outcome", "confidence,correct"])
def test_na_beside_yes_and_no_is_missing(csv, role):
    path = csv(f"{role}\n0.5,yes\n0.6,NA\n0.7,no\n")
    assert read(path, Roles(drop_missing=True)).y.tolist() == [True, False]
    with pytest.raises(FileError, match=r"--drop-missing"):
        read(path)


def test_na_is_no_word_that_a_scale_must_have(csv):
    path = csv("confidence,correct\nlikely,1\nNA,1\nunsure,0\n")
    roles = Roles(scale={"likely": 0.8, "unsure": 0.5}, drop_missing=True)
    assert read(path, roles).scores.tolist() == [0.8, 0.5]


@pytest.mark.parametrize("header", ["label,prob", "label,p_plane,p_car"])
def test_a_file_without_rows_is_called_by_its_name(csv, header):
    path = csv(f"{header}\n")
    for given in (path, [path]):
        with pytest.raises(FileError) as raised:
            read(given)
        assert str(raised.value) == f"{path}: has no rows."


@pytest.mark.parametrize("drop", [False, True])
def test_a_decimal_comma_in_per_cent_is_asked_for_and_never_dropped(csv, drop):
    path = csv("prob;outcome\n;1\n39,8%;1\n60%;0\n")
    roles = Roles(sep=";", percent=True, drop_missing=drop)
    with pytest.raises(
        FileError, match=r"row 1 of 'prob' is '39,8%'; pass --decimal ,"
    ):
        read(path, roles)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a,b", r"has 'a', 'b', none of them known as probs, logits or confidence"),
        ("y,label,prob", r"'y', 'label', each of which could be the label.*--label"),
        (
            "y,logit,prob",
            r"as probs and as logits; say which with --probs NAME or --lo",
        ),
        ("prob", r"none of them known as the label; say which with --label NAME"),
        ("confidence,y", r"none of them known as the correct; .* --correct NAME"),
        (
            "label,p_a,p_b",
            r"'p_\*' is known only where labels.*; --probs 'p_\*' takes it",
        ),
        ("y,p_0,p_1,prob_0,prob_1", r"probs of more than one name; .*--probs"),
        ("y,y,prob", r"two columns named 'y'"),
        ("1,2,3", r"must begin with a line of column names, not '1', '2', '3'"),
        ("y;prob", r"columns are separated by ';', not ','; pass --sep ';'"),
    ],
)
def test_what_is_not_clear_is_asked(csv, header, message):
    line = ",".join("1" for _ in header.split(","))
    with pytest.raises(FileError, match=message):
        read(csv(f"{header}\n{line}\n"))


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (Roles(y="z"), r"has no 'z' for label; it has 'y', 'prob'"),
        (Roles(probs="q_*"), r"has no 'q_\*' for probs"),
        (Roles(probs=["prob", "prob"]), r"must name each column once"),
        (Roles(probs="prob", logits="prob"), r"as probs and as logits"),
        (Roles(correct="y"), r"known as the confidence; say which with --confidence"),
        (Roles(confidence="prob"), r"the correct; .* --pred"),
        (Roles(confidence="prob", correct="y", classes=["a"]), r"classes do not apply"),
        (
            Roles(sample_weight="text"),
            r"'text' must hold numbers, to be weight; it holds text \('x'\)",
        ),
    ],
)
def test_a_wrong_option_is_named(csv, roles, message):
    with pytest.raises(FileError, match=message):
        read(csv("y,prob,text\n1,0.5,x\n"), roles)


def test_text_labels_need_their_classes(csv):
    with pytest.raises(FileError, match=r"labels are text \('cat'\).*--classes"):
        read(csv("label,prob\ncat,0.5\n"))


# -- text ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"label,p_0,p_1\n0,0.5,0.5\n1,0.25,0.75\n",
        b"\xef\xbb\xbflabel,p_0,p_1\n0,0.5,0.5\n1,0.25,0.75\n",
        b"label,p_0,p_1\r\n0,0.5,0.5\r\n1,0.25,0.75\r\n",
        b'"label","p_0","p_1"\n"0","0.5"," 0.5"\n1,0.25,0.75',
        b'note,label,p_0,p_1\n"a,\n""b""",0,0.5,0.5\nc,1,2.5e-1,0.75\n',
        b"label,p_0,p_1\n\n0,0.5,0.5\n\n1.0,0.25,0.75\n\n",
    ],
    ids=["plain", "BOM", "CRLF", "quotes", "quoted comma and line", "blank lines"],
)
def test_one_table_in_many_spellings(csv, text):
    found = read(csv(text))
    np.testing.assert_array_equal(found.scores, [[0.5, 0.5], [0.25, 0.75]])
    assert found.y.tolist() == [0, 1]


@pytest.mark.parametrize("cell", ["NaN", "nan", "", '""', "x", "1 2", "0x1"])
def test_a_cell_that_is_no_number_is_named_by_row(csv, cell):
    with pytest.raises(FileError, match=r"row 1 of 'p_1' is NaN, missing or not a num"):
        read(csv(f"label,p_0,p_1\n0,0.5,0.5\n1,0.25,{cell}\n"))


def test_a_row_of_weight_zero_may_hold_anything(csv):
    found = read(csv("label,prob,weight\n0,0.5,1\n1,NaN,0\n"))
    assert cal.brier(**found.arguments) == 0.25


def test_rows_are_numbered_through_batches(csv):
    path = csv("label,prob\n" + "0,0.5\n" * 9000 + "0,\n")
    with pytest.raises(FileError, match=r"row 9000 of 'prob'"):
        list(batches(path, rows=100))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"confidence": 0.5}', r"'correct' is missing in line 2; --drop-miss"),
        (
            '{"confidence": NaN, "correct": 1}',
            r"line 2 is not strict JSON: NaN is not JSON; write null where there is no",
        ),
        ('{"confidence": 1, "confidence": 1}', r"line 2 .* a name occurs twice"),
        ('{"confidence": "1", "correct": 1}', r"'confidence' is '1' in line 2"),
        ('{"confidence": 1, "correct": 1,}', r"line 2 is not strict JSON"),
        ("[1, 1]", r"line 2 must be an object"),
        ('{"confidence": null, "correct": 1}', r"row 1 of 'confidence' is NaN, miss"),
        ("[" * 100_000, r"line 2 is not strict JSON"),
    ],
)
def test_json_lines_are_strict(tmp_path, text, message):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"confidence": 0.5, "correct": true}}\n{text}\n')
    with pytest.raises(FileError, match=message):
        read(path)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("roles", "cells"),
    [
        ({}, [0.5, 0.75]),
        ({"percent": True}, [60, 75]),
        ({"percent": True}, ["60%", 75]),
        ({"scale": {"likely": 0.8}}, ["likely", 0.75]),
    ],
)
def test_empty_text_is_no_answer_in_json_lines(tmp_path, place, roles, cells):
    path = tmp_path / "a.jsonl"
    cells = [*cells[:place], " ", *cells[place:]]
    lines = [{"confidence": x, "correct": i % 2 == 0} for i, x in enumerate(cells)]
    path.write_text("\n".join(map(json.dumps, lines)))
    roles = Roles(**roles, drop_missing=True)
    found, seen = read(path, roles), inspect(path, roles)
    assert (len(found), found.dropped) == (2, 1)
    assert seen.reading == "confidence 'confidence', correct 'correct'"
    assert (seen.rows, seen.items[0].missing, seen.incomplete) == (3, 1, True)


def test_json_lists_are_of_one_length(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"y": 0, "probs": [0.5, 0.5]}\n{"y": 0, "probs": [1]}\n')
    with pytest.raises(FileError, match=r"'probs' is \[1\] in line 2.*list of 2 numb"):
        read(path)


@pytest.mark.parametrize("name", ["lists.parquet", "a.arrow"])
def test_lists_of_different_lengths_are_named_by_row(tmp_path, part, name):
    arrow, feather = part("pyarrow"), part("pyarrow.feather")
    rows = [[0.5, 0.5]] * 5 + [[1.0]]
    table = arrow.table({"probs": rows, "label": [0] * 6})
    if name == "a.arrow":
        feather.write_feather(table, str(tmp_path / name))
    else:
        part("pyarrow.parquet").write_table(table, tmp_path / name)
    with pytest.raises(FileError, match=r"row 5 has 1 numbers, row 0 has 2"):
        read(tmp_path / name)


# -- shards -------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["npz", "csv", "jsonl"])
def test_shards_are_joined_in_order_of_their_names(tmp_path, suffix):
    writer = {"npz": write_npz, "csv": write_csv, "jsonl": write_jsonl}[suffix]
    (tmp_path / "_SUCCESS").touch()
    parts = [made(n=5, seed=seed) for seed in range(3)]
    for i, arrays in enumerate(parts):
        writer(tmp_path / f"part-{i}.{suffix}", arrays)
    expected = np.concatenate([arrays["logits"] for arrays in parts])
    every = [tmp_path / f"part-{i}.{suffix}" for i in range(3)]
    for paths in (tmp_path, str(tmp_path / f"part-*.{suffix}"), every):
        np.testing.assert_array_equal(read(paths).scores, expected)
    starts = [(part.path.stem, part.start) for part in batches(tmp_path, rows=3)]
    assert starts[:3] == [("part-0", 0), ("part-0", 3), ("part-1", 0)]


def test_shards_must_be_alike(tmp_path):
    write_npz(tmp_path / "a.npz", made(k=3))
    write_npz(tmp_path / "b.npz", made(k=4))
    with pytest.raises(
        FileError, match=r"b\.npz: differs from 'a\.npz' in its number o"
    ):
        read(tmp_path)
    (tmp_path / "b.npz").unlink()
    write_csv(tmp_path / "b.csv", made())
    with pytest.raises(FileError, match="have different formats"):
        read(tmp_path)


def test_files_that_are_not_there(tmp_path):
    for path in (
        tmp_path / "a.npz",
        str(tmp_path / "*.npz"),
        tmp_path,
        "x" * 5000,
        "\0",
    ):
        with pytest.raises(FileError):
            read(path)
    with pytest.raises(FileError):
        read([])


@pytest.mark.parametrize(
    "name", ["it's.csv", "a[1].csv", "s*.csv", 'q".csv', "a;b.csv"]
)
def test_any_file_name_is_only_a_name(csv, name):
    csv("label,prob\n1,0.25\n", name="s1.csv")
    assert read(csv("label,prob\n0,0.5\n", name=name)).scores.tolist() == [0.5]


# -- streaming ----------------------------------------------------------------------


def sketch_of(found):
    predictions = read_predictions(**found.arguments)
    return Cells({"brier": BRIER, "log": LOG}).update(
        reduce_to_columns(predictions, {})
    )


@pytest.mark.parametrize("name", ["a.npz", "a.csv", "a.parquet", "a.jsonl"])
def test_sketches_of_batches_add_up_to_that_of_the_whole(write, name):
    path = write(name, made(n=5000))
    whole = sketch_of(read(path))
    total, *others = [sketch_of(part) for part in batches(path, rows=700)]
    for other in others:
        total = total + other
    assert total.rows == whole.rows == 5000
    np.testing.assert_allclose(total.moments, whole.moments, atol=1e-9)
    np.testing.assert_allclose(total.log_odds_sums, whole.log_odds_sums, atol=1e-9)


STREAM = """
import pathlib, re, sys
from calibrant._inputs.divergences import BRIER, LOG
from calibrant.files import batches
from calibrant._inputs.predictions import read_predictions
from calibrant._sketch.cells import Cells
from calibrant._rows.reduce import reduce_to_columns
sketch = Cells({"brier": BRIER, "log": LOG})
for part in batches(sys.argv[1]):
    sketch.update(reduce_to_columns(read_predictions(**part.arguments), {}))
status = pathlib.Path("/proc/self/status").read_text()  # rusage counts the parent too
print(sketch.rows, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
"""


@pytest.mark.slow
def test_two_million_rows_stream_in_little_memory(tmp_path, part):
    duckdb = part("duckdb")
    columns = ", ".join(f"random()::FLOAT AS logits_{j}" for j in range(10))
    for shard in range(4):
        duckdb.execute(
            f"COPY (SELECT (range % 10)::UTINYINT AS label, {columns} "
            f"FROM range(500000)) TO '{tmp_path}/{shard}.parquet' (FORMAT parquet)"
        )
    run = subprocess.run(
        [sys.executable, "-c", STREAM, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SRC)},
    )
    rows, megabytes = map(int, run.stdout.split())
    assert rows == 2_000_000
    assert megabytes < 500


# -- what is in a file --------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_inspect_says_what_is_there_and_how_it_reads(name, write):
    contents = inspect(write(name, {**made(), "weight": np.ones(40)}))
    assert contents.rows == 40
    assert contents.problem is None
    assert "label 'labels', weight 'weight'" in contents.reading
    text = str(contents)
    assert f"{contents.format}, 40 examples" in text
    assert "0 to 2" in text  # the range of the labels
    assert len(text.splitlines()) == 3 + len(contents.items)


def test_inspect_says_what_to_pass(csv):
    contents = inspect(csv("truth,score\n1,0.5\n"))
    assert contents.reading is None
    assert "say which with --probs NAME" in str(contents)
    roles = Roles(y="truth", probs="score")
    assert inspect(contents.path, roles).reading == "probs 'score', label 'truth'"


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("patient_id", [i // 3 for i in range(60)], {"patient_id": 20}),
        ("Question", [f"q{i % 12}" for i in range(60)], {"Question": 12}),
        ("gameId", [i % 30 for i in range(60)], {"gameId": 30}),
        ("row_id", list(range(60)), {}),  # a number of the row
        ("match", [i % 2 for i in range(60)], {}),  # yes or no
        ("grid", [i // 3 for i in range(60)], {}),
        ("paid", [i // 3 for i in range(60)], {}),
    ],
)
def test_columns_of_ids_that_repeat_are_noticed(csv, name, values, found):
    lines = [f"{x},{i % 2},0.{i % 9 + 1}" for i, x in enumerate(values)]
    path = csv("\n".join([f"{name},correct,confidence", *lines]))
    assert repeated_ids(path) == inspect(path).repeated == found
    assert (f"{name!r} repeats" in str(inspect(path))) is bool(found)
    assert "repeats" not in str(inspect(path, Roles(cluster=name)))


def test_inspect_looks_at_forty_columns_of_many(csv):
    names = ",".join(f"p_{j}" for j in range(300))
    contents = inspect(csv(f"label,{names}\n0,{','.join(['0.5'] * 300)}\n"))
    assert len(contents.items) == 301
    assert "and 261 more" in str(contents)
    assert contents.reading == ("probs in 300 columns, 'p_0' to 'p_299', label 'label'")


def test_inspect_of_several_looks_at_the_first(tmp_path):
    for i in range(3):
        write_npz(tmp_path / f"{i}.npz", made())
    assert "0.npz: npz, 40 examples, the first of 3 files" in str(inspect(tmp_path))


def test_reading_files_loads_no_database_until_a_table_is_read():
    code = (
        "import sys, calibrant.files; "
        "print(*{'duckdb', 'pyarrow', 'torch', 'pandas'} & set(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SRC)},
    )
    assert run.stdout.split() == []


def test_labels_that_are_lists_of_one_length_here_and_another_there_are_refused(
    tmp_path, part
):
    arrow = part("pyarrow")
    ipc = part("pyarrow.ipc")
    label = [[1.0, 0.0]] * 3 + [[0.5, 0.25, 0.25]] * 3
    table = arrow.table({"prob": [0.5] * 6, "label": label})
    with ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    with pytest.raises(FileError, match=r"a\.arrow.*lengths of lists"):
        read(tmp_path / "a.arrow")
