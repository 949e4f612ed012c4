"""Rows that pass by in batches: files of any size, in constant memory."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Unpack

from calibrant._base.checks import RowError
from calibrant._base.evaluation import Evaluation
from calibrant._base.write import Stamp, digest_of, stamp_of
from calibrant._inputs.options import Options, Settings, takes_options
from calibrant._sketch.sketch import Sketch
from calibrant._verbs.evaluate import evaluate_sketch, using
from calibrant.files._open import find_files
from calibrant.files._plan import Roles
from calibrant.files._read import PER_ROW, Found, batches
from calibrant.files._sources import FileError, reading


@takes_options
def evaluate_batches(
    batches: Iterable[Found],
    *,
    name: str = "model",
    target: str | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Evaluate predictions batch by batch, in constant memory.

    Parameters
    ----------
    batches : iterable of Found
        What `calibrant.files.batches` gives.
    name, target
        As in `calibrant.evaluate`; ``"class-wise"`` needs all rows in memory.
    progress : callable, optional
        Called after each batch with the number of rows read so far.
    **options
        Those of `calibrant.evaluate` that say how to estimate, from `divergence` to `rng`.

    Returns
    -------
    Evaluation
        As `calibrant.evaluate` or `calibrant.evaluate_pairs` give it for all rows at once,
        but without intervals of the top-label ECE and, under soft labels, of ``unc``.

    Notes
    -----
    Neither the order nor the size of the batches matters, round-off apart. See
    `calibrant.Sketch`, which the rows go into, for what is exact and what nearly so.

    Examples
    --------
    >>> import tempfile, numpy as np, calibrant as cal
    >>> from calibrant.files import batches
    >>> folder = tempfile.TemporaryDirectory()
    >>> p = np.random.default_rng(0).random((2, 1000))
    >>> for shard, rows in enumerate(p):
    ...     np.savez(f"{folder.name}/{shard}.npz", prob=rows, outcome=rows > 0.4)
    >>> ev = evaluate_batches(batches(folder.name, rows=300))
    >>> whole = cal.evaluate(p.ravel() > 0.4, probs=p.ravel())
    >>> ev.rows, bool(abs(ev.metrics["ks_error"] - whole.metrics["ks_error"]) < 1e-12)
    (2000, True)
    >>> folder.cleanup()
    """
    settings = Settings.of(options, evaluate_batches)
    if target == "class-wise":
        raise ValueError(
            "target='class-wise' needs all rows in memory: pass what "
            "calibrant.files.read gives to evaluate."
        )
    sketch, rows = Sketch(target=target, divergence=settings.main), 0
    for found in batches:
        if len(found):
            if not sketch.rows:
                sketch = Sketch(target=found.target(target), divergence=settings.main)
            add_batch(sketch, found)
        rows += len(found)
        if progress is not None:
            progress(rows)
    with using(settings.engine):
        return evaluate_sketch(sketch, settings, name)


def add_batch(sketch: Sketch, found: Found, part: str | None = None) -> None:
    """Add one batch, under a name if it has one; errors name the row of the file."""
    names = ("sample_weight", "frequency", "cluster", "group")
    rest: dict[str, Any] = {name: getattr(found, name) for name in names}
    try:
        if found.pairs:
            sketch.update_pairs(found.y, found.scores, part=part, **rest)
        else:
            rest |= {found.kind: found.scores, "classes": found.classes}
            sketch.update(found.y, part=part, **rest)
    except RowError as error:
        raise FileError(found.path, str(found.in_file(error))) from error


# -- files that go into a sketch, each once --------------------------------------------

EVERY = 5_000_000
"""Rows after which the sketch is saved."""


