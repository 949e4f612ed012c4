"""Measure the house, to see whether a newcomer can still hold the tree in the head.

`python tools/house.py` prints a line for each rule, with what breaks it below; the exit
code is 1 if one is broken. With `--json` the same as data, with the imports between files
and the path of one call. docs/architecture.md says what the rules are for.

What is counted, where the rule alone does not say it:

- Files and lines: those of .py files in src; of lines only the core's have a limit, since
  a new subject is a file of its own, but must not make the way of every number longer.
- Circles: imports between files, also those inside functions. A name taken from a package
  counts as an import of the file that defines it, also where the package loads it lazily.
  Not counted are imports for type checkers, and those of _base/views.py, which opens the
  views of a result.
- Files entered: those with a function that runs during ``evaluate(y, logits=z)``, on any
  thread.
- Returns: a *step* is a call that a function of _verbs makes into _inputs, _rows, _sketch
  or _stats. What the called function calls in turn is no step: a later stage may ask
  something of an earlier one, behind the boundary of a call. Nor is reading a noun in hand
  (``settings.main``, ``columns.total_weight``: a method or property of an object). Steps
  must come in the order of the stages; each that goes back is a return.
- Length of a function: lines from ``def`` to its end, without docstring and blank lines.
"""

from __future__ import annotations

import ast
import json
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "calibrant"
STAGES = ("_base", "_inputs", "_rows", "_sketch", "_stats", "_verbs")
VIEWS = f"{PACKAGE}._base.views"  # opens the views of a result; no other file may
CORE = STAGES[:5]  # what every number passes through; new subjects are verbs and views
MOST_LINES = 16_200


@dataclass(frozen=True)
class Line:
    """One rule: what was found, the most there may be, and what there is too much of."""

    rule: str
    found: float
    most: float
    where: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.found <= self.most

    def __str__(self) -> str:
        mark = "ok  " if self.holds else "FAIL"
        line = f"{mark} {self.rule:46} {self.found:>7,g}  at most {self.most:,g}"
        return "\n     ".join([line, *([] if self.holds else self.where)])


# -- files ----------------------------------------------------------------------------


