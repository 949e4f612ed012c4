"""Arrays of every framework give the same answer, without being imported by us."""

import subprocess
import sys

import numpy as np
import pytest
from make import softmax, unrelated

import calibrant as cal
from calibrant._base.checks import RowError
from calibrant._inputs.arrays import as_scores, to_numpy

Y, LOGITS = unrelated(60, 3)
P = softmax(LOGITS)


def want():
    """Of arrays, by what is loaded now: compiled fits differ in the last digits."""
    return cal.evaluate(Y, probs=P).to_dict()


def check(y, p):
    assert cal.evaluate(y, probs=p).to_dict() == want()


def test_lists():
    check(Y.tolist(), P.tolist())


def test_pandas(part):
    pd = part("pandas")
    rows = range(100, 160)
    check(pd.Series(Y, rows), pd.DataFrame(P, rows, columns=list("abc")))
    names = pd.Series(pd.Categorical(np.array(["a", "b", "c"])[Y]))
    assert (
        cal.evaluate(names, probs=pd.DataFrame(P), classes=["a", "b", "c"]).to_dict()
        == want()
    )


@pytest.mark.parametrize("kind", ["Float64", "Float32", "double[pyarrow]"])
def test_frames_of_nullable_and_arrow_numbers(part, kind):
    pd = part("pandas")
    if "pyarrow" in kind:
        part("pyarrow")
    frame = pd.DataFrame(P, columns=list("abc")).astype(kind)
    got = cal.evaluate(pd.Series(Y), probs=frame).metrics
    for name, value in cal.evaluate(Y, probs=P).metrics.items():
        assert got[name] == pytest.approx(value, rel=1e-5 if "32" in kind else 1e-15)
    assert cal.brier(Y, probs=frame) == pytest.approx(cal.brier(Y, probs=P), rel=1e-6)
    whole = (100 * frame).round().astype("Int64")
    assert cal.nll(Y, logits=whole) == cal.nll(Y, logits=np.rint(100 * P))
    frame.iloc[3, 1] = pd.NA
    with pytest.raises(RowError, match="row 3"):
        cal.evaluate(Y, probs=frame)
    frame["b"] = "cat"
    with pytest.raises(TypeError, match=r"row 0 is 'cat'.*\.astype\(float\)"):
        cal.evaluate(Y, probs=frame)


def test_polars(part):
    pl = part("polars")
    check(pl.Series(Y), pl.DataFrame(P, schema=["a", "b", "c"]))
    check(pl.Series(Y), pl.Series(P.tolist()))


def test_pyarrow(part):
    pa = part("pyarrow")
    table = pa.table({name: P[:, j] for j, name in enumerate("abc")})
    check(pa.array(Y), table)
    check(pa.chunked_array([Y[:20], Y[20:]]), table.to_batches()[0])
    check(pa.array(Y), pa.array(P.tolist()))


def test_torch(part):
    torch = part("torch")
    check(torch.tensor(Y), torch.tensor(P, requires_grad=True))
    z = torch.randn(50, 4)
    y = torch.randint(0, 4, (50,))
    want = cal.nll(y, logits=z)
    got = float(torch.nn.functional.cross_entropy(z, y))
    assert want == pytest.approx(got, rel=1e-5)
    assert cal.nll(y, logits=z.bfloat16()) == pytest.approx(want, abs=0.02)


def test_jax(part):
    jax = part("jax")
    z = jax.numpy.asarray(np.log(P), dtype="float32")
    got = cal.nll(jax.numpy.asarray(Y), logits=z)
    assert got == pytest.approx(cal.nll(Y, probs=P), rel=1e-5)


class OnlyDlpack:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnlyArray:
    """An array that speaks __array__ and nothing else."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


@pytest.mark.parametrize("wrapper", [OnlyDlpack, OnlyArray])
def test_protocols(wrapper):
    check(wrapper(Y), wrapper(P.copy()))


def test_other_byte_order_and_wider_floats():
    check(Y, P.astype(">f8"))
    check(Y, P.astype(np.longdouble))


def test_masked_arrays():
    check(np.ma.array(Y), np.ma.array(P))
    with pytest.raises(ValueError, match=r"probs has masked entries \(1\)"):
        cal.evaluate(
            Y, probs=np.ma.array(P, mask=np.arange(P.size).reshape(P.shape) == 4)
        )


def test_what_is_no_array_is_named():
    with pytest.raises(TypeError, match="probs must hold real numbers"):
        cal.evaluate([0], probs=object())
    with pytest.raises(TypeError, match="could not be read as an array"):
        to_numpy([[1.0], [1.0, 2.0]], "probs")


def test_evaluating_a_list_imports_no_framework():
    code = (
        "import sys, calibrant as cal; cal.evaluate_pairs([1, 0], [.6, .4]);"
        "sys.exit(any(m in sys.modules for m in ('torch', 'pandas', 'polars',"
        " 'sklearn', 'matplotlib', 'click')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_scores_of_the_other_byte_order_are_the_same_scores(dtype):
    """Rounded to few digits, rows need not sum to 1 as closely as those of doubles."""
    p = softmax(np.random.default_rng(0).normal(size=(300, 5))).astype(dtype)
    y = np.arange(300) % 5
    want = cal.evaluate(y, probs=p, interval=None)
    for order in "<>":
        found = cal.evaluate(y, probs=p.astype(order + dtype), interval=None)
        assert found.metrics == want.metrics
    assert as_scores(p.astype(">" + dtype), "probs").dtype == np.dtype(dtype)