def sketch_files(
    units: Iterable[Sequence[str]],
    roles: Roles,
    sketch: Sketch,
    *,
    save: Callable[[Sketch], object],
    progress: Callable[[int, str], object],
    skipped: Callable[[str, str], object] = lambda name, why: None,
    since: float = math.inf,
    every: int = EVERY,
    watch: Callable[[Found], Found] = lambda found: found,
    copies: bool = False,
) -> Sketch:
    """Add the rows of files that are not yet in the sketch, and save it now and then.

    A run that was stopped goes on, and no row is counted twice. A unit is the files of
    one set of rows. It is known by path, size and digest, which go into `parts` when all
    its rows are in, and before that with the number of rows that are. What is in is
    skipped, for a reason that is told; a file that has changed is refused, and so is the
    copy of another that is still there, unless `copies` count as rows of their own. Versions
    before 0.2.0 kept names only: these are believed for files older than `since`, when
    the sketch was saved. All that is read passes through `watch`.
    """
    known = _Known(sketch, since, copies=copies)
    for unit in units:
        name, part = ",".join(map(str, unit)), Part.of(unit)
        entry, why = known.find(part, name)
        marker = None if entry is None else entry.text
        if rest := entry is None or entry.rows is not None:
            with closing(batches(list(unit), roles)) as read:
                found = map(watch, read)
                for now in _add_unit(found, part, entry, sketch, save, every):
                    marker = now
                    progress(sketch.rows, name)
            part.check_unchanged(name)
        else:
            skipped(name, why)
        if rest or why in (MOVED, BY_NAME):
            known.rename(entry, part)
            _rename(sketch, marker, str(part))
            save(sketch)
    return sketch


def _add_unit(
    found: Iterable[Found],
    part: Part,
    entry: _Entry | None,
    sketch: Sketch,
    save: Callable[[Sketch], object],
    every: int,
) -> Iterator[str | None]:
    """Add the rows that are not in yet; after each batch, what the part is called."""
    marker, done = (entry.text, entry.rows or 0) if entry else (None, 0)
    read, saved = 0, done
    for batch in found:
        start, read = read, read + len(batch)
        if read > done:
            add_batch(sketch, _without_first(batch, max(done - start, 0)))
            marker, done = _rename(sketch, marker, f"{part} [first {read} rows]"), read
        if done - saved >= every:
            save(sketch)
            saved = done
        yield marker


def _without_first(batch: Found, count: int) -> Found:
    given = {name: x for name in PER_ROW if (x := getattr(batch, name)) is not None}
    cut: dict[str, Any] = {name: x[count:] for name, x in given.items()}
    return replace(batch, **cut, start=batch.start + count) if count else batch


def _rename(sketch: Sketch, old: str | None, new: str) -> str:
    if sketch.checked() is not None:  # None: no row of positive weight so far
        sketch.rename_part(old, new)
    return new


@dataclass(frozen=True, slots=True)
class Part:
    """The files of one set of rows: where they lie, and what is in them."""

    path: str  # resolved, with commas between files
    size: int
    digest: str
    stamps: Mapping[str, Stamp | None] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, unit: Sequence[str]) -> Part:
        """Look at the files as they are now."""
        files = [os.path.realpath(file) for file in find_files(unit)]
        stamps = {file: stamp_of(file) for file in files}
        digests = [_digest(file, stamp) for file, stamp in stamps.items()]
        digest = digests[0] if len(digests) == 1 else _joined(digests)
        size = sum(stamp[2] for stamp in stamps.values() if stamp is not None)
        return cls(",".join(files), size, digest[:32], stamps)

    def __str__(self) -> str:
        return f"{self.path} [{self.size} bytes, sha256 {self.digest}]"

    @property
    def content(self) -> tuple[int, str]:
        """What it is known by, wherever it lies."""
        return self.size, self.digest

    def check_unchanged(self, name: str) -> None:
        """Refuse files that somebody wrote to while they were read."""
        if any(stamp_of(file) != stamp for file, stamp in self.stamps.items()):
            raise FileError(name, f"changed while it was read. {WAYS_OUT}")

    def found_again(self) -> Part | None:
        """What lies there now, None if files are missing."""
        whole = Path(self.path).exists()
        files = [self.path] if whole else self.path.split(",")
        return Part.of(files) if all(Path(file).is_file() for file in files) else None


@cache
def _digest(file: str, stamp: Stamp | None) -> str:
    """The digest of a file, taken once as long as the system says it did not change."""
    with reading(Path(file)):
        return digest_of(file)


def _joined(digests: Iterable[str]) -> str:
    return hashlib.sha256("".join(digests).encode()).hexdigest()


KNOWN = re.compile(r"(.*) \[(\d+) bytes, sha256 ([0-9a-f]{32})\]", re.DOTALL)
BEGUN = re.compile(r"(.*) \[first (\d+) rows\]", re.DOTALL)

