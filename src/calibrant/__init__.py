"""calibrant: how well calibrated a classifier's probabilities are, and how sharp.

Start with `evaluate` (or `evaluate_pairs`) and print what it returns.
"""

from functools import cache
from typing import Any

from calibrant._version import __version__ as __version__


@cache
def _public() -> Any:
    """What the `.pyi` lists: how to load a name, and the names; read on first use."""
    import lazy_loader

    return lazy_loader.attach_stub(__name__, __file__)


def __dir__() -> list[str]:
    return list(_public()[1]())


def __getattr__(name: str) -> Any:
    """Load what is first used; if a package is missing, say what to install."""
    load, _, names = _public()
    if name == "__all__":
        return names
    try:
        return load(name)
    except ModuleNotFoundError as error:
        from calibrant._base.checks import missing

        raise missing(error, f"{__name__}.{name}") from None
