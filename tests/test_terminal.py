"""The terminal: fits its width, says all without colour, and draws what the record says."""

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from handmade import constant, model, seeded, small, studied
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant import terminal
from calibrant._base.comparison import Comparison
from calibrant._views.diagram import GEOMETRY, shared_top
from calibrant.table._text import width
from calibrant.terminal._diagram import (
    BLOCKS,
    DOTS,
    EMPTY,
    Canvas,
    band,
    diagram,
    shorten,
    sparkline,
)
from calibrant.terminal._page import Span, beside, page, plain

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


class Latin(io.StringIO):
    """A stream whose encoding lacks braille."""

    encoding = "latin-1"


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch):
    """What the environment asks for is part of each test."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def lines_of(models, **options):
    return terminal.render(models, colour=False, **options).splitlines()


# -- canvas -------------------------------------------------------------------------


def dots_of(lines):
    """Dots that are set, as (row, column) from the upper left."""
    found = set()
    for row, line in enumerate(lines):
        for column, sign in enumerate(plain(line)):
            bits = ord(sign) - EMPTY if ord(sign) >= EMPTY else 0
            for y, x in np.argwhere(DOTS & bits):
                found.add((4 * row + int(y), 2 * column + int(x)))
    return found


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=20))
def test_each_dot_is_set_where_it_belongs(points):
    canvas = Canvas(5, 3)
    for x, y in points:
        canvas.dot(x, y, "curve")
    expected = {(round((1 - y) * 11), round(x * 9)) for x, y in points}
    assert dots_of(canvas.lines()) == expected


def test_all_256_braille_signs_are_right():
    # Unicode's own numbering: dots 1-3 down the left, 4-6 down the right, then 7 and 8.
    order = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (3, 0), (3, 1)]
    assert [int(DOTS[place]) for place in order] == [1 << i for i in range(8)]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_line_is_joined_and_ends_where_it_should(x0, y0, x1, y1):
    canvas = Canvas(6, 4)
    canvas.line([x0, x1], [y0, y1], "curve")
    dots = dots_of(canvas.lines())
    ends = {(round((1 - y) * 15), round(x * 11)) for x, y in ((x0, y0), (x1, y1))}
    assert ends <= dots
    seen, todo = set(), [next(iter(dots))]
    while todo:
        row, column = todo.pop()
        seen.add((row, column))
        near = {(row + i, column + j) for i in (-1, 0, 1) for j in (-1, 0, 1)}
        todo += (near & dots) - seen
    assert seen == dots


def test_nan_makes_a_gap_and_outside_is_not_drawn():
    canvas = Canvas(4, 2)
    canvas.line([0, 0.5, 1], [0.5, np.nan, 0.5], "curve")
    canvas.dot(1.2, 0.5, "curve")
    canvas.dot(0.5, -0.1, "curve")
    canvas.put(0.5, 1.1, "x", "curve")
    canvas.shade(0, 1.1, 1.3)
    assert [plain(line) for line in canvas.lines()] == ["    ", "    "]


def test_layers_and_ascii():
    canvas = Canvas(3, 1)
    canvas.shade(0, 0, 1)
    canvas.shade(1, 0, 1)
    canvas.dot(0.5, 0.5, "diagonal")
    canvas.dot(0.5, 0.5, "curve")
    canvas.put(0.9, 0.5, "●", "curve")
    (line,) = canvas.lines(unicode=False)
    assert plain(line) == ":*●"
    assert [span.style for span in line] == ["band", "curve"]


# -- sparkline ------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 40))
def test_a_sparkline_is_monotone_in_weight_and_hides_none(counts, wide):
    counts = np.array(counts * wide, float)  # whole cells per block
    text = sparkline(counts, wide)
    assert len(text) == wide
    sums = counts.reshape(wide, -1).sum(axis=1)
    levels = [BLOCKS.index(sign) for sign in text]
    for weight, level in zip(sums, levels, strict=True):
        assert (level > 0) == (weight > 0)
        if sums.max() > 0:
            assert level == np.ceil(8 * np.sqrt(weight / sums.max()) - 1e-9)


def test_an_empty_histogram_is_blank_and_ascii_is_ascii():
    assert sparkline(np.zeros(10), 4) == "    "
    assert sparkline(np.array([0, 1, 64.0]), 3, unicode=False) == " .@"


# -- diagram ------------------------------------------------------------------------


def curve_height(lines, column, top, tall=11):
    """Mean height of the curve's dots in a character column."""
    rows = [
        row for row, c in dots_of(lines) if c // 2 == column
    ]  # two dots thick, and the diagonal
    return (1 - np.array(rows) / (4 * tall - 1)) * top


