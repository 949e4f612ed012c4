"""Sketches in the hands of chance: any order of what users do with them counts each row once.

One machine knows files by name and content, and resumes a sketch of them by the command; the
other adds up in memory. Beside each sketch goes a plain list of what must be in it.
"""

import os
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from command import calibrant
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from make import over_confident

import calibrant as cal
from calibrant._base.write import locked
from calibrant._verbs import stream
from calibrant.files import Roles

CONTENTS = [over_confident(7 + 4 * i, 3, seed=i) for i in range(3)]
NAMES = ["x/a.npz", "x/b.npz", "y/a.npz", "c.npz", "-d e,f.npz"]
names = st.sampled_from(NAMES)
spellings = st.sampled_from(["{}", "./{}", "x/../{}", "{here}/{}", "x/up/{}"])
few = settings(max_examples=20, stateful_step_count=15, deadline=None)


@cache
def table_of(content):
    """The sums of one content: weight, hits, losses and so on."""
    y, z = CONTENTS[content]
    return cal.Sketch().update(y, logits=z).cells.table.sum(axis=1)


def check_same(sketch, contents):
    """The sketch holds these contents, and no other row."""
    assert sketch.rows == sum(len(CONTENTS[i][0]) for i in contents)
    if contents:
        want = sum(table_of(i) for i in contents)
        np.testing.assert_allclose(sketch.cells.table.sum(axis=1), want, atol=1e-9)


class StoppedError(Exception):
    """Raised in place of a kill."""


class Files(RuleBasedStateMachine):
    """Files that are made, copied, moved, linked and changed, and a sketch that is resumed."""

    def __init__(self):
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory()
        self.here = Path(os.path.realpath(self.temporary.name))
        for folder in ("x", "y"):
            (self.here / folder).mkdir()
        (self.here / "x/up").symlink_to("..")
        self.output, self.known = self.here / "all.npz", []  # known: path and content
        for number, name in enumerate(NAMES[:4]):  # two of them are copies
            self.write(name, number % 3)

    def teardown(self):
        self.temporary.cleanup()

    # -- files ---------------------------------------------------------------------------

    @rule(name=names, content=st.sampled_from(range(len(CONTENTS))))
    def make(self, name, content):
        self.write(name, content)

    def write(self, name, content):
        y, z = CONTENTS[content]
        (self.here / name).unlink(missing_ok=True)
        np.savez(self.here / name, logits=z, labels=y)
        stream._digest.cache_clear()  # clocks of file systems are slower than this

    @rule(old=names, new=names)
    def move(self, old, new):
        if (self.here / old).exists():
            (self.here / old).replace(self.here / new)
            self.resumes([new])

    @rule(old=names, new=names, soft=st.booleans())
    def link(self, old, new, soft):
        if (self.here / old).exists() and not os.path.lexists(self.here / new):
            if soft:
                (self.here / new).symlink_to(self.here / old)
            else:
                (self.here / new).hardlink_to(self.here / old)
            self.resumes([old, new])

    def content(self, path):
        """Which content a file has, None if there is no such file."""
        if not Path(path).exists():
            return None
        with np.load(path) as arrays:
            return [len(y) for y, _ in CONTENTS].index(len(arrays["labels"]))

    def adds(self, path):
        """Whether a file counts; None if it is refused. The rule as users are told it."""
        path, content = Path(os.path.realpath(path)), self.content(path)
        for known, kept in self.known:
            if known == path:
                return False if kept == content else None
        for known, kept in list(self.known):
            if kept == content:
                if self.content(known) != content:  # it moved
                    self.known.remove((known, kept))
                    self.known.append((path, content))
                    return False
                if known.samefile(path):
                    return False
        self.known.append((path, content))
        return True

    # -- the sketch ----------------------------------------------------------------------

    def spelt(self, chosen):
        files = [how.format(name, here=self.here) for name, how in chosen]
        return [file for file in files if (self.here / file).exists()]

    def resume(self, files):
        options = ("-o", "all.npz", "--resume", "--count-copies", "--", *files)
        return calibrant("sketch", *options, cwd=self.here)

    @rule(chosen=st.lists(st.tuples(names, spellings), min_size=1, max_size=3))
    def go_on(self, chosen):
        if files := self.spelt(chosen):
            self.resumes(files)

    def resumes(self, files):
        """The command does what the rule says, and tells it."""
        self.known.sort()  # of two copies that are gone, the first is the one that moved
        done, code, skipped = self.resume(files), 0, 0
        for file in files:
            if (adds := self.adds(self.here / file)) is None:
                code = 1
                break
            skipped += not adds
        assert done.returncode == code, done.stderr
        if code:
            assert "changed since it was sketched" in done.stderr
        else:
            told = [x for x in done.stderr.splitlines() if x.startswith("skipped ")]
            assert sum(int(line.split()[1]) for line in told) == skipped, done.stderr

    @rule(chosen=st.lists(st.tuples(names, spellings), min_size=1, max_size=2))
    def be_stopped(self, chosen):
        """A run that ends after its first save is gone on with by the next."""

        def save(made):
            made.save(self.output, force=True)
            raise StoppedError

        files = self.spelt(chosen)
        self.known.sort()
        known = list(self.known)
        if any(self.adds(self.here / file) is None for file in files):
            self.known = known
            return
        sketch = cal.Sketch.load(self.output) if self.output.exists() else cal.Sketch()
        units = [[str(self.here / file)] for file in files]
        try:
            silent = {"save": save, "progress": lambda *_: None}
            stream.sketch_files(units, Roles(), sketch, copies=True, **silent)
        except StoppedError:
            assert self.resume(files).returncode == 0

    @precondition(lambda self: self.output.exists())
    @rule(name=names)
    def two_at_once(self, name):
        """While one process has the sketch, another gets nowhere and changes nothing."""
        if (self.here / name).exists():
            before = self.output.read_bytes()
            with locked(self.here / "x/up/all.npz"):
                done = self.resume([name])
            assert done.returncode == 1
            assert "another process is writing all.npz" in done.stderr
            assert self.output.read_bytes() == before

    @precondition(lambda self: self.output.exists())
    @rule()
    def move_the_sketch(self):
        self.output.rename(self.here / "moved.npz")
        (self.here / "moved.npz").rename(self.output)

    @invariant()
    def holds_each_row_once(self):
        if self.output.exists():
            sketch = cal.Sketch.load(self.output)
            assert len(sketch.parts) == len(self.known)
            check_same(sketch, [content for _, content in self.known])
        assert [x.name for x in self.here.iterdir() if x.name[0] == "."] == []


