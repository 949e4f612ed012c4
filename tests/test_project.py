"""What must hold of the project as a whole: names, imports, files, README."""

import ast
import contextlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
VERSION = calibrant.__version__
PARTS = [n for n in calibrant.__all__ if inspect.ismodule(getattr(calibrant, n))]
NAMES = [n for n in calibrant.__all__ if n not in PARTS]
FUNCTIONS = [n for n in NAMES if inspect.isroutine(getattr(calibrant, n))]
HEAVY = {
    "PIL",
    "click",
    "dask",
    "datasets",
    "duckdb",
    "matplotlib",
    "narwhals",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "timm",
    "torch",
    "torchmetrics",
    "torchvision",
}

# Machine paths and package indexes have no place in a repository.
PRIVATE = re.compile(r"/(?:work|root|farm)/|(?:pypi|pythonhosted|pytorch)\.org")


# -- names ------------------------------------------------------------------------


def test_all_is_exactly_the_public_names():
    ours = {
        name
        for name in dir(calibrant)
        if getattr(getattr(calibrant, name), "__module__", "").startswith("calibrant.")
    }
    assert ours == set(NAMES)
    assert len(calibrant.__all__) == len(set(calibrant.__all__))


@pytest.mark.parametrize("name", NAMES)
def test_public_name_is_documented(name):
    assert inspect.getdoc(getattr(calibrant, name))
    assert name in reference_names()


def reference_names():
    """Names in the directives of the reference; elsewhere on the page they are text."""
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\{eval-rst\}$(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return set(re.findall(r"^ {3}(\w+)$", "\n".join(blocks), re.MULTILINE))


def test_every_heading_of_the_reference_has_its_own_directive():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for section in page.split("\n## ")[1:]:
        assert section.count("```{eval-rst}") == section.count(":caption:") == 1, (
            section
        )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_shows_an_example(name):
    doc = inspect.getdoc(getattr(calibrant, name))
    assert "Examples\n--------\n>>> " in doc


# -- imports ----------------------------------------------------------------------


def heavy_after(code):
    """Run code in a new interpreter; say which heavy packages it loaded."""
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return HEAVY & set(run.stdout.split())


def test_import_loads_nothing_heavy():
    assert heavy_after("import calibrant") == set()


def test_the_test_above_can_fail():
    assert heavy_after("import calibrant, scipy") == {"scipy"}


# -- files ------------------------------------------------------------------------


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {VERSION}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{VERSION}]" in changelog


def repository_files():
    """Tracked files and new ones that git would not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted({ROOT / name for name in run.stdout.split("\0") if name})


def test_no_file_names_a_machine_or_an_index(absent):
    if not (ROOT / ".git").exists():
        absent("not a git checkout: clone the repository")
    found = []
    for path in repository_files():
        with contextlib.suppress(UnicodeDecodeError, FileNotFoundError):
            text = path.read_text(encoding="utf-8")
            found += [(path.name, match[0]) for match in PRIVATE.finditer(text)]
    assert found == []


def test_private_text_is_recognised():
    for text in ["/ro" + "ot/x", "/wo" + "rk/main", "https://py" + "pi.org/simple"]:
        assert PRIVATE.search(text)


TESTS = sorted(path.name for path in (ROOT / "tests").glob("*.py"))
GENERATORS = {"default_rng", "RandomState", "Generator", "Random"}


def kept_generators(text):
    """Names that a module binds to a generator of random numbers."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            function = node.value.func
            called = getattr(function, "attr", getattr(function, "id", None))
            if called in GENERATORS:
                yield ast.unparse(node.targets[0])


@pytest.mark.parametrize("name", TESTS)
def test_no_generator_is_shared_by_tests(name):
    """Else what a test draws depends on the tests before it; `make.py` has rows."""
    assert list(kept_generators((ROOT / "tests" / name).read_text("utf-8"))) == []


def test_a_shared_generator_is_found():
    text = "rng = np.random.default_rng(0)\nP = np.random.default_rng(0).random(3)"
    assert list(kept_generators(text)) == ["rng"]


# -- README -----------------------------------------------------------------------


def readme_blocks():
    """Fenced blocks of the README, by the last heading or bold word before them."""
    found = re.split(r"^(?:## (.+)|\*\*(\w+)\.\*\*)", README, flags=re.MULTILINE)
    fence = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    parts = zip(found[1::3], found[2::3], found[3::3], strict=True)
    return {heading or word: fence.findall(text) for heading, word, text in parts}


WORDS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
]


def test_readme_counts_the_recalibration_methods():
    """All that the package has but the two yardsticks."""
    package = calibrant.recalibration
    base = package.Recalibrator
    kinds = [getattr(package, name) for name in package.__all__]
    methods = {
        kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, base)
    }
    methods -= {base, package.Identity, package.MeanReplacement}
    (said,) = re.findall(r"`calibrant\.recalibration` has (\w+) of them", README)
    assert WORDS.index(said) + 10 == len(methods)


def test_readme_shows_picture_install_use_and_claims_before_anything_else():
    """On the first screen; then the two commands to try."""
    top, _, rest = README.partition("## Try it")
    places = [top.index(x) for x in ("](docs/images/", "**Install.**", "**Use.**")]
    assert places == sorted(places)
    assert "not on PyPI" in top
    assert len(top.splitlines()) <= 50
    blocks = readme_blocks()
    assert blocks["Install"] == ["pip install .\n"]
    assert len(blocks["Use"][0].splitlines()) <= 6
    claims = re.findall(r"^- \*\*[^-]*?\*\* .*", top, re.MULTILINE)
    assert len(claims) == 3
    assert blocks["Try it"][0].splitlines() == ["make demo", "make test"]
    assert "<!-- benchmarks" not in rest


def readme_tool(name):
    tool = [sys.executable, ROOT / "tools" / name, "--check"]
    return subprocess.run(tool, check=False, capture_output=True, text=True)


@pytest.mark.slow
def test_audit_page_is_that_of_the_rules():
    run = readme_tool("audit_page.py")
    assert run.returncode == 0, run.stderr


def test_tables_of_the_recalibration_page_are_those_of_the_studies(data):
    run = readme_tool("docs_tables.py")
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_readme_example_prints_what_it_shows():
    run = readme_tool("readme_example.py")
    assert run.returncode == 0, run.stderr


def test_readme_claims_are_those_of_the_runs():
    run = readme_tool("readme_claims.py")
    assert run.returncode == 0, run.stderr