def test_the_curve_is_drawn_where_the_record_has_it():
    ev = replace(seeded(), name="x")
    curve = ev.curve
    tall, across = 11, 34
    panel = diagram(ev, across + 5, tall, 1.25)
    picture = [(line[0], *line[1:])[1:] for line in panel[2 : 2 + tall]]
    solid = curve.support >= 20
    for column in (20, 25, 30):
        h = (column + 0.5) / across
        expected = np.interp(h, curve.confidence[solid], curve.accuracy[solid])
        heights = curve_height(picture, column, 1.25)
        assert np.abs(heights - expected).min() < 1.25 / (4 * tall) * 1.6


def test_a_band_is_as_long_as_density_times_gap():
    ev = seeded()
    drawn = band(ev)
    low, high = drawn.low, drawn.high
    paper = ev.paper_curve
    length = paper.density * paper.sharpness_gap
    whole = drawn.drawn & (low > 0)
    assert whole.any()
    np.testing.assert_allclose((high - low)[whole], length[whole])
    assert not drawn.drawn[~(length > GEOMETRY.least_band)].any()
    assert (low[np.isfinite(low)] >= 0).all()


def test_a_band_too_high_is_cut_and_told():
    panel = [plain(line) for line in diagram(constant(), 44, 11, 1.0)]
    highest = band(constant()).top
    assert highest > 1
    assert panel[1].endswith(f"band to {highest:.1f}")
    assert shared_top([band(constant())]) == min(1.25, highest)


def test_few_confidences_are_marks_hollow_where_rows_are_few():
    hits = [1] * 30 + [0] * 10 + [1, 0, 1]
    ev = cal.evaluate_pairs(hits, [0.7] * 40 + [0.2] * 3)
    text = "\n".join(plain(line) for line in diagram(ev, 44, 11, 1.25))
    assert (text.count("●"), text.count("○")) == (1, 1)


def test_infinite_loss_has_no_band():
    ev = cal.evaluate_pairs([1, 0, 1, 1], [1.0, 1.0, 0.5, 0.5], divergence="log")
    assert ev.decomposition.total == np.inf
    text = "\n".join(
        plain(line) for line in diagram(ev, 44, 11, shared_top([band(ev)]))
    )
    assert "∞" in text or "–" in text


