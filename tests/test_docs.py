"""The documentation: every block runs, every link leads somewhere, nothing lacks an example."""

import inspect
import lzma
import re
import runpy
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pages import Page, blocks_of, is_python, packages_of

import calibrant
from calibrant import plot, recalibration

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MADE = {"_build", "generated"}
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if not MADE & set(path.relative_to(DOCS).parts)
)
GALLERY = sorted(path.name for path in (DOCS / "gallery").glob("plot_*.py"))
CASES = sorted(path.name for path in (DOCS / "cases").glob("plot_*.py"))
LANGUAGES = {"python", "console", "text", "yaml", "json", "bibtex"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
EXAMPLES = re.compile(r"^Examples\n-+\n(.*?)(?=^\w+\n-+$|\Z)", re.DOTALL | re.MULTILINE)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def read(name):
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own for a page, and no window for its figures."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    import matplotlib.pyplot as plt

    with plt.rc_context():
        yield tmp_path
    plt.close("all")


# -- code ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_page_prints_what_it_shows(name, folder, part):
    text = read(name)
    packages = packages_of(blocks_of(text))
    for package in packages:
        part(package)
    page = Page(text, folder, name).run()
    # What others train is the same only nearly, on other machines and versions.
    wrong = page.wrong(exact=not packages)
    assert not wrong, "\n".join(wrong) + f"\nrun python tests/pages.py docs/{name}"


def test_readme_runs(folder):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2000, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p, q = (np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (z, 2 * z))
    given = {"y": y, "p": p, "q": q, "y_cal": y[:500], "y_test": y[500:]}
    given |= {"z_cal": z[:500], "z_test": z[500:], "z": z, "labels": y, "logits": z}
    given["batches"] = [(y[:900], z[:900]), (y[900:1500], z[900:1500])]
    given["other"] = calibrant.study(y, logits=z, split=0.2)
    given["other_sketch"] = calibrant.Sketch().update(y[1500:], logits=z[1500:])
    np.savez(folder / "predictions.npz", logits=z, labels=y)
    write_parquet(folder / "other.parquet", p, y)
    page = Page(with_languages(text), folder, "README.md", given).run()
    assert page.variables["found"].best("brier").name
    for command in re.findall(r"^    (calibrant .*)$", text, re.MULTILINE):
        code = re.search(r"# exit code (\d)$", command)
        told = page.shell(f"cd {folder}\n{command}\necho $?").splitlines()[-1]
        assert told == (code[1] if code else "0"), command


def with_languages(text):
    """The README, with fences of Python that do not say so made to say so."""

    def label(match):
        return f"```python\n{match[1]}```" if is_python(match[1]) else match[0]

    return re.sub(r"^```\n(.*?)^```$", label, text, flags=re.DOTALL | re.MULTILINE)


def write_parquet(path, probs, labels):
    import duckdb

    columns = ", ".join(f"unnest($c{j}) AS p_{j}" for j in range(probs.shape[1]))
    given = {f"c{j}": column.tolist() for j, column in enumerate(probs.T)}
    with duckdb.connect() as db:
        db.execute(
            f"CREATE TABLE t AS SELECT {columns}, unnest($y) AS label",
            {**given, "y": labels.tolist()},
        )
        db.execute(f"COPY t TO '{path}' (FORMAT parquet)")


@pytest.mark.parametrize("name", PAGES)
def test_blocks_say_what_they_are(name):
    """So that none is left out: no fence without a language, no indented command."""
    text = read(name)
    found = {block.language for block in blocks_of(text)}
    assert {x for x in found if x not in LANGUAGES and not x.startswith("{")} == set()
    if (
        name != "vision.md"
    ):  # its commands fetch weights; tests/test_vision.py has others
        assert (
            re.findall(r"^    (?:calibrant|pip|python) .*$", text, re.MULTILINE) == []
        )


@pytest.mark.parametrize("name", GALLERY)
def test_gallery_runs(name, folder, part, monkeypatch):
    part("sklearn")
    monkeypatch.chdir(folder)
    runpy.run_path(str(DOCS / "gallery" / name))


@pytest.mark.parametrize("name", CASES)
def test_case_study_runs(name, folder, monkeypatch):
    monkeypatch.chdir(DOCS / "cases")  # where its record is
    runpy.run_path(name)


RANKED = ("auroc", "aurc", "excess_aurc", "augrc")
"""Of confidences that are equal but for round-off, it says which comes first."""


def test_records_of_the_case_studies_are_those_of_the_data(data, monkeypatch):
    """All but the figures of intervals, which machines may round differently.

    So does the compiled engine: logits in single precision are reduced in that.
    """
    monkeypatch.setenv("CALIBRANT_ENGINE", "numpy")
    data("cifar10_akamaster_resnet32")
    made = runpy.run_path(str(DOCS / "cases" / "record.py"))
    for name, make in made["CASES"].items():
        kept = lzma.decompress((DOCS / "cases" / f"{name}.json.xz").read_bytes())
        again = make()
        found = type(again).from_json(kept)
        single = isinstance(again, calibrant.Evaluation)
        pairs = ([found], [again]) if single else (found, again)
        for old, new in zip(*pairs, strict=True):
            for key, value in new.metrics.items():
                close = 1e-3 if key in RANKED else 1e-9
                near = pytest.approx(value, rel=close, abs=1e-12)
                assert old.metrics[key] == near, (name, key)


def test_numbers_quoted_of_real_networks(data):
    """Those in running text; tables and blocks are checked elsewhere."""
    file, page = data("cifar10_akamaster_resnet32"), read("explanation/metrics.md")
    given = {"y": file["labels"], "logits": file["logits"]}
    theirs = calibrant.smooth_ece(**given, compat="relplot")
    ours = calibrant.smooth_ece(**given)
    assert f"relplot says {theirs:.3f} where {ours:.3f} is right" in " ".join(
        page.split()
    )
    row = re.search(r"^\| Uncalibrated .*$", read("recalibration.md"), re.MULTILINE)[0]
    ece, ace = [cell.strip() for cell in row.split("|")][3:5]
    assert f"has {ece} and {ace}." in " ".join(page.split())


def test_the_install_page_lists_every_extra():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| (`.*?) \|", read("install.md"), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == set(settings["project"]["optional-dependencies"])


# -- words and formulas -------------------------------------------------------------

DIALECT = (
    "beside the headline",
    "hang together",
    "of what?",
    "share of hits",
    "sums that stand for rows",
    "to be had",
    "got back",
    "says the same of every row",
    "in the manner of",
    "a yardstick",
)


@pytest.mark.parametrize("name", ["../README.md", *PAGES])
def test_pages_are_in_plain_english(name):
    text = " ".join(prose(read(name)).lower().split())
    assert [words for words in DIALECT if words in text] == []


def test_formulas_are_typeset_without_a_network():
    settings = read("conf.py")
    assert 'html_math_renderer = "mathml"' in settings
    assert "mathjax" not in settings
    for name in ("method.md", "divergences.md", "explanation/metrics.md"):
        assert prose(read(name)).count("$$") >= 2, name


# -- links --------------------------------------------------------------------------


def prose(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(path):
    """The anchors of a page's headings, as GitHub and MyST make them."""
    seen, found = {}, set()
    for heading in HEADING.findall(prose(path.read_text(encoding="utf-8"))):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def broken_links(path):
    for link in LINK.findall(prose(path.read_text(encoding="utf-8"))):
        if re.match(r"https?:|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        name = re.sub(r"\bgenerated/(cases/\w+)$", r"\1.py", name)  # made of scripts
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize(
    "name", [*(f"docs/{page}" for page in PAGES), "README.md", "CONTRIBUTING.md"]
)
def test_links_lead_somewhere(name):
    assert list(broken_links(ROOT / name)) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n[a](#a-title) [b](#b) [c](other.md) [d](page.md#a-title)"
    )
    assert list(broken_links(page)) == ["#b", "other.md"]


def listed(name):
    """The pages in the contents of a page."""
    for entry in "\n".join(TOCTREE.findall(read(name))).split():
        path = (DOCS / name).parent / f"{entry}.md"
        if path.is_file():
            yield path.resolve().relative_to(DOCS).as_posix()


def test_every_page_is_in_the_contents_of_another():
    assert {page for name in PAGES for page in listed(name)} == {*PAGES} - {"index.md"}


def test_every_finding_has_its_answer_among_the_pitfalls():
    codes = set(re.findall(r"^### `([\w-]+)`$", read("audit.md"), re.MULTILINE))
    assert codes
    answered = set(re.findall(r"\[`([\w-]+)`\]", read("explanation/pitfalls.md")))
    assert codes - answered == set()


# -- examples -----------------------------------------------------------------------

RESULTS = (
    calibrant.Evaluation,
    calibrant.Comparison,
    calibrant.Study,
    calibrant.Contrast,
)
RECALIBRATORS = [
    getattr(recalibration, name)
    for name in recalibration.__all__
    if name not in ("FitWarning", "Recalibrator", "load")
]
OURS = [getattr(calibrant, name) for name in calibrant.__all__]
PUBLIC = [
    *(x for x in OURS if not inspect.ismodule(x)),
    *(getattr(plot, name) for name in plot.__all__),
    *RECALIBRATORS,
    recalibration.load,
]


def examples(thing):
    """The Examples section of a docstring, up to the next section."""
    found = EXAMPLES.search(inspect.getdoc(thing))
    return found[1] if found else ""


@pytest.mark.parametrize(
    "thing",
    PUBLIC,
    ids=lambda x: type(x).__name__ if isinstance(x, dict) else x.__name__,
)
def test_public_name_shows_an_example(thing):
    assert ">>> " in examples(thing)


def methods_of(cls):
    """Public methods that are ours, wherever in the class's ancestry they stand."""
    for owner in inspect.getmro(cls):
        if owner.__module__.startswith("calibrant."):
            for name, value in vars(owner).items():
                callable_ = inspect.isfunction(value) or isinstance(value, classmethod)
                if callable_ and not name.startswith("_"):
                    yield name, getattr(owner, name)


@pytest.mark.parametrize("cls", RESULTS, ids=lambda cls: cls.__name__)
def test_methods_of_results_are_shown(cls):
    """In an example of their own, or in that of the class or one it derives from."""
    shown = "".join(examples(owner) for owner in inspect.getmro(cls)[:-1])
    missing = [
        name
        for name, method in methods_of(cls)
        if f".{name}(" not in shown + examples(method)
    ]
    assert missing == []


def test_methods_of_recalibrators_are_shown():
    """They share most methods: one example of each will do."""
    shown = "".join(map(examples, (*RECALIBRATORS, recalibration.load)))
    missing = {
        name
        for cls in RECALIBRATORS
        for name, method in methods_of(cls)
        if f".{name}(" not in shown + examples(method)
    }
    assert missing == set()
