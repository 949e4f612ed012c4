"""Files exist whole or not at all, and replace others only when told to."""

import contextlib
import errno
import hashlib
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from calibrant._base import write
from calibrant._base.write import (
    digest_of,
    locked,
    stamp_of,
    whole_file,
    write_bytes,
    write_npz,
    write_text,
)
from calibrant.files import read


def write_half(path, error, **options):
    """Fail in the middle of writing a file."""
    with whole_file(path, **options) as file:
        file.write(b"half")
        raise error


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_are_written_as_given(tmp_path):
    write_text(tmp_path / "a.txt", "é\n")
    write_bytes(tmp_path / "b.bin", b"\0\1")
    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa9\n"
    assert (tmp_path / "b.bin").read_bytes() == b"\0\1"
    assert names(tmp_path) == ["a.txt", "b.bin"]


@pytest.mark.parametrize("force", [True, False])
def test_a_failure_leaves_nothing_behind(tmp_path, force):
    with pytest.raises(KeyboardInterrupt):
        write_half(tmp_path / "a", KeyboardInterrupt, force=force)
    assert names(tmp_path) == []


def test_a_failure_leaves_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_half(path, ZeroDivisionError)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_the_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path, force=False) as file:
        file.write(b"new")
        file.flush()
        assert not path.exists()
    assert path.read_text() == "new"


