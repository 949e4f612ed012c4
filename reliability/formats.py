"""Files of every format: as they should be, or with one thing in them that should not.

Each writer knows its format: an attack is a valid file but for a header that lies, two
things of one name, a hole, a bomb. ``bytes_off`` then flips and cuts what any format is
made of. Attacks that every reader must refuse say so in `wrong`.
"""

from __future__ import annotations

import importlib
import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .choices import Choices
from .rows import Arrays, Rows

NAMES = (
    "p", "\x1b[31mred", "a\0b", "\u202eright", "a" * 300, "", " ", "a\nb", "'; --", '"',
    "label=2", "../x", "__metadata__", "Label", "é", "\U0001f600",
)  # fmt: skip
"""Names that are hard to print, to quote or to tell apart."""

NUMBERS = (
    0,
    1,
    -1,
    2**31,
    2**32 - 1,
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
    10**30,
)


# -- npy ------------------------------------------------------------------------------

DESCRIPTIONS = (
    "<f8", "|O", "<U3", "|S4", ">f8", "<f2", "<f16", "<c16", "<M8[s]", "|V8", "|b1",
    "<f0", "<U0", "zz", "<i16", [("a", "<f8")], "<U1000000000", 3, None,
)  # fmt: skip
SHAPES = (
    (-1,),
    (10**15,),
    (2**62, 2**62),
    (),
    (0,),
    (10**12, 0),
    (1,) * 40,
    "abc",
    (1.0,),
)


