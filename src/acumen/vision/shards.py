"""Logits on disk: shards that exist whole or not at all, and a manifest of digests."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from acumen.files.errors import FileError
from acumen.writing import write_npz, write_text

FORMAT, VERSION = "acumen logits", 1
MANIFEST = "manifest.json"
SHARD = re.compile(r"shard-\d{5,}\.npz")
BEGIN_ANEW = "choose another folder, or begin anew with force=True (--force)."


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of logits: how many rows it has, and the digest of its bytes."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What has been written, from what, and whether that is all there is."""

    settings: Mapping[str, Any]
    shards: tuple[Shard, ...] = ()
    complete: bool = False

    @property
    def rows(self) -> int:
        """Rows of all shards."""
        return sum(shard.rows for shard in self.shards)

    def with_shard(self, new: Shard) -> Manifest:
        """The manifest with one more shard, or another one in its place."""
        others = [shard for shard in self.shards if shard.file != new.file]
        return replace(self, shards=tuple(sorted([*others, new], key=_file)))


def _file(shard: Shard) -> tuple[int, str]:
    return len(shard.file), shard.file


def shard_name(number: int) -> str:
    """The file of a shard; the names sort as the numbers do.

    Examples
    --------
    >>> shard_name(7)
    'shard-00007.npz'
    """
    return f"shard-{number:05d}.npz"


def write_shard(folder: Path, number: int, arrays: Mapping[str, Any]) -> Shard:
    """Write the arrays of a shard; equal arrays give equal bytes."""
    path = folder / shard_name(number)
    write_npz(path, arrays)
    return Shard(path.name, len(arrays["labels"]), digest_of(path))


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with a digest of itself."""
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    content["sha256"] = _digest(content)
    write_text(folder / MANIFEST, json.dumps(content, indent=1) + "\n")


def _digest(content: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Read a manifest, and refuse one that is not as it was written."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        whole = content["format"] == FORMAT and content["sha256"] == _digest(content)
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise FileError(path, f"is damaged or not ours; {BEGIN_ANEW}")
    if content["version"] != VERSION:
        raise FileError(path, f"has the version {content['version']}; {BEGIN_ANEW}")
    shards = tuple(Shard(**shard) for shard in content["shards"])
    return Manifest(content["settings"], shards, content["complete"])


def begin(folder: Path, settings: Mapping[str, Any], *, force: bool) -> Manifest:
    """The manifest to go on from: that of the folder, or an empty one."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in (*folder.glob(".shard-*.tmp"), *folder.glob(f".{MANIFEST}.*.tmp")):
        left.unlink()  # a run that was killed had no time to
    present = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    ours = {name for name in present if name == MANIFEST or SHARD.fullmatch(name)}
    if foreign := sorted(present - ours):
        raise FileError(
            folder, f"has other files in it ({foreign[0]}); choose another folder."
        )
    if force or not ours:
        for name in sorted(ours):  # the manifest first: it must not outlive a shard
            (folder / name).unlink()
        return Manifest(dict(settings))
    if MANIFEST not in ours:
        raise FileError(folder, f"has shards but no {MANIFEST}; {BEGIN_ANEW}")
    return _same(folder, read_manifest(folder), settings)


def _same(folder: Path, found: Manifest, settings: Mapping[str, Any]) -> Manifest:
    """Refuse to mix logits of two models, two sets of images or two ways of storing."""
    for name in [*settings, *found.settings]:
        before, now = found.settings.get(name), settings.get(name)
        if before != now:
            raise FileError(
                folder, f"was begun with {name} {before!r}, not {now!r}; {BEGIN_ANEW}"
            )
    return found


def intact(folder: Path, manifest: Manifest) -> tuple[Manifest, tuple[str, ...]]:
    """The manifest of the shards that are as they were written, and names of the others."""
    bad = tuple(
        shard.file
        for shard in manifest.shards
        if not (folder / shard.file).is_file()
        or digest_of(folder / shard.file) != shard.sha256
    )
    if not bad:
        return manifest, ()
    kept = tuple(shard for shard in manifest.shards if shard.file not in bad)
    return replace(manifest, shards=kept, complete=False), bad
