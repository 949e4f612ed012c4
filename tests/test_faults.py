"""Every writer under every fault: the k-th open, read, write, sync or rename fails, for all k.

After each fault the file is the old one or a new one, whole; nothing is left beside it; the
error is one clean line; and the same call, made again, ends as if nothing had happened.
"""

import builtins
import contextlib
import errno
import io
import os
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from command import calibrant
from make import over_confident

import calibrant as cal
from calibrant._base import write
from calibrant._verbs import stream
from calibrant.recalibration import TemperatureScaling
from calibrant.vision import _inference as inference


class Faults:
    """Count what is asked of the system, and let the call of one number fail."""

    def __init__(self, folder, fails_at=None, error=OSError):
        self.folder, self.fails_at, self.error = str(folder), fails_at, error
        self.calls = []

    def check(self, what):
        self.calls.append(what)
        if len(self.calls) - 1 == self.fails_at:
            if self.error is KeyboardInterrupt:
                raise KeyboardInterrupt
            number = errno.ENOSPC if what == "write" else errno.EIO
            raise OSError(number, os.strerror(number))

    def counted(self, what, call):
        def run(*arguments, **options):
            self.check(what)
            return call(*arguments, **options)

        return run

    def opened(self, call, *, counts):
        """A call that opens files; of those in the folder, reads and writes count too."""

        def run(file, mode="r", buffering=-1, *text, **options):
            if isinstance(file, str | Path) and not self.ours(file):
                return call(file, mode, buffering, *text, **options)
            if counts:
                self.check("open")
            raw = Raw(file, mode.translate({ord("b"): None}))
            raw.check = self.check
            buffered = (io.BufferedReader if "r" in mode else io.BufferedWriter)(raw)
            return (
                buffered
                if "b" in mode
                else io.TextIOWrapper(buffered, *text, **options)
            )

        return run

    def ours(self, file):
        return str(Path(file).absolute()).startswith(self.folder)

    @contextlib.contextmanager
    def active(self):
        with pytest.MonkeyPatch.context() as patch:
            for name, what in {
                "fsync": "sync",
                "replace": "rename",
                "link": "rename",
            }.items():
                patch.setattr(os, name, self.counted(what, getattr(os, name)))
            patch.setattr(os, "open", self.counted("open", os.open))
            patch.setattr(os, "fdopen", self.opened(os.fdopen, counts=False))
            for module in (io, builtins):
                patch.setattr(module, "open", self.opened(io.open, counts=True))
            yield self


class Raw(io.FileIO):
    """An open file whose reads and writes are counted; one that fails wrote half."""

    def readinto(self, buffer):
        self.check("read")
        return super().readinto(buffer)

    def readall(self):
        self.check("read")
        return super().readall()

    def write(self, content):
        half = len(content) // 2
        half = super().write(content[:half]) if half else 0
        self.check("write")
        return half + super().write(content[half:])


# -- the writers: each makes one file of a folder, whose name it is called by -------------

LABELS, LOGITS = over_confident(60, 3, factor=2, seed=0, spread=1.5)
MANIFEST = inference.Manifest(
    {"model": "a"}, (inference.Shard("shard-00000.npz", 3, "0"),)
)


def command(*arguments):
    """The command in a folder; a failure is one line and exit code 1."""

    def run(folder):
        done = calibrant(*arguments, "--force", "-q", cwd=folder)
        if done.returncode:
            assert done.returncode == 1
            assert done.stderr.count("\n") == 1 + done.stderr.startswith("\n")
            raise OSError(done.stderr)

    return run


def inputs(folder):
    """Files that commands read."""
    for i in range(2):
        half = slice(30 * i, 30 * i + 30)
        np.savez(folder / f"{i}.npz", logits=LOGITS[half], labels=LABELS[half])
        cal.Sketch().update(LABELS[half], logits=LOGITS[half]).save(
            folder / f"s{i}.npz"
        )


EV = cal.evaluate(LABELS, logits=LOGITS, name="a")
FITTED = TemperatureScaling().fit(LOGITS, LABELS)
SKETCH = cal.Sketch().update(LABELS, logits=LOGITS)


@cache
def drawn():
    return EV.plot().figure


def figure(folder, kind):
    drawn().savefig(folder / f"figure.{kind}", dpi=20)