def test_an_existing_file_is_replaced_only_with_force(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(FileExistsError, match=r"exists; pass force=True to replace"):
        write_text(path, "new", force=False)
    assert path.read_text() == "old"
    write_text(path, "new", force=True)
    assert path.read_text() == "new"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "a.txt"
    writing = whole_file(path, force=False)
    writing.__enter__().write(b"mine")
    path.write_text("theirs")
    with pytest.raises(FileExistsError):
        writing.__exit__(None, None, None)
    assert path.read_text() == "theirs"
    assert names(tmp_path) == ["a.txt"]


def test_permissions_are_those_of_any_new_file_or_of_the_old_one(tmp_path):
    (tmp_path / "like").touch()
    write_text(tmp_path / "new", "")
    mode = stat.S_IMODE((tmp_path / "like").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode
    (tmp_path / "old").touch(mode=0o600)
    write_text(tmp_path / "old", "")
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o600


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_text(tmp_path / "no" / "a.txt", "")


# -- arrays -------------------------------------------------------------------------


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {
        "logits": np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32),
        "labels": np.arange(5) % 3,
        "file": np.array(["a", "b", "c", "d", "é"], dtype=object),
    }
    write_npz(tmp_path / "a.npz", arrays)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert found.files == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
    assert read(tmp_path / "a.npz").scores.dtype == np.float32


def test_equal_arrays_give_equal_bytes(tmp_path):
    for name in ("a", "b"):
        write_npz(tmp_path / name, {"x": np.arange(9), "y": np.ones(3)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_objects_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(TypeError, match="x holds Python objects"):
        write_npz(tmp_path / "a.npz", {"x": np.array([1, "a", None], dtype=object)})
    assert names(tmp_path) == []


# -- what a path may lead to ----------------------------------------------------------

LONGEST = "n" * 251 + ".npz"  # 255 bytes, the most that a file system takes


@pytest.mark.parametrize("name", [LONGEST, ".hidden", "-o", "a b\n.txt", "é" * 127])
def test_every_legal_name_can_be_written_and_replaced(tmp_path, name):
    for text in ("old", "new"):
        write_text(tmp_path / name, text)
        assert (tmp_path / name).read_text() == text
    assert names(tmp_path) == [name]


def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far/file").write_text("old")
    (tmp_path / "link").symlink_to("far/file")
    (tmp_path / "dangling").symlink_to("far/made")
    write_text(tmp_path / "link", "new")
    write_text(tmp_path / "dangling", "made", force=False)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far/file").read_text() == "new"
    assert (tmp_path / "far/made").read_text() == "made"
    assert names(tmp_path) == ["dangling", "far", "link"]
    assert names(tmp_path / "far") == ["file", "made"]


def test_what_is_no_regular_file_is_refused_and_stays(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "null").symlink_to("/dev/null")
    before = names(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        write_text(tmp_path / "folder", "")
    for name in ("pipe", "loop", "null"):
        with pytest.raises(
            OSError, match=f"{name}: it is a device, a pipe or the like"
        ):
            write_text(tmp_path / name, "")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert names(tmp_path) == before


def test_owner_and_group_stay_where_the_system_allows(tmp_path, monkeypatch):
    path, given = tmp_path / "a", []

    def chown(path, user, group):
        given.append((user, group))
        if user != -1:
            raise PermissionError(errno.EPERM, "not allowed")

    path.write_text("old")
    path.chmod(0o640)
    whose = os.stat_result((*path.stat()[:4], 123, 456, *path.stat()[6:]))
    real = Path.stat
    monkeypatch.setattr(
        Path, "stat", lambda x, **o: whose if x == path else real(x, **o)
    )
    monkeypatch.setattr(os, "chown", chown)
    write_text(path, "new")
    assert given == [(123, 456), (-1, 456)]
    assert path.read_text() == "new"
    assert stat.S_IMODE(real(path).st_mode) == 0o640


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    path, done = tmp_path / "a", []
    rename, sync = Path.replace, os.fsync

    def replace(self, target):
        done.append("rename")
        return rename(self, target)

    def fsync(handle):
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        done.append("sync folder" if folder else "sync file")
        sync(handle)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(os, "fsync", fsync)
    write_text(path, "new")
    assert done == ["sync file", "rename", "sync folder"]


def test_a_folder_that_cannot_be_synced_is_no_error_but_a_broken_disk_is(
    tmp_path, monkeypatch
):
    for number, fails in ((errno.EINVAL, False), (errno.EIO, True)):
        real = os.fsync

        def fsync(handle, real=real, number=number):
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                raise OSError(number, os.strerror(number))
            real(handle)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            expected = pytest.raises(OSError, match=r"cannot write .*/a: Input/output")
            with expected if fails else contextlib.nullcontext():
                write_text(tmp_path / "a", str(number))
        assert (tmp_path / "a").read_text() == str(number)


def test_errors_of_the_system_name_the_file(tmp_path):
    with pytest.raises(OSError, match=r"^cannot write n+…: its name is too long\.$"):
        write_text(tmp_path / ("n" * 256), "")
    assert names(tmp_path) == []


# -- what a killed run leaves, and two runs at once --------------------------------------


def test_the_next_run_sweeps_what_a_killed_one_left(tmp_path):
    for left in (".calibrant-abcd1234.tmp", ".calibrant-0123456789abcdef.lock"):
        (tmp_path / left).write_bytes(b"half")
    kept = [".calibrant-.tmp", ".calibrant-a.tmp.npz", "calibrant-a.tmp", ".other.tmp"]
    for other in kept:
        (tmp_path / other).touch()
    write_text(tmp_path / "a", "")
    assert names(tmp_path) == sorted([*kept, "a"])


def test_the_file_of_a_run_that_lives_is_not_swept(tmp_path):
    with whole_file(tmp_path / "a") as mine:
        mine.write(b"mine")
        code = f"""
            from pathlib import Path
            from calibrant._base.write import write_text
            write_text(Path({str(tmp_path)!r}) / "b", "theirs")
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert (tmp_path / "a").read_bytes() == b"mine"
    assert names(tmp_path) == ["a", "b"]


def test_a_file_taken_by_somebody_who_sweeps_is_made_again(tmp_path, monkeypatch):
    made = []

    def lock(handle):
        made.append(handle)
        if len(made) == 1:  # as if it had been removed before it was locked
            (left,) = tmp_path.iterdir()
            left.unlink()
        if len(made) == 2:
            raise BlockingIOError(errno.EWOULDBLOCK, "somebody sweeps")

    monkeypatch.setattr(write, "_lock", lock)
    (tmp_path / "a").touch()
    (tmp_path / "a").unlink()
    write_text(tmp_path / "a", "new")
    assert len(made) == 3
    assert (tmp_path / "a").read_text() == "new"


def test_a_pipe_or_link_of_our_names_leads_nobody_astray(tmp_path):
    (tmp_path / "far").write_text("far")
    os.mkfifo(tmp_path / ".calibrant-pipe.tmp")
    (tmp_path / ".calibrant-link.tmp").symlink_to(tmp_path / "far")
    write_text(tmp_path / "a", "")  # neither waits nor follows
    assert (tmp_path / "far").read_text() == "far"


def test_one_process_at_a_time(tmp_path):
    (tmp_path / "link").symlink_to("a")
    with locked(tmp_path / "a"):
        for name in ("a", "link"):
            with (
                pytest.raises(
                    BlockingIOError, match=f"another process is .*{name}; wait"
                ),
                locked(tmp_path / name),
            ):
                pytest.fail("two have it")
        with locked(tmp_path / "b"):
            write_text(tmp_path / "a", "")
    with locked(tmp_path / "a"):
        pass
    assert names(tmp_path) == ["a", "link"]


def test_a_killed_process_holds_nothing(tmp_path):
    code = f"""
        import os, signal
        from pathlib import Path
        from calibrant._base.write import locked
        with locked(Path({str(tmp_path)!r}) / "a"):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1
    with locked(tmp_path / "a"):
        pass
    assert names(tmp_path) == []


def test_without_locks_files_are_written_all_the_same(tmp_path, monkeypatch):
    def lock(handle):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(write, "_lock", lock)
    (tmp_path / ".calibrant-abcd1234.tmp").touch()  # of whom, nobody can tell
    with locked(tmp_path / "a"):
        write_text(tmp_path / "a", "new")
    assert names(tmp_path) == [".calibrant-abcd1234.tmp", "a"]


def test_a_stamp_tells_files_and_versions_apart(tmp_path):
    path = tmp_path / "a"
    assert stamp_of(path) is None
    write_text(path, "old")
    old = stamp_of(path)
    assert stamp_of(str(path)) == old
    write_text(path, "new")
    assert stamp_of(path) != old
    assert digest_of(path) == hashlib.sha256(b"new").hexdigest()


# -- what other systems do -------------------------------------------------------------


def test_a_group_is_kept_even_if_no_owner_may_be_given(tmp_path, monkeypatch):
    asked = []

    def refuse(path, *owner):
        asked.append(owner)
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(os, "chown", refuse)
    write._give(tmp_path / "a", 7, 8)
    assert asked == [(7, 8), (-1, 8)]


def test_without_links_a_file_that_appeared_is_not_replaced(tmp_path, monkeypatch):
    def no_links(self, target):
        self.write_text("theirs")
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    with pytest.raises(FileExistsError, match=r"a\.txt exists; pass force=True"):
        write_text(tmp_path / "a.txt", "ours", force=False)
    assert (tmp_path / "a.txt").read_text() == "theirs"
    assert names(tmp_path) == ["a.txt"]


def test_a_lock_that_was_taken_away_is_made_again(tmp_path, monkeypatch):
    taken, lock = [], write._lock

    def lock_late(handle):
        lock(handle)
        if not taken:  # who held it lets go, and removes the file
            taken.extend(tmp_path.glob("*.lock"))
            taken[0].unlink()

    monkeypatch.setattr(write, "_lock", lock_late)
    with locked(tmp_path / "a"):
        assert names(tmp_path) == [taken[0].name]
    assert names(tmp_path) == []


class Windows:
    """Locks as Windows has them: of another process, of a file that is there."""

    LK_NBLCK = 2
    platform = "win32"

    def __init__(self):
        self.held, self.busy = [], False

    def locking(self, handle, mode, count):
        assert (mode, count) == (self.LK_NBLCK, 1)
        if self.busy:
            raise PermissionError(errno.EACCES, "held")
        self.held.append(handle)


@pytest.fixture
def windows(monkeypatch):
    system = Windows()
    monkeypatch.setattr(write, "msvcrt", system, raising=False)
    monkeypatch.setattr(write, "sys", system)
    return system


def test_on_windows_a_file_is_closed_before_it_gets_its_name(
    tmp_path, monkeypatch, windows
):
    closed, put = [], write._put

    def put_closed(written, target, **options):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(windows.held[-1])
        closed.append(target.name)
        put(written, target, **options)

    monkeypatch.setattr(write, "_put", put_closed)
    write_text(tmp_path / "a.txt", "whole")
    assert closed == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "whole"
    assert names(tmp_path) == ["a.txt"]


def test_on_windows_one_process_at_a_time_writes(tmp_path, windows):
    with locked(tmp_path / "a"):
        assert len(names(tmp_path)) == 1
    assert names(tmp_path) == []
    windows.busy = True
    with (
        pytest.raises(BlockingIOError, match=r"another process is writing .*a; wait"),
        locked(tmp_path / "a"),
    ):
        pass
