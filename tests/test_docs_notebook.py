"""Notebooks, in a real kernel: figures appear, and results show all that they print."""

import base64
import pickle
import re
from html import unescape

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from pages import ROOT, blocks_of

import calibrant as cal
from calibrant import plot
from calibrant._views.words import SHOWN_BY_TABLES

SETUP = """
import numpy as np, calibrant as cal
from calibrant import plot
rng = np.random.default_rng(0)
z = 2 * rng.normal(size=(600, 3))
y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
ev = cal.evaluate(y, logits=2 * z, name="network", resamples=100)
other = cal.evaluate(y, logits=z, name="tempered", resamples=100)
"""
FIGURES = (
    "ev.plot()",
    "cal.compare(ev, other).plot();",
    "plot.reliability(ev)",
    "plot.corp(ev)",
    "plot.score_map([ev, other])",
    "import matplotlib.pyplot as plt\nev.plot()\nplt.show()",
)


@pytest.fixture(scope="module")
def notebook(part):
    """Cells after their run, by source, each of which the kernel has answered."""
    return run([SETUP, *FIGURES, "plt.get_fignums()", "ev"], part)


def run(sources, part):
    """The outputs of cells, by source, from a kernel of its own."""
    nbformat, client = part("nbformat"), part("nbclient")
    part("ipykernel")
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    page = nbformat.v4.new_notebook(cells=cells)
    client.NotebookClient(page, timeout=300).execute()
    return {cell.source: cell.outputs for cell in page.cells}


def test_figures_appear_in_their_cell_and_once(notebook):
    for source in FIGURES:
        found = [out["data"] for out in notebook[source] if "data" in out]
        pictures = [data["image/png"] for data in found if "image/png" in data]
        assert len(pictures) == 1, source
        assert base64.b64decode(pictures[0])[:4] == b"\x89PNG"
    (open_ones,) = notebook["plt.get_fignums()"]
    assert open_ones["data"]["text/plain"] == "[]"


def test_a_notebook_shows_the_table_and_what_stands_out(notebook):
    (shown,) = notebook["ev"]
    assert "<table" in shown["data"]["text/html"]
    assert "network is miscalibrated" in shown["data"]["text/html"]


def test_the_notebook_page_shows_tables_and_figures(part):
    part("pandas")
    text = (ROOT / "docs" / "howto" / "notebooks.md").read_text(encoding="utf-8")
    sources = [block.body for block in blocks_of(text) if block.language == "python"]
    shown = {
        source: kinds_of(outputs) for source, outputs in run(sources, part).items()
    }
    figures = [source for source in sources if ".plot()" in source or "plot." in source]
    assert len(figures) >= 5
    assert [shown[source].count("image/png") for source in figures] == [1] * len(
        figures
    )
    others = [source for source in sources if source not in figures]
    assert all("text/html" in shown[source] for source in others)


def kinds_of(outputs):
    """The kinds of all that a cell displays."""
    return [kind for out in outputs for kind in out.get("data", ())]


# -- outside of a kernel ------------------------------------------------------------------


def models():
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(400, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    one, two = (
        cal.evaluate(y, logits=t * z, name=f"<b>{t}</b>", resamples=100) for t in (1, 3)
    )
    return y, z, one, two


def untold(finding):
    """Whether the tables of a comparison do not tell it themselves."""
    return finding.code not in SHOWN_BY_TABLES


def bare(html):
    """The text of a piece of HTML, without spaces."""
    return re.sub(r"\s", "", unescape(re.sub(r"<[^>]*>", "", html)))


def test_html_has_every_sentence_that_is_printed():
    y, z, one, two = models()
    study = cal.study(y, logits=z, split=0.5, methods="temperature")
    found = cal.compare(one, two)
    expected = (
        (one, [*(f.text for f in one.audit()), "paper's estimator"]),
        (study, [study.protocol, *(f.text for f in study.audit() if untold(f))]),
        (found, [*found.sentences]),
        (cal.calibration_test(y, logits=z), ["calibrat"]),
        (cal.calibration_bracket(y, logits=z), ["in-sample"]),
        (cal.Sketch().update(y, logits=z), ["examples 400"]),
    )
    for result, texts in expected:
        html = result._repr_html_()
        assert "<b>" not in html
        for text in texts:
            assert re.sub(r"\s", "", text) in bare(html), text


def test_a_script_leaves_no_figure_open():
    assert mpl.get_backend().lower() == "agg"
    before = plt.get_fignums()
    figure = plot.reliability(models()[2])
    assert plt.get_fignums() == before
    assert figure is not None


def test_a_figure_can_be_pickled():
    figure = models()[2].plot().figure
    again = pickle.loads(pickle.dumps(figure))
    assert again.alt_text == figure.alt_text


def test_weights_and_biases_logs_a_figure(part, tmp_path, monkeypatch):
    wandb = part("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(mode="offline", dir=tmp_path, project="calibrant") as run:
        run.log({"diagram": wandb.Image(models()[2].plot().figure)})
    assert list(tmp_path.rglob("diagram_*.png"))
