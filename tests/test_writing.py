"""Files exist whole or not at all, and replace others only when told to."""

import stat

import numpy as np
import pytest

from calibrant._base.write import whole_file, write_bytes, write_npz, write_text
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
    with pytest.raises(FileExistsError, match=r"exists; pass force=True \(--force\)"):
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