def npy(array: NDArray[np.generic]) -> bytes:
    """An array as NumPy writes it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def hostile_npy(c: Choices, array: NDArray[np.generic]) -> tuple[bytes, str]:
    """An array whose header may lie, and what is wrong with it."""
    fields = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
    body, wrong = array.tobytes(), "?"
    attack = c.below(8)
    if attack == 1:
        fields["descr"] = c.one(DESCRIPTIONS)
    elif attack == 2:
        fields["shape"] = c.one(SHAPES)
    elif attack == 3:
        fields["fortran_order"] = c.one((True, 1, "yes", None))
    elif attack == 4:
        body, wrong = body + bytes(c.between(1, 9)), "bytes after the end"
    elif attack == 5:
        body, wrong = body[: -c.between(1, 8)], "cut short"
    elif attack == 6:
        fields = dict(list(fields.items())[: c.between(0, 2)])
        wrong = "fields missing"
    elif attack == 7:
        fields["more"] = c.one((1, "x" * 100, [[]] * 50))
        wrong = "fields too many"
    text = c.one(
        (repr(fields), repr(fields) + " " * 60 + "\n", "__import__('os')", "{" * 200)
    )
    version = c.one((b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00", b"\xff\xff"))
    length = len(text) if not c.chance(20) else c.one((0, 7, 60_000, 2**31))
    form = "<H" if version == b"\x01\x00" else "<I"
    packed = struct.pack(form, length % (1 << 16 if form == "<H" else 1 << 32))
    return b"\x93NUMPY" + version + packed + text.encode() + body, wrong


# -- archives -------------------------------------------------------------------------


def npz(c: Choices, made: Rows, attack: int) -> bytes:
    """An archive of arrays."""
    members = [(f"{name}.npy", npy(array)) for name, array in made.arrays.items()]
    how = c.one(
        (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    )
    at = c.below(len(members))
    name, content = members[at]
    if attack == 1:
        content, made.wrong = hostile_npy(c, made.arrays[name[:-4]])
        members[at] = (name, content)
    elif attack == 2:
        members.append((name, content))
        made.wrong = "two members of one name"
    elif attack == 3:
        odd = c.one(
            ("readme.txt", "a/b.npz", "x", "/etc/passwd", "../up.npy", "\x1b.npy")
        )
        members.append((odd, c.one((b"", b"hello", _nested(c)))))
        made.wrong = "?"
    elif attack == 4:
        members[at] = (name, _bomb(c))
        how, made.wrong = zipfile.ZIP_DEFLATED, "?"
    elif attack == 5:
        members += [
            (f"{c.one(NAMES)}{i}.npy", content) for i in range(c.between(1, 80))
        ]
        made.wrong = "?"
    elif attack == 6:
        members[at] = (c.one(NAMES) + ".npy", content)
        made.wrong = "?"
    whole = _zip(members, how)
    if attack == 7:  # what the directory says of sizes, sums and flags
        place = whole.rindex(b"PK\x01\x02") + c.one((8, 10, 16, 20, 24, 42))
        edge = struct.pack("<I", c.one(NUMBERS) % 2**32)
        whole, made.wrong = whole[:place] + edge + whole[place + 4 :], "?"
    elif attack == 8:
        whole, made.wrong = c.one((b"#!/bin/sh\n", b"\0" * 9, b"PK\3\4")) + whole, "?"
    return whole


def _zip(members: list[tuple[str, bytes]], how: int) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", how) as archive:
        warnings.simplefilter("ignore")  # of two members of one name
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name.replace("\0", "0")), content, how)
    return file.getvalue()


def _nested(c: Choices) -> bytes:
    inner = b"x"
    for _ in range(c.between(1, 6)):
        inner = _zip([("inner.npz", inner)], zipfile.ZIP_DEFLATED)
    return inner


def _bomb(c: Choices) -> bytes:
    """A member that unpacks to at most 32 MB of zeros."""
    count = c.one((1 << 12, 1 << 18, 1 << 22))
    return npy(np.zeros((count, 1)))


# -- safetensors ----------------------------------------------------------------------

TENSORS = {"f8": "F64", "f4": "F32", "i8": "I64", "b1": "BOOL", "f2": "F16", "u1": "U8"}


def safetensors(c: Choices, made: Rows, attack: int) -> bytes:
    """Tensors behind a header of JSON."""
    header, body = {}, b""
    for name, array in made.arrays.items():
        if array.dtype.kind == "U":  # the format has no text
            made.wrong = made.wrong or "?"
            continue
        said = {"dtype": TENSORS[array.dtype.str[1:]], "shape": list(array.shape)}
        header[name] = {**said, "data_offsets": [len(body), len(body) + array.nbytes]}
        body += np.ascontiguousarray(array).tobytes()
    entry = header[c.one(list(header))]
    if attack == 1:
        body, made.wrong = body + bytes(c.between(1, 16)), "bytes after the end"
    elif attack == 2:
        header, body, made.wrong = *_moved(header, body, gap=8), "a hole"
    elif attack == 3 and len(header) > 1:
        for other in header.values():
            size = other["data_offsets"][1] - other["data_offsets"][0]
            other["data_offsets"] = [0, size]
        made.wrong = "overlaps"
    elif attack == 4:
        entry["shape"] = c.one(
            ([-1], [10**15], [2**62, 4], [], [1.0], "a", [0], [None])
        )
        made.wrong = "?"
    elif attack == 5:
        entry["data_offsets"] = c.one(
            ([8, 0], [0, 10**15], [0], [-8, 0], "x", [0.0, 8.0], None)
        )
        made.wrong = "offsets that are none"
    elif attack == 6:
        entry["dtype"] = c.one(
            ("BF16", "F8_E5M2", "F16", "I8", "U64", "X", 3, None, "C64")
        )
        made.wrong = "?"
    elif attack == 7:
        meta = c.one(
            ({"a": "b"}, {"a": 1}, [], "x", {"\x1b": "\u202e"}, {"a": "x" * 10**5})
        )
        header, made.wrong = {"__metadata__": meta, **header}, "?"
    elif attack == 8:
        header[c.one(NAMES)] = dict(entry, shape=[0], data_offsets=[0, 0])
        made.wrong = "?"
    text = json.dumps(header).encode()
    if attack == 9:
        first = json.dumps(dict(list(header.items())[:1])).encode()
        text, made.wrong = first[:-1] + b", " + text[1:], "two tensors of one name"
    length = len(text) if attack != 10 else c.one(NUMBERS) % 2**64
    made.wrong = made.wrong or ("?" if attack == 10 else "")
    return length.to_bytes(8, "little") + text + body


def _moved(header: dict, body: bytes, gap: int) -> tuple[dict, bytes]:
    """All tensors further back, and nothing before them."""
    moved = {
        name: {**entry, "data_offsets": [gap + x for x in entry["data_offsets"]]}
        for name, entry in header.items()
    }
    return moved, bytes(gap) + body


# -- text -----------------------------------------------------------------------------

FIELDS = (
    "", "nan", "inf", "-inf", "1e999", "0x1p3", " 0.5 ", "1_000", "½", "true", '"0.5"',
    '"', "a,b", "null", "None", "9" * 400, "0.5\0", "\x1b[2J", "١", "+.5", "1e-400",
)  # fmt: skip


def delimited(c: Choices, made: Rows, attack: int, mark: str = ",") -> bytes:
    """A text table."""
    columns = flat(made.arrays)
    names = list(columns)
    lines = [list(map(_word, line)) for line in zip(*columns.values(), strict=False)]
    end = c.one(("\n", "\r\n", "\r"))
    row = lines[c.below(len(lines))] if lines else []
    if attack == 1 and row:
        row[c.below(len(row))], made.wrong = c.one(FIELDS), "?"
    elif attack == 2 and row:
        row.append("1")
        made.wrong = "a row too long"
    elif attack == 3 and len(row) > 1:
        row.pop()
        made.wrong = "a row too short"
    elif attack == 4:
        names[-1], made.wrong = names[0], "two columns of one name"
    elif attack == 5:
        names[c.below(len(names))], made.wrong = c.one(NAMES).replace("\0", ""), "?"
    elif attack == 6:
        lines, made.wrong = [], "no rows"
    elif attack == 7:
        names, made.wrong = ["0.5"] * len(names), "no names"
    elif attack == 8:
        lines.insert(c.below(len(lines) + 1), [c.one(("# note", "", "\t", "x" * 5000))])
        made.wrong = "?"
    text = end.join(mark.join(line) for line in [names, *lines]) + end
    if attack == 9:
        made.wrong = "?"
        return text.encode(c.one(("utf-16", "utf-8-sig", "utf-32", "cp500")))
    if attack == 10:
        width = c.one((50, 400, 3000))
        more = mark.join(f"p_{i}" for i in range(width))
        made.wrong = "?"
        return (more + end + mark.join(["0"] * width) + end).encode()
    return text.encode("utf-8", "surrogatepass")


def _word(value: np.generic) -> str:
    return str(value.item())


def flat(arrays: Arrays) -> Arrays:
    """Columns of a matrix get numbers: logits_0, logits_1, ..."""
    columns: Arrays = {}
    for name, array in arrays.items():
        parts = [array] if array.ndim == 1 else list(array.T)
        plain = array.ndim == 1
        columns |= {name if plain else f"{name}_{j}": x for j, x in enumerate(parts)}
    return columns


VALUES = (
    "null", "NaN", "Infinity", "1e999", "-0", "true", '"x"', "[]", "{}", "[[0.5]]",
    '"\\ud800"', "9" * 5000, "1.0E+2", "00", "[" * 3000 + "]" * 3000, "0.5", '"\\u0000"',
)  # fmt: skip


def jsonl(c: Choices, made: Rows, attack: int) -> bytes:
    """JSON lines."""
    columns = zip(*(a.tolist() for a in made.arrays.values()), strict=False)
    lines = [json.dumps(dict(zip(made.arrays, row, strict=True))) for row in columns]
    at = c.below(len(lines)) if lines else 0
    name = json.dumps(next(iter(made.arrays)))
    if attack == 1 and lines:
        lines[at] = f"{lines[at][:-1]}, {name}: 0.5}}"
        made.wrong = "a name twice"
    elif attack == 2 and lines:
        key = json.dumps(c.one(list(made.arrays)))
        rest = json.loads(lines[at])
        rest.pop(json.loads(key))
        lines[at] = json.dumps(rest)[:-1].rstrip("{") + f", {key}: {c.one(VALUES)}}}"
        lines[at] = (
            lines[at] if lines[at].startswith("{") else "{" + lines[at].lstrip(", ")
        )
        made.wrong = "?"
    elif attack == 3 and lines:
        lines[at], made.wrong = (
            c.one(("[1]", "3", '"x"', "null", "{", "NaN", "}")),
            "no object",
        )
    elif attack == 4 and len(lines) > 1:
        rest = json.loads(lines[-1])
        rest.pop(json.loads(name))
        lines[-1], made.wrong = json.dumps(rest), "a name missing"
    elif attack == 5:
        lines.insert(at, c.one(("", "   ", "\ufeff", "\x0c", "// x")))
        made.wrong = "?"
    elif attack == 6 and lines:
        word = json.dumps(c.one(NAMES))
        lines = [f"{line[:-1]}, {word}: 1}}" for line in lines]
        made.wrong = "?"
    elif attack == 7:
        lines, made.wrong = [], "no rows"
    return ("\n".join(lines) + "\n").encode()


# -- arrow and parquet ----------------------------------------------------------------


def _table(c: Choices, made: Rows, attack: int) -> object:
    arrow = importlib.import_module("pyarrow")
    arrays = made.arrays if c.chance(128) else flat(made.arrays)
    columns = {
        n: arrow.array(a if a.ndim == 1 else a.tolist()) for n, a in arrays.items()
    }
    names = list(columns)
    name = c.one(names)
    if attack == 1:
        values = columns[name].to_pylist()
        values[c.below(len(values))] = None
        columns[name] = arrow.array(values, columns[name].type)
        made.wrong = "?" if name in ("group", "cluster") else "a value missing"
    elif attack == 2:
        kinds = (arrow.string(), arrow.float16(), arrow.float32(), arrow.uint64(), arrow.binary(),
                 arrow.decimal128(38, 10), arrow.timestamp("us"), arrow.bool_())  # fmt: skip
        columns[name] = _cast(columns[name], c.one(kinds))
        made.wrong = "?"
    elif attack == 3:
        columns[name] = (
            columns[name].dictionary_encode()
            if _plain(columns[name])
            else columns[name]
        )
        made.wrong = "?"
    elif attack == 4:
        values = columns[name].to_pylist()
        columns[name] = arrow.array([{"a": value} for value in values])
        made.wrong = "?"
    elif attack == 5:
        columns[c.one(NAMES)] = columns[name]
        made.wrong = "?"
    elif attack == 6:
        values = [[0.5] * c.between(0, 3) for _ in columns[name]]
        columns[name], made.wrong = arrow.array(values), "?"
    table = arrow.table(columns)
    if attack == 7:
        table = arrow.table([*columns.values(), columns[name]], names=[*columns, name])
        made.wrong = "two columns of one name"
    elif attack == 8:
        table, made.wrong = table.slice(0, 0), "no rows"
    return table


def _plain(column: object) -> bool:
    return not importlib.import_module("pyarrow").types.is_nested(column.type)  # type: ignore[attr-defined]


def _cast(column: object, kind: object) -> object:
    arrow = importlib.import_module("pyarrow")
    try:
        return column.cast(kind)  # type: ignore[attr-defined]
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
        return column


def parquet(c: Choices, made: Rows, attack: int) -> bytes:
    """A Parquet file."""
    writer = importlib.import_module("pyarrow.parquet")
    file = io.BytesIO()
    packed = c.one(("snappy", "none", "zstd", "gzip", "brotli", "lz4"))
    table = _table(c, made, attack)
    writer.write_table(
        table, file, compression=packed, row_group_size=c.one((None, 1, 5))
    )
    return file.getvalue()


def arrow(c: Choices, made: Rows, attack: int) -> bytes:
    """An Arrow file, or a stream."""
    ipc = importlib.import_module("pyarrow.ipc")
    file, table = io.BytesIO(), _table(c, made, attack)
    options = ipc.IpcWriteOptions(compression=c.one((None, "lz4", "zstd")))
    opener = c.one((ipc.new_file, ipc.new_stream))
    with opener(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=c.one((None, 1, 5)))
    return file.getvalue()


# -- any ------------------------------------------------------------------------------

Writer = Callable[[Choices, Rows, int], bytes]

WRITERS: dict[str, tuple[Writer, int]] = {
    "npz": (npz, 9),
    "safetensors": (safetensors, 11),
    "jsonl": (jsonl, 8),
    "csv": (delimited, 11),
    "tsv": (lambda c, made, attack: delimited(c, made, attack, "\t"), 11),
    "parquet": (parquet, 9),
    "arrow": (arrow, 9),
    "feather": (arrow, 9),
}
"""By suffix: what writes it, and how many attacks it knows, the harmless one included."""


def bytes_off(c: Choices, content: bytes) -> bytes:
    """The same bytes with a few of them off."""
    made = bytearray(content)
    for _ in range(c.between(1, 3)):
        place = c.below(len(made) + 1)
        step = c.below(6)
        if step == 0 and place < len(made):
            made[place] ^= 1 << c.below(8)
        elif step == 1:
            del made[place:]
        elif step == 2:
            made += bytes(c.between(1, 64))
        elif step == 3:
            made[place : place + 8] = struct.pack("<Q", c.one(NUMBERS) % 2**64)
        elif step == 4:
            made[place : place + 4] = struct.pack("<I", c.one(NUMBERS) % 2**32)
        else:
            made[place:place] = made[c.below(len(made) + 1) :][:64]
    return bytes(made)