class Memory(RuleBasedStateMachine):
    """Sketches that are added to, merged, saved and loaded."""

    def __init__(self):
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory()
        self.here, self.held = Path(self.temporary.name), [(cal.Sketch(), [], set())]
        self.on_disk = {}

    def teardown(self):
        self.temporary.cleanup()

    which = st.integers(0, 3)
    contents = st.sampled_from(range(len(CONTENTS)))

    def pick(self, which):
        return self.held[which % len(self.held)]

    @rule(
        which=which,
        content=contents,
        part=st.sampled_from([None, "a", "b", "c [first 7 rows]"]),
    )
    def update(self, which, content, part):
        sketch, inside, parts = self.pick(which)
        y, z = CONTENTS[content]
        sketch.update(y, logits=z, part=part)
        if part is None or part not in parts:
            inside.append(content)
            parts |= {part} - {None}

    @rule(which=which)
    def refuse(self, which):
        """A bad row changes nothing."""
        sketch, inside, _ = self.pick(which)
        y, z = CONTENTS[0]
        with pytest.raises(ValueError, match="NaN"):
            sketch.update(
                y, logits=z * np.where(np.arange(len(z)) == 3, np.nan, 1)[:, None]
            )
        assert sketch.rows == sum(len(CONTENTS[i][0]) for i in inside)

    @rule(one=which, other=which)
    def merge(self, one, other):
        (a, inside, parts), (b, theirs, others) = self.pick(one), self.pick(other)
        if parts & others:
            with pytest.raises(ValueError, match="would count twice"):
                a.merge(b)
        else:
            self.held = [*self.held, (a + b, inside + theirs, parts | others)][-4:]

    @rule(which=which, name=st.sampled_from("pq"), force=st.booleans())
    def save(self, which, name, force):
        sketch, inside, parts = self.pick(which)
        path = self.here / name
        if not inside:
            with pytest.raises(ValueError, match="nothing to save"):
                sketch.save(path, force=force)
        elif path.exists() and not force:
            with pytest.raises(FileExistsError):
                sketch.save(path)
        else:
            sketch.save(path, force=force)
            self.on_disk[name] = list(inside), set(parts)

    @precondition(lambda self: self.on_disk)
    @rule(first=st.booleans())
    def load(self, first):
        name = sorted(self.on_disk)[0 if first else -1]
        loaded = cal.Sketch.load(self.here / name)
        assert loaded.to_bytes() == (self.here / name).read_bytes()
        inside, parts = self.on_disk[name]
        self.held = [*self.held, (loaded, list(inside), set(parts))][-4:]

    @invariant()
    def holds_each_row_once(self):
        sketch, inside, parts = self.held[-1]
        check_same(sketch, inside)
        assert sketch.parts == parts
        assert sorted(path.name for path in self.here.iterdir()) == sorted(self.on_disk)


TestFiles = Files.TestCase
TestFiles.settings = few
TestMemory = Memory.TestCase
TestMemory.settings = few
