"""calibrant: how well calibrated a classifier's probabilities are, and how sharp.

Start with `evaluate` (or `evaluate_pairs`) and print what it returns.
"""

from typing import Any

import lazy_loader

from calibrant._version import __version__ as __version__

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load what is first used; if a package is missing, say what to install."""
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        from calibrant._base.checks import missing

        raise missing(error, f"{__name__}.{name}") from None
