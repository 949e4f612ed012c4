"""What frames and roles must be: every rule has one clear error, in engines too."""

import numpy as np
import pytest
from test_engines import (
    LAZY,
    PAIR,
    arrow,
    duckdb,
    grouped_where_rows_are,  # noqa: F401
    pandas,
    polars_lazy,
)

from calibrant._sketch.frames import sketch_frame

N = 40


def plain_pairs():
    h = np.linspace(0.1, 0.9, N)
    columns = {"h": h, "a": (np.arange(N) % 2).astype(float), "w": np.ones(N)}
    return columns | {"l": h**2, "i": np.arange(N) % 2, "f": np.ones(N)}


def plain_forecasts():
    p = np.linspace(0.1, 0.8, N)
    columns = {"p_0": p, "p_1": 0.9 - p, "p_2": np.full(N, 0.1)}
    return columns | {"y": np.arange(N) % 3, "e": np.arange(N) % 2}


WRONG_PAIRS = {
    "h above 1": ("h", 1.2, "'h' must be in"),
    "h below 0": ("h", -0.1, "'h' must be in"),
    "h NaN": ("h", np.nan, "'h' must be in"),
    "h infinite": ("h", np.inf, "'h' must be in"),
    "h null": ("h", None, "'h' must be in"),
    "a share": ("a", 0.5, "'a' must be 0 or 1"),
    "a null": ("a", None, "'a' must be 0 or 1"),
    "loss negative": ("l", -1e-17, "'l' must be a brier loss"),
    "loss NaN": ("l", np.nan, "'l' must be a brier loss"),
    "loss infinite": ("l", np.inf, "'l' must be a brier loss"),
    "loss null": ("l", None, "'l' must be a brier loss"),
    "frequency negative": ("f", -1.0, "'f' must be a whole number, not negative"),
    "frequency broken": ("f", 1.5, "'f' must be a whole number, not negative"),
    "frequency null": ("f", None, "'f' must be a whole number, not negative"),
    "weight negative": ("w", -1.0, "'w' must be a finite weight"),
    "weight infinite": ("w", np.inf, "'w' must be a finite weight"),
    "weight null": ("w", None, "'w' must be a finite weight"),
}


def with_value(columns, name, value, rows=(5, 7)):
    """The columns with another value in some rows."""
    found = {x: column.tolist() for x, column in columns.items()}
    for row in rows:
        found[name][row] = value
    return found


@pytest.mark.parametrize("case", WRONG_PAIRS)
@pytest.mark.parametrize("frame", LAZY)
def test_an_engine_counts_the_rows_that_break_a_rule(frame, case, part):
    name, value, says = WRONG_PAIRS[case]
    rows = frame(part, with_value(plain_pairs(), name, value))
    with pytest.raises(ValueError, match=f"{says}.*: 2 of {N} rows break this"):
        sketch_frame(rows, **PAIR, loss="l", sample_weight="w", frequency="f")


@pytest.mark.parametrize("value", [2, -1, 4, 1000, None])
@pytest.mark.parametrize("frame", LAZY)
def test_whole_numbers_other_than_0_and_1_are_no_hits(frame, value, part):
    rows = frame(part, with_value(plain_pairs(), "i", value, rows=[3]))
    with pytest.raises(ValueError, match=f"'i' must be 0 or 1: 1 of {N} rows"):
        sketch_frame(rows, confidence="h", correct="i")