SAME, SAME_FILE = "in the sketch already", "in the sketch already, by another name"
MOVED = "in the sketch since before they moved"
BY_NAME = "in the sketch by name, which is all that versions before 0.2.0 kept"
WAYS_OUT = (
    "If it holds other rows, sketch it to a file of its own and merge the two; else begin "
    "anew with --force."
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A part as a sketch has it, and how many rows of it are in, None if all."""

    text: str
    name: str
    rows: int | None
    part: Part | None  # None: the name is all that a version before 0.2.0 kept

    @classmethod
    def read(cls, text: str) -> _Entry:
        begun = BEGUN.fullmatch(text)
        name, rows = (begun[1], int(begun[2])) if begun else (text, None)
        known = KNOWN.fullmatch(name)
        part = Part(known[1], int(known[2]), known[3]) if known else None
        return cls(text, name, rows, part)


class _Known:
    """The parts of a sketch, by path, by content, or by name where that is all there is."""

    def __init__(self, sketch: Sketch, since: float, *, copies: bool) -> None:
        self.since, self.copies = since, copies
        self.by_name = dict[str, _Entry]()
        self.by_path = defaultdict[str, list[_Entry]](list)
        self.by_content = defaultdict[tuple[int, str], list[_Entry]](list)
        for text in sorted(sketch.parts):
            self._add(_Entry.read(text))

    def _add(self, entry: _Entry) -> None:
        if entry.part is not None:
            self.by_path[entry.part.path].append(entry)
            self.by_content[entry.part.content].append(entry)
            return
        resolved = map(os.path.realpath, entry.name.split(","))
        for name in (entry.name, os.path.realpath(entry.name), ",".join(resolved)):
            self.by_name[name] = entry

    def rename(self, old: _Entry | None, part: Part) -> None:
        """Put a part that is all in in place of what was known of it."""
        if old is not None and old.part is not None:
            self.by_path[old.part.path].remove(old)
            self.by_content[old.part.content].remove(old)
        self._add(_Entry.read(str(part)))

    def find(self, part: Part, name: str) -> tuple[_Entry | None, str]:
        """What is known of a part, and how; a part that has changed is refused."""
        here = self.by_path.get(part.path, [])
        for entry in here:
            if entry.part == part:
                return entry, SAME
        if here:
            then = " or ".join(f"{x.part.size:,}" for x in here if x.part)
            sizes = f"{then} bytes then, {part.size:,} now"
            raise FileError(
                name, f"changed since it was sketched ({sizes}). {WAYS_OUT}"
            )
        for entry in self.by_content.get(part.content, []):
            there = entry.part and entry.part.found_again()
            if there is None or there.content != part.content:
                return entry, MOVED
            if [*there.stamps.values()] == [*part.stamps.values()]:
                return entry, SAME_FILE
            if not self.copies:
                raise FileError(
                    name,
                    f"is a copy of {there.path}, whose examples are in already; leave it "
                    "out, or pass --count-copies to count them again.",
                )
        return self._find_name(part, name)

    def _find_name(self, part: Part, name: str) -> tuple[_Entry | None, str]:
        entry = self.by_name.get(part.path) or self.by_name.get(name)
        if entry is None:
            return None, ""
        if any(stamp and stamp[3] / 1e9 > self.since for stamp in part.stamps.values()):
            newer = "is newer than the sketch, which knows it by name only"
            raise FileError(name, f"{newer}. {WAYS_OUT}")
        return entry, BY_NAME


def check_no_copies(sketch: Sketch, name: str, others: Sketch) -> None:
    """Refuse a sketch of files whose bytes are in others under another name.

    Parts of the same name are refused when the sketches are added.
    """
    known = (_Entry.read(text).part for text in sorted(others.parts))
    paths = {part.content: part.path for part in known if part is not None}
    for text in sorted(sketch.parts - others.parts):
        part = _Entry.read(text).part
        if part is not None and part.content in paths:
            raise FileError(
                name,
                f"holds {part.path}, a copy of {paths[part.content]}, whose examples are "
                "in already; leave it out, or pass --count-copies to count them again.",
            )
