"""Files of sketches: what no rows give is refused, whatever its checksum."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from make import over_confident

import calibrant as cal
from calibrant._base.records import RecordError
from calibrant._sketch import storage

Y, Z = over_confident(60, 3)
W = np.random.default_rng(0).random(60) + 0.1
PLAIN = cal.Sketch().update(Y, logits=Z, group=Y % 2, part="x").to_bytes()
WHOLE = cal.Sketch().update(
    Y, logits=Z, sample_weight=W, cluster=np.arange(60) % 20, part="x"
)
WEIGHTED = WHOLE.to_bytes()


def arrays_of(content):
    with np.load(io.BytesIO(content)) as archive:
        return {name: archive[name].copy() for name in archive.files}


def forged(arrays):
    """Arrays as a file with the checksum that they have."""
    rest = {name: x for name, x in arrays.items() if name != storage.DIGEST}
    file, digest = io.BytesIO(), np.frombuffer(storage._digest(rest), np.uint8)
    np.savez(file, **rest, **{storage.DIGEST: digest})
    return file.getvalue()


def with_header(**changes):
    arrays = arrays_of(PLAIN)
    header = json.loads(arrays[storage.HEADER].tobytes()) | changes
    arrays[storage.HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return forged(arrays)


@pytest.mark.parametrize("content", [PLAIN, WEIGHTED])
def test_what_was_saved_is_read(content):
    assert cal.Sketch.from_bytes(forged(arrays_of(content))).to_bytes() == content


FIELDS = cal.Sketch.from_bytes(PLAIN).cells.fields


def of_table(name, change):
    """A change of one sum of the table."""

    def changed(arrays):
        column = arrays["0.table"][:, FIELDS.index(name)]
        column[:] = change(column)

    return changed


def swap_scores(arrays):
    """The sums of the two scores take each other's place."""
    brier = [i for i, x in enumerate(FIELDS) if x.startswith("brier_")]
    log = [i for i, x in enumerate(FIELDS) if x.startswith("log_")]
    table = arrays["0.table"]
    table[:, [*brier, *log]] = table[:, [*log, *brier]]
    arrays["0.totals"] = arrays["0.totals"][::-1].copy()


def put(name, value, place=0):
    def changed(arrays):
        arrays[name].reshape(-1)[place] = value

    return changed


HOSTILE = [
    (put("0.rows", -5), "must have rows, and cells of positive weight"),
    (put("0.rows", 10**9), "fewer rows than were counted"),
    (put("0.totals", -1.0), "a brier loss that is not that of the cells"),
    (put("0.totals", np.nan), "0?rows.totals must be finite"),
    (put("0.certain", -1.0), "certain rows above the weight"),
    (put("0.count", 7.0), "count"),
    (put("0.cells", -1), "rows.cells must increase"),
    (put("0.cells", 10**6, -1), "rows.cells must increase"),
    (put("0.ends", 2.0), "confidences outside 0 to 1"),
    (put("0.ends", 0.0), "confidences outside their cell"),
    (put("0.waiting", 1.5), "distinct confidences"),
    (put("0.within", 50.0), "residuals by class that are not those of the cells"),
    (swap_scores, "sums of another score|loss that is not"),
    (of_table("hit_0", lambda x: x + 2), "hits below 0 or above the weight"),
    (of_table("hit_0", lambda x: 0 * x - 1), "hits below 0 or above the weight"),
    (of_table("hit2", lambda x: x + 2), "squared hits above the hits"),
    (of_table("hit2", lambda x: 0 * x - 1), "squared hits above the hits"),
    (of_table("weight_0", lambda x: -x), "cells of positive weight"),
    (of_table("weight_0", lambda x: 2 * x), "impossible"),
    (of_table("weight_1", lambda x: x + 9), "moments of the weight"),
    (of_table("r1", lambda x: x + 0.5), "residuals that are not hits"),
    (of_table("r2", lambda x: -x - 1), "squared residuals below 0"),
    (of_table("h", lambda x: x + 1), "a mean confidence outside"),
    (of_table("brier_loss_0", lambda x: -x), "a brier loss below 0"),
    (of_table("log_infinite", lambda x: x + 99), "infinite log losses above"),
    (lambda a: a.pop("0.table"), "rows.table is missing"),
    (lambda a: a.update({"0.extra": np.zeros(3)}), "rows.extra is extra"),
    (lambda a: a.update({"9.rows": np.zeros(1)}), "belongs to nothing"),
    (lambda a: a.update({"0.rows": np.zeros(1)}), "rows.rows is of another kind"),
    (lambda a: a.update({"0.table": a["0.table"][1:]}), "table is of another kind"),
    (lambda a: a.pop("0.waiting"), "must have all of values, waiting"),
    (lambda a: a.update({"1.table": 3 * a["1.table"]}), "group"),
]