WRITERS = {
    "text.txt": lambda folder: write.write_text(folder / "text.txt", "new"),
    "array.npz": lambda folder: write.write_npz(
        folder / "array.npz", {"x": np.arange(9)}
    ),
    "sketch.npz": lambda folder: SKETCH.save(folder / "sketch.npz", force=True),
    "fitted.json": lambda folder: FITTED.save(folder / "fitted.json", force=True),
    "page.html": lambda folder: EV.report(folder / "page.html", force=True),
    "figure.png": partial(figure, kind="png"),
    "figure.svg": partial(figure, kind="svg"),
    "figure.pdf": partial(figure, kind="pdf"),
    "manifest.json": lambda folder: inference.write_manifest(folder, MANIFEST),
    "shard-00001.npz": lambda folder: inference.write_shard(
        folder, 1, {"logits": LOGITS, "labels": LABELS}
    ),
    "all.npz": command("sketch", "0.npz", "1.npz", "-o", "all.npz"),
    "both.npz": command("merge", "s0.npz", "s1.npz", "-o", "both.npz"),
    "report.html": command("report", "s0.npz", "-o", "report.html"),
    "saved.json": command("recalibrate", "--fit", "0.npz", "--save", "saved.json"),
    "out.npz": command(
        "recalibrate", "--fit", "0.npz", "--apply", "1.npz", "-o", "out.npz"
    ),
}
"""By the file that they write."""


@pytest.fixture(params=WRITERS)
def writer(request, tmp_path):
    """A folder, a writer, its file, and all that may be in it after a fault."""
    write_file, path = WRITERS[request.param], tmp_path / request.param
    inputs(tmp_path)
    write_file(tmp_path)
    whole = {path.read_bytes()}
    if path.name == "all.npz":  # saved after each file
        calibrant("sketch", "0.npz", "-o", "first.npz", cwd=tmp_path)
        whole.add((tmp_path / "first.npz").read_bytes())
        (tmp_path / "first.npz").unlink()
    return tmp_path, write_file, path, whole


def calls_of(folder, write_file):
    with Faults(folder).active() as faults:
        write_file(folder)
    return faults.calls


@pytest.mark.parametrize(
    ("error", "old"), [(OSError, None), (OSError, b"old"), (KeyboardInterrupt, b"old")]
)
def test_the_file_is_whole_after_every_fault(writer, error, old):
    folder, write_file, path, whole = writer
    final, names = path.read_bytes(), {x.name for x in folder.iterdir()} - {path.name}
    calls = calls_of(folder, write_file)
    assert {"open", "write", "sync", "rename"} <= set(calls)
    clean = (OSError, ValueError) if error is OSError else (KeyboardInterrupt, OSError)
    for k in range(len(calls)):
        path.unlink(missing_ok=True)
        if old is not None:
            path.write_bytes(old)
        stream._digest.cache_clear()
        write.sweep.cache_clear()
        with contextlib.suppress(*clean), Faults(folder, k, error).active() as faults:
            write_file(folder)
        assert len(faults.calls) > k, "the fault never came"
        found = path.read_bytes() if path.exists() else None
        assert found in {old, *whole}, (k, calls[k])
        assert {x.name for x in folder.iterdir()} - {path.name} == names, (k, calls[k])
    write_file(folder)
    assert path.read_bytes() == final


def test_a_fault_is_told_with_the_name_of_the_file(tmp_path):
    calls = calls_of(tmp_path, WRITERS["text.txt"])
    for k in range(len(calls)):
        write.sweep.cache_clear()
        expected = pytest.raises(OSError, match=r"^cannot write .*text\.txt: [A-Z]")
        with expected, Faults(tmp_path, k).active():
            WRITERS["text.txt"](tmp_path)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_sketch_resumed_after_any_fault_is_the_sketch_of_all_rows(tmp_path, error):
    inputs(tmp_path)
    said = ("0.npz", "1.npz", "-o", "all.npz", "--resume", "-q")
    once = partial(calibrant, "sketch", *said, cwd=tmp_path)
    assert once().returncode == 0
    whole = (tmp_path / "all.npz").read_bytes()
    stream._digest.cache_clear()
    (tmp_path / "all.npz").unlink()
    calls = calls_of(tmp_path, lambda folder: once())
    for k in range(len(calls)):
        (tmp_path / "all.npz").unlink()
        stream._digest.cache_clear()
        with Faults(tmp_path, k, error).active():
            assert once().returncode in (0, 1)
        assert once().returncode == 0
        assert (tmp_path / "all.npz").read_bytes() == whole, (k, calls[k])
