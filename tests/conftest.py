"""Shared fixtures: optional packages, real data, and Hypothesis profiles."""

import importlib
import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from torchvision_operators import mend_torchvision

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def forget_what_is_loaded():
    """Make a test independent of those that ran before it in the same process.

    Hypothesis draws constants from the source of all modules that are loaded by then.
    """
    if hasattr(providers, "_get_local_constants"):
        nothing = providers._local_constants
        providers._get_local_constants = lambda: nothing


if "HYPOTHESIS_PROFILE" not in os.environ:
    forget_what_is_loaded()


def give_up(reason):
    if os.environ.get("CALIBRANT_STRICT") == "1":
        pytest.fail(f"{reason}, and CALIBRANT_STRICT=1")
    pytest.skip(reason)


NEED_TORCHVISION = ("torchvision", "torchmetrics", "timm")


HEAVY = {"torch", "torchvision", "torchmetrics", "timm", "datasets", "pyspark"}


def how_to_have(name):
    """Which target of the Makefile installs a package."""
    heavy = name.partition(".")[0] in HEAVY
    return "`make parts`" if heavy else "`make test` installs it"


def import_part(name):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what others warn of at import is theirs
            if name in NEED_TORCHVISION:
                mend_torchvision()
            return importlib.import_module(name)
    except ModuleNotFoundError:
        give_up(f"{name} is not installed: {how_to_have(name)}")


@cache
def load(name):
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    for array in arrays.values():  # all tests share them, and none may change them
        array.flags.writeable = False
    return arrays


@pytest.fixture(scope="session")
def absent():
    """Skip, or fail where every part is promised: `absent("no git: install it")`."""
    return give_up


@pytest.fixture(scope="session")
def built():
    """Skip, or fail where every part is promised, unless the compiled module is there."""
    from calibrant._rows import compiled

    if compiled.loops is None:
        give_up("the compiled module was not built: `make build`, with a C compiler")


@pytest.fixture(scope="session")
def simulation():
    """Import a script of the simulations: `laws = simulation("laws")`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "simulations")
        yield importlib.import_module


@pytest.fixture(scope="session")
def part():
    """Import an optional package: `torch = part("torch")`."""
    return import_part


@pytest.fixture(scope="session")
def data():
    """Load the arrays of a real file: `data("cifar10_akamaster_resnet32")["logits"]`."""
    if not DATA.is_dir():
        give_up(f"no real outputs at {DATA}: set CALIBRANT_DATA")
    return load


@pytest.fixture(scope="session")
def data_path(data):
    """Where a real file is: `data_path("adult_random_forest")`."""
    return lambda name: DATA / f"{name}.npz"


def pytest_collection_modifyitems(items):
    for item in items:
        if "data" in getattr(item, "fixturenames", ()):
            item.add_marker("real_data")
