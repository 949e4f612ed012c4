"""Every writer under every fault: the k-th open, read, write, sync or rename fails, for all k.

After each fault the file is the old one or a new one, whole; nothing is left beside it; the
error is one clean line; and the same call, made again, ends as if nothing had happened.
"""

import builtins
import contextlib
import errno
import io
import json
import os
import subprocess
import sys
import textwrap
from itertools import product
from pathlib import Path

import pytest

from calibrant._base import write
from calibrant._verbs import stream
from reliability.kills import RESUMED, WRITERS, CommandError, write_inputs

ROOT = Path(__file__).resolve().parent.parent


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


def calls_of(folder, writer):
    with Faults(folder).active() as faults:
        writer(folder)
    return faults.calls


def forget():
    """What a process remembers, as a new one would not."""
    stream._digest.cache_clear()
    write.sweep.cache_clear()


CASES = [(OSError, None), (OSError, b"old"), (KeyboardInterrupt, b"old")]
CLEAN = (OSError, ValueError, KeyboardInterrupt, SystemExit, CommandError)


@pytest.mark.parametrize("name", WRITERS)
def test_the_file_is_whole_after_every_fault(tmp_path, capsys, name):
    writer, path = WRITERS[name], tmp_path / name
    write_inputs(tmp_path)
    inputs = {x.name for x in tmp_path.iterdir()}
    writer(tmp_path)
    whole = path.read_bytes()
    path.unlink()
    forget()
    calls = calls_of(tmp_path, writer)
    assert {"open", "write", "sync", "rename"} <= set(calls)
    cases = CASES[:1] if name in RESUMED else CASES
    for (error, old), k in product(cases, range(len(calls))):
        path.unlink(missing_ok=True)
        if old is not None:
            path.write_bytes(old)
        forget()
        capsys.readouterr()
        with contextlib.suppress(*CLEAN), Faults(tmp_path, k, error).active() as faults:
            writer(tmp_path)
        assert len(faults.calls) > k, "the fault never came"
        assert {x.name for x in tmp_path.iterdir()} - {name} == inputs, (k, calls[k])
        assert len(capsys.readouterr().err.strip().splitlines()) <= 1, (k, calls[k])
        if name in RESUMED:
            writer(tmp_path)
            assert path.read_bytes() == whole, (k, calls[k])
        else:
            found = path.read_bytes() if path.exists() else None
            assert found in (old, whole), (k, calls[k])


def test_a_fault_is_told_with_the_name_of_the_file(tmp_path):
    writer = WRITERS["text.txt"]
    for k in range(len(calls_of(tmp_path, writer))):
        write.sweep.cache_clear()
        expected = pytest.raises(OSError, match=r"^cannot write .*text\.txt: [A-Z]")
        with expected, Faults(tmp_path, k).active():
            writer(tmp_path)


# -- and under kills ---------------------------------------------------------------------


def in_a_process_of_its_own(code):
    """What `code` prints, as JSON: a process with threads, as this one has, must not fork."""
    run = [sys.executable, "-c", f"import json\n{textwrap.dedent(code)}"]
    done = subprocess.run(run, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_killed_writers_leave_whole_files_and_go_on():
    found = in_a_process_of_its_own(
        """
        from reliability.kills import kills
        names = ["manifest.json", "all.npz", "pieces.npz"]
        print(json.dumps(kills(6, seed=1, names=names)))
        """
    )
    assert [counts["failures"] for counts in found.values()] == [[], [], []]
    assert all(counts["killed"] >= 2 for counts in found.values())


def test_a_writer_that_breaks_a_promise_is_found():
    found = in_a_process_of_its_own(
        """
        import time
        from reliability.kills import WRITERS, kills

        def torn(folder):
            with (folder / "text.txt").open("wb") as file:
                for _ in range(100):
                    file.write(b"half")
                    file.flush()
                    time.sleep(0.001)

        WRITERS["text.txt"] = torn
        print(json.dumps(kills(4, seed=0, names=["text.txt"])))
        """
    )
    assert "neither old nor new" in str(found["text.txt"]["failures"])
