"""Tables: one set of cells in six formats, none of which can disagree."""

import csv
import io
import re
import shutil
import subprocess
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from math import inf, isfinite, isnan, nan

import numpy as np
import pytest
from handmade import model, seeded, small, studied
from hypothesis import given
from hypothesis import strategies as st
from make import balanced

import calibrant as cal
from calibrant._base.comparison import Comparison
from calibrant._base.measures import MEASURES, is_trivial
from calibrant._base.records import Estimate
from calibrant.report import build
from calibrant.table import make_table, table
from calibrant.table._layout import Cell, Style, _marked, fixed, keys_of, printed
from calibrant.table._text import width

COLUMNS = ["accuracy", "ece", "nll", "calibration"]
HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "a \"quoted\" & 'single' name",
    r"back\slash {brace} $math$ #1 50% a_b ~x^2",
    "pipe|d *bold* _it_ `code` [link](x) <b>",
    "[first] bracket",
    "*star",
    "two\nlines\r\nand\ttabs",
    "-- dashes --- ''quotes'' ``ticks`` ,,commas",
    "=HYPERLINK(1)",
    "été Größe naïve",
]


def hostile():
    return [model(name, brier=0.1 + i / 100) for i, name in enumerate(HOSTILE)]


# -- readers: each format as cells again --------------------------------------------


def cells_of_markdown(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1] for line in lines]
    return [[cell.strip() for cell in row] for row in rows if set(row[0]) - set(" :-")]


class Reader(HTMLParser):
    """Collects tags, attributes and the texts of cells."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.scopes, self.caption = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag == "th":
            self.scopes.append(dict(attrs)["scope"])

    def handle_data(self, data):
        if "ul" in self.tags or not self.rows:
            self.caption += "" if self.rows else data
        elif self.rows[-1] and data.strip():
            self.rows[-1][-1] += data


def cells_of_latex(text):
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    lines = [line.strip().removesuffix(r" \\") for line in body.strip().splitlines()]
    return [re.split(r"(?<!\\) & ", line) for line in lines]


def cells_of_text(text):
    rows = text.split("\n\n")[0].splitlines()[2:]
    return [re.split(r"  +", row.strip()) for row in rows]


def number(text):
    """The printed number of a cell, whatever surrounds it."""
    if "∞" in text or "infty" in text:
        return inf
    bare = re.sub(r"\\textbf|\\rlap|\$\^\\dagger\$|\\textendash|[*†{}+]", "", text)
    bare = bare.replace("$-$", "-").strip()
    return nan if bare in ("–", "") else float(bare)


# -- exact output -------------------------------------------------------------------

NOTES = [
    (
        "lower, but meaningless: ViT + MRR gives (nearly) every example the same "
        "confidence. A constant needs only the right average to be calibrated. It cannot "
        "tell one example from another and is never best in a calibration column."
    ),
    "NLL is infinite where a true class was given probability 0: ViT + IR (3 examples).",
    (
        "Numbers are ×100. ECE uses 15 bins of equal width. d_CAL (calibration error) + "
        "sharpness gap = Brier, up to rounding; d_CAL is the debiased adaptive estimate."
    ),
]


def written(form, **options):
    options = {"caption": "Models & rows", "label": "tab:models", **options}
    return table(small(), form, columns=COLUMNS, **options)


def test_text():
    assert written("text") == (
        """\
Models & rows

Model        Acc    ECE      NLL   d_CAL
-----------------------------------------
ViT + TS   85.14*  2.59*   56.83*   0.26*
ViT + IR   83.82   4.53        ∞    0.64
ViT + MRR  85.14*  0.18†  144.66    0.00†

* best of its column
† lower, but meaningless: ViT + MRR gives (nearly) every example the same confidence. A
  constant needs only the right average to be calibrated. It cannot tell one example
  from another and is never best in a calibration column.
NLL is infinite where a true class was given probability 0: ViT + IR (3 examples).
Numbers are ×100. ECE uses 15 bins of equal width. d_CAL (calibration error) + sharpness
gap = Brier, up to rounding; d_CAL is the debiased adaptive estimate."""
    )


def test_markdown():
    trivial, infinite, rest = NOTES
    rest = rest.replace("_", r"\_")
    assert written("markdown") == (
        rf"""**Models \& rows**

| Model     |  Accuracy |      ECE |       NLL |   d\_CAL |
| :-------- | --------: | -------: | --------: | -------: |
| ViT + TS  | **85.14** | **2.59** | **56.83** | **0.26** |
| ViT + IR  |     83.82 |     4.53 |         ∞ |     0.64 |
| ViT + MRR | **85.14** |    0.18† |    144.66 |    0.00† |

- Bold: best of its column.
- † {trivial}
- {infinite}
- {rest}"""
    )


def test_latex():
    trivial, infinite, rest = NOTES
    rest = rest.replace("×", r"$\times$").replace("d_CAL", r"$d_{\mathrm{CAL}}$")
    dagger = r"\rlap{$^\dagger$}"
    assert written("latex") == (
        rf"""\begin{{table}}[tb]
  \centering\small\setlength{{\tabcolsep}}{{3pt}}
  \begin{{tabular}}{{@{{}}lrrrr@{{}}}}
    \toprule
    Model & Accuracy & ECE & NLL & $d_{{\mathrm{{CAL}}}}$ \\
    \midrule
    ViT + TS & \textbf{{85.14}} & \textbf{{2.59}} & \textbf{{56.83}} & \textbf{{0.26}} \\
    ViT + IR & 83.82 & 4.53 & $\infty$ & 0.64 \\
    ViT + MRR & \textbf{{85.14}} & 0.18{dagger} & 144.66 & 0.00{dagger} \\
    \bottomrule
  \end{{tabular}}
  \par\smallskip
  \parbox{{\linewidth}}{{\footnotesize
    Bold: best of its column.
    $^\dagger${trivial}
    {infinite}
    {rest}
  }}
  \caption{{Models \& rows}}
  \label{{tab:models}}