@pytest.mark.parametrize("frame", LAZY)
def test_rows_of_weight_0_may_hold_anything(frame, part):
    columns = plain_pairs()
    for name in ("h", "l"):
        columns[name][5] = np.nan
    columns["w"][5] = 0
    rows = frame(part, columns)
    assert sketch_frame(rows, **PAIR, loss="l", sample_weight="w").rows == N - 1
    columns["w"][:] = 0
    assert sketch_frame(frame(part, columns), **PAIR, sample_weight="w").rows == 0


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("p_0", -0.1, "'p_0' to 'p_2' must be probabilities"),
        ("p_1", np.nan, "'p_0' to 'p_2' must be probabilities"),
        ("p_2", None, "'p_0' to 'p_2' must be probabilities"),
        ("p_2", 0.2, "'p_0' to 'p_2' must be probabilities"),
        ("y", 3, "'y' must hold numbers or names of the 3 classes"),
        ("y", None, "'y' must hold numbers or names of the 3 classes"),
    ],
)
@pytest.mark.parametrize("frame", LAZY)
def test_probabilities_and_labels_are_checked(frame, name, value, says, part):
    rows = frame(part, with_value(plain_forecasts(), name, value))
    with pytest.raises(ValueError, match=f"{says}.*: 2 of {N} rows break this"):
        sketch_frame(rows, probs="p_*", y="y")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("p_0", 1.1, "'p_0' must be in"), ("e", 2, "'e' must be 0 or 1")],
)
@pytest.mark.parametrize("frame", LAZY)
def test_binary_rows_are_checked(frame, name, value, says, part):
    rows = frame(part, with_value(plain_forecasts(), name, value))
    with pytest.raises(ValueError, match=f"{says}.*2 of {N} rows"):
        sketch_frame(rows, probs="p_0", y="e")


def test_errors_in_memory_name_the_row_among_all(part, monkeypatch):
    monkeypatch.setattr("calibrant._sketch.frames.ROWS", 10)
    columns = plain_pairs()
    columns["h"][25] = 3.0
    with pytest.raises(
        ValueError, match=r"row 25 is 3\.0 \(1 of rows 20 to 29 are off"
    ):
        sketch_frame(pandas(part, columns), **PAIR)


def test_lists_of_different_lengths_are_refused(part):
    rows = {"p": [[0.5, 0.5], [0.1, 0.2, 0.7]], "y": [0, 1]}
    for frame in (arrow, polars_lazy, duckdb):
        with pytest.raises(ValueError, match="'p' must hold lists of one length"):
            sketch_frame(frame(part, rows), probs="p", y="y", target="top-label")


# -- roles ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({}, TypeError, "probs= and y=, or of confidence="),
        ({"probs": "p_*"}, TypeError, "got probs="),
        ({"probs": "p_*", "correct": "y"}, TypeError, "got correct=, probs="),
        ({"probs": "q_*", "y": "y"}, ValueError, "no column fits 'q_\\*'"),
        ({"probs": "p_*", "y": "z"}, ValueError, "no column 'z'; it has 'p_0'"),
        ({"probs": "p_*", "y": "y", "target": "top"}, ValueError, "target must be"),
        ({"probs": "p_*", "y": "y", "loss": "y"}, ValueError, "loss= goes with"),
        (
            {"confidence": "p_0", "correct": "e", "target": "positive"},
            ValueError,
            "target does not apply",
        ),
        (
            {"confidence": "p_0", "correct": "e", "loss": {"log": "p_1"}},
            ValueError,
            "loss must be the Brier score",
        ),
    ],
)
def test_roles_are_checked(asked, error, says, part):
    with pytest.raises(error, match=says):
        sketch_frame(pandas(part, plain_forecasts()), **asked)


def test_two_columns_need_a_target(part):
    rows = {"p_0": [0.4, 0.5], "p_1": [0.6, 0.5], "y": [0, 1]}
    for frame in (pandas, polars_lazy, duckdb):
        with pytest.raises(ValueError, match="can be read in two ways"):
            sketch_frame(frame(part, rows), probs="p_*", y="y")


def test_what_is_no_frame_is_refused(part):
    with pytest.raises(TypeError, match="must be a data frame"):
        sketch_frame(3, **PAIR)
    with pytest.raises(TypeError, match="frames in memory or record batches, got int"):
        sketch_frame([3], **PAIR)
    assert sketch_frame([], **PAIR).rows == 0


@pytest.mark.parametrize("frame", [pandas, polars_lazy, duckdb])
def test_a_frame_without_rows_is_an_empty_sketch(frame, part):
    columns = {name: column[:0] for name, column in plain_pairs().items()}
    assert sketch_frame(frame(part, columns), **PAIR).rows == 0