@pytest.mark.parametrize(("change", "said"), HOSTILE)
def test_sums_that_no_rows_have_are_refused(change, said):
    arrays = arrays_of(PLAIN)
    change(arrays)
    with pytest.raises(RecordError, match=said) as error:
        cal.Sketch.from_bytes(forged(arrays))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target": "all"}, "header.target must be one of"),
        ({"classes": [0, 1, 1]}, "must have distinct classes"),
        ({"classes": [0]}, "two classes or more"),
        ({"classes": list(range(9))}, "residuals by class of 9 classes"),
        ({"divergences": ["log", "brier"]}, "sums of another score|loss that is not"),
        ({"divergences": ["brier", "nonsense"]}, "header.divergences is off"),
        ({"states": ["rows"]}, "belongs to nothing in the header"),
        ({"states": ["group a", "rows", "group b"]}, "must have the states"),
        ({"soft_rows": -1}, "header.soft_rows must be a number from 0 on"),
        ({"soft_rows": 1e9}, "no more of soft labels than there are"),
        ({"parts": [1]}, r"header.parts\[0\] must be text"),
        ({"extra": 1}, "header has no field 'extra'"),
        ({"version": 7}, "version 7 of the format"),
    ],
)
def test_headers_are_checked(changes, said):
    with pytest.raises(RecordError, match=said):
        cal.Sketch.from_bytes(with_header(**changes))


@pytest.mark.parametrize("content", [PLAIN, WEIGHTED])
def test_every_array_is_checked(content):
    for name, array in arrays_of(content).items():
        if array.dtype.kind != "f" or not array.size:
            continue
        for value in (np.nan, np.inf, -np.inf, 1e300):
            for place in (0, -1):
                arrays = arrays_of(content)
                arrays[name].reshape(-1)[place] = value
                with pytest.raises(RecordError):
                    cal.Sketch.from_bytes(forged(arrays))


@pytest.mark.filterwarnings("ignore:overflow")
def test_losses_beyond_the_largest_square_are_read():
    """Logits end at 1e100, since their squares overflow; the losses at it are kept."""
    with pytest.raises(ValueError, match=r"logits must be at most 1e\+100"):
        cal.Sketch().update(Y, logits=1e200 * Z)
    content = cal.Sketch().update(Y, logits=Z * (1e100 / np.abs(Z).max())).to_bytes()
    assert cal.Sketch.from_bytes(content).to_bytes() == content


def test_a_flipped_bit_is_noticed_or_means_nothing():
    for place in range(0, len(WEIGHTED), 3):
        damaged = bytearray(WEIGHTED)
        damaged[place] ^= 1 << place % 8
        try:
            again = cal.Sketch.from_bytes(bytes(damaged))
        except RecordError:
            continue
        assert again.to_bytes() == WEIGHTED


BOUNDED = """
import io, resource, sys, zipfile
import calibrant as cal
from calibrant._base.records import RecordError
resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))
for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
    for count in (10**8, 10**15):
        head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % count
        head += b" " * (63 - (len(head) + 10) % 64) + b"\\n"
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", kind) as archive:
            size = len(head).to_bytes(2, "little")
            archive.writestr("0.rows.npy", b"\\x93NUMPY\\x01\\x00" + size + head)
        try:
            cal.Sketch.from_bytes(file.getvalue())
        except RecordError:
            continue
        raise SystemExit("it was read")
peak = next(x for x in open("/proc/self/status") if x.startswith("VmHWM"))
assert int(peak.split()[1]) < 500_000, peak
"""


def test_a_small_file_takes_little_memory():
    command = [sys.executable, "-c", BOUNDED]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-70, 1e69, 1e100, 1e300])
