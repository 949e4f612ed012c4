"""Names that end lines, move cursors, turn the direction of text, or have no end.

Models, classes, groups, protocols and titles may be called anything; what a terminal, a
page, a figure, a table or a file of JSON holds of them is one short harmless line.
"""

import io
import json
import re
import unicodedata
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import calibrant as cal
import calibrant.plot
import calibrant.recalibration
import calibrant.terminal

LONG = 100_000
NAMES = {
    "colours": "a\x1b[31mred\x1b[0m",
    "title of the terminal": "a\x1b]0;owned\x07b",
    "cursor": "a\x1b[2J\x1b[Hb\x9b1A",
    "lines": "a\r\nb\x0bc\x0cd\x85e\u2028f\u2029g",
    "NUL": "a\0b",
    "backspace": "a\b\b\x7fb",
    "override": "a\u202eevil\u202c",
    "isolate": "a\u2067evil\u2069\u200f\u061c",
    "surrogate": "a\ud800b\udfff",
    "no sign": "a\ufffe\U0001ffffb\ufdd0",
    "markup": "<script>alert(1)</script>&\"'",
    "formula": r"$\frac{a$ \input{x} % #_^~",
    "long": "x" * LONG,
    "long and hostile": "\x1b[31m\u202e" * (LONG // 5),
}  # fmt: skip

HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)

P = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
Y = np.arange(60) % 3


@cache
def plain():
    group = np.array(["g", "h"])[np.arange(60) % 2]
    said = {"group": group, "interval": None, "target": "class-wise"}
    return cal.evaluate(Y, probs=P, **said), cal.evaluate(Y, probs=P**0.5 / (P**0.5).sum(1, keepdims=True), **said)  # fmt: skip


def named(name):
    """Two models, their classes and their groups, all called so."""
    models = [
        replace(
            ev,
            name=name + end,
            per_class=tuple(replace(part, name=name + part.name) for part in ev.per_class),
            per_group={name + key: replace(x, name=name + end) for key, x in ev.per_group.items()},
        )
        for ev, end in zip(plain(), ("", "2"), strict=True)
    ]  # fmt: skip
    return cal.Comparison(tuple(models), protocol=name)


def harmless(text, most=40_000):
    """Nothing in it is hostile, and no name stands there in its whole length."""
    found = HOSTILE.search(text.replace("\n", " "))
    assert found is None, (found, text[max(found.start() - 40, 0) : found.end() + 40])
    assert "x" * 6000 not in text
    assert len(text) < most
    return text


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def name(request):
    return request.param


@pytest.fixture
def models(name):
    return named(name)


def test_names_that_are_shown_are_short_and_harmless(name):
    from calibrant._base.checks import MOST_NAME, one_line

    shown = harmless(one_line(name, MOST_NAME))
    assert len(shown) <= MOST_NAME + 1
    assert one_line(shown, MOST_NAME) == shown


def test_what_is_printed(models):
    harmless(str(models[0]))
    harmless(repr(models[0]).encode("ascii", "backslashreplace").decode())
    harmless(str(models))
    harmless(models.describe())
    for finding in models.audit():
        harmless(finding.text + finding.advice)


def test_what_a_terminal_shows(models):
    harmless(calibrant.terminal.render(models, width=80, colour=False))
    stream = io.StringIO()
    calibrant.terminal.show(models, file=stream, colour=False)
    harmless(stream.getvalue())


@pytest.mark.parametrize("format_", ["text", "markdown", "latex", "html"])
def test_tables(models, name, format_):
    harmless(models.table(format_, caption=name))


def test_a_page(models, name):
    page = cal.report.build(
        models, title=name, groups=cal.report._report.groups_of(models)
    )
    harmless(page, most=2_000_000)
    data = re.search(r'type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    everything = []
    json.loads(
        data[1], object_hook=lambda x: everything.extend(map(str, [*x, *x.values()]))
    )
    for text in everything:
        if "[" not in text[:1]:
            harmless(text)
    assert "<script>alert" not in page.replace(data[1], "")


FIGURES = {
    "calibration_sharpness": {},
    "calibration_sharpness, as published": {"style": "paper"},
    "bandwidth_sweep": {"bandwidths": [0.05]},
    "compare_methods": {},
    "score_map": {},
    "classwise_grid": {},
    "corp": {},
    "reliability": {},
    "residual": {},
    "smooth_reliability": {},
}


DRAWN = {x: NAMES[x] for x in ("long", "long and hostile", "formula", "markup")}
DRAWN["everything"] = "".join(name[:10] for name in NAMES.values())


@pytest.mark.parametrize("name", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_figures(figure, name):
    draw = getattr(calibrant.plot, figure.partition(",")[0])
    several = figure[:4] in ("cali", "comp", "scor")
    models = named(name) if several else named(name)[0]
    if figure in ("bandwidth_sweep",):
        models = replace(cal.evaluate(Y, probs=P, interval=None), name=name)
    made = draw(models, **FIGURES[figure])
    axes = np.ravel(made)[0]
    sheet, content = axes.get_figure(root=True), io.BytesIO()
    harmless(sheet.alt_text)
    sheet.savefig(content, format="svg")
    text = content.getvalue().decode()
    harmless(text, most=3_000_000)
    ET.fromstring(text)


def test_records_hold_names_as_they_are_and_ascii_only(models, name):
    text = models.to_json()
    assert text.isascii()
    assert text.isprintable()
    assert cal.Comparison.from_json(text).names == models.names


def test_names_that_look_the_same_are_told_apart():
    ev = plain()[0]
    models = cal.Comparison((replace(ev, name="a"), replace(ev, name="a\n")))
    assert "a (2)" in models.table("text")
    assert models.names == ("a", "a\n")


def test_differences_of_models():
    said = {"probs": P, "interval": None}
    a, b = (cal.evaluate(Y, name=f"{x}\x1b[31m", **said) for x in "ab")
    found = cal.compare(a, b)
    harmless(str(found))
    harmless(" ".join(found.sentences))


def test_every_letter_of_the_world_stays():
    from calibrant._base.checks import one_line

    for text in (
        "Zürich",
        "模型 α",
        "مدل\u200cها",
        "👩\u200d🔬 ResNet",
        "שלום",
        "ΔE = ½",
    ):
        assert one_line(text) == text
        assert all(unicodedata.category(sign) != "Cc" for sign in text)
