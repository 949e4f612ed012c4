"""The command: every subcommand with files, names and options of every kind."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Case, place, predictions, put, special, write
from .choices import Choices
from .rows import Rows

OPTIONS = {
    "--label": ("label", "nope", "", "p*", "\x1b[31m"),
    "--probs": ("probs", "p_*", "probs_*", "a,,b", "*", "**", ""),
    "--logits": ("logits", "prob", ","),
    "--confidence": ("confidence", "prob", "labels"),
    "--correct": ("correct", "label", ""),
    "--pred": ("pred", "label"),
    "--weight": ("weight", "", "label", "confidence"),
    "--frequency": ("frequency", "", "label"),
    "--cluster": ("cluster", "label", "confidence"),
    "--group": ("group", "label", "confidence", "probs"),
    "--classes": ("a,b", "a,b,c", "0,1", "a,a", ",", "\u202e,b", "1,0"),
    "--target": ("top-label", "positive", "class-wise", "x"),
    "--divergence": ("brier", "log", "x"),
    "--bandwidth": ("auto", "0.05", "0", "-1", "nan", "inf", "1e-9", "x"),
    "--bins": ("15", "1", "0", "-3", "1000000", "99999999999999999999", "1.5"),
    "--level": ("0.95", "0", "1", "nan", "1e-300", "0.9999999999999999"),
    "--seed": ("0", "-1", "99999999999999999999", "x"),
}
"""Options that most commands take, with values good and bad."""

SOME = {
    "report": ("--names", "--title", "--fail-if", "--max-ece-upper"),
    "compare": ("--names", "--baseline", "--unpaired"),
    "study": ("--split", "--folds", "--methods", "--fail-if"),
    "sketch": ("--resume", "--target"),
    "curves": ("--kind", "--names", "--percent", "--drop-missing"),
    "groups": ("--slices", "--most", "--baseline", "--name", "--fail-if", "--group"),
    "explain": ("--by", "--method", "--regions", "--by"),
    "monitor": (
        "--period",
        "--every",
        "--state",
        "--reference",
        "--against",
        "--alpha",
        "--tolerance",
        "--fail-if",
    ),
}
VALUES = {
    "--kind": (
        "risk-coverage",
        "decision",
        "murphy",
        "cumulative",
        "triptych",
        "clinical",
        "x",
    ),
    "--percent": (),
    "--drop-missing": (),
    "--ragged": (),
    "--slices": ("weight", "weight,group", "*", "", "nope", "x_*", ","),
    "--most": ("2", "0", "-1", "99999999999", "x"),
    "--name": ("m", "", "\x1b[31m", "x" * 5000),
    "--by": ("weight", "group", "weight,group", "*", "", "nope", "label"),
    "--method": ("auto", "tree", "ridge", "x"),
    "--regions": ("8", "1", "0", "-1", "99999999"),
    "--period": ("group", "cluster", "label", "nope", ""),
    "--every": ("day", "month", "x"),
    "--state": ("state.npz", "", ".", "a.npz", "/dev/null", "no/state.npz"),
    "--reference": ("x", "x,y", "", ",", "nope"),
    "--against": ("calibration", "reference", "x"),
    "--alpha": ("0.01", "0", "1", "nan", "-1", "1e-300"),
    "--tolerance": ("0", "0.1", "-1", "nan", "inf", "2"),
    "--sep": (";", ",", "", "ab", "\n"),
    "--decimal": (",", ".", "", "x"),
    "--scale": ("sure=0.9", "sure=", "=1", "a=2", "a=0.1,a=0.2", "low=0.1,high=0.9"),
    "--names": ("a", "a,b", "a,a", "", "\x1b[31m,\u202e", "x" * 5000),
    "--title": ("t", "", "<script>", "\x1b[2J", "\ud800", "a\0b", "x" * 5000),
    "--fail-if": ("brier>0.2", "ece.upper>0", "x", "brier>", "ece>1e999", "nll<=nan"),
    "--max-ece-upper": ("0.1", "nan", "-1", "x"),
    "--baseline": ("a", "b", "", "x"),
    "--unpaired": (),
    "--resume": (),
    "--split": ("0.2", "0", "1", "nan", "-1", "0.999"),
    "--folds": ("2", "1", "0", "-1", "999999", "x"),
    "--methods": ("temperature", "paper", "x", "", "temperature,temperature", "vector"),
}
COMMANDS = (
    "report", "inspect", "compare", "recalibrate", "sketch", "merge", "inspect", "other",
    "recalibrate", "sketch", "merge", "study", "curves", "groups", "explain", "monitor", "other",
)  # fmt: skip


@dataclass
class Line:
    """A command being put together."""

    home: Path
    words: list[str]
    wrong: str = "?"
    files: tuple[Path, ...] = ()


def command_case(c: Choices, home: Path) -> Case:
    """One line of the command, in a folder of files good and bad."""
    name = c.one(COMMANDS)
    line = Line(home, [name])
    if name == "other":
        _other(c, line)
    else:
        _files(c, line, name)
        _options(c, line, name)
        _outputs(c, line, name)
    return Case(
        name,
        lambda: run(line.words, home),
        (),
        "calibrant " + " ".join(map(repr, line.words)),
        line.wrong,
        lambda done: objection(done, line),
        line.files,
        is_command=True,
        like="database" if DATABASE & {path.suffix for path in line.files} else "",
    )


def _other(c: Choices, line: Line) -> None:
    line.words = c.one(
        (["--help"], ["--version"], [], ["x"], ["report"], ["infer"], ["-q"], ["merge", "x"],
         ["infer", "x", "--images", "none", "--out", "o"], ["demo", "--seed", "x"],
         ["report", "--help"], ["--", "report"], ["report", "--", "-x"])
    )  # fmt: skip
    line.words = list(line.words)


def _files(c: Choices, line: Line, name: str) -> None:
    """Files to read: a model, two, or a sketch; spelled in one of many ways."""
    count = c.one((1, 2)) if name not in ("compare", "merge") else c.one((2, 1, 3))
    if name in ("inspect", "groups", "explain"):
        count = 1
    made: list[Rows] = []
    shown: list[str] = []
    for number in range(count):
        own = predictions(c)
        if name in NEEDED:
            _add_columns(own)
        stem = (
            c.one(("a", "b", "a\x1b[31m", "[x]", "it's"))
            if c.chance(60)
            else "ab"[number % 2]
        )
        folder = place(c, line.home)
        if (name == "merge" or c.chance(30)) and not own.wrong:
            paths = [sketch_of(own, folder / f"{stem}.npz", c)]
        else:
            paths = write(c, folder, own, stem)
        if set(paths) & set(line.files):  # what was wrong there is written over
            for other in made:
                other.wrong = "?"
        line.files += tuple(paths)
        if c.chance(6):
            own.wrong = special(c, line.home, paths)
        made.append(own)
        shown.append(_spell(c, paths, own))
    faults = {own.wrong for own in made}
    line.wrong = "?" if "?" in faults else next(iter(faults - {""}), "?")
    if name in ("inspect", "merge"):
        line.wrong = "?"
    if line.wrong == "no rows" and name in ("sketch", "monitor") and count > 1:
        line.wrong = "?"  # of several shards one may be empty, and adds nothing
    if name == "recalibrate":
        shown = [
            c.one(("--fit", "--load")),
            shown[0],
            *(["--apply", *shown[1:]][: len(shown)]),
        ]
    line.words += (
        shown if c.chance(250) else [*shown, c.one(("", ",", "nope.npz", "*.x"))]
    )


def _add_columns(made: Rows) -> None:
    """Columns for groups, periods and features."""
    n = len(next(iter(made.arrays.values())))
    made.arrays.setdefault("group", np.array(["x", "y"])[np.arange(n) % 2])
    if "frequency" not in made.arrays:
        made.arrays.setdefault("weight", 1.0 + np.arange(n) % 3)


def sketch_of(made: Rows, path: Path, c: Choices) -> Path:
    """A sketch of the rows."""
    from calibrant import Sketch

    sketch = Sketch(target="top-label")
    if made.kind == "confidence":
        sketch = Sketch().update_pairs(made.y, made.scores)
    else:
        sketch.update(made.y, **{made.kind: made.scores})
    return put(path, sketch.to_bytes())


def _spell(c: Choices, paths: list[Path], made: Rows) -> str:
    """The files as an argument; some spellings must be refused."""
    text = ",".join(map(str, paths))
    how = c.below(30) if not made.wrong else 0
    if how == 8:
        made.wrong, text = "an empty part", f"{text},"
    elif how == 9:
        made.wrong, text = "a file twice", f"{text},{paths[0]}"
    elif how == 10:
        made.wrong, text = "an empty part", c.one((",", f",{text}", ""))
    elif how == 11:
        twice = paths[0].parent / "." / ".." / paths[0].parent.name / paths[0].name
        made.wrong, text = "a file twice", f"{text},{twice}"
    elif how == 7:
        made.wrong, text = (
            "?",
            c.one((f"{paths[0].parent}", f"{paths[0].parent}/*", f"{text}\0")),
        )
    return text


def _options(c: Choices, line: Line, name: str) -> None:
    for _ in range(c.one((0, 0, 1, 2))):
        own = SOME.get(name, ())
        key = c.one((*own, *own, *OPTIONS))
        line.words.append(key)
        values = VALUES.get(key, OPTIONS.get(key, ()))
        line.words += [c.one(values)] if values else []
        line.wrong = "?"  # the option may be what is refused, or what makes it right
    if name == "study" and "--methods" not in line.words and not c.chance(20):
        line.words += ["--methods", "identity"]  # the paper's five take their time
    if name in NEEDED and not any(word in line.words for word in NEEDED[name]):
        line.words += NEEDED[name] if not c.chance(20) else []
    for flag in ("--json", "--quiet"):
        line.words += [flag] if c.chance(40) else []


DATABASE = {".csv", ".tsv", ".parquet"}
"""Files that take a database to read, which takes its time."""

NEEDED = {
    "groups": ["--group", "group"],
    "explain": ["--by", "weight"],
    "monitor": ["--period", "group"],
}
"""What a command cannot do without, if nothing of it was said."""


def _outputs(c: Choices, line: Line, name: str) -> None:
    """Files to write: new ones, there already, the input itself, or none at all."""
    needed = name in ("sketch", "merge") or (
        name == "recalibrate" and "--apply" in line.words
    )
    if not needed and not c.chance(60):
        return
    own = line.files[0] if line.files else line.home / "x"
    targets = ("out.npz", "out.html", str(own), "", "no/out.npz", ".", "/dev/null", "x" * 255,
               "out\x1b.npz", "-", str(line.home), f"{own}/x")  # fmt: skip
    target = c.one(targets)
    line.words += ["-o", target]
    force = c.chance(60)
    line.words += ["--force"] if force else []
    if target in (str(own), "", ".", "/dev/null", str(line.home)) or target.endswith(
        "/x"
    ):
        line.wrong = "an output that is no new file"
    if name == "recalibrate" and c.chance(60):
        line.words += ["--save", c.one(("saved.json", target, str(own)))]
        if line.words[-1] in (target, str(own)):
            line.wrong = "two outputs, or an input, at one place"
    if name in ("inspect", "compare") or "--state" in line.words:
        line.wrong = "?"


# -- what came of it ------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str


def run(words: list[str], home: Path) -> Done:
    """Run a line without a process of its own; an error that is not caught is raised."""
    from contextlib import chdir

    from click.testing import CliRunner

    from calibrant.cli import main

    apart = "mix_stderr" in inspect.signature(CliRunner).parameters
    runner = CliRunner(**({"mix_stderr": False} if apart else {}))
    possible = [word.replace("\0", "") for word in words]
    with chdir(home):
        result = runner.invoke(main, possible, prog_name="calibrant")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


CONTROL = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def objection(done: Done, line: Line) -> str:
    """What a command may not do: print escapes, leave files about, many lines of error."""
    shown = CONTROL.search(done.out + done.err)
    if shown:
        return f"a control character in the output: {shown[0]!r}"
    if done.code not in (0, 1, 2, 3):
        return f"the exit code {done.code}"
    told = [x for x in done.err.splitlines() if not x.startswith("note: ")]
    if done.code == 1 and (len(told) != 1 or not told[0].startswith("Error: ")):
        return "an error that is not one line"
    if (
        done.code == 0
        and "--json" in line.words
        and line.words[0] not in ("sketch", "other")
    ):
        json.loads(done.out, parse_constant=_refuse)
    left = [path.name for path in line.home.rglob(".*.tmp")]
    return f"a temporary file is left: {left[0]}" if left else ""


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} in the JSON of --json")


def refused(done: Any) -> bool:
    """Whether a command said no."""
    return isinstance(done, Done) and done.code in (1, 2)