\end{{table}}"""
    )


def test_html():
    text = written("html", footnotes=False)
    bare = re.sub(r' style="[^"]*"', "", text)
    sub = "<i>d</i><sub>CAL</sub>"
    best = '<td class="calibrant-best"><strong>{}</strong></td>'.format
    low = '<td class="calibrant-trivial">{}<sup>†</sup></td>'.format
    assert bare == "\n".join(
        [
            '<div class="calibrant-table" id="tab:models">',
            "<table>",
            "<caption>Models &amp; rows</caption>",
            "<thead>",
            (
                '<tr><th scope="col">Model</th>'
                '<th scope="col" class="calibrant-accuracy">Accuracy</th>'
                '<th scope="col" class="calibrant-ece">ECE</th>'
                '<th scope="col" class="calibrant-nll">NLL</th>'
                f'<th scope="col" class="calibrant-calibration">{sub}</th></tr>'
            ),
            "</thead>",
            "<tbody>",
            (
                f'<tr><th scope="row">ViT + TS</th>{best("85.14")}{best("2.59")}'
                f"{best('56.83')}{best('0.26')}</tr>"
            ),
            (
                '<tr><th scope="row">ViT + IR</th><td>83.82</td><td>4.53</td><td>∞</td>'
                "<td>0.64</td></tr>"
            ),
            (
                f'<tr><th scope="row">ViT + MRR</th>{best("85.14")}{low("0.18")}'
                f"<td>144.66</td>{low('0.00')}</tr>"
            ),
            "</tbody>",
            "</table>",
            "</div>",
        ]
    )
    notes = re.findall(r"<li>(.*?)</li>", written("html"))
    assert len(notes) == 4
    assert notes[2] == NOTES[1]


def test_csv_has_the_numbers_as_measured():
    assert written("csv", percent=True, digits=0) == (
        '"model","accuracy","ece","nll","calibration"\r\n'
        '"ViT + TS",0.8514,0.0259,0.5683,0.0026\r\n'
        '"ViT + IR",0.8382,0.0453,inf,0.0064\r\n'
        '"ViT + MRR",0.8514,0.0018,1.4466,1e-05\r\n'
    )


def test_frame_has_the_same(monkeypatch):
    monkeypatch.setattr("calibrant.table._text.to_frame", dict)
    frame = written("frame", intervals=True)
    assert frame["model"].tolist() == list(small().names)
    assert frame["nll"].tolist() == [0.5683, inf, 1.4466]
    assert list(frame)[:4] == ["model", "accuracy", "accuracy_low", "accuracy_high"]


def test_ascii():
    made = make_table(small(), Style(), columns=COLUMNS)
    from calibrant.table._text import write_text

    text = write_text(made, unicode=False)
    assert text.isascii()
    assert "ViT + IR   83.82   4.53      inf    0.64" in text
    assert "ViT + MRR  85.14*  0.18+  144.66    0.00+" in text
    assert "\n+ lower, but meaningless" in text


# -- agreement with the record ------------------------------------------------------

NUMBERS = st.one_of(
    st.floats(-0.02, 1.2).map(lambda x: round(x, 5)), st.sampled_from([inf, nan, 0.0])
)


@st.composite
def comparisons(draw):
    models = []
    for i in range(draw(st.integers(1, 5))):
        metrics = {key: draw(NUMBERS) for key in ("accuracy", "ece", "nll")}
        cal = draw(st.floats(-0.02, 0.3))
        trivial = draw(st.booleans())
        models.append(model(f"m{i}", trivial=trivial, calibration=cal, **metrics))
    return Comparison(tuple(models))


STYLES = st.builds(Style, st.booleans(), st.integers(0, 4))


def oracle_marks(values, key, trivial, style):
    """Best and trivial flags, from rounding and the rule in words."""
    shown = [
        round(v * style.factor, style.digits) if isfinite(v) else v for v in values
    ]
    measure, signed = MEASURES[key], shown
    if measure.calibration:
        shown = [max(v, 0.0) if isfinite(v) else v for v in shown]
    pick = max if measure.higher_is_better else min
    flags = [measure.calibration and t for t in trivial]
    fair = [v for v, flag in zip(shown, flags, strict=True) if isfinite(v) and not flag]
    lead = pick(fair) if fair else None
    best = [
        len(values) > 1 and not flag and isfinite(v) and v == lead
        for v, flag in zip(shown, flags, strict=True)
    ]
    ties = [
        x
        for x, v, flag in zip(signed, shown, flags, strict=True)
        if v == lead and not flag
    ]
    lower = [
        bool(flag) and isfinite(v) and (lead is None or (v <= lead and x <= min(ties)))
        for x, v, flag in zip(signed, shown, flags, strict=True)
    ]
    return best, lower


@given(comparisons(), STYLES)
def test_the_marked_cells_are_the_best_as_printed(found, style):
    made = make_table(found, style, columns=COLUMNS)
    trivial = [is_trivial(ev) for ev in found]
    for place, key in enumerate(COLUMNS):
        values = [float(MEASURES[key].of(ev)) for ev in found]
        cells = [row.cells[place] for row in made.rows]
        best, lower = oracle_marks(values, key, trivial, style)
        assert [cell.best for cell in cells] == best
        assert [cell.trivial for cell in cells] == lower
        np.testing.assert_array_equal([cell.value for cell in cells], values)


@given(comparisons(), STYLES)
def test_every_format_prints_the_numbers_of_the_record(found, style):
    options = {"percent": style.percent, "digits": style.digits, "columns": COLUMNS}

    def rows(form):
        return table(found, form, **options)

    printed_by = {
        "text": cells_of_text(rows("text")),
        "markdown": cells_of_markdown(rows("markdown"))[1:],
        "latex": cells_of_latex(rows("latex")),
        "html": Reader(rows("html")).rows[1:],
    }
    for form, lines in printed_by.items():
        for ev, line in zip(found, lines, strict=True):
            assert line[0] == ev.name, form
            shown = [number(text) for text in line[1:]]
            true = [style.factor * float(MEASURES[key].of(ev)) for key in COLUMNS]
            np.testing.assert_allclose(
                shown, true, rtol=0, atol=0.5001 * 10**-style.digits, err_msg=form
            )


@given(comparisons())
def test_bold_in_every_format_is_the_best_of_the_cells(found):
    made = make_table(found, Style(), columns=COLUMNS)
    best = [[cell.best for cell in row.cells] for row in made.rows]
    marks = {
        "text": (cells_of_text(table(found, columns=COLUMNS)), "*"),
        "markdown": (
            cells_of_markdown(table(found, "markdown", columns=COLUMNS))[1:],
            "**",
        ),
        "latex": (cells_of_latex(table(found, "latex", columns=COLUMNS)), r"\textbf"),
    }
    for lines, mark in marks.values():
        assert [[mark in text for text in line[1:]] for line in lines] == best
    flat = [flag for line in best for flag in line]
    cells = re.findall(r"<td.*?</td>", table(found, "html", columns=COLUMNS))
    assert ["<strong>" in cell for cell in cells] == flat


@given(comparisons())
def test_csv_reads_back_exactly(found):
    text = table(found, "csv", columns=COLUMNS, intervals=True)
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head[:5] == ["model", "accuracy", "accuracy_low", "accuracy_high", "ece"]
    for ev, line in zip(found, lines, strict=True):
        read = dict(zip(head[1:], map(float, line[1:]), strict=True))
        for key in COLUMNS:
            np.testing.assert_equal(read[key], float(MEASURES[key].of(ev)))


@given(st.floats(), st.integers(0, 15))
def test_a_printed_number_is_within_half_a_digit(value, digits):
    text = fixed(value, digits)
    if isnan(value):
        assert isnan(printed(text))
    elif isfinite(value):
        assert abs(printed(text) - value) <= 0.5 * 10.0**-digits * (1 + 1e-9)
        assert not re.fullmatch(r"-0\.?0*", text)
    else:
        assert printed(text) == value


# -- hostile names ------------------------------------------------------------------


def test_html_lets_no_name_through():
    text = table(hostile(), "html", columns=["brier"], caption=HOSTILE[0], label='"><x')
    page = Reader(text)
    allowed = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "strong",
               "sup", "sub", "i", "ul", "li", "small"}  # fmt: skip
    assert set(page.tags) <= allowed
    assert page.tags.count("tr") == len(HOSTILE) + 1
    assert page.scopes == ["col", "col", *["row"] * len(HOSTILE)]
    assert [row[0] for row in page.rows[1:]] == [" ".join(x.split()) if "\n" not in x else "two lines  and tabs" for x in HOSTILE]  # fmt: skip
    assert page.caption.strip() == HOSTILE[0]
    assert 'id="&quot;&gt;&lt;x"' in text


def test_markdown_keeps_its_columns_whatever_the_names():
    rows = cells_of_markdown(table(hostile(), "markdown", columns=["brier"]))
    assert len(rows) == len(HOSTILE) + 1
    assert {len(row) for row in rows} == {2}
    assert rows[4][0] == r"pipe\|d \*bold\* \_it\_ \`code\` \[link\](x) \<b\>"


def test_csv_keeps_names_as_text():
    text = table(hostile(), "csv", columns=["brier"])
    names = [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:]
    assert names == [f"'{x}" if x[0] in "=-" else x for x in HOSTILE]
    assert all(line[0] in '"al' for line in text.replace("\r\n", "\n").split("\n")[:4])


def test_text_stays_on_its_line():
    lines = table(hostile(), columns=["brier"], footnotes=False).splitlines()
    assert len(lines) == len(HOSTILE) + 2
    assert (
        table(model("a\x1b[31mb\u202ec"), columns=["brier"])
        .splitlines()[2]
        .startswith("a [31mbc ")
    )


def test_wide_and_combining_letters_are_aligned():
    names = ["模型", "e\u0301te\u0301", "plain"]
    text = table([model(name) for name in names], columns=["ece"], footnotes=False)
    assert len({width(line) for line in text.splitlines()[2:]}) == 1


# -- LaTeX --------------------------------------------------------------------------


def compile_latex(text, folder, absent):
    """The log of pdflatex, which must succeed; the words of the page if they can be had."""
    program = shutil.which("pdflatex")
    if program is None:
        absent("no pdflatex: `apt install texlive-latex-recommended`")
    document = (
        "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
        f"{text}\n\\end{{document}}\n"
    )
    (folder / "page.tex").write_text(document, encoding="utf-8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    run = subprocess.run(
        command, cwd=folder, capture_output=True, check=False, timeout=120
    )
    log = run.stdout.decode("latin-1")
    assert run.returncode == 0, log[-2000:]
    return log


@pytest.mark.parametrize("options", [{}, {"intervals": True}, {"columns": "study"}])
def test_latex_compiles(options, tmp_path, absent):
    text = table(studied(), "latex", caption="A caption", label="tab:a", **options)
    log = compile_latex(text, tmp_path, absent)
    assert "undefined" not in log.lower()


def test_the_default_latex_table_fits_the_page(tmp_path, absent):
    log = compile_latex(table(small(), "latex"), tmp_path, absent)
    assert "Overfull" not in log


def test_five_numbers_with_intervals_fit_the_page(tmp_path, absent):
    columns = ["ece", "nll", "brier", "calibration", "sharpness_gap"]
    y, h = balanced(500)
    ev = cal.evaluate_pairs(y, h, name="ResNet-110")
    text = table(ev, "latex", columns=columns, intervals=True)
    assert "Overfull" not in compile_latex(text, tmp_path, absent)


def test_latex_prints_hostile_names_as_they_are(tmp_path, absent):
    columns = ["brier"]
    text = table(hostile(), "latex", columns=columns, caption=" ".join(HOSTILE))
    compile_latex(text, tmp_path, absent)
    program = shutil.which("pdftotext")
    if program is None:
        absent("no pdftotext: `apt install poppler-utils`")
    command = [program, "-layout", tmp_path / "page.pdf", "-"]
    words = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    words = unicodedata.normalize("NFC", words)
    for name in ("</script><img", "[first] bracket", "*star", "{brace} $math$ #1 50%", "été"):  # fmt: skip
        assert name in words
    assert "– dashes" not in words


def test_a_label_that_latex_cannot_take_is_refused():
    with pytest.raises(ValueError, match=r"label must be made of .*got 'tab\{x'"):
        table(small(), "latex", label="tab{x")


# -- options ------------------------------------------------------------------------


def keys(made):
    return [heading.key for heading in made.headings]


def test_default_columns_are_the_papers_and_the_parts():
    assert tuple(keys(make_table(small(), Style()))) == keys_of("paper")
    pairs = cal.evaluate_pairs([1, 0, 1], [0.7, 0.2, 0.9])
    assert tuple(keys(make_table(pairs, Style()))) == keys_of("paper")


def test_sets_leave_out_what_no_model_has_and_names_do_not():
    classwise = cal.evaluate([0, 1, 2] * 30, probs=np.eye(3)[[0, 1, 2] * 30], target="class-wise")  # fmt: skip
    assert "dsc" not in keys(make_table(classwise, Style(), columns="all"))
    made = make_table(classwise, Style(), columns=["dsc", "ece"])
    assert made.rows[0].cells[0].text == "–"


def test_study_columns_need_a_study():
    made = make_table(studied(), Style(), columns="study")
    assert keys(made)[-4:] == ["accuracy_change", "changed", "tied", "impossible"]
    texts = [cell.text for cell in made.rows[1].cells[-4:]]
    assert texts == ["-1.32", "12", "5", "3"]
    for columns in ("study", "effects", ["changed"]):
        with pytest.raises(ValueError, match="needs the effects of recalibration"):
            table(small(), columns=columns)


def test_seconds_are_shown_only_if_asked_for():
    """They differ from run to run, so that two prints of one study would differ."""
    for text in (str(studied()), studied().table(columns="effects")):
        assert "fit (s)" not in text
    asked = make_table(studied(), Style(), columns=["fit_seconds"])
    assert asked.rows[1].cells[0].text == "1.50"
    assert "fit_seconds" in keys(make_table(studied(), Style(), columns="all"))


def test_a_constant_that_is_off_is_not_called_calibrated():
    y = np.tile([0, 1, 2, 3], 100)
    p = np.tile([0.94, 0.02, 0.02, 0.02], (400, 1))
    off = cal.evaluate(y, probs=p, name="off")
    text = " ".join(f"{off} {table(off)}".split())
    assert "off gives (nearly) every example the same confidence" in text
    assert "is calibrated by" not in text
    assert "needs only the right average to be calibrated" in text


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match=r"format must be one of 'text', .* got 'pdf'"):
        table(small(), "pdf")
    with pytest.raises(
        ValueError, match=r"columns has no 'size'\. Choose from accuracy"
    ):
        table(small(), columns=["ece", "size"])
    with pytest.raises(ValueError, match="at least one column"):
        table(small(), columns=[])
    for digits in (-1, 16, 2.5, True):
        with pytest.raises(ValueError, match="digits must be a whole number"):
            table(small(), digits=digits)


def test_intervals_are_shown_where_there_are_any():
    estimate = cal.Estimate(0.5, (0.4, 0.6), "Wilson")
    ev = model("a", accuracy=estimate, ece=0.1)
    text = table([ev, model("b", accuracy=0.4)], columns=["accuracy", "ece"], intervals=True)  # fmt: skip
    assert "a      50.00* [40.00, 60.00]  10.00" in text
    assert "In brackets: 95% intervals: Wilson\n(Accuracy)" in text
    markdown = table(ev, "markdown", columns=["accuracy"], intervals=True)
    assert r"50.00 \[40.00, 60.00\]" in markdown
    latex = table(ev, "latex", columns=["accuracy", "ece"], intervals=True)
    assert "a & 50.00 & 10.00 \\\\\n" in latex
    assert r" & {\scriptsize {[}40.00, 60.00{]}} &  \\[2pt]" in latex
    assert "No column shown has an interval." in table(ev, columns=["ece"], intervals=True)  # fmt: skip


def test_one_model_has_no_best():
    assert "*" not in table(seeded())
    assert "*" not in table(small(), best=False)
    assert "Bold" not in table(seeded(), "markdown")


def test_no_footnotes_if_unwanted():
    for form in ("text", "markdown", "latex", "html"):
        assert "trivial:" not in table(small(), form, footnotes=False)


def test_a_model_may_stand_alone():
    assert table(seeded()) == table([seeded()]) == Comparison((seeded(),)).table()


def test_comparisons_show_themselves():
    shown = Comparison(small().evaluations).table("html", intervals=True)
    assert shown in small()._repr_html_()
    assert small().table("csv", columns=["ece"]) == table(small(), "csv", columns=["ece"])  # fmt: skip


# -- footnotes ----------------------------------------------------------------------


def notes(models, **options):
    return "\n".join(note.text for note in make_table(models, Style(), **options).notes)


def test_recalibration_that_changed_the_accuracy_is_told():
    text = notes(studied())
    assert "Recalibration changed predictions: ViT + IR (12 examples; accuracy -1.32)." in text  # fmt: skip
    assert "order of the columns decides: ViT + IR (5 examples)." in text
    shown = notes(studied(), columns="study")
    assert "Recalibration changed" not in shown
    assert "changed (another class is predicted than before)" in shown


def test_conventions_follow_the_target_and_the_divergence():
    assert "Brier is summed over the classes: 0 to 200." in notes(small())
    assert "ACE is the average, not the adaptive, calibration error." in notes(small())
    rng = np.random.default_rng(0)
    p, y = rng.random(300), rng.integers(0, 2, 300)
    binary = cal.evaluate(y, probs=p, divergence="log", bandwidth=0.05)
    assert "Brier is of class 1 alone: 0 to 100." in notes(binary)
    assert "d_CAL (calibration error) + sharpness gap = NLL, up to rounding; d_CAL is the direct gaussian kernel estimate of bandwidth 0.05." in notes(binary)  # fmt: skip
    plain = make_table(binary, Style(percent=False)).notes[-1].text
    assert "×100" not in plain
    assert "alone: 0 to 1." in plain


def test_a_negative_error_is_explained_only_where_it_shows():
    assert "below 0" in notes(model("a", calibration=-0.001))
    assert "below 0" not in notes(model("a", calibration=-0.00001))
    assert "below 0" not in notes(model("a", calibration=-0.001), columns=["ece"])


def test_a_gap_below_0_is_explained_where_it_shows():
    told = "A sharpness gap below 0 cannot be"
    pairs = np.repeat([0, 1], 500), np.repeat([0.02, 0.98], 500)
    assert told in notes(cal.evaluate_pairs(*pairs, bandwidth=1.0))
    assert told not in notes(cal.evaluate_pairs(*pairs))


def test_models_that_are_not_alike_are_told():
    pairs = cal.evaluate_pairs([1, 0, 1], [0.7, 0.2, 0.9], name="pairs")
    text = notes([seeded(), pairs])
    assert "The models differ in target: model (top-label) and pairs (pairs)." in text
    assert "The models differ in number of examples" in text
    assert "and pairs (3)." in text


def test_a_value_above_its_own_interval_is_explained_below_the_table():
    noisy = model(
        "a",
        ece=cal.Estimate(0.0278, (0.0, 0.0201), "simulated noise"),
        ece_debiased=0.0081,
    )
    plain = {"columns": ["ece", "brier"]}
    text = make_table(noisy, Style(intervals=True), **plain).notes[-1].text
    assert "ECE is biased up by noise, so the plain value can lie above its" in text
    assert "Debiased ECE (root mean square): 0.81." in text
    assert "noise" not in make_table(noisy, Style(), **plain).notes[-1].text
    within = model("a", ece=cal.Estimate(0.0178, (0.0, 0.0201), "simulated noise"))
    text = make_table(within, Style(intervals=True), **plain).notes[-1].text
    assert "biased up by noise" not in text


def test_trivial_and_infinite_are_silent_where_not_shown():
    assert notes(small(), columns=["accuracy"]) == "Numbers are ×100."


def test_many_names_are_cut():
    models = [model(f"m{i}", nll=inf, infinite=1) for i in range(8)]
    assert "m4 (1 example) and 3 others." in notes(models)


# -- real data ----------------------------------------------------------------------


def test_mean_replacement_of_a_real_network_is_lowest_but_never_bold(data):
    file = data("cifar10_akamaster_resnet32")
    z, y = file["logits"].astype(float), file["labels"]
    q = float((z.argmax(axis=1) == y).mean()) - 0.002
    probs = np.full(z.shape, (1 - q) / (z.shape[1] - 1))
    probs[np.arange(len(z)), z.argmax(axis=1)] = q
    found = Comparison(
        (
            cal.evaluate(y, logits=z, name="network"),
            cal.evaluate(y, logits=z / 1.6, name="temperature"),
            cal.evaluate(y, probs=probs, name="mean"),
        )
    )
    made = make_table(found, Style())
    for place, heading in enumerate(made.headings):
        network, temperature, mean = (row.cells[place] for row in made.rows)
        if MEASURES[heading.key].calibration:
            assert mean.value < temperature.value < network.value
            assert (mean.best, mean.trivial, temperature.best) == (False, True, True)
        elif heading.key == "accuracy":
            assert network.best
            assert temperature.best
            assert mean.best
        else:
            assert temperature.best
            assert mean.value > network.value


def test_columns_may_have_the_names_that_are_printed():
    ev = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7])
    keys = ["calibration", "sharpness_gap", "smooth_ece", "accuracy"]
    for names in (
        ["d_CAL", "gap", "smECE", "Acc"],
        ["d_cal", "Sharpness gap", "SmoothECE", "ACC"],
    ):
        assert table(ev, columns=names) == table(ev, columns=keys)
    with pytest.raises(ValueError, match="columns has no 'UNC'"):
        table(ev, columns=["UNC"])


def test_an_infinite_loss_is_no_note_of_a_table_without_the_column():
    assert "NLL is infinite" in table(small(), columns=["nll", "brier"])
    assert "NLL is infinite" not in table(small(), columns=["brier", "calibration"])


def test_a_minus_in_a_note_of_latex_is_no_hyphen():
    text = table(studied(), "latex", columns=["brier"])
    assert "accuracy $-$1.32" in text
    assert "top-label" not in text or "top$-$label" not in text


def of_test_set(seed, k=3, name="model"):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), 200)
    y = (probs.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    return cal.evaluate(y, probs=probs, name=name)


@pytest.mark.parametrize(
    "other", [of_test_set(2, name="b"), of_test_set(1, 5, name="b")]
)
def test_models_of_different_test_sets_have_no_best(other):
    text = " ".join(table([of_test_set(1, name="a"), other]).split())
    assert "*" not in text
    assert "tested on different examples: no best is marked." in text
    assert "no best" not in table([of_test_set(1, name="a"), other], best=False)


def test_pairs_of_as_many_other_ids_have_no_best():
    a, b = (
        replace(cal.evaluate_pairs(y, p, name=n), fingerprint=f"ids {n}")
        for n, y, p in (("a", [1, 0], [0.9, 0.1]), ("b", [1, 1], [0.6, 0.7]))
    )
    assert "no best is marked" in " ".join(table([a, b]).split())
    same = replace(b, fingerprint=a.fingerprint)
    assert "no best is marked" not in " ".join(table([a, same]).split())


def test_the_best_is_marked_within_each_test_set():
    models = {}
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 300)
        for name, noise in (("sharp", 0.2), ("dull", 0.4)):
            p = np.clip(y + rng.normal(0, noise, 300), 0.01, 0.99)
            models[f"{seed}: {name}"] = cal.evaluate(y, probs=p)
    text = table(models, columns=["brier"])
    assert [line.endswith("*") for line in text.splitlines()[2:6]] == [True, False] * 2
    assert "the best is marked among models of the same examples" in " ".join(
        text.split()
    )


def test_models_of_the_same_examples_keep_one_best():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    both = {
        name: cal.evaluate(y, probs=np.clip(y + rng.normal(0, w, 300), 0.01, 0.99))
        for name, w in (("a", 0.2), ("b", 0.4))
    }
    assert table(both, columns=["brier"]).count("*") == 2  # the mark, and what it means
    assert "different examples" not in table(both)


def test_models_of_two_targets_have_each_their_own_notes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 60)
    y = rng.integers(0, 3, 60)
    top = cal.evaluate(y, probs=p, interval=None)
    one = cal.evaluate(y[:40] == 1, probs=p[:40, 1], interval=None)
    text = " ".join(table({"a": top, "b": top, "c": one}).split())
    assert "Brier of a and b is summed over the classes: 0 to 200." in text
    assert "Brier of c is of class 1 alone: 0 to 100." in text
    assert "differ in target: a and b (top-label) and c (positive)" in text
    assert "differ in number of examples: a and b (60) and c (40)" in text


def test_a_constant_that_is_not_lower_has_no_dagger():
    """Below 0 all is 0, but 0.00 beside -0.01 is not lower."""
    measure = MEASURES["calibration"]
    cells = [
        Cell(x, text, "", nan, nan) for x, text in ((-1e-4, "-0.01"), (1e-6, "0.00"))
    ]
    best, constant = _marked(cells, measure, [False, True], Style())
    assert best.best
    assert not constant.trivial
    cells = [replace(cells[0], text="0.00"), replace(cells[1], text="-0.02")]
    assert _marked(cells, measure, [False, True], Style())[1].trivial


def of_target(target, name, divergence="brier"):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 120)
    y = (probs.cumsum(axis=1) < rng.random((120, 1))).sum(axis=1)
    about = {"target": target, "divergence": divergence, "name": name}
    return cal.evaluate(y, probs=probs, interval=None, **about)


CLASS_WISE = (
    "is class-wise, each class against the rest: ECE, ACE and SmoothECE are averaged over "
    "the classes; d_CAL and sharpness gap are summed."
)


def test_a_table_of_class_wise_numbers_says_so():
    every, top = of_target("class-wise", "every"), of_target("top-label", "top")
    for format_ in ("text", "markdown", "latex", "html"):
        text = " ".join(table(every, format_).split())
        assert "The target is class-wise, each class against the rest: ECE, ACE" in text
        assert "class-wise" not in table(top, format_)
    assert f"The target {CLASS_WISE}" in " ".join(table(every).split())
    assert f"The target {CLASS_WISE.split('ECE')[0]}ECE" in build(every)
    assert f"The target of every {CLASS_WISE}" in " ".join(table([every, top]).split())
    assert "class-wise" not in table(every, columns=["accuracy", "brier"])


def test_numbers_for_programs_say_that_they_are_class_wise():
    every, top = of_target("class-wise", "every"), of_target("top-label", "top")
    head, one, two = csv.reader(io.StringIO(table([every, top], "csv"), newline=""))
    assert head[:2] == ["model", "target"]
    assert (one[1], two[1]) == ("class-wise", "top-label")
    for frame in (
        table([every, top], "frame"),
        cal.Comparison((every, top)).frame(),
        every.frame(),
    ):
        assert list(frame)[:2] == ["model", "target"]
        assert next(iter(frame["target"])) == "class-wise"
    assert "target" not in table(top, "csv")
    assert "target" not in list(top.frame()) + list(cal.Comparison((top,)).frame())


def test_a_study_of_every_class_says_so():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 200)
    y = (probs.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    about = {"target": "class-wise", "interval": None}
    found = cal.study(y, probs=probs, methods=["temperature"], **about)
    assert "The target is class-wise" in " ".join(found.table("latex").split())


def test_models_of_different_targets_have_no_best():
    top, every = of_target("top-label", "top"), of_target("class-wise", "every")
    text = " ".join(table([top, every]).split())
    assert "*" not in text
    assert "(class-wise). No best is marked." in text
    assert r"\textbf" not in table([top, every], "latex")
    assert "<strong>" not in table([top, every], "html")
    assert "o best" not in table([top, every], best=False)
    page = build([top, every])
    assert 'class="best"' not in page
    assert "● best" not in page
    assert "has the lowest" not in page
    assert "top (top-label) and every (class-wise). No best is marked." in page
    third = replace(of_target("top-label", "third"), name="third")
    text = " ".join(table([top, every, third]).split())
    assert "The best is marked among models of the same target." in text
    marks = [line.count("*") for line in table([top, every, third]).splitlines()[2:5]]
    assert marks == [8, 0, 8]


def test_models_of_different_divergences_have_no_best_part():
    brier, log = (of_target("top-label", x, x) for x in ("brier", "log"))
    for made in (make_table([brier, log], Style()), make_table([log, brier], Style())):
        best = [[cell.best for cell in row.cells] for row in made.rows]
        keys = [heading.key for heading in made.headings]
        apart = [key in ("calibration", "sharpness_gap", "total") for key in keys]
        assert best == [[not x for x in apart]] * 2
    told = "brier (brier) and log (log). No best d_CAL and sharpness gap is marked."
    assert told in " ".join(table([brier, log]).split())
    assert told in build([brier, log])
    assert "No best" not in table([brier, log], columns=["ece"])


def of_parts(name, total, calibration):
    """A model whose score and d_CAL are these, to be told apart by what is left."""
    ev = of_target("top-label", name)
    parts = ev.decompositions["brier"]
    known = {"total": Estimate(total), "calibration": Estimate(calibration)}
    parts = replace(parts, **known, gap=None)
    metrics = {**ev.metrics, "brier": Estimate(total)}
    every = {**ev.decompositions, "brier": parts}
    return replace(ev, metrics=metrics, decompositions=every)


def test_gaps_that_print_alike_are_marked_alike():
    """Printed as what d_CAL leaves of the score, 12.79 and 12.77 may both read 12.78."""
    low, high = (
        of_parts("low", 0.134964, 0.007247),
        of_parts("high", 0.136637, 0.008751),
    )
    made = make_table([low, high], Style(), columns=["sharpness_gap"])
    cells = [row.cells[0] for row in made.rows]
    assert [fixed(100 * cell.value, 2) for cell in cells] == ["12.77", "12.79"]
    assert [cell.text for cell in cells] == ["12.78", "12.78"]
    assert [cell.best for cell in cells] == [True, True]


def test_no_best_among_estimates_of_d_cal_that_differ() -> None:
    """The fixed bandwidth smooths errors away: its lower d_CAL is not the better one."""
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 600)
    y = (rng.random(600) < h**2).astype(int)
    fixed = cal.evaluate(y, probs=h, preset="paper", name="fixed")
    adaptive = cal.evaluate(y, probs=h**1.2, name="adaptive")
    text = " ".join(table([fixed, adaptive], columns=["brier", "calibration"]).split())
    for column in ("calibration", "smooth_ece"):
        rows = table([fixed, adaptive], columns=column).splitlines()
        assert not any("*" in line for line in rows[2:4])
    assert (
        "of fixed it is the direct gaussian kernel estimate of bandwidth 0.05" in text
    )
    assert "of adaptive it is the debiased adaptive estimate" in text
    told = " ".join(table([fixed, adaptive], columns="smooth_ece").split())
    assert "SmoothECE of fixed is computed as relplot does" in told


def test_the_debiased_ece_is_said_to_be_a_root_mean_square() -> None:
    h = np.full(200, 0.5)
    ev = cal.evaluate_pairs(np.arange(200) % 2, np.where(h.cumsum() < 10, 0.95, h))
    assert ev.metrics["ece_debiased"] > ev.metrics["ece"]
    for columns in ("all", "ece_debiased"):
        text = " ".join(table(ev, columns=columns).split())
        assert "ECE (debiased) is a root mean square over bins of equal mass" in text
    assert "root mean square" not in table(ev)


def test_stated_confidences_have_no_true_class_of_probability_0() -> None:
    stated = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 1.0, 0.8, 0.7], name="stated")
    text = " ".join(table(stated).split())
    why = "an answer of confidence 1 was wrong, or one of confidence 0 correct"
    assert f"NLL is infinite where {why}: stated (1 example)." in text
    classes = cal.evaluate([0, 1, 0], probs=[[1, 0, 0]] * 3, name="classes")
    text = " ".join(table([stated, classes]).split())
    assert f"where {why}: stated (1 example)." in text
    assert "where a true class was given probability 0: classes (1 example)." in text


def over_confident(**options):
    """A model that is too sure, evaluated with some options."""
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 600)
    y = (rng.random(600) < h**2).astype(int)
    probs = np.column_stack([1 - h, h])
    return cal.evaluate(y, probs=probs, target="top-label", **options)


DEPENDING = {
    "bins": ("ece", "ace", "mce", "top_label_ece", "ece_mass"),
    "closed": ("ece", "ace", "mce", "top_label_ece"),
    "bandwidth": ("calibration", "sharpness_gap"),
    "divergence": ("calibration", "sharpness_gap", "total"),
    "counterpart": ("calibration", "sharpness_gap"),
}


@pytest.mark.parametrize(
    ("option", "other"),
    [
        ("bins", 10),
        ("closed", "left"),
        ("bandwidth", 0.05),
        ("divergence", "log"),
        ("counterpart", "tight"),
        ("level", 0.9),
    ],
)
def test_no_best_in_the_columns_that_depend_on_an_option(option, other):
    """Numbers of one name but of two kinds cannot be ranked; all others can."""
    one = over_confident(name="a")
    two = over_confident(name="b", **{option: other})
    made = make_table([one, two], Style(), columns="all")
    marked = {
        heading.key
        for heading, *cells in zip(
            made.headings, *(x.cells for x in made.rows), strict=True
        )
        if any(cell.best for cell in cells)
    }
    keys = {heading.key for heading in made.headings}
    assert keys - marked == {*DEPENDING.get(option, ())} & keys


@pytest.mark.parametrize("option", ["kernel", "boundary", "estimator"])
def test_no_best_among_kernel_estimates_of_two_kinds(option):
    other = {"kernel": "epanechnikov", "boundary": "reflect", "estimator": "plugin"}
    one = over_confident(name="a", bandwidth=0.05)
    two = over_confident(name="b", bandwidth=0.05, **{option: other[option]})
    made = make_table([one, two], Style(), columns=["calibration", "brier"])
    assert [[x.best for x in row.cells] for row in made.rows] == [[False, True]] * 2
    said = {
        "kernel": "b it is the direct epanechnikov kernel estimate of bandwidth 0.05.",
        "boundary": "b it is the direct gaussian kernel estimate of bandwidth 0.05, reflected at 0 and 1.",
        "estimator": "b it is the plug-in gaussian kernel estimate of bandwidth 0.05.",
    }
    text = notes([one, two], columns=["calibration", "brier"])
    assert f"cannot be compared: of a it is the direct gaussian kernel estimate of bandwidth 0.05; of {said[option]}" in text  # fmt: skip


def test_preset_and_its_bandwidth_are_one_estimate():
    models = [
        over_confident(name="a", preset="paper"),
        over_confident(name="b", bandwidth=0.05),
    ]
    made = make_table(models, Style(), columns=["calibration"])
    assert all(row.cells[0].best for row in made.rows)


def test_bins_that_differ_are_told_by_model():
    models = [over_confident(name=f"b{bins}", bins=bins) for bins in (15, 10)]
    text = notes(models, columns=["ece", "ace", "ece_mass"])
    assert "ECE and ACE do not use the same bins, and cannot be compared: of b15 15 bins of equal width; of b10 10 bins of equal width." in text  # fmt: skip
    assert "ECE (equal mass) does not use the same bins, and cannot be compared: of b15 15 bins; of b10 10 bins." in text  # fmt: skip
    ends = [over_confident(name=x, closed=x) for x in ("right", "left")]
    text = notes(ends, columns=["ece", "ece_mass"])
    assert "of right 15 bins of equal width (closed on the right); of left 15 bins of equal width (closed on the left)." in text  # fmt: skip
    assert "ECE (equal mass) uses 15 bins." in text


def test_levels_that_differ_are_told_by_model():
    models = [over_confident(name=x, level=float(x)) for x in ("0.95", "0.9")]
    text = make_table(models, Style(intervals=True)).notes[-1].text
    assert "In brackets: intervals of 95% (0.95) and 90% (0.9): " in text


def test_the_sum_is_told_by_model_where_divergences_differ():
    models = [over_confident(name=x, divergence=x) for x in ("brier", "log")]
    sum_ = "d_CAL (calibration error) + sharpness gap = Brier (brier) and NLL (log), up to rounding"
    assert sum_ in notes(models)


def test_the_tight_counterpart_is_told():
    tight = over_confident(name="tight", counterpart="tight")
    text = notes([over_confident(name="plain"), tight])
    how = "is the debiased adaptive estimate, times k / (k - 1) (tight counterpart)"
    assert f"of plain it is the debiased adaptive estimate; of tight it {how}." in text
    assert f"d_CAL {how}." in notes(tight)


def test_smooth_ece_of_two_conventions_is_told():
    models = [
        over_confident(name="ours"),
        over_confident(name="theirs", preset="paper"),
    ]
    told = "SmoothECE of theirs is computed as relplot does, and cannot be compared with the others."
    assert told in notes(models)


@pytest.mark.parametrize("seed", [2, 7])
def test_the_best_gap_is_the_least_that_is_printed(seed):
    rng = np.random.default_rng(seed)
    t = 1.5 * rng.normal(size=3000)
    y = (rng.random(3000) < 1 / (1 + np.exp(-t))).astype(int)
    p = 1 / (1 + np.exp(-1.8 * t - 0.3))
    methods = ["temperature", "platt", "isotonic"]
    study = cal.study(y[:900], y[900:], probs=(p[:900], p[900:]), methods=methods)
    text = table(study, "markdown", columns=["sharpness_gap"])
    cells = [row[-1] for row in cells_of_markdown(text)[1:]]
    printed = [float(cell.strip("*")) for cell in cells]
    assert [cell.startswith("**") for cell in cells] == [
        x == min(printed) for x in printed
    ]