# -- page -----------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 47, 60, 80, 100, 120, 160, 200])
@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("make", [small, studied, seeded, constant])
def test_no_line_is_wider_than_the_terminal(columns, unicode, make):
    lines = lines_of(make(), width=columns, unicode=unicode)
    assert max(map(width, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)


def test_columns_go_in_order_of_need():
    def head(columns):
        lines = lines_of(small(), width=columns)
        return next(line for line in lines if line.startswith("Model")).split()[1:]

    assert head(80) == ["Acc", "ECE", "ACE", "smECE", "NLL", "Brier", "d_CAL", "gap"]
    assert head(60) == ["Acc", "ECE", "smECE", "NLL", "Brier", "d_CAL", "gap"]
    assert head(40) == ["Acc", "Brier", "d_CAL", "gap"]
    assert head(120)[-2:] == ["confidence", "0→1"]
    text = " ".join(lines_of(small(), width=40))
    assert "Too narrow to show: ACE, smECE, NLL, ECE." in text


def test_the_cells_are_those_of_the_table():
    text = terminal.render(small(), width=80, colour=False)
    rows = [line.split()[3:] for line in text.splitlines() if line.startswith("ViT +")]
    assert rows[0][:8] == ["85.14*", "2.59*", "5.46*", "2.60*", "56.83*", "21.95*", "0.26*", "21.69*"]  # fmt: skip
    assert rows[1][4] == "∞"
    assert rows[2][1] == "0.18†"


def test_findings_have_a_sign():
    lines = lines_of(studied(), width=100)
    assert any(line.startswith("! NLL is infinite") for line in lines)
    assert any(line.startswith("† lower, but meaningless") for line in lines)
    assert "! ViT + IR: a note" in lines
    assert "What recalibration did" in lines


def test_each_model_has_a_diagram_and_the_rest_are_named():
    lines = lines_of(small(), width=120)
    assert any(line.split("  ")[0] == "ViT + TS" and "ViT + MRR" in line for line in lines)  # fmt: skip
    many = Comparison(tuple(model(f"model {i}") for i in range(5)))
    assert "Not drawn: model 3 and model 4." in lines_of(many, width=60)
    assert not any("Not drawn" in line for line in lines_of(many, width=80))


def test_names_are_cut_and_cannot_move_the_cursor():
    long = model("\x1b[2J" + "very " * 30 + "long")
    text = terminal.render(long, width=60, colour=False)
    assert "\x1b" not in text
    assert "…" in text
    assert max(map(width, text.splitlines())) <= 60


# -- colour, encoding, width ------------------------------------------------------------


def test_no_codes_go_into_a_pipe():
    assert "\x1b" not in terminal.render(small(), file=io.StringIO())


def test_colour_only_repeats_what_signs_say():
    painted = terminal.render(studied(), width=100, colour=True)
    assert ESCAPE.search(painted)
    bare = "\n".join(x.rstrip() for x in ESCAPE.sub("", painted).splitlines())
    assert bare == terminal.render(studied(), width=100, colour=False)


def test_a_terminal_gets_colour_unless_it_is_unwanted(monkeypatch):
    assert "\x1b[1;32m" in terminal.render(small(), file=Terminal())
    assert "\x1b" not in terminal.render(small(), file=Terminal(), colour=False)
    monkeypatch.setenv("NO_COLOR", "1")
    quiet = terminal.render(small(), file=Terminal())
    codes = {code for match in ESCAPE.findall(quiet) for code in match[2:-1].split(";")}
    assert codes <= {"0", "1", "2"}  # bold and dim are no colours
    assert "\x1b[1;32m" in terminal.render(small(), file=Terminal(), colour=True)


def test_colour_can_be_asked_for_in_a_pipe(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;32m" in terminal.render(small(), file=io.StringIO())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_other_encodings_get_other_signs(encoding):
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from handmade import model, studied\n"
        "from calibrant.terminal import show\n"
        "show(studied()); show(model('long ' * 9)); print(studied())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": "tests"},
        cwd=Path(__file__).parent.parent,
    )
    text = run.stdout.decode(encoding)
    assert text.isascii()
    assert " inf " in text
    assert "0.18+" in text


def test_a_name_that_cannot_be_encoded_is_no_error():
    text = terminal.render(model("模型"), file=Latin(), width=60)
    text.encode("latin-1")
    assert "??" in text


def test_the_width_is_the_terminals_if_not_said(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert terminal.render(small()) == terminal.render(small(), width=60)
    monkeypatch.setenv("COLUMNS", "20")  # too narrow for anything: lines will wrap
    assert terminal.render(small()) == terminal.render(small(), width=40)


def test_show_writes_what_render_gives():
    stream = io.StringIO()
    terminal.show(small(), file=stream, width=70)
    assert stream.getvalue() == terminal.render(small(), width=70, file=stream) + "\n"


def test_a_restored_record_gives_the_same_page():
    both = Comparison((seeded(), replace(constant(), name="constant")))
    again = Comparison.from_json(both.to_json())
    assert page(again, again.audit(), 90) == page(both, both.audit(), 90)


# -- spans ------------------------------------------------------------------------------


def test_blocks_stand_side_by_side():
    left = [(Span("ab"),), (Span("c", "best"),)]
    right = [(Span("x"),), (Span("y"),), (Span("z"),)]
    assert [plain(line) for line in beside([left, right])] == [
        "ab  x",
        "c   y",
        "    z",
    ]


@given(st.text(alphabet="ab模\u0301", max_size=12), st.integers(1, 12))
def test_shortened_text_fits(text, to):
    short = shorten(text, to)
    assert width(short) <= to
    assert short == text or short.endswith("…")


def test_long_names_that_begin_alike_stay_distinct():
    start = "resnet50-imagenet-augmented-long-training-seed"
    models = [
        cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, x] * 30, name=f"{start}-{x}")
        for x in (0.7, 0.6)
    ]  # fmt: skip
    lines = terminal.render(models, width=80).splitlines()
    for end in ("-0.7", "-0.6"):
        assert any(re.match(rf"\S*…\S*{end} +75\.00", line) for line in lines)
    (titles,) = (x.split() for x in lines if x.endswith("-0.6") and "-0.7 " in x)
    assert len({*titles}) == 2