@dataclass(frozen=True)
class House:
    """The files of a package under `root`/src."""

    root: Path
    package: str = PACKAGE

    @property
    def home(self) -> Path:
        return self.root / "src" / self.package

    @cached_property
    def files(self) -> dict[str, Path]:
        """Python files by the name of their module, in order."""
        return {self.name_of(path): path for path in sorted(self.home.rglob("*.py"))}

    def name_of(self, path: Path) -> str:
        parts = path.relative_to(self.home.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        texts = {name: path.read_text("utf-8") for name, path in self.files.items()}
        return {name: ast.parse(text) for name, text in texts.items()}

    def count_files(self) -> Iterator[Line]:
        yield Line("Python files in src", len(self.files), 190)
        inside = [p.name for p in self.home.iterdir() if p.name != "__pycache__"]
        yield Line("entries at the top level", len(inside), 24, sorted(inside))

    def count_lines(self) -> Iterator[Line]:
        """Lines of the core, and how many are in each of its packages, most first."""
        units: Counter[str] = Counter()
        for name in self.files:
            unit = (name.split(".")[1:] or [name])[0]
            units[unit] += len(self.lines_of(name)) if unit in CORE else 0
        where = [
            f"{count:6,} in {unit}" for unit, count in units.most_common() if count
        ]
        yield Line("lines of the core", units.total(), MOST_LINES, where)

    def count_contract(self) -> Iterator[Line]:
        """Layers and exceptions of the import contract."""
        settings = tomllib.loads((self.root / "pyproject.toml").read_text("utf-8"))
        contracts = settings["tool"]["importlinter"]["contracts"]
        layers = [x for c in contracts for x in c.get("layers", ())]
        excepted = sorted({x for c in contracts for x in c.get("ignore_imports", ())})
        yield Line("layers of the contract", len(layers), 11, layers)
        yield Line("exceptions of the contract", len(excepted), 2, excepted)

    def count_circles(self) -> Iterator[Line]:
        imports = Imports(self).all()
        told = [tell_circle(circle, imports) for circle in circles(imports)]
        yield Line("circles of files, imports in functions too", len(told), 0, told)
        units = between_units(imports, self.package)
        told = [" -> ".join(circle) for circle in circles(units)]
        yield Line("circles of packages at the top level", len(told), 0, told)

    def measure_functions(self) -> Iterator[Line]:
        """Middle and nine-tenths point of the lengths of all functions."""
        lengths = sorted(
            (length, f"{name}.{function}")
            for name, tree in self.trees.items()
            for function, length in function_lengths(tree, self.lines_of(name))
        )
        longest = [f"{length} {name}" for length, name in reversed(lengths[-5:])]
        middle, long = (lengths[int(share * len(lengths))][0] for share in (0.5, 0.9))
        yield Line("lines of a function, median", middle, 8, longest)
        yield Line("lines of a function, 90 % have at most", long, 20, longest)

    def lines_of(self, name: str) -> list[str]:
        return self.files[name].read_text("utf-8").splitlines()


def function_lengths(tree: ast.Module, lines: list[str]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = docstring_lines(node)
            inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            code = [i for i in inside if i not in doc and lines[i - 1].strip()]
            yield node.name, len(code)


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    return range(first.lineno, (first.end_lineno or first.lineno) + 1)


# -- imports --------------------------------------------------------------------------

Graph = dict[str, dict[str, int]]  # file -> the files it imports -> line


@dataclass(frozen=True)
class Imports:
    """Who imports whom in a house."""

    house: House

    def all(self) -> Graph:
        return {
            name: {} if name == VIEWS else dict(reversed([*self.of(name)]))
            for name in self.house.files
        }

    def of(self, name: str) -> Iterator[tuple[str, int]]:
        """Files that a file imports, each with the line."""
        nodes = list(nodes_at_run_time(self.house.trees[name]))
        bound: dict[str, str] = {}  # names in this file that stand for modules
        for node in nodes:
            for source, wanted, alias in self.wanted(name, node):
                found = self.home_of(source, wanted)
                if found in self.house.files and alias:
                    bound[alias] = found
                # A file taken from a package asks nothing of the package itself.
                asked = {found} if found == f"{source}.{wanted}" else {source, found}
                yield from ((x, node.lineno) for x in asked - {name})
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = bound.get(node.value.id, "")
                if self.is_package(module):
                    yield self.home_of(module, node.attr), node.lineno

    def wanted(self, name: str, node: ast.AST) -> Iterator[tuple[str, str, str]]:
        """(module, name taken from it, name given to it) of an import statement."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == self.house.package:
                    known = alias.asname or alias.name.split(".")[0]
                    yield alias.name, "", known
        elif isinstance(node, ast.ImportFrom):
            source = self.source(name, node)
            if source.split(".")[0] == self.house.package:
                for alias in node.names:
                    yield source, alias.name, alias.asname or alias.name

    def source(self, name: str, node: ast.ImportFrom) -> str:
        """The module behind ``from ... import``, dots resolved."""
        if not node.level:
            return node.module or ""
        up = node.level - self.is_package(name)
        base = name.split(".")[: len(name.split(".")) - up]
        return ".".join([*base, *([node.module] if node.module else [])])

    def is_package(self, name: str) -> bool:
        return name in self.house.files and self.house.files[name].stem == "__init__"

    def home_of(self, module: str, name: str) -> str:
        """The file that defines a name one can take from a module."""
        if f"{module}.{name}" in self.house.files:
            return f"{module}.{name}"
        if name and self.is_package(module) and name in self.handed_on(module):
            return self.home_of(*self.handed_on(module)[name])
        return module

    @cache  # noqa: B019 - a house is measured once
    def handed_on(self, package: str) -> dict[str, tuple[str, str]]:
        """Names a package takes from its files, as its stub or itself says."""
        stub = self.house.files[package].with_suffix(".pyi")
        tree = ast.parse(stub.read_text("utf-8")) if stub.exists() else None
        return {
            alias.asname or alias.name: (self.source(package, node), alias.name)
            for node in ast.walk(tree or self.house.trees[package])
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if self.source(package, node).startswith(f"{self.house.package}.")
        }


def nodes_at_run_time(tree: ast.AST) -> Iterator[Any]:
    """All nodes but those that only type checkers see."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from (other, *nodes_at_run_time(other))
        else:
            yield from (node, *nodes_at_run_time(node))


def between_units(imports: Graph, package: str) -> Graph:
    """The same between what lies at the top level."""
    units: Graph = {}
    for name, targets in imports.items():
        for target, line in targets.items():
            mine, other = (x.split(".")[1:2] for x in (name, target))
            if mine and other and mine != other:
                units.setdefault(mine[0], {}).setdefault(other[0], line)
                units.setdefault(other[0], {})
    units.pop(package, None)
    return units


def circles(imports: Graph) -> list[list[str]]:
    """For each file that a circle leads through, a shortest one; each circle once."""
    found: dict[frozenset[str], list[str]] = {}
    for name in imports:
        circle = way_back(name, imports)
        if circle:
            found.setdefault(frozenset(circle), circle)
    return list(found.values())


def way_back(start: str, imports: Graph) -> list[str]:
    """The shortest way from a file to itself; empty if there is none."""
    came: dict[str, str] = {}
    queue = [start]
    for name in queue:
        for target in imports.get(name, {}):
            if target == start:
                way = [start, name]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return way[::-1] if name != start else [start, start]
            if target not in came:
                came[target] = name
                queue.append(target)
    return []


def tell_circle(circle: list[str], imports: Graph) -> str:
    steps = pairwise(circle)
    return "; ".join(f"{a}:{imports[a][b]} -> {b}" for a, b in steps)


# -- one call -------------------------------------------------------------------------


@dataclass
class Trace:
    """What one call of `evaluate` enters: files in order, and the steps of the verb."""

    home: Path
    files: list[str] = field(default_factory=list)
    steps: list[tuple[int, str]] = field(default_factory=list)
    changes: int = 0
    last: str = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.is_ours(frame):
            return
        name = self.file_of(frame)
        if name not in self.files:
            self.files.append(name)
        self.changes += name != self.last
        self.last = name
        self.see_step(frame, name)

    def is_ours(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(f"{self.home}/")

    def file_of(self, frame: FrameType) -> str:
        return frame.f_code.co_filename.removeprefix(f"{self.home}/")

    def see_step(self, frame: FrameType, name: str) -> None:
        """Keep the call if a function of _verbs made it, into a stage before."""
        caller = frame.f_back
        while caller is not None and not self.is_ours(caller):
            caller = caller.f_back
        stage = stage_of(name)
        if caller is None or not 0 < stage < len(STAGES) - 1 or reads_a_noun(frame):
            return
        if stage_of(self.file_of(caller)) == len(STAGES) - 1:
            self.steps.append((stage, f"{name}: {frame.f_code.co_qualname}"))

    def returns(self) -> list[str]:
        """Steps into an earlier stage than one before."""
        furthest, found = (0, ""), []
        for step in self.steps:
            if step[0] < furthest[0]:
                found.append(f"{step[1]} after {furthest[1]}")
            furthest = max(furthest, step, key=lambda x: x[0])
        return found


def stage_of(file: str) -> int:
    """The number of the stage a file is in; -1 for views and the like."""
    unit = file.split("/")[0]
    return STAGES.index(unit) if unit in STAGES else -1


def reads_a_noun(frame: FrameType) -> bool:
    """Whether a frame is a method or property of an object."""
    code: CodeType = frame.f_code
    return code.co_argcount > 0 and code.co_varnames[0] == "self"


def trace_evaluate(home: Path) -> Trace:
    """Follow ``evaluate(y, logits=z)`` for 5,000 rows of ten classes."""
    import numpy as np

    for path in sorted(p for stage in STAGES for p in (home / stage).rglob("*.py")):
        parts = path.relative_to(home.parent).with_suffix("").parts
        import_module(".".join(parts).removesuffix(".__init__"))
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(5000, 10))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    evaluate, trace = import_module(home.name).evaluate, Trace(home)
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        evaluate(y, logits=z)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return trace


def check_call(trace: Trace) -> Iterator[Line]:
    yield Line("files entered by evaluate", len(trace.files), 36, trace.files)
    yield Line(
        "returns of evaluate to an earlier stage",
        len(trace.returns()),
        0,
        trace.returns(),
    )


# -- all of it ------------------------------------------------------------------------


def check(house: House, trace: Trace) -> list[Line]:
    return [
        *house.count_files(),
        *house.count_lines(),
        *house.count_contract(),
        *house.count_circles(),
        *check_call(trace),
        *house.measure_functions(),
    ]


def to_json(house: House, trace: Trace, lines: Iterable[Line]) -> str:
    found = {
        "lines": [{**asdict(line), "holds": line.holds} for line in lines],
        "files entered": trace.files,
        "changes of file": trace.changes,
        "steps": [f"{STAGES[stage]}: {name}" for stage, name in trace.steps],
        "imports": {a: sorted(b) for a, b in Imports(house).all().items()},
    }
    return json.dumps(found, indent=1)


def main() -> None:
    house = House(ROOT)
    sys.path.insert(0, str(house.home.parent))
    trace = trace_evaluate(house.home)
    lines = check(house, trace)
    if "--json" in sys.argv[1:]:
        print(to_json(house, trace, lines))
    else:
        print(*lines, sep="\n")
    sys.exit(not all(line.holds for line in lines))


if __name__ == "__main__":
    main()
