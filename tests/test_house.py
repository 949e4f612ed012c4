"""The house: its rules hold, and the script that says so would see it if they did not."""

import ast
import json
import re
import runpy
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "house.py"


@pytest.fixture(scope="module")
def tool():
    name = "house_of_the_tests"  # dataclasses look their module up
    sys.modules[name] = module = SimpleNamespace()
    vars(module).update(runpy.run_path(str(TOOL), run_name=name))
    yield module
    del sys.modules[name]


@pytest.fixture
def build(tool, tmp_path):
    """A house of some files, named by their path in the package."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / "src" / "calibrant" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tool.House(tmp_path)

    return write


def circles(tool, house):
    return [set(circle) for circle in tool.circles(tool.Imports(house).all())]


@pytest.fixture(scope="module")
def measured():
    """What the script says of this tree."""
    command = [sys.executable, TOOL, "--json"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    found = json.loads(run.stdout)
    assert run.returncode == (not all(line["holds"] for line in found["lines"]))
    return found


def test_the_rules_of_the_house_hold(measured):
    broken = [x for x in measured["lines"] if not x["holds"]]
    told = [f"{x['rule']}: {x['found']}, at most {x['most']}" for x in broken]
    where = [place for x in broken for place in x["where"]]
    assert not broken, "\n".join([*told, *where])


# -- circles ------------------------------------------------------------------------


def test_a_circle_that_hides_in_a_function_is_found(tool, build):
    house = build(
        {
            "__init__.py": "",
            "a.py": "from calibrant import b",
            "b.py": "def f():\n    import calibrant.c",
            "c.py": "from calibrant.a import g",
            "d.py": "import calibrant.a",
        }
    )
    assert circles(tool, house) == [{"calibrant.a", "calibrant.b", "calibrant.c"}]
    (line, _) = house.count_circles()
    assert not line.holds
    steps = ("a:1 -> calibrant.b", "b:2 -> calibrant.c", "c:1 -> calibrant.a")
    assert line.where == ["; ".join(f"calibrant.{step}" for step in steps)]


LAZY = {
    "__init__.py": "import lazy_loader",
    "__init__.pyi": "from .a import evaluate as evaluate",
    "a.py": "from calibrant.b import helper",
}


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    from calibrant import evaluate",
        "def f():\n    import calibrant as cal\n    cal.evaluate()",
        "import calibrant\n\ndef f():\n    calibrant.evaluate()",
    ],
)
def test_a_lazy_name_counts_as_the_file_that_defines_it(tool, build, text):
    house = build({**LAZY, "b.py": text})
    assert circles(tool, house) == [{"calibrant.a", "calibrant.b"}]


def test_type_checkers_and_the_opener_of_views_may_look_anywhere(tool, build):
    only = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "
    house = build({**LAZY, "b.py": only + "from calibrant import evaluate"})
    assert circles(tool, house) == []
    assert tool.VIEWS == "calibrant._base.views"
    opener = {"_base/views.py": "from calibrant._base import record"}
    record = {"_base/record.py": "from calibrant._base import views"}
    assert circles(tool, build({"_base/__init__.py": "", **opener, **record})) == []


def test_packages_in_a_circle_are_found_where_no_file_is(tool, build):
    empty = ("__init__.py", "x/__init__.py", "x/two.py", "y/__init__.py", "y/two.py")
    one = {"x/one.py": "from calibrant.y import two"}
    other = {"y/one.py": "from .. import x\nfrom ..x.two import f"}
    house = build({**dict.fromkeys(empty, ""), **one, **other})
    files, packages = house.count_circles()
    assert (files.found, packages.found) == (0, 1)


# -- functions and the call ---------------------------------------------------------


def test_docstrings_and_blank_lines_are_no_code(tool, build):
    text = 'def f(\n    x,\n):\n    """Say.\n\n    More.\n    """\n\n    # why\n    return x\n'
    house = build({"__init__.py": text})
    assert [line.found for line in house.measure_functions()] == [5, 5]


def test_lines_are_those_of_the_core(tool, build):
    house = build({"_stats/bins.py": "a = 1\n" * 3, "plot/x.py": "b = 1\n" * 9})
    (line,) = house.count_lines()
    assert (line.found, line.most) == (3, tool.MOST_LINES)


def test_a_step_back_is_a_return(tool, tmp_path):
    trace = tool.Trace(tmp_path)
    trace.steps = [(1, "read"), (2, "reduce"), (4, "sample"), (4, "more"), (1, "late")]
    assert trace.returns() == ["late after sample"]


CALLS = {
    "_rows/a.py": "def reduce(): pass",
    "_stats/b.py": "def sample(go): go()",
    "_verbs/c.py": (
        "def verb(reduce, sample): sample(reduce)\n"
        "def astray(reduce, sample): sample(reduce); reduce()"
    ),
}


@pytest.mark.parametrize(("name", "returns"), [("verb", 0), ("astray", 1)])
def test_a_later_stage_may_call_an_earlier_one(tool, build, name, returns):
    home, run = build(CALLS).home, {}
    for path in CALLS:
        run |= runpy.run_path(str(home / path))
    trace = tool.Trace(home)
    sys.setprofile(trace)
    run[name](run["reduce"], run["sample"])
    sys.setprofile(None)
    assert trace.files == ["_verbs/c.py", "_stats/b.py", "_rows/a.py"]
    assert len(trace.returns()) == returns


# -- names --------------------------------------------------------------------------

SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("benchmarks", "docs", "experiments", "simulations", "tools")
    for path in (ROOT / folder).rglob("*.py")
    if not {"_build", "generated"} & set(path.parts)
)


def imported(text):
    """What a script takes from the package: (module, name)."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "calibrant"
        ):
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_ask_for_names_that_exist(name, part):
    text = (ROOT / name).read_text(encoding="utf-8")
    if "calibrant.torch" in text:
        part("torchmetrics")
    missing = [
        (module, wanted)
        for module, wanted in imported(text)
        if not hasattr(import_module(module), wanted)
        and find_spec(f"{module}.{wanted}") is None
    ]
    assert missing == []