def test_weights_whose_squares_are_no_numbers_are_never_saved(unit):
    sketch = cal.Sketch()
    if 1e-75 < unit < 1e75:
        content = sketch.update(Y, logits=Z, sample_weight=unit * (W + 1)).to_bytes()
        assert cal.Sketch.from_bytes(content).to_bytes() == content
    else:
        with pytest.raises(ValueError, match="sample_weight must be 0 or from 1e-70"):
            sketch.update(Y, logits=Z, sample_weight=unit * W)


GROUPED = cal.Sketch().update(Y, logits=Z, group=Y % 2, cluster=np.arange(60) % 20)
EACH = cal.Sketch(target="class-wise").update(Y, logits=Z)


def of(sketch, title):
    """Where the arrays of a part of a sketch begin."""
    header = json.loads(arrays_of(sketch.to_bytes())[storage.HEADER].tobytes())
    return f"{header['states'].index(title)}."


def moved(arrays, one, two):
    """The arrays of a part take the place of those of another."""
    for name in [x for x in arrays if x.startswith(two)]:
        del arrays[name]
    for name in [x for x in arrays if x.startswith(one)]:
        arrays[two + name.removeprefix(one)] = arrays[name]


def test_two_arrays_of_one_name_are_refused():
    file = io.BytesIO(PLAIN)
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Dup"):
        archive.writestr(archive.namelist()[0], b"again")
    with pytest.raises(RecordError, match="has two arrays of one name"):
        cal.Sketch.from_bytes(file.getvalue())


def test_confidences_outside_0_to_1_are_not_looked_up_in_the_grid():
    arrays = arrays_of(PLAIN)
    name = next(x for x in ("0.values", "0.waiting") if arrays[x].size)
    arrays[name][0, -1] = 3.0
    with pytest.raises(RecordError, match="distinct confidences outside 0 to 1"):
        cal.Sketch.from_bytes(forged(arrays))


def test_cells_of_clusters_outside_the_grid_are_refused():
    arrays = arrays_of(WEIGHTED)
    arrays["0.cluster_cell"][-1] = 10**6
    with pytest.raises(RecordError, match="cells of clusters outside the grid"):
        cal.Sketch.from_bytes(forged(arrays))


def test_clusters_are_those_of_all_groups_or_of_none():
    arrays, group = arrays_of(GROUPED.to_bytes()), of(GROUPED, "group 0")
    for name in ("cluster", "cluster_cell", "cluster_sums", "folded"):
        del arrays[group + name]
    with pytest.raises(RecordError, match="clusters in all of its groups, or in none"):
        cal.Sketch.from_bytes(forged(arrays))


def test_groups_are_parts_of_the_rows():
    sketch = cal.Sketch().update(Y, logits=Z, group=Y % 2)
    arrays, group = arrays_of(PLAIN), of(sketch, "group 0")
    moved(arrays, "0.", group)
    with pytest.raises(RecordError, match="has groups of more rows than there are"):
        cal.Sketch.from_bytes(forged(arrays))
    half = cal.Sketch().update(Y, logits=Z, group=np.where(Y, "a", "b"))
    other = cal.Sketch().update(Y, logits=-Z, group=np.where(Y, "a", "b"))
    arrays, group = arrays_of(half.to_bytes()), of(half, "group a")
    strange = arrays_of(other.to_bytes())
    for name in [x for x in arrays if x.startswith(group)]:
        del arrays[name]
    arrays |= {name: x for name, x in strange.items() if name.startswith(group)}
    with pytest.raises(RecordError, match="has groups of more weight than there is"):
        cal.Sketch.from_bytes(forged(arrays))


def test_every_class_has_every_row():
    fewer = cal.Sketch(target="class-wise").update(Y[1:], logits=Z[1:])
    arrays, strange = arrays_of(EACH.to_bytes()), arrays_of(fewer.to_bytes())
    own = of(EACH, "class 1")
    for name in [x for x in arrays if x.startswith(own)]:
        del arrays[name]
    arrays |= {name: x for name, x in strange.items() if name.startswith(own)}
    with pytest.raises(RecordError, match="every row in the sums of each class"):
        cal.Sketch.from_bytes(forged(arrays))
