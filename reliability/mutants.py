"""Mutants of the core: one small change in the code each, which some test should notice.

Places are drawn at random over the lines that have something to change. Each mutant runs
in a copy of the project against tests that take the line (as `coverage` saw them, with the
context of each test), those that take few others first; where that is not known, against
files of tests that speak most of its file. One that no test kills is a *survivor*: a test is
missing, or the change is none.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).parent / "mutants.json"
SCRATCH = ROOT / "build" / "mutants"
SECONDS = 180
"""A mutant that takes longer for one file of tests is dead: it hangs."""

MOST_FILES = 12
"""Files of tests that a mutant must survive."""

MOST_TESTS, TOGETHER = 60, 20
"""Tests that a mutant must survive where those that take its line are known, and how many
are run in one process."""

MARKS = "not slow and not simulation and not real_data"

# -- changes --------------------------------------------------------------------------

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
TWINS = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all",
    "all": "any", "floor": "ceil", "ceil": "floor", "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: in which file, where, from what to what."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str
    kind: str

    @property
    def key(self) -> str:
        """What mutants are told apart by; a change elsewhere in the file keeps it."""
        return f"{self.file} | {self.kind} | {self.old} -> {self.new} | {self.line}"


def mutants_of(path: Path, root: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    text = path.read_text("utf-8")
    offsets = [0]
    for line in text.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    skipped = _untested(ast.parse(text))
    for node in ast.walk(ast.parse(text)):
        if not hasattr(node, "lineno") or node.lineno in skipped:
            continue
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        old = text.encode()[start:end].decode()
        for kind, new in _changes(node):
            file = str(path.relative_to(root))
            yield Mutant(file, node.lineno, start, end, old, new, kind)


def _untested(tree: ast.AST) -> set[int]:
    """Lines that say nothing at run time: docstrings, types, messages of errors."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        skip: Sequence[Any] = ()
        only_said = isinstance(node, ast.Raise | ast.Import | ast.ImportFrom)
        only_typed = isinstance(node, ast.AnnAssign) and node.value is None
        for_types = (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        if only_said or only_typed or for_types:
            skip = (node,)
        elif isinstance(node, ast.FunctionDef):
            annotations = [
                a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg)
            ]
            skip = [x for x in (*annotations, node.returns, *node.decorator_list) if x]
        for one in skip:
            lines |= set(range(one.lineno, one.end_lineno + 1))
    return lines


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Kinds of change of one node, and what it then reads."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        ops = [COMPARED[type(node.ops[0])](), *node.ops[1:]]
        yield "compare", _text(ast.Compare(node.left, ops, node.comparators))
    elif (
        isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _is_text(node)
    ):
        yield (
            "arithmetic",
            _text(ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right)),
        )
    elif isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
        other = ast.AugAssign(node.target, COMPUTED[type(node.op)](), node.value)
        yield "arithmetic", ast.unparse(other)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "boolean", _text(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(
        node.op, ast.Not | ast.USub | ast.Invert
    ):
        yield "unary", _text(node.operand)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield "return value", "return None"
    elif _has_an_effect_only(node):
        yield "statement removed", "pass"
    elif isinstance(node, ast.IfExp):
        yield "condition", _text(ast.IfExp(_not(node.test), node.body, node.orelse))
    elif isinstance(node, ast.Call):
        yield from _calls(node)


def _has_an_effect_only(node: ast.AST) -> bool:
    """A statement without which every name is still there."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _not(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(x, ast.JoinedStr | ast.List | ast.Tuple) for x in sides
    ) or any(isinstance(x, ast.Constant) and isinstance(x.value, str) for x in sides)


def _constants(node: ast.Constant) -> Iterator[tuple[str, str]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", str(not value)
    elif isinstance(value, int):
        yield "off by one", str(value + 1)
        if value > 0:
            yield "off by one", str(value - 1)
    elif isinstance(value, float):
        yield "constant", repr(2 * value if value else 1.0)


def _calls(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in TWINS:
        called = ast.unparse(node.func)
        other = called[: len(called) - len(name)] + TWINS[name]
        rest = ast.unparse(node)[len(called) :]
        yield "twin", other + rest
    if len(node.args) == 2 and not any(isinstance(x, ast.Starred) for x in node.args):
        yield (
            "arguments swapped",
            ast.unparse(ast.Call(node.func, node.args[::-1], node.keywords)),
        )
    for place, word in enumerate(node.keywords):
        if word.arg and isinstance(word.value, ast.Constant):
            left = node.keywords[:place] + node.keywords[place + 1 :]
            yield "keyword dropped", ast.unparse(ast.Call(node.func, node.args, left))


def sample(packages: Sequence[str], rng: random.Random, root: Path) -> Iterator[Mutant]:
    """Mutants in random order: a line first, each alike, then what to change on it."""
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for package in packages:
        for path in sorted((root / "src" / "calibrant" / package).glob("*.py")):
            if path.name == "__init__.py":
                continue
            for mutant in mutants_of(path, root):
                lines.setdefault((mutant.file, mutant.line), []).append(mutant)
    places = list(lines)
    rng.shuffle(places)
    for place in places:
        yield rng.choice(lines[place])


# -- tests ----------------------------------------------------------------------------

GENERAL = (
    "golden_small",
    "evaluation",
    "reduction",
    "sums",
    "sketch",
    "invariance",
    "fast",
)
"""Tests of numbers that nearly every line of the core has a part in."""


@cache
def _texts(root: Path) -> dict[str, str]:
    return {
        p.name: p.read_text("utf-8") for p in sorted((root / "tests").glob("test_*.py"))
    }


NOT_RUN = ("docs", "vision", "cli", "plot", "report", "experiments", "torch", "project", "house",
           "reliability", "engines_clusters", "coverage", "peers", "population")  # fmt: skip


def tests_of(file: str, root: Path, known: dict[str, float]) -> list[str]:
    """Files of tests for a file of the core, likeliest to notice and quickest first."""
    path = root / file
    names = re.findall(r"^(?:def|class) (\w+)", path.read_text("utf-8"), re.MULTILINE)
    module = f"{path.parent.name}.{path.stem}"
    score: dict[str, float] = {}
    for name, text in _texts(root).items():
        if any(name.startswith(f"test_{word}") for word in NOT_RUN) or "real" in name:
            continue
        points = 5 * (module in text) + 5 * (path.stem in name)
        points += sum(bool(re.search(rf"\b{x}\b", text)) for x in names if len(x) > 4)
        if points or any(name == f"test_{word}.py" for word in GENERAL):
            score[name] = (points + 0.5) / (3 + known.get(name, 5.0))
    fine = [name for name in score if known.get(name, 0) >= 0]
    return sorted(fine, key=score.__getitem__, reverse=True)[:MOST_FILES]


@dataclass
class Taken:
    """Which tests take a line of a file, and how many lines each test takes in all."""

    tests: dict[str, dict[int, list[str]]]
    breadth: Counter[str]

    @classmethod
    def of(cls, data: Path, root: Path) -> Taken:
        """What `coverage` saw, with ``dynamic_context = test_function``."""
        coverage = importlib.import_module("coverage")
        known, breadth = coverage.CoverageData(str(data)), Counter[str]()
        known.read()
        tests: dict[str, dict[int, list[str]]] = {}
        for file in known.measured_files():
            place = f"src/calibrant/{file.rpartition('/calibrant/')[2]}"
            lines = tests.setdefault(place, {})
            for line, contexts in known.contexts_by_lineno(file).items():
                lines[line] = [x for x in map(_node, contexts) if x]
                breadth.update(lines[line])
        return cls(tests, breadth)

    def by(self, mutant: Mutant) -> list[str]:
        """Tests that take the line of a mutant, those that take few others first."""
        found = self.tests.get(mutant.file, {}).get(mutant.line, [])
        return sorted(found, key=self.breadth.__getitem__)[:MOST_TESTS]


def _node(context: str) -> str:
    """What pytest calls the test of a context: test_bins.test_x of a file of its own."""
    *module, name = context.split(".")
    file = module[-1] if module else ""
    skip = any(file.startswith(f"test_{word}") for word in NOT_RUN)
    if not (file.startswith("test_") and name.startswith("test_")) or skip:
        return ""
    return f"{file}.py::{name}"


# -- running --------------------------------------------------------------------------


def copy_project(root: Path, scratch: Path) -> None:
    """A copy of what tests need; compiled code in it is kept from run to run."""
    for name in (
        "src",
        "tests",
        "tools",
        "simulations",
        "benchmarks",
        "experiments",
        "docs",
    ):
        if (root / name).is_dir():
            skip = shutil.ignore_patterns("_build", "generated", "__pycache__")
            shutil.copytree(
                root / name, scratch / name, dirs_exist_ok=True, ignore=skip
            )
    for name in ("pyproject.toml", "conftest.py", "README.md", "CHANGELOG.md"):
        shutil.copy2(root / name, scratch / name)


def passes(scratch: Path, *tests: str) -> tuple[bool, float]:
    """Run some tests in a process forked from this one; whether all passed."""
    begun = time.monotonic()
    (scratch / FAILED).unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os._exit(_run_tests(scratch, tests))
    while time.monotonic() - begun < SECONDS:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) in (0, 5), time.monotonic() - begun
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False, time.monotonic() - begun


FAILED = "failed.txt"
"""Where the first test that fails is named."""


class Noted:
    """Name the first test that fails."""

    def pytest_collection_finish(self, session: Any) -> None:
        """Called when all tests are read: an example that fails need not be simplified."""
        hypothesis = importlib.import_module("hypothesis")
        phases = hypothesis.Phase.explicit, hypothesis.Phase.generate
        for item in session.items:
            test = getattr(item, "function", None)
            own = getattr(test, "_hypothesis_internal_use_settings", None)
            if own is not None:
                test._hypothesis_internal_use_settings = hypothesis.settings(
                    own, phases=phases
                )

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called for each part of each test."""
        if report.failed:
            named = report.nodeid.removeprefix("tests/").partition("[")[0]
            Path(FAILED).write_text(named, "utf-8")


def _run_tests(scratch: Path, tests: Sequence[str]) -> int:
    """In a process of its own, whose output nobody reads."""
    try:
        os.setsid()
        os.chdir(scratch)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(scratch / "src"))
        os.environ |= {
            "PYTHONPATH": str(scratch / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        import pytest

        options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", MARKS]
        options += [
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]  # it is preloaded
        wanted = [f"tests/{test}" for test in tests]
        return int(pytest.main([*options, *wanted], plugins=[Noted()]))
    except BaseException:  # noqa: BLE001
        return 3


def preload() -> None:
    """Load what is slow to load and is not ours, once for all mutants."""
    for name in ("hypothesis", "numpy", "pytest", "scipy.special", "scipy.stats"):
        importlib.import_module(name)
    ours = [name for name in sys.modules if name.split(".")[0] == "calibrant"]
    for name in ours:
        del sys.modules[name]


def verdict(
    scratch: Path, mutant: Mutant, known: dict[str, float], taken: Taken | None = None
) -> dict[str, Any]:
    """Whether a test notices the mutant, and which."""
    whole = (scratch / mutant.file).read_bytes()
    changed = whole[: mutant.start] + mutant.new.encode() + whole[mutant.end :]
    tests = taken.by(mutant) if taken else []
    try:
        compile(changed, mutant.file, "exec")
        if tests:
            killer = _first_that_fails(
                scratch, mutant.file, whole, changed, tests, known
            )
        else:  # what is run when a module is loaded no test takes
            tests = tests_of(mutant.file, scratch, known)
            killer = _killer(scratch, mutant.file, whole, changed, tests, known)
    except SyntaxError:
        killer = "not Python"
    line = whole.decode().splitlines()[mutant.line - 1].strip()
    told = {"killed_by": killer, "source": line, "tests": len(tests), "why": ""}
    return asdict(mutant) | told


def _first_that_fails(
    scratch: Path,
    file: str,
    whole: bytes,
    changed: bytes,
    tests: Sequence[str],
    known: dict[str, float],
) -> str | None:
    """The first test that fails with the change, and does not without it."""
    path, left = scratch / file, list(tests)
    while left:
        some = [test for test in left[:TOGETHER] if known.get(test, 0) >= 0]
        try:
            path.write_bytes(changed)
            fine = not some or passes(scratch, *some)[0]
        finally:
            path.write_bytes(whole)
        if fine:
            left = left[TOGETHER:]
            continue
        noted = scratch / FAILED
        test = noted.read_text("utf-8") if noted.exists() else ""
        if test not in some:
            return "it cannot be run, or hangs"
        if test not in known:
            as_it_is, seconds = passes(scratch, test)
            known[test] = round(seconds, 1) if as_it_is else -1.0
        if known[test] >= 0:
            return test
    return None


def _killer(
    scratch: Path,
    file: str,
    whole: bytes,
    changed: bytes,
    tests: Sequence[str],
    known: dict[str, float],
) -> str | None:
    """The first file of tests that fails with the change, and does not without it."""
    path = scratch / file
    for test in tests:
        try:
            path.write_bytes(changed)
            fine, seconds = passes(scratch, test)
        finally:
            path.write_bytes(whole)
        if fine:
            known.setdefault(test, round(seconds, 1))
        else:
            if test not in known:
                as_it_is, seconds = passes(scratch, test)
                known[test] = round(seconds, 1) if as_it_is else -1.0
            if known[test] >= 0:
                return test
    if all(known.get(test, 0) < 0 for test in tests):
        raise RuntimeError(f"no test of {file} passes on the code as it is.")
    return None


def run(
    packages: Sequence[str],
    rng: random.Random,
    number: int,
    minutes: float,
    results: Path,
    say: Callable[[str], None],
    contexts: Path | None = None,
) -> None:
    """Try mutants until there are so many, or time is up; go on where it was stopped."""
    until = time.monotonic() + 60 * minutes
    stored = json.loads(results.read_text("utf-8")) if results.exists() else {}
    known, done = stored.setdefault("tests", {}), stored.setdefault("mutants", {})
    stored["lines"] = len(
        {(m.file, m.line) for m in sample(packages, random.Random(0), ROOT)}
    )
    copy_project(ROOT, SCRATCH)
    preload()
    taken = Taken.of(contexts, ROOT) if contexts else None
    for mutant in sample(packages, rng, SCRATCH):
        if len(done) >= number or time.monotonic() > until:
            break
        if mutant.key in done:
            continue
        found = done[mutant.key] = verdict(SCRATCH, mutant, known, taken)
        say(f"{found['killed_by'] or 'SURVIVED'}: {mutant.key}")
        beside = results.with_suffix(".part")
        beside.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
        beside.replace(results)
