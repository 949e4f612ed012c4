"""The same predictions written in every format, by other libraries where they exist."""

import csv
import importlib
import json

import numpy as np


def write_npz(path, arrays):
    np.savez_compressed(path, **arrays)


def write_csv(path, arrays, mark=","):
    names, columns = zip(*_flat(arrays).items(), strict=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=mark)
        writer.writerow(names)
        writer.writerows(zip(*(column.tolist() for column in columns), strict=True))


def write_tsv(path, arrays):
    write_csv(path, arrays, mark="\t")


def write_jsonl(path, arrays):
    rows = zip(*(array.tolist() for array in arrays.values()), strict=True)
    lines = [json.dumps(dict(zip(arrays, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_parquet(path, arrays):
    parquet = importlib.import_module("pyarrow.parquet")
    parquet.write_table(_table(_flat(arrays)), path)


def write_parquet_lists(path, arrays):
    parquet = importlib.import_module("pyarrow.parquet")
    parquet.write_table(_table(arrays), path)


def write_arrow(path, arrays):
    ipc = importlib.import_module("pyarrow.ipc")
    table = _table(arrays)
    with ipc.new_file(str(path), table.schema) as file:
        file.write_table(table, max_chunksize=7)


def write_arrow_stream(path, arrays):
    ipc = importlib.import_module("pyarrow.ipc")
    table = _table(arrays)
    with ipc.new_stream(str(path), table.schema) as file:
        file.write_table(table)


def write_feather(path, arrays):
    importlib.import_module("pyarrow.feather").write_feather(_table(arrays), str(path))


def write_safetensors(path, arrays):
    names = {"float64": "F64", "float32": "F32", "int64": "I64", "bool": "BOOL"}
    header, start = {"__metadata__": {"made": "by hand"}}, 0
    for name, array in arrays.items():
        said = {"dtype": names[array.dtype.name], "shape": array.shape}
        header[name] = {**said, "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def write_pt(path, arrays):
    torch = importlib.import_module("torch")
    torch.save({name: torch.tensor(array) for name, array in arrays.items()}, path)


def _flat(arrays):
    """Columns of a matrix get numbers: logits become logits_0, logits_1, ..."""
    columns = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        else:
            columns |= {f"{name}_{j}": array[:, j] for j in range(array.shape[1])}
    return columns


def _table(arrays):
    arrow = importlib.import_module("pyarrow")
    return arrow.table(
        {n: arrow.array(a if a.ndim == 1 else a.tolist()) for n, a in arrays.items()}
    )


WRITERS = {
    "a.npz": write_npz,
    "a.csv": write_csv,
    "a.tsv": write_tsv,
    "a.jsonl": write_jsonl,
    "a.parquet": write_parquet,
    "lists.parquet": write_parquet_lists,
    "a.arrow": write_arrow,
    "stream.arrow": write_arrow_stream,
    "a.feather": write_feather,
    "a.safetensors": write_safetensors,
    "a.pt": write_pt,
}
NEEDS = {
    "a.parquet": "pyarrow",
    "lists.parquet": "pyarrow",
    "a.arrow": "pyarrow",
    "stream.arrow": "pyarrow",
    "a.feather": "pyarrow",
    "a.safetensors": "safetensors",
    "a.pt": "torch",
}