OLD_NAME_MAY_STAND = (
    "CHANGELOG.md",
    "src/calibrant/_base/write.py",
    "src/calibrant/recalibration/_estimator.py",
    "src/calibrant/vision/_inference.py",
    "tests/frozen/",
)


def test_the_old_name_is_left_where_old_files_are_read(absent):
    if not (ROOT / ".git").exists():
        absent("not a git checkout: clone the repository")
    command = ["git", "grep", "-il", "acu" + "men"]
    run = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert [x for x in run.stdout.split() if not x.startswith(OLD_NAME_MAY_STAND)] == []


# -- the page about it ----------------------------------------------------------------

PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NOUNS = re.compile(r"^\| `(\w+)` in `([\w/]+)\.py` \|.*\| (.*) \|$", re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_files_that_a_page_names_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    named = re.findall(r"`([\w./]+\.(?:py|pyi|md|toml|npz))`", text)
    named += re.findall(r"`([a-z_]+/)`", text)
    homes = (ROOT, ROOT / "src" / "calibrant")
    real = [x for x in named if "NAME" not in x]
    assert real
    assert [x for x in real if not any((home / x).exists() for home in homes)] == []


@pytest.mark.parametrize("noun", NOUNS.findall(ARCHITECTURE), ids=lambda noun: noun[0])
def test_fields_of_the_nouns_are_those_of_the_code(noun):
    name, module, told = noun
    cls = getattr(import_module(f"calibrant.{module.replace('/', '.')}"), name)
    fields = set(cls.__dataclass_fields__) | set(dir(cls))
    assert set(re.findall(r"`(\w+)`", told)) - fields == set()


def test_there_are_five_nouns_and_the_cells_are_as_many_as_told():
    from calibrant._inputs.options import Settings
    from calibrant._sketch.cells import Cells

    assert len(NOUNS.findall(ARCHITECTURE)) == 5
    table = Cells(Settings().divergences).table
    sums, cells = table.shape
    assert f"{cells:,} cells by {sums} sums" in ARCHITECTURE
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    assert f"one table of {table.nbytes / 1e6:.1f} MB" in design


def test_every_file_that_evaluate_enters_is_on_the_page(measured):
    told = ARCHITECTURE.partition("## One call")[2].partition("## I want")[0]
    entered = measured["files entered"]
    assert [file for file in entered if f"`{file}`" not in told] == []


def test_targets_that_contributors_are_told_of_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"\bmake ([a-z-]+)(?=`|  )", text)
    assert targets
    assert [
        x for x in targets if not re.search(rf"^{x}:", makefile, re.MULTILINE)
    ] == []


def test_the_page_names_every_package():
    home = ROOT / "src" / "calibrant"
    packages = [path.parent.name for path in home.glob("*/__init__.py")]
    assert [name for name in packages if f"`{name}`" not in ARCHITECTURE] == []
